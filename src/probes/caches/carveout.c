/* L1 and shared memory may be one array: the more shared memory a block asks for, the less L1 there
 * is. The capacity left to the paths through that array is measured at several carve-outs. Together
 * with the granted shared memory it must always give the same sum. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "probes/caches/study.h"
#include "probes/method/repeats.h"

enum {
    WISHES_MAX = DEVICE_CARVEOUTS_MAX,
    WISHES_SOME = 5,
    WISHES_UNDOCUMENTED = 4,
    PATHS = 3,
    METRIC_MAX = 32,
    REASON_MAX = 120,
};

static const enum study_id paths[PATHS] = {STUDY_L1_DATA, STUDY_TEXTURE, STUDY_READ_ONLY};

static const char *const notes[PATHS] = {"l1_by_wish", "texture_by_wish", "read_only_by_wish"};

/* If L1 shrinks to less than this share when most of shared memory is asked for, both are one
 * array. */
static const double SHRUNK = 0.9;

/* The sums of L1 and shared memory agree within this share. */
static const double SUM_AGREEMENT = 0.02;

/* Wanted standard error of what is left to a path, as a share. */
static const double PRECISION = 0.005;

struct carveouts {
    uint64_t wishes[WISHES_MAX];
    uint64_t granted[WISHES_MAX]; /* as documented; 0: not known */
    size_t count;
    double left[PATHS][WISHES_MAX];   /* bytes of the path's cache; NAN: no such cache */
    double errors[PATHS][WISHES_MAX]; /* their standard errors */
};

/* The documented carve-outs from that of a job without a wish on: `most` of them, evenly chosen. If
 * none are documented: none, a quarter, half and three quarters of what a block may have. */
static void choose_wishes(const struct device_limits *limits, size_t most, struct carveouts *out)
{
    size_t steps = 0, first = 0;
    while (steps < DEVICE_CARVEOUTS_MAX && limits->carveout_steps[steps])
        steps++;
    while (first < steps && limits->carveout_steps[first] < limits->l1_carveout_bytes)
        first++;
    steps -= first;
    if (steps < 2) {
        out->count = WISHES_UNDOCUMENTED;
        for (size_t i = 0; i < out->count; i++)
            out->wishes[i] = limits->shared_bytes_max * i / out->count / 1024 * 1024;
        return;
    }
    out->count = steps < most ? steps : most;
    for (size_t i = 0; i < out->count; i++) {
        out->granted[i] = limits->carveout_steps[first + i * (steps - 1) / (out->count - 1)];
        out->wishes[i] = i ? out->granted[i] - limits->carveout_reserve_bytes : 0;
    }
}

/* A smaller array overflows a smaller cache: begin with the documented size of L1. */
static int measure_path(struct probe_context *context, enum study_id id,
                        const struct carveouts *carveouts, double *left, double *errors,
                        struct err *err)
{
    struct study study = context->studies[id];
    double first = study.resident_bytes;
    int rc = 0;
    for (size_t i = 0; i < carveouts->count && !rc; i++) {
        double taken = (double)(carveouts->granted[i] - carveouts->granted[0]);
        study.shared_bytes = carveouts->wishes[i];
        if (taken < first - (double)study.line_bytes)
            study.resident_bytes = first - taken;
        rc = study_capacity_again(context, &study, PRECISION, &left[i], &errors[i], err);
    }
    return rc;
}

static bool shrinks(const struct carveouts *carveouts, size_t path)
{
    const double *left = carveouts->left[path];
    return left[carveouts->count - 1] < SHRUNK * left[0];
}

/* The probability, from the standard errors, that L1 is on the side of SHRUNK on which it was
 * measured. */
static double shrinking_confidence(const struct carveouts *carveouts)
{
    const double *left = carveouts->left[0], *errors = carveouts->errors[0];
    size_t last = carveouts->count - 1;
    double distance = fabs(SHRUNK * left[0] - left[last]);
    double error = portable_hypot(SHRUNK * errors[0], errors[last]);
    return error > 0 ? portable_erfc(-distance / error / sqrt(2)) / 2 : NAN;
}

static void carveout_add_note(struct measure *m, const struct carveouts *carveouts, size_t path)
{
    double *wishes = mem_array(carveouts->count, sizeof *wishes);
    double *left = mem_array(carveouts->count, sizeof *left);
    for (size_t i = 0; i < carveouts->count; i++) {
        wishes[i] = (double)carveouts->wishes[i];
        left[i] = facts_decimals(carveouts->left[path][i], 0);
    }
    measure_note_pairs(m, notes[path], wishes, left, carveouts->count);
    free(wishes);
    free(left);
}

/* Checks the sum of L1 and granted shared memory at all carve-outs. */
static void check_sum(struct measure *m, const struct carveouts *carveouts)
{
    double low = INFINITY, high = 0;
    char reason[REASON_MAX];
    if (!carveouts->granted[0])
        return;
    for (size_t i = 0; i < carveouts->count; i++) {
        double sum = carveouts->left[0][i] + (double)carveouts->granted[i];
        low = fmin(low, sum);
        high = fmax(high, sum);
    }
    facts_set_int(&m->notes, "l1_and_granted_min", llround(low));
    facts_set_int(&m->notes, "l1_and_granted_max", llround(high));
    if (high - low <= SUM_AGREEMENT * high)
        return;
    snprintf(reason, sizeof reason,
             "L1 and the carve-outs documented add up to between %.0f and %.0f B", low, high);
    m->confidence = fmin(m->confidence, repeats_confidence(high, (high - low) / 2));
    measure_set_status(m, MEASURE_NOISY, reason);
}

static const char method[] = "caches by shared memory asked for";

static void report_carveout(struct probe_context *context, const struct carveouts *carveouts)
{
    const double *left = carveouts->left[0], *errors = carveouts->errors[0];
    size_t last = carveouts->count - 1;
    if (!shrinks(carveouts, 0)) {
        repeats_unsupported(context, "shared.carveout",
                            "L1 does not shrink when shared memory is asked for");
        return;
    }
    struct measure *m = measures_add(context->measures, "shared.carveout",
                                     round(left[0] - left[last]), "B", method);
    m->n = (uint32_t)carveouts->count;
    m->spread = portable_hypot(errors[0], errors[last]);
    m->confidence = repeats_confidence(m->value, m->spread);
    for (size_t i = 0; i < PATHS; i++)
        if (!isnan(carveouts->left[i][0]) && shrinks(carveouts, i))
            carveout_add_note(m, carveouts, i);
    check_sum(m, carveouts);
}

static int measure_all(struct probe_context *context, size_t most, struct carveouts *out,
                       struct err *err)
{
    choose_wishes(device_limits(context->device), most, out);
    for (size_t i = 0; i < PATHS; i++) {
        const struct study *study = &context->studies[paths[i]];
        out->left[i][0] = NAN;
        int rc = study_reach(context, paths[i], STUDY_RESIDENT, err);
        if (rc)
            return rc;
        if (study->supported && !study->unbounded)
            rc = measure_path(context, paths[i], out, out->left[i], out->errors[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int run_carveout(struct probe_context *context, struct err *err)
{
    static const char *const metrics[] = {"shared.shared_with", "shared.carveout"};
    const struct study *study = &context->studies[STUDY_L1_DATA];
    struct carveouts carveouts = {0};
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_REGION, err);
    if (rc)
        return rc;
    if (study->supported && !study->unbounded) {
        rc = measure_all(context, WISHES_SOME, &carveouts, err);
        if (rc)
            return rc;
        static const char *const word = "l1_data";
        struct measure *m = measures_add_words(context->measures, "shared.shared_with", &word,
                                               shrinks(&carveouts, 0), method);
        m->n = (uint32_t)carveouts.count;
        m->confidence = shrinking_confidence(&carveouts);
        report_carveout(context, &carveouts);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(metrics); i++)
        measures_add_missing(context->measures, metrics[i], MEASURE_UNSUPPORTED,
                             "there is no L1 for global loads to compare with");
    return 0;
}

const struct probe probe_shared_carveout = {
    .description = {"shared.carveout", "whether shared memory is taken from L1", PROFILE_STANDARD},
    .depends = {"l1_data.line", "texture.line", "read_only.line"},
    .metrics = {"shared.shared_with", "shared.carveout"},
    .run = run_carveout,
};

/* What each documented carve-out leaves to a path. */
static void report_sizes(struct probe_context *context, const struct carveouts *carveouts,
                         size_t path)
{
    const double *left = carveouts->left[path];
    char metric[METRIC_MAX];
    double granted[WISHES_MAX], sizes[WISHES_MAX];
    const size_t last = carveouts->count - 1;
    snprintf(metric, sizeof metric, "%s.size_by_carveout", study_name(paths[path]));
    if (isnan(left[0]) || !shrinks(carveouts, path)) {
        repeats_unsupported(context, metric, "it does not shrink when shared memory is asked for");
        return;
    }
    if (!carveouts->granted[0]) {
        repeats_unsupported(context, metric, "the carve-outs of this GPU are not documented");
        return;
    }
    for (size_t i = 0; i < carveouts->count; i++) {
        granted[i] = (double)carveouts->granted[i];
        sizes[i] = facts_decimals(left[i], 0);
    }
    struct measure *m =
        measures_add(context->measures, metric, sizes[last], "B",
                     "resident share at the largest carve-out; by_carveout: at every one");
    m->n = (uint32_t)carveouts->count;
    m->spread = carveouts->errors[path][last];
    m->confidence = repeats_confidence(m->value, m->spread);
    measure_note_pairs(m, "by_carveout", granted, sizes, carveouts->count);
}

static int run_sizes(struct probe_context *context, struct err *err)
{
    struct carveouts carveouts = {0};
    int rc = measure_all(context, WISHES_MAX, &carveouts, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < PATHS; i++)
        report_sizes(context, &carveouts, i);
    return 0;
}

const struct probe probe_shared_carveouts = {
    .description = {"shared.carveouts", "what every carve-out of shared memory leaves to L1",
                    PROFILE_FULL},
    .depends = {"l1_data.line", "texture.line", "read_only.line"},
    .metrics = {"l1_data.size_by_carveout", "texture.size_by_carveout",
                "read_only.size_by_carveout"},
    .run = run_sizes,
};
