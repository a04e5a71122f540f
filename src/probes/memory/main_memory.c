/* Latency of main memory: single cold loads whose pages are in the TLBs.
 *
 * Each element has a neighbour in the same page, beyond the reach of any fetch. A job loads all
 * neighbours, which brings in their pages, and times them again (hits of L2, plus what the TLBs add
 * over this footprint). Then it times the elements, which L2 does not have. If hits over this
 * footprint take longer than over the smallest one, the footprint is beyond the reach of a TLB and
 * is made smaller. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

enum {
    L2_FACTOR = 4,        /* largest footprint over the L2 that the driver reports */
    L2_BYTES_EACH = 4096, /* bytes of L2 per element: neighbours stay in L2, whatever their sets */
    ELEMENTS_MIN = 128,   /* per job */
    ELEMENTS_MAX = 1024,
    HITS_MAX = 256,        /* timed per job */
    SPACING_BYTES = 512,   /* of elements, at least */
    NEIGHBOUR_BYTES = 256, /* from its element: no L2 fetches more than 128 bytes at once */
    SHRINK = 4,
    JOBS_MAX = 12,      /* one after the other: nothing shares the memory with a timed load */
    JOBS_EXPENSIVE = 4, /* if loads are expensive */
    REPEATS = 3,
    REASON_MAX = 160,
};

static const uint64_t FOOTPRINT_MIN_BYTES = 8 * 1024 * 1024;

/* The largest part of the latency that TLBs may add, as a share. */
static const double TLB_SHARE = 0.01;

/* If more than this share of cold loads is as fast as the faster half of the hits, they were
 * hits. */
static const double HITS_SHARE = 0.01;

/* What one batch of jobs saw; timer included. */
struct look {
    struct pool hits, cold;
    double job_means[JOBS_MAX]; /* of the cold loads */
    double job_clocks[JOBS_MAX];
    size_t jobs;
};

/* What all repetitions saw. */
struct figures {
    struct pool hits, cold;
    double means[REPEATS], errors[REPEATS], clocks[REPEATS], tlb[REPEATS];
    size_t repeats;
};

static uint64_t element_count(const struct device_limits *limits)
{
    uint64_t count = limits->l2_reported_bytes / L2_BYTES_EACH;
    return count < ELEMENTS_MIN ? ELEMENTS_MIN : count > ELEMENTS_MAX ? ELEMENTS_MAX : count;
}

static uint64_t hit_count(const struct device_limits *limits)
{
    uint64_t count = element_count(limits);
    return count < HITS_MAX ? count : HITS_MAX;
}

static uint64_t smallest_footprint(const struct device_limits *limits)
{
    return element_count(limits) * SPACING_BYTES;
}

/* Whole elements at whole distances. */
static uint64_t round_footprint(uint64_t bytes, uint64_t smallest)
{
    return bytes > smallest ? bytes / smallest * smallest : smallest;
}

/* Reserved once for all rounds, so that no line is loaded twice. */
static int reserve_area(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct cold_area *area = &context->cold_area;
    uint64_t bytes = L2_FACTOR * limits->l2_reported_bytes, smallest = smallest_footprint(limits);
    if (area->bytes)
        return 0;
    if (bytes < FOOTPRINT_MIN_BYTES)
        bytes = FOOTPRINT_MIN_BYTES;
    if (limits->global_bytes && bytes > limits->global_bytes / 2)
        bytes = limits->global_bytes / 2;
    if (bytes < smallest)
        return err_set(err, -ENODATA, "%llu bytes of memory are too few for it",
                       (unsigned long long)limits->global_bytes);
    area->bytes = area->footprint_bytes = round_footprint(bytes, smallest);
    area->offset_bytes = probe_fresh(context, area->bytes + area->bytes / element_count(limits));
    return 0;
}

/* Successive footprints lie beside each other, and elements between those of earlier jobs. The
 * stride is an odd multiple, so that the sets of L2 are used evenly. */
static struct device_array next_array(struct probe_context *context, uint64_t footprint,
                                      uint64_t elements)
{
    struct cold_area *area = &context->cold_area;
    uint64_t beside = area->bytes / footprint, spacings = footprint / elements / SPACING_BYTES;
    uint64_t number = area->jobs++, stride = (spacings - !(spacings & 1)) * SPACING_BYTES;
    return (struct device_array){.path = DEVICE_GLOBAL_CG,
                                 .offset_bytes = area->offset_bytes + number % beside * footprint +
                                                 number / beside % spacings * SPACING_BYTES,
                                 .size_bytes = elements * stride,
                                 .stride_bytes = stride,
                                 .order = DEVICE_RANDOM,
                                 .seed = probe_seed(context)};
}

static void main_memory_collect(struct look *look, size_t job, const struct device_answer *answer)
{
    const struct device_sample *hits = &answer->samples[0], *cold = &answer->samples[1];
    pool_add(&look->hits, hits);
    if (answer->sample_count < 2)
        return;
    pool_add(&look->cold, cold);
    look->job_means[job] = chase_mean(cold);
    look->job_clocks[job] =
        cold->elapsed_ns ? (double)cold->total_cycles / (double)cold->elapsed_ns : 0;
}

/* SMs are not equally far from the memory: jobs are spread over them, in the same way each time. */
static int main_memory_look_at(struct probe_context *context, uint64_t footprint, bool cold,
                               struct look *out_look, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    uint64_t hits = hit_count(limits), count = cold ? element_count(limits) : hits;
    struct device_job jobs[JOBS_MAX];
    struct device_answer *answers;
    *out_look = (struct look){.jobs = limits->loads_max ? JOBS_EXPENSIVE : JOBS_MAX};
    for (size_t i = 0; i < out_look->jobs; i++) {
        struct device_array elements = next_array(context, footprint, count);
        struct device_array neighbours = elements;
        neighbours.offset_bytes += NEIGHBOUR_BYTES;
        jobs[i] = chase_job();
        jobs[i].cold_l2 = true;
        jobs[i].agents[0].sm = (int32_t)(i * limits->sm_count / out_look->jobs);
        chase_add(&jobs[i], DEVICE_WARM, &neighbours, 0);
        chase_add(&jobs[i], DEVICE_CHASE, &neighbours, hits);
        if (cold)
            chase_add(&jobs[i], DEVICE_CHASE, &elements, 0);
    }
    int rc = chase_run(context, jobs, out_look->jobs, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < out_look->jobs; i++)
        main_memory_collect(out_look, i, &answers[i]);
    chase_free(answers, out_look->jobs);
    return 0;
}

/* What slows single loads down wherever they are served, on average: it is no part of the memory's
 * latency. */
static double main_memory_disturbance(const struct pool *hits)
{
    return pool_mean(hits) - pool_lower_mean(hits, 1 - pool_centre(hits).spike_share);
}

/* Jobs differ by their SM and by their lines; this is the remaining error of their mean. */
static double standard_error(const double *values, size_t count)
{
    double mean = cpd_mean(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)(count - 1) / (double)count);
}

static void add_figures(struct figures *figures, const struct look *look, double tlb)
{
    size_t i = figures->repeats++;
    figures->means[i] = pool_mean(&look->cold) - main_memory_disturbance(&look->hits);
    figures->errors[i] = standard_error(look->job_means, look->jobs);
    figures->clocks[i] = cpd_median(look->job_clocks, look->jobs);
    figures->tlb[i] = tlb;
    pool_join(&figures->hits, &look->hits);
    pool_join(&figures->cold, &look->cold);
}

static int main_memory_measure_once(struct probe_context *context, struct figures *figures,
                                    struct err *err)
{
    uint64_t *footprint = &context->cold_area.footprint_bytes;
    const struct device_limits *limits = device_limits(context->device);
    uint64_t smallest = smallest_footprint(limits);
    struct look base, look;
    int rc = main_memory_look_at(context, hit_count(limits) * SPACING_BYTES, false, &base, err);
    if (rc)
        return rc;
    for (;;) {
        rc = main_memory_look_at(context, *footprint, true, &look, err);
        if (rc)
            return rc;
        double tlb = pool_mean(&look.hits) - pool_mean(&base.hits);
        if (*footprint == smallest || tlb <= TLB_SHARE * pool_mean(&look.cold)) {
            add_figures(figures, &look, tlb);
            return 0;
        }
        *footprint = round_footprint(*footprint / SHRINK, smallest);
    }
}

static void main_memory_add_notes(struct probe_context *context, const struct figures *figures,
                                  struct measure *m)
{
    double overhead = timer_overhead(context, DEVICE_GLOBAL_CG), near, far;
    double clock = cpd_median(figures->clocks, figures->repeats);
    uint64_t footprint = context->cold_area.footprint_bytes;
    if (clock > 0)
        facts_set_real(&m->notes, "ns", m->value / clock);
    pool_note_distribution(&figures->cold, overhead, &m->notes);
    if (pool_peaks(&figures->cold, &near, &far)) {
        facts_set_real(&m->notes, "near", near - overhead);
        facts_set_real(&m->notes, "far", far - overhead);
    }
    facts_set_int(&m->notes, "footprint", (int64_t)footprint);
    facts_set_real(&m->notes, "tlb", cpd_median(figures->tlb, figures->repeats));
}

/* Detects lines that L2 held nevertheless. */
static void check_hits(const struct figures *figures, struct measure *m)
{
    double hit = pool_quantile(&figures->hits, 0.5);
    double share = pool_share_below(&figures->cold, hit);
    char reason[REASON_MAX];
    if (share <= HITS_SHARE)
        return;
    snprintf(reason, sizeof reason,
             "%.1f %% of the cold loads took no longer than %.0f cycles, as hits of L2 do",
             100 * share, hit);
    measure_set_status(m, MEASURE_NOISY, reason);
}

/* What TLBs still add over the smallest footprint. */
static void check_tlb(double tlb_cycles, struct measure *m)
{
    char reason[REASON_MAX];
    if (tlb_cycles <= TLB_SHARE * m->value)
        return;
    snprintf(reason, sizeof reason, "misses of a TLB of small reach are in it: about %.0f cycles",
             tlb_cycles);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static int main_memory_run_latency(struct probe_context *context, struct err *err)
{
    struct figures figures = {0};
    struct err own = {0};
    size_t repeats = probe_repeats(context, REPEATS);
    int rc = reserve_area(context, &own);
    for (size_t i = 0; i < repeats && !rc; i++)
        rc = main_memory_measure_once(context, &figures, &own);
    if (rc)
        return repeats_end(context, "main.latency", rc, &own, err);
    for (size_t i = 0; i < repeats; i++)
        figures.means[i] -= timer_overhead(context, DEVICE_GLOBAL_CG);
    struct measure *m = repeats_add(context, "main.latency", figures.means, repeats, "cycles",
                                    "mean of single cold loads");
    m->n = (uint32_t)figures.cold.all;
    m->spread = fmax(m->spread, cpd_median(figures.errors, repeats));
    double tlb = cpd_median(figures.tlb, repeats);
    m->spread = fmax(m->spread, tlb);
    repeats_settle(m);
    check_tlb(tlb, m);
    check_hits(&figures, m);
    main_memory_add_notes(context, &figures, m);
    return 0;
}

const struct probe probe_main_latency = {
    .description = {"main.latency", "latency of main memory", PROFILE_QUICK},
    .metrics = {"main.latency"},
    .again = true,
    .within = 0.02,
    .run = main_memory_run_latency,
};
