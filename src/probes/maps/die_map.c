/* The probe that maps the die: how far each SM is from each slice of L2, and a short vector of that
 * by which a die is known again.
 *
 * Each SM chases the same lines alone. If several SMs run at once, requests for one line that meet
 * on their way are answered together, up to 40 cycles earlier. */
#include "probes/maps/die_map.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "inventory/fingerprint.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

/* Mean latencies over lines of both sides of the die.
 *
 * Half of the slices are near one half of the SMs, the other slices near the other half: 30 cycles
 * apart on H200s. Of 256 lines of other addresses, other shares lie on each side, which moves all
 * SMs of a side by up to 3 cycles. The first principal component of the latencies, less what an SM
 * and what a line has on average, tells the sides apart. */

enum { ITERATIONS = 30, SIDES = 2, HALVES = 2 };

/* Of the lines, on each side. If there are no sides, the component may be a single interrupted
 * load, whose line would count as much as all others. */
static const double SIDE_MIN = 0.25;

struct sides {
    const double *cycles;
    size_t sms, lines;
    double *of_sm, *of_line; /* means */
    double *weights;         /* per SM */
    double *axis;            /* per line: the first principal component */
};

/* Without what the SM and the line have on average. */
static double sides_rest(const struct sides *sides, size_t sm, size_t line)
{
    return sides->cycles[sm * sides->lines + line] - sides->of_sm[sm] - sides->of_line[line];
}

static void sides_average(struct sides *sides)
{
    for (size_t sm = 0; sm < sides->sms; sm++)
        for (size_t i = 0; i < sides->lines; i++)
            sides->of_sm[sm] += sides->cycles[sm * sides->lines + i] / (double)sides->lines;
    for (size_t i = 0; i < sides->lines; i++)
        for (size_t sm = 0; sm < sides->sms; sm++)
            sides->of_line[i] +=
                (sides->cycles[sm * sides->lines + i] - sides->of_sm[sm]) / (double)sides->sms;
}

/* Power iteration, from the latencies of the first SM. */
static void find_axis(struct sides *sides)
{
    for (size_t i = 0; i < sides->lines; i++)
        sides->axis[i] = sides_rest(sides, 0, i);
    for (int k = 0; k < ITERATIONS; k++) {
        double length = 0;
        for (size_t sm = 0; sm < sides->sms; sm++) {
            sides->weights[sm] = 0;
            for (size_t i = 0; i < sides->lines; i++)
                sides->weights[sm] += sides_rest(sides, sm, i) * sides->axis[i];
        }
        for (size_t i = 0; i < sides->lines; i++) {
            sides->axis[i] = 0;
            for (size_t sm = 0; sm < sides->sms; sm++)
                sides->axis[i] += sides_rest(sides, sm, i) * sides->weights[sm];
            length += sides->axis[i] * sides->axis[i];
        }
        for (size_t i = 0; i < sides->lines && length > 0; i++)
            sides->axis[i] /= sqrt(length);
    }
}

/* One side for all lines, unless there are two of about the same size. */
static void merge_unequal(struct sides *sides)
{
    size_t above = 0;
    for (size_t i = 0; i < sides->lines; i++)
        above += sides->axis[i] > 0;
    size_t smaller = above < sides->lines - above ? above : sides->lines - above;
    for (size_t i = 0; i < sides->lines && (double)smaller < SIDE_MIN * (double)sides->lines; i++)
        sides->axis[i] = 0;
}

/* The mean of both sides over every second line of each (half 0 or 1). */
static double half_mean(const struct sides *sides, size_t sm, size_t half)
{
    double sums[SIDES] = {0}, mean = 0;
    size_t seen[SIDES] = {0}, counts[SIDES] = {0}, used = 0;
    for (size_t i = 0; i < sides->lines; i++) {
        bool side = sides->axis[i] > 0;
        if (seen[side]++ % HALVES != half)
            continue;
        sums[side] += sides->cycles[sm * sides->lines + i];
        counts[side]++;
    }
    for (size_t s = 0; s < SIDES; s++) {
        mean += counts[s] ? sums[s] / (double)counts[s] : 0;
        used += counts[s] > 0;
    }
    return mean / (double)used;
}

static void take_means(struct sides *sides, double *out_means, double *out_error)
{
    for (size_t sm = 0; sm < sides->sms; sm++) {
        double first = half_mean(sides, sm, 0), second = half_mean(sides, sm, 1);
        out_means[sm] = (first + second) / 2;
        sides->weights[sm] = (first - second) / 2;
    }
    *out_error = CPD_MAD_SIGMA * cpd_mad(sides->weights, sides->sms);
}

void die_sides_means(const double *cycles, size_t sms, size_t lines, double *out_means,
                     double *out_error)
{
    struct sides sides = {.cycles = cycles, .sms = sms, .lines = lines};
    sides.of_sm = mem_array(sms, sizeof *sides.of_sm);
    sides.of_line = mem_array(lines, sizeof *sides.of_line);
    sides.weights = mem_array(sms, sizeof *sides.weights);
    sides.axis = mem_array(lines, sizeof *sides.axis);
    sides_average(&sides);
    find_axis(&sides);
    merge_unequal(&sides);
    take_means(&sides, out_means, out_error);
    free(sides.of_sm);
    free(sides.of_line);
    free(sides.weights);
    free(sides.axis);
}

/* Groups lines of L2 by their latencies from all SMs. */

/* Two lines of one slice differ by √2 standard deviations per SM, root mean square. A line belongs
 * to a group whose mean is nearer than this many of them: over many SMs chance adds little. */
static const double NEAR = 1.35;

/* Slices whose latencies differ by less than this share are one group. On H200s neighbours differ
 * by 2 or 3 cycles, groups of neighbours by more than 4. */
static const double ALIKE = 0.015;

enum { ROUNDS = 4 };

static double distance_to(const struct slice_profiles *profiles, const struct slice_groups *groups,
                          size_t line, size_t group)
{
    double sum = 0;
    for (size_t sm = 0; sm < profiles->sms; sm++) {
        double d = profiles->cycles[sm * profiles->lines + line] -
                   groups->cycles[group * profiles->sms + sm];
        sum += d * d;
    }
    return sqrt(sum / (double)profiles->sms);
}

static size_t nearest(const struct slice_profiles *profiles, const struct slice_groups *groups,
                      size_t line, double *out_distance)
{
    size_t best = 0;
    *out_distance = INFINITY;
    for (size_t g = 0; g < groups->count; g++) {
        double distance = distance_to(profiles, groups, line, g);
        best = distance < *out_distance ? g : best;
        *out_distance = fmin(*out_distance, distance);
    }
    return best;
}

/* Sets the means of the groups; a group without a line is removed. */
static void slice_groups_average(const struct slice_profiles *profiles, struct slice_groups *groups)
{
    size_t kept = 0, renamed[SLICE_GROUPS_MAX];
    memset(groups->sizes, 0, sizeof groups->sizes);
    for (size_t i = 0; i < profiles->lines; i++)
        groups->sizes[groups->of_line[i]]++;
    for (size_t g = 0; g < groups->count; g++) {
        renamed[g] = kept;
        groups->sizes[kept] = groups->sizes[g];
        kept += groups->sizes[g] > 0;
    }
    groups->count = kept;
    memset(groups->cycles, 0, kept * profiles->sms * sizeof *groups->cycles);
    for (size_t i = 0; i < profiles->lines; i++) {
        size_t g = renamed[groups->of_line[i]];
        groups->of_line[i] = (uint8_t)g;
        for (size_t sm = 0; sm < profiles->sms; sm++)
            groups->cycles[g * profiles->sms + sm] +=
                profiles->cycles[sm * profiles->lines + i] / (double)groups->sizes[g];
    }
}

/* Each line joins the nearest group; if that is too far and there is room, it begins a new one. */
static void slice_groups_assign(const struct slice_profiles *profiles, struct slice_groups *groups,
                                double limit)
{
    for (size_t i = 0; i < profiles->lines; i++) {
        double distance;
        size_t g = nearest(profiles, groups, i, &distance);
        if (distance > limit && groups->count < SLICE_GROUPS_MAX) {
            g = groups->count++;
            for (size_t sm = 0; sm < profiles->sms; sm++)
                groups->cycles[g * profiles->sms + sm] = profiles->cycles[sm * profiles->lines + i];
        }
        groups->of_line[i] = (uint8_t)g;
    }
}

void slice_groups_find(const struct slice_profiles *profiles, struct slice_groups *out_groups)
{
    struct slice_groups groups = {
        .of_line = mem_array(profiles->lines, sizeof *groups.of_line),
        .cycles = mem_array(SLICE_GROUPS_MAX * profiles->sms, sizeof *groups.cycles)};
    double mean = 0, cells = (double)(profiles->sms * profiles->lines);
    for (size_t i = 0; i < profiles->sms * profiles->lines; i++)
        mean += profiles->cycles[i] / cells;
    double limit = fmax(NEAR * sqrt(2) * profiles->noise_cycles, ALIKE * mean);
    for (int round = 0; round < ROUNDS; round++) {
        slice_groups_assign(profiles, &groups, limit);
        slice_groups_average(profiles, &groups);
    }
    *out_groups = groups;
}

void slice_groups_fini(struct slice_groups *groups)
{
    free(groups->of_line);
    free(groups->cycles);
    *groups = (struct slice_groups){0};
}

enum {
    LINES = 512,
    LINES_FEW = 128, /* on a simulated device, which executes each load */
    STRIDE_BYTES = 9 * 128,
    PASSES = 3,
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

static double *die_map_pass_of(const struct die *die, size_t sm, size_t pass)
{
    return die->passes + (sm * PASSES + pass) * die->lines;
}

static int run_hits(struct die *die, struct err *err)
{
    struct device_job *jobs = mem_array(die->sms, sizeof *jobs);
    struct device_answer *answers;
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
            die_map_pass_of(die, sm, 0)[i] =
                answers[sm].samples[i / die->lines].kept[i % die->lines] - overhead;
    chase_free(answers, die->sms);
    return 0;
}

/* Medians of the passes, and the standard deviation of a median as far as two passes show it. */
static void reduce(struct die *die)
{
    size_t cells = die->sms * die->lines;
    double *spreads = mem_array(cells, sizeof *spreads);
    for (size_t i = 0; i < cells; i++) {
        double values[PASSES];
        for (size_t p = 0; p < PASSES; p++)
            values[p] = die_map_pass_of(die, i / die->lines, p)[i % die->lines];
        die->cycles[i] = cpd_median(values, PASSES);
        spreads[i] = fabs(values[0] - values[1]);
    }
    double usual = cpd_median(die->cycles, cells);
    for (size_t i = 0; i < cells; i++)
        die->cycles[i] = fmin(die->cycles[i], INTERRUPTED * usual);
    die->noise_cycles =
        MEDIAN_ERROR * fmax(cpd_median(spreads, cells) / MEDIAN_DIFFERENCE, NOISE_MIN_CYCLES);
    free(spreads);
    die_sides_means(die->cycles, die->sms, die->lines, die->means, &die->error_cycles);
}

/* Of two groups, by their latency from SM 0. */
static int compare_groups(const void *a, const void *b)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    return (*x > *y) - (*x < *y);
}

/* Cycles by SM and then by group, nearest to SM 0 first. */
static void die_map_note_map(const struct die *die, const struct slice_groups *groups,
                             struct measure *m)
{
    double *map = mem_array(die->sms * groups->count, sizeof *map);
    const double *order[SLICE_GROUPS_MAX];
    for (size_t g = 0; g < groups->count; g++)
        order[g] = groups->cycles + g * die->sms;
    sort_stable(order, groups->count, sizeof *order, compare_groups);
    for (size_t i = 0; i < die->sms * groups->count; i++)
        map[i] = facts_decimals(order[i % groups->count][i / groups->count], 0);
    facts_set_rows(&m->notes, FINGERPRINT_MAP, map, die->sms, groups->count);
    free(map);
}

/* If nearly every line is a group of its own, slices are not told apart. How many groups there are
 * depends on noise: a picture, not a count. */
static void note_slices(struct die *die, struct measure *m)
{
    const struct slice_profiles profiles = {.cycles = die->cycles,
                                            .sms = die->sms,
                                            .lines = die->lines,
                                            .noise_cycles = die->noise_cycles};
    struct slice_groups groups;
    slice_groups_find(&profiles, &groups);
    if (groups.count < SLICE_GROUPS_MAX && 2 * groups.count <= die->lines)
        die_map_note_map(die, &groups, m);
    slice_groups_fini(&groups);
}

static void report_fingerprint(struct die *die)
{
    struct fingerprint fingerprint;
    if (die->sms > FINGERPRINT_SMS_MAX) {
        repeats_unsupported(die->context, "die.fingerprint", "too many SMs");
        return;
    }
    fingerprint_make(die->means, die->sms, die->error_cycles, &fingerprint);
    struct measure *m = repeats_add(die->context, "die.fingerprint", die->means, die->sms, "cycles",
                                    "mean latency of each SM to L2, alone");
    fingerprint_put(&fingerprint, &m->notes);
    m->n = (uint32_t)(die->sms * die->lines * PASSES);
    m->confidence = NAN;
    if (die->context->options->profile == PROFILE_FULL)
        note_slices(die, m);
}

static int die_map_run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct die die = {.context = context,
                      .sms = limits->sm_count,
                      .lines = limits->loads_max ? LINES_FEW : LINES};
    if (!die.sms) {
        repeats_unsupported(context, "die.fingerprint", "the number of SMs is not known");
        return 0;
    }
    die.array = (struct device_array){.path = DEVICE_GLOBAL_CG,
                                      .size_bytes = die.lines * STRIDE_BYTES,
                                      .stride_bytes = STRIDE_BYTES};
    die.array.offset_bytes = probe_fresh(context, die.array.size_bytes);
    die.passes = mem_array(die.sms * PASSES * die.lines, sizeof *die.passes);
    die.cycles = mem_array(die.sms * die.lines, sizeof *die.cycles);
    die.means = mem_array(die.sms, sizeof *die.means);
    int rc = run_hits(&die, err);
    if (!rc) {
        reduce(&die);
        report_fingerprint(&die);
    }
    free(die.passes);
    free(die.cycles);
    free(die.means);
    return rc;
}

const struct probe probe_die_map = {
    .description = {"die.map", "latency of each SM to each slice of L2", PROFILE_STANDARD},
    .metrics = {"die.fingerprint"},
    .run = die_map_run,
};
