/* The probe that maps the die: how far each SM is from each slice of L2, and a short vector of that
 * by which a die is known again.
 *
 * Each SM chases the same lines alone. If several SMs run at once, requests for one line that meet
 * on their way are answered together, up to 40 cycles earlier. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "inventory/fingerprint.h"
#include "probes/method/chase.h"
#include "probes/method/die_sides.h"
#include "probes/method/repeats.h"
#include "probes/method/slice_groups.h"
#include "probes/method/timer.h"

enum {
    LINES = 512,
    LINES_FEW = 128, /* on a simulated device, which executes each load */
    STRIDE_BYTES = 9 * 128,
    PASSES = 3,
    MAP_STEP_CYCLES = 2,
};

/* Loads above this many median ones were interrupted. */
static const double INTERRUPTED = 1.5;

/* Of normal values, in standard deviations: the median difference of two, and the standard error of
 * the median of three. A timer counts whole cycles. */
static const double MEDIAN_DIFFERENCE = 0.954, MEDIAN_ERROR = 0.67, NOISE_MIN_CYCLES = 0.5;

struct die {
    struct probe_context *context;
    struct device_array array;
    size_t sms, lines;
    double *passes;      /* by SM, pass and line */
    double *cycles;      /* by SM and line: median of the passes */
    double *means;       /* by SM: mean of the lines */
    double noise_cycles; /* standard deviation of one of `cycles` */
    double error_cycles; /* standard error of one of `means` */
};

static double *pass_of(const struct die *die, size_t sm, size_t pass)
{
    return die->passes + (sm * PASSES + pass) * die->lines;
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

/* Medians of the passes, and the standard deviation of a median as far as two passes show it. */
static int reduce(struct die *die, struct err *err)
{
    size_t cells = die->sms * die->lines;
    double *spreads = mem_array(cells, sizeof *spreads);
    if (!spreads)
        return err_no_memory(err);
    for (size_t i = 0; i < cells; i++) {
        double values[PASSES];
        for (size_t p = 0; p < PASSES; p++)
            values[p] = pass_of(die, i / die->lines, p)[i % die->lines];
        die->cycles[i] = cpd_median(values, PASSES);
        spreads[i] = fabs(values[0] - values[1]);
    }
    double usual = cpd_median(die->cycles, cells);
    for (size_t i = 0; i < cells; i++)
        die->cycles[i] = fmin(die->cycles[i], INTERRUPTED * usual);
    die->noise_cycles =
        MEDIAN_ERROR * fmax(cpd_median(spreads, cells) / MEDIAN_DIFFERENCE, NOISE_MIN_CYCLES);
    free(spreads);
    return die_sides_means(die->cycles, die->sms, die->lines, die->means, &die->error_cycles, err);
}

/* Of two groups, by their latency from SM 0. */
static int compare_groups(const void *a, const void *b)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    return (*x > *y) - (*x < *y);
}

/* One letter per cell, by SM and then by group, nearest to SM 0 first: in steps of 2 cycles from
 * the lowest latency on. */
static char *map_text(const struct die *die, const struct slice_groups *groups, double low)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct strbuf text = {0};
    const double *order[SLICE_GROUPS_MAX];
    for (size_t g = 0; g < groups->count; g++)
        order[g] = groups->cycles + g * die->sms;
    qsort(order, groups->count, sizeof *order, compare_groups);
    for (size_t sm = 0; sm < die->sms; sm++) {
        if (sm)
            strbuf_puts(&text, " ");
        for (size_t g = 0; g < groups->count; g++) {
            double step = (order[g][sm] - low) / MAP_STEP_CYCLES;
            strbuf_append(&text, &letters[(size_t)fmin(fmax(step, 0), sizeof letters - 2)], 1);
        }
    }
    if (!text.failed)
        return text.data;
    strbuf_fini(&text);
    return NULL;
}

static int note_map(const struct die *die, const struct slice_groups *groups, struct measure *m)
{
    double low = INFINITY;
    for (size_t i = 0; i < groups->count * die->sms; i++)
        low = fmin(low, groups->cycles[i]);
    char *text = map_text(die, groups, low);
    int rc = text && !facts_set_real(&m->notes, "from_cycles", low) &&
                     !facts_set_int(&m->notes, "step_cycles", MAP_STEP_CYCLES) &&
                     !facts_set_text(&m->notes, FINGERPRINT_MAP, text)
                 ? 0
                 : -ENOMEM;
    free(text);
    return rc;
}

/* If nearly every line is a group of its own, slices are not told apart. */
static int report_slices(struct die *die, struct err *err)
{
    const struct slice_profiles profiles = {.cycles = die->cycles,
                                            .sms = die->sms,
                                            .lines = die->lines,
                                            .noise_cycles = die->noise_cycles};
    struct slice_groups groups;
    int rc = slice_groups_find(&profiles, &groups, err);
    if (rc)
        return rc;
    struct measure *m =
        measures_add(die->context->measures, "die.slice_groups", (double)groups.count, "",
                     "lines of L2 grouped by their latency from every SM");
    bool apart = groups.count == SLICE_GROUPS_MAX || 2 * groups.count > die->lines;
    if (!m || facts_set_real(&m->notes, "noise_cycles", die->noise_cycles) ||
        (apart && measure_set_status(m, MEASURE_NOISY, "lines do not fall into groups")) ||
        (!apart && die->context->options->profile == PROFILE_FULL && note_map(die, &groups, m)))
        rc = err_no_memory(err);
    if (m) {
        m->n = (uint32_t)die->lines;
        m->confidence = NAN;
    }
    slice_groups_fini(&groups);
    return rc;
}

static int report_fingerprint(struct die *die, struct err *err)
{
    char text[FINGERPRINT_TEXT_MAX];
    struct fingerprint fingerprint;
    if (die->sms > FINGERPRINT_SMS_MAX)
        return repeats_unsupported(die->context, "die.fingerprint", "too many SMs", err);
    fingerprint_make(die->means, die->sms, die->error_cycles, &fingerprint);
    fingerprint_print(&fingerprint, text);
    struct measure *m = repeats_add(die->context, "die.fingerprint", die->means, die->sms, "cycles",
                                    "mean latency of each SM to L2, alone");
    if (!m || facts_set_text(&m->notes, FINGERPRINT_FACT, text))
        return err_no_memory(err);
    m->n = (uint32_t)(die->sms * die->lines * PASSES);
    m->confidence = NAN;
    return 0;
}

static int report(struct die *die, struct err *err)
{
    int rc = report_slices(die, err);
    return rc ? rc : report_fingerprint(die, err);
}

static int run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct die die = {.context = context,
                      .sms = limits->sm_count,
                      .lines = limits->loads_max ? LINES_FEW : LINES};
    if (!die.sms)
        return repeats_unsupported(context, "die.slice_groups", "the number of SMs is not known",
                                   err);
    die.array = (struct device_array){.path = DEVICE_GLOBAL_CG,
                                      .size_bytes = die.lines * STRIDE_BYTES,
                                      .stride_bytes = STRIDE_BYTES};
    die.array.offset_bytes = probe_fresh(context, die.array.size_bytes);
    die.passes = mem_array(die.sms * PASSES * die.lines, sizeof *die.passes);
    die.cycles = mem_array(die.sms * die.lines, sizeof *die.cycles);
    die.means = mem_array(die.sms, sizeof *die.means);
    int rc = die.passes && die.cycles && die.means ? 0 : err_no_memory(err);
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
    .metrics = {"die.slice_groups", "die.fingerprint"},
    .run = run,
};
