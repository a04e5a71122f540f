/* The latency spectrum: a load that data cache and TLBs serve, or not (Mei and Chu, section 5.2).
 */
#include <math.h>
#include <stdio.h>

#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"
#include "probes/tlb/page_chase.h"

/* Jobs of one figure: hits differ by the place of the line in L2, so few pages need many lines. */
enum { JOBS_HITS = 24, JOBS_COLD = 6, JOBS_MANY = 3, REPEATS = 3 };

enum { NAME_MAX_BYTES = 48, REASON_MAX = 120 };

enum {
    NEAR_PAGES = 8,   /* at most, in the first TLB */
    HITS_MIN = 256,   /* timed loads of a job */
    COLD_LOADS = 512, /* of a job over pages that are in the first TLB */
    COLD_APART = 512,
    WARM_PASSES = 2, /* over few pages: not every TLB takes a page at once */
    MANY_PAGES = 1024,
    PAGE_ASSUMED = 2 << 20, /* where no TLB was seen */
};

/* P6 differs from P5 only if it takes longer by more than this share. */
static const double SWITCH_SHARE = 0.05;

static const double DOUBTED = 0.5;

/* What misses of TLBs add may differ by so much between this probe and that of the TLBs: shares of
 * the penalties and of the latency. */
static const double PENALTY_WITHIN = 0.1, VALUE_WITHIN = 0.025;

static const char UNSURE_TLBS[] = "the TLBs that it rests on are not certain";

/* Where the page of a load is found. IN_NONE: in no level that was seen. Whether a further TLB or
 * the page table has it is not known. */
enum place { IN_FIRST, IN_SECOND, IN_NONE };

static const struct pattern {
    const char *name;
    bool cold; /* the line is in memory, not in L2 */
    enum place place;
    bool scattered; /* successive pages lie anywhere in memory */
} patterns[] = {
    {"p1", false, IN_FIRST, false}, {"p2", false, IN_SECOND, false}, {"p3", false, IN_NONE, false},
    {"p4", true, IN_FIRST, false},  {"p5", true, IN_NONE, false},    {"p6", true, IN_NONE, true},
};

enum { P1, P2, P3, P4, P5, P6, PATTERNS };

/* What the TLB probe found. miss_cycles: what a load adds that misses this level and those before
 * it; NAN: not known. */
struct tlb {
    double entries, sets, span_bytes, miss_cycles;
};

struct spectrum {
    struct page_chase chase;
    struct tlb tlbs[2];
    size_t levels;
    bool doubtful;           /* the TLBs are not certain */
    uint64_t fresh;          /* jobs that loaded lines from memory so far */
    double values[PATTERNS]; /* NAN: none */
};

static const struct measure *figure_of(const struct probe_context *context, size_t level,
                                       const char *what)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.%s", level + 1, what);
    const struct measure *m = measures_get(context->measures, metric);
    return m && measure_status_valued(m->status) ? m : NULL;
}

static bool spectrum_is_sure(const struct measure *m)
{
    return m && m->status == MEASURE_OK;
}

/* The first level and the last one: between them nothing is told apart. */
static void find_tlbs(const struct probe_context *context, struct spectrum *spectrum)
{
    const struct measure *m = measures_get(context->measures, "tlb.levels");
    size_t count = m && measure_status_valued(m->status) ? (size_t)m->value : 0;
    spectrum->levels = count < 2 ? count : 2;
    spectrum->doubtful = !spectrum_is_sure(m);
    double miss_cycles = 0;
    for (size_t i = 0, next = 0; i < spectrum->levels; i++) {
        size_t level = i ? count - 1 : 0;
        for (; next <= level; next++) {
            const struct measure *penalty = figure_of(context, next, "penalty");
            miss_cycles += spectrum_is_sure(penalty) ? penalty->value : NAN;
        }
        const struct measure *entries = figure_of(context, level, "entries");
        const struct measure *span = figure_of(context, level, "span");
        const struct measure *sets = figure_of(context, level, "sets");
        spectrum->doubtful =
            spectrum->doubtful || !spectrum_is_sure(entries) || !spectrum_is_sure(span);
        if (!entries || !span) {
            spectrum->levels = i;
            break;
        }
        spectrum->tlbs[i] = (struct tlb){.entries = entries->value,
                                         .span_bytes = span->value,
                                         .sets = sets ? sets->value : 0,
                                         .miss_cycles = miss_cycles};
    }
}

/* So many pages that each of them misses. A level of unknown sets gets four times its entries. */
static uint64_t overfull(const struct tlb *tlb)
{
    double pages = fmax(1.5 * tlb->entries, tlb->entries + tlb->sets + 2);
    return (uint64_t)(tlb->sets > 0 ? pages : 4 * tlb->entries);
}

struct pages {
    uint64_t count, stride;
};

/* Whether there are pages of such a place. */
enum choice { CHOSEN, NO_TLB, TOO_FAR };

static const char *const reasons[] = {
    [NO_TLB] = "no TLB was seen that such loads miss",
    [TOO_FAR] = "the pages that such loads need are more than memory, L2 or the next TLB have"};

static enum choice choose_pages(const struct spectrum *spectrum, const struct pattern *pattern,
                                struct pages *out_pages)
{
    const struct tlb *first = &spectrum->tlbs[0], *last = &spectrum->tlbs[spectrum->levels - 1];
    struct pages pages = {.count = NEAR_PAGES, .stride = PAGE_ASSUMED};
    if (pattern->place == IN_FIRST && spectrum->levels) {
        pages.stride = (uint64_t)first->span_bytes;
        if (first->entries < 2 * NEAR_PAGES)
            pages.count = (uint64_t)(first->entries + 1) / 2;
    } else if (pattern->place == IN_SECOND) {
        if (spectrum->levels < 2)
            return NO_TLB;
        pages = (struct pages){overfull(first), (uint64_t)first->span_bytes};
        if ((double)pages.count > last->entries * last->span_bytes / first->span_bytes)
            return TOO_FAR;
    } else if (pattern->place == IN_NONE) {
        if (!spectrum->levels)
            return NO_TLB;
        pages = (struct pages){overfull(last), (uint64_t)last->span_bytes};
    }
    uint64_t room = page_chase_room(&spectrum->chase, pages.stride);
    if (pattern->scattered && pages.count <= room)
        pages.stride = page_chase_stride(&spectrum->chase, pages.count);
    *out_pages = pages;
    return pages.count <= room && pages.count <= spectrum->chase.pages_max ? CHOSEN : TOO_FAR;
}

/* The pages are visited in the same order as before, at lines that nobody has loaded. */
static void add_cold(struct spectrum *spectrum, const struct pattern *pattern,
                     const struct pages *pages, const struct device_array *warm, uint64_t seed,
                     struct device_job *job)
{
    struct device_array cold = *warm;
    uint64_t shift = pages->stride / 2 + spectrum->fresh++ * COLD_APART % (pages->stride / 4);
    cold.offset_bytes = shift / COLD_APART * COLD_APART;
    if (pattern->place == IN_FIRST) {
        /* Lines anywhere in these pages, as single loads of main.latency are. */
        uint64_t lines = (pages->count - 1) * pages->stride / COLD_LOADS / PAGE_CHASE_LINE_BYTES;
        cold.stride_bytes = (lines > 1 ? lines - !(lines & 1) : 1) * PAGE_CHASE_LINE_BYTES;
        cold.size_bytes = COLD_LOADS * cold.stride_bytes;
        cold.order = DEVICE_RANDOM;
        cold.seed = seed;
    }
    job->cold_l2 = true;
    chase_add(job, DEVICE_CHASE, &cold, 0);
}

static struct device_job spectrum_make_job(struct spectrum *spectrum, const struct pattern *pattern,
                                           const struct pages *pages, uint64_t seed,
                                           uint32_t number)
{
    struct device_array array = page_chase_array(pages->stride, pages->count, number);
    struct device_job job = chase_job();
    uint64_t passes = HITS_MIN / pages->count + 1;
    if (pattern->scattered) {
        array.order = DEVICE_RANDOM;
        array.seed = seed;
    }
    job.agents[0].sm = 0;
    chase_add(&job, DEVICE_WARM, &array,
              pages->count > MANY_PAGES ? pages->count : WARM_PASSES * pages->count);
    if (pattern->cold)
        add_cold(spectrum, pattern, pages, &array, seed, &job);
    else
        chase_add(&job, DEVICE_CHASE, &array, passes * pages->count);
    return job;
}

/* The mean of the middle half: in some jobs many lines may fall into one set of L2, and miss. */
static double middle_half(const double *means, uint32_t count)
{
    double low = cpd_quantile(means, count, 0.25), high = cpd_quantile(means, count, 0.75), sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (means[i] >= low && means[i] <= high) {
            sum += means[i];
            n++;
        }
    return sum / n;
}

static int spectrum_measure_once(struct probe_context *context, struct spectrum *spectrum,
                                 const struct pattern *pattern, const struct pages *pages,
                                 double *out_cycles, struct err *err)
{
    struct device_job jobs[JOBS_HITS] = {0};
    struct device_answer *answers;
    uint32_t count = pages->count > MANY_PAGES ? JOBS_MANY : pattern->cold ? JOBS_COLD : JOBS_HITS;
    double means[JOBS_HITS];
    for (uint32_t i = 0; i < count; i++)
        jobs[i] = spectrum_make_job(spectrum, pattern, pages, probe_seed(context), i);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++)
        means[i] = chase_mean(&answers[i].samples[0]);
    chase_free(answers, count);
    *out_cycles = middle_half(means, count) - timer_overhead(context, DEVICE_GLOBAL_CG);
    return 0;
}

/* What the latency consists of: L2, what the TLBs add, what the memory adds. */
static void add_parts(const struct spectrum *spectrum, size_t number, struct measure *m)
{
    const struct pattern *pattern = &patterns[number];
    double l2 = spectrum->values[P1], memory = spectrum->values[P4] - l2;
    if (isnan(l2))
        return;
    facts_set_real(&m->notes, "l2", l2);
    if (pattern->cold)
        facts_set_real(&m->notes, "memory", memory);
    if (pattern->place == IN_FIRST)
        return;
    facts_set_real(&m->notes, "tlb", m->value - l2 - (pattern->cold ? memory : 0));
}

static void spectrum_leave_out(struct probe_context *context, size_t number, const char *reason)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "spectrum.%s", patterns[number].name);
    repeats_unsupported(context, metric, reason);
}

/* "unsupported" only if the TLBs that were seen are certain. */
static void leave_out_place(struct probe_context *context, const struct spectrum *spectrum,
                            size_t number, enum choice choice)
{
    char metric[NAME_MAX_BYTES];
    if (choice == NO_TLB && !spectrum->doubtful) {
        spectrum_leave_out(context, number, reasons[choice]);
        return;
    }
    snprintf(metric, sizeof metric, "spectrum.%s", patterns[number].name);
    measures_add_missing(context->measures, metric, MEASURE_FAILED,
                         spectrum->doubtful ? UNSURE_TLBS : reasons[choice]);
}

/* Lines in L2, behind TLBs whose penalties were measured by other chases: both must say the same.
 * They do not if some of the lines were not in L2. */
static void compare_penalties(const struct spectrum *spectrum, size_t number,
                              char reason[REASON_MAX])
{
    const struct pattern *pattern = &patterns[number];
    double value = spectrum->values[number], added = value - spectrum->values[P1];
    double known =
        spectrum->tlbs[pattern->place == IN_SECOND ? 0 : spectrum->levels - 1].miss_cycles;
    if (pattern->cold ||
        !(fabs(added - known) > fmax(PENALTY_WITHIN * known, VALUE_WITHIN * value)))
        return;
    snprintf(reason, REASON_MAX, "misses of TLBs add %.0f cycles here, and %.0f by tlb.*.penalty",
             added, known);
}

static void spectrum_report(struct probe_context *context, struct spectrum *spectrum, size_t number,
                            const double *cycles)
{
    char metric[NAME_MAX_BYTES], reason[REASON_MAX] = "";
    double value = spectrum->values[number];
    snprintf(metric, sizeof metric, "spectrum.%s", patterns[number].name);
    if (number == P6 && value < (1 + SWITCH_SHARE) * spectrum->values[P5]) {
        spectrum_leave_out(context, number, "pages anywhere in memory take no longer than P5");
        return;
    }
    struct measure *m =
        repeats_add(context, metric, cycles, REPEATS, "cycles", "mean of single loads over pages");
    repeats_settle(m);
    add_parts(spectrum, number, m);
    if (patterns[number].place == IN_FIRST)
        return;
    if (spectrum->doubtful)
        snprintf(reason, sizeof reason, "%s", UNSURE_TLBS);
    else
        compare_penalties(spectrum, number, reason);
    if (!*reason)
        return;
    m->confidence = fmin(m->confidence, DOUBTED);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static int run_pattern(struct probe_context *context, struct spectrum *spectrum, size_t number,
                       struct err *err)
{
    double cycles[REPEATS], sorted[REPEATS];
    struct pages pages;
    enum choice choice = choose_pages(spectrum, &patterns[number], &pages);
    if (choice != CHOSEN) {
        leave_out_place(context, spectrum, number, choice);
        return 0;
    }
    for (size_t i = 0; i < REPEATS; i++) {
        int rc =
            spectrum_measure_once(context, spectrum, &patterns[number], &pages, &cycles[i], err);
        if (rc)
            return rc;
        sorted[i] = cycles[i];
    }
    spectrum->values[number] = cpd_median(sorted, REPEATS);
    spectrum_report(context, spectrum, number, cycles);
    return 0;
}

static int spectrum_run(struct probe_context *context, struct err *err)
{
    struct spectrum spectrum = {0};
    struct err own = {0};
    int rc = page_chase_open(context, &spectrum.chase, &own);
    if (rc)
        return repeats_end(context, "spectrum.p1", rc, &own, err);
    find_tlbs(context, &spectrum);
    for (size_t i = 0; i < PATTERNS; i++)
        spectrum.values[i] = NAN;
    for (size_t i = 0; i < PATTERNS && !rc; i++)
        rc = run_pattern(context, &spectrum, i, err);
    return rc;
}

const struct probe probe_spectrum = {
    .description = {"spectrum", "latency by what data cache and TLBs hold", PROFILE_FULL},
    .depends = {"tlb"},
    .metrics = {"spectrum.p1", "spectrum.p2", "spectrum.p3", "spectrum.p4", "spectrum.p5",
                "spectrum.p6"},
    .last = true, /* it takes all memory */
    .run = spectrum_run,
};
