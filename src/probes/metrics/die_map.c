/* The probe that maps the die: how far each SM is from each slice of L2, and a short vector of that
 * by which a die is known again.
 *
 * Each SM chases the same lines alone. If several SMs run at once, requests for one line that meet
 * on their way are answered together, up to 40 cycles earlier. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "probes/method/slice_groups.h"
#include "probes/method/timer.h"

enum {
    LINES = 512,
    LINES_FEW = 128, /* on a simulated device, which executes each load */
    STRIDE_BYTES = 9 * 128,
    PASSES = 3,
    PAGE_BYTES = 64 * 1024,
    COLD_JOBS = 32,
};

/* Loads above this many median ones were interrupted. */
static const double INTERRUPTED = 1.5;

struct die {
    struct probe_context *context;
    struct device_array array;
    size_t sms, lines;
    double *passes; /* by SM, pass and line */
    double *cycles; /* by SM and line: median of the passes */
    double *means;  /* by SM: mean of the lines */
    double noise_cycles;
};

static double *pass_of(const struct die *die, size_t sm, size_t pass)
{
    return die->passes + (sm * PASSES + pass) * die->lines;
}

/* Loads the lines while L2 is cold, to time main memory behind each slice; also touches all pages,
 * between the lines. */
static int run_cold(struct die *die, struct err *err)
{
    struct device_job jobs[COLD_JOBS];
    struct device_answer *answers;
    struct device_array pages = die->array;
    pages.offset_bytes += STRIDE_BYTES / 2 / 128 * 128;
    pages.stride_bytes = PAGE_BYTES / STRIDE_BYTES * STRIDE_BYTES;
    pages.size_bytes = die->array.size_bytes / pages.stride_bytes * pages.stride_bytes;
    for (size_t i = 0; i < COLD_JOBS; i++) {
        jobs[i] = chase_job();
        jobs[i].cold_l2 = true;
        jobs[i].agents[0].sm = (int32_t)(i * die->sms / COLD_JOBS);
        chase_add(&jobs[i], DEVICE_WARM, &pages, 0);
        chase_add(&jobs[i], DEVICE_CHASE, &die->array, 0)->keep = (uint32_t)die->lines;
    }
    int rc = chase_run(die->context, jobs, COLD_JOBS, 1, &answers, err);
    if (rc)
        return rc;
    device_answers_fini(answers, COLD_JOBS);
    free(answers);
    return 0;
}

static int run_hits(struct die *die, struct err *err)
{
    struct device_job *jobs = mem_array(die->sms, sizeof *jobs);
    struct device_answer *answers;
    if (!jobs)
        return err_no_memory(err);
    for (size_t sm = 0; sm < die->sms; sm++) {
        jobs[sm] = chase_job();
        jobs[sm].agents[0].sm = (int32_t)sm;
        chase_add(&jobs[sm], DEVICE_WARM, &die->array, 0);
        for (size_t p = 0; p < PASSES; p++)
            chase_add(&jobs[sm], DEVICE_CHASE, &die->array, 0)->keep = (uint32_t)die->lines;
    }
    int rc = chase_run(die->context, jobs, die->sms, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    double overhead = timer_overhead(die->context, die->array.path);
    for (size_t sm = 0; sm < die->sms; sm++)
        for (size_t i = 0; i < PASSES * die->lines; i++)
            pass_of(die, sm, 0)[i] =
                answers[sm].samples[i / die->lines].kept[i % die->lines] - overhead;
    device_answers_fini(answers, die->sms);
    free(answers);
    return 0;
}

/* Medians of the passes, means of the lines, and the standard deviation of a median as far as two
 * passes show it. */
static int reduce(struct die *die, struct err *err)
{
    double *spreads = mem_array(die->sms * die->lines, sizeof *spreads);
    if (!spreads)
        return err_no_memory(err);
    for (size_t sm = 0; sm < die->sms; sm++)
        for (size_t i = 0; i < die->lines; i++) {
            double values[PASSES];
            for (size_t p = 0; p < PASSES; p++)
                values[p] = pass_of(die, sm, p)[i];
            die->cycles[sm * die->lines + i] = cpd_median(values, PASSES);
            spreads[sm * die->lines + i] = fabs(values[0] - values[1]);
        }
    double usual = cpd_median(die->cycles, die->sms * die->lines);
    /* The median difference of two normal values is 0.954 standard deviations. */
    die->noise_cycles = fmax(cpd_median(spreads, die->sms * die->lines) / 0.954, 0.5) * 0.67;
    free(spreads);
    for (size_t sm = 0; sm < die->sms; sm++) {
        double sum = 0, count = 0;
        for (size_t i = 0; i < die->lines; i++) {
            double cycles = die->cycles[sm * die->lines + i];
            if (cycles > INTERRUPTED * usual)
                continue;
            sum += cycles;
            count++;
        }
        die->means[sm] = count > 0 ? sum / count : usual;
    }
    return 0;
}

static int report(struct die *die, struct err *err)
{
    const struct slice_profiles profiles = {.cycles = die->cycles,
                                            .sms = die->sms,
                                            .lines = die->lines,
                                            .noise_cycles = die->noise_cycles};
    struct slice_groups groups;
    int rc = slice_groups_find(&profiles, &groups, err);
    if (rc)
        return rc;
    struct measure *m = measures_add(die->context->measures, "die.slices", (double)groups.count, "",
                                     "lines grouped by their latency from every SM");
    if (m) {
        m->n = (uint32_t)die->lines;
        m->confidence = NAN;
    }
    slice_groups_fini(&groups);
    if (!m || facts_set_real(&m->notes, "noise_cycles", die->noise_cycles))
        return err_no_memory(err);
    return 0;
}

static int run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct die die = {.context = context,
                      .sms = limits->sm_count,
                      .lines = limits->loads_max ? LINES_FEW : LINES};
    if (!die.sms)
        return repeats_unsupported(context, "die.slices", "the number of SMs is not known", err);
    die.array = (struct device_array){.path = DEVICE_GLOBAL_CG,
                                      .size_bytes = die.lines * STRIDE_BYTES,
                                      .stride_bytes = STRIDE_BYTES};
    die.array.offset_bytes = probe_fresh(context, die.array.size_bytes);
    die.passes = mem_array(die.sms * PASSES * die.lines, sizeof *die.passes);
    die.cycles = mem_array(die.sms * die.lines, sizeof *die.cycles);
    die.means = mem_array(die.sms, sizeof *die.means);
    int rc = die.passes && die.cycles && die.means ? 0 : err_no_memory(err);
    if (!rc)
        rc = run_cold(&die, err);
    if (!rc)
        rc = run_hits(&die, err);
    if (!rc)
        rc = reduce(&die, err);
    if (!rc)
        rc = report(&die, err);
    free(die.passes);
    free(die.cycles);
    free(die.means);
    return rc;
}

const struct probe probe_die_map = {
    .description = {"die.map", "latency of each SM to each slice of L2", PROFILE_STANDARD},
    .metrics = {"die.slices"},
    .run = run,
};
