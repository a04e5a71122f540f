/* The probe of the caches of instructions: how large each level is, what an instruction costs in
 * it, and how many SMs share it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "device/straight.h"
#include "probes/method/code_levels.h"
#include "probes/method/code_sharing.h"
#include "probes/method/level.h"
#include "probes/method/repeats.h"

/* A curve on each of so many SMs; passes of each length. */
enum { CURVES = 5, PASSES = 4, AGREE_MIN = 4, NAME_MAX_BYTES = 64, REASON_MAX = 160 };

/* Code of so many lengths shows what an instruction costs on each SM. */
enum { COST_POINTS = 4 };

/* The loop around the code occupies the cache too, and what is fetched ahead behind its end. */
static const double LOOP_BYTES = 384;

/* Of the level's size: two copies of so much do not fit. It must not fit into the level before. */
static const double SHARED_SHARE = 0.75, SHARED_MAX = 0.9, BEFORE_SHARE = 1.25;

/* Beyond the last level, all code comes from there if a pass costs about so much of its length. */
static const double COMPLETE_SHARE = 0.8;

/* What the curves agree on. */
struct found {
    struct code_curve curves[CURVES];
    struct code_levels levels[CURVES];
    size_t curve_count;
    size_t level_count; /* with the last one, which has no size */
    size_t agree;       /* curves with so many levels */
    uint32_t instruction_bytes;
};

static int measure_pass(struct probe_context *context, uint32_t sm, uint32_t length,
                        double *out_cycles, uint32_t *out_instruction_bytes, struct err *err)
{
    const struct device_straight straight = {
        .jobs = {{.sm = sm, .length = length, .repeats = PASSES}}, .job_count = 1};
    struct device_straight_answer answer;
    int rc = device_run_straight(context->device, &straight, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.cycles[0] / PASSES;
    *out_instruction_bytes = answer.instruction_bytes;
    return 0;
}

static int measure_curve(struct probe_context *context, uint32_t sm, struct found *found,
                         struct err *err)
{
    struct code_curve *curve = &found->curves[found->curve_count];
    uint32_t length;
    for (size_t i = 0; (length = device_straight_length(i)); i++) {
        int rc =
            measure_pass(context, sm, length, &curve->cycles[i], &found->instruction_bytes, err);
        if (rc)
            return rc;
        curve->lengths[i] = length;
        curve->count = i + 1;
    }
    code_levels_find(curve, &found->levels[found->curve_count++]);
    return 0;
}

/* The number of levels that most curves have. */
static void count_levels(struct found *found)
{
    for (size_t i = 0; i < found->curve_count; i++) {
        size_t agree = 0;
        for (size_t k = 0; k < found->curve_count; k++)
            agree += found->levels[k].count == found->levels[i].count;
        if (agree > found->agree) {
            found->agree = agree;
            found->level_count = found->levels[i].count;
        }
    }
}

static bool counts(const struct found *found, size_t curve)
{
    return found->levels[curve].count == found->level_count;
}

/* The distance between neighbouring lengths at a size. */
static double step_at(const struct found *found, double size)
{
    const struct code_curve *curve = &found->curves[0];
    size_t i = 1;
    while (i + 1 < curve->count && (double)curve->lengths[i] * found->instruction_bytes < size)
        i++;
    return (double)(curve->lengths[i] - curve->lengths[i - 1]) * found->instruction_bytes;
}

/* Sizes of a level by the curves that have as many levels, in whole steps. */
static size_t collect_sizes(const struct found *found, size_t level, double *out_sizes)
{
    size_t count = 0;
    for (size_t i = 0; i < found->curve_count; i++) {
        double holds = found->levels[i].levels[level].holds;
        double size = holds * found->instruction_bytes + LOOP_BYTES, step = step_at(found, size);
        if (counts(found, i))
            out_sizes[count++] = round(size / step) * step;
    }
    return count;
}

static double size_of(const struct found *found, size_t level)
{
    double sizes[CURVES];
    return cpd_quantile(sizes, collect_sizes(found, level, sizes), 0.5);
}

static double cycles_of(const struct found *found, size_t level)
{
    double cycles[CURVES];
    size_t count = 0;
    for (size_t i = 0; i < found->curve_count; i++)
        if (counts(found, i))
            cycles[count++] = found->levels[i].levels[level].cycles;
    return cpd_quantile(cycles, count, 0.5);
}

/* True when enough SMs show the same levels. Otherwise a level may have been overlooked, and the
 * figures of one may be those of another. */
static bool agreed(const struct found *found)
{
    return found->agree >= AGREE_MIN || found->agree == found->curve_count;
}

static int doubt_unless_agreed(const struct found *found, struct measure *m, struct err *err)
{
    if (agreed(found) || m->status != MEASURE_OK)
        return 0;
    return measure_set_status(m, MEASURE_NOISY, "SMs disagree") ? err_no_memory(err) : 0;
}

static void name_level(size_t level, const char *what, char out_name[NAME_MAX_BYTES])
{
    snprintf(out_name, NAME_MAX_BYTES, "instruction_cache.level%zu.%s", level + 1, what);
}

static int report_size(struct probe_context *context, const struct found *found, size_t level,
                       struct err *err)
{
    char metric[NAME_MAX_BYTES];
    double sizes[CURVES], size = size_of(found, level), step = step_at(found, size);
    size_t count = collect_sizes(found, level, sizes), same = 0;
    for (size_t i = 0; i < count; i++)
        same += fabs(sizes[i] - size) <= step;
    name_level(level, "size", metric);
    struct measure *m =
        repeats_add(context, metric, sizes, count, "B", "straight code of rising length");
    if (!m || facts_set_int(&m->notes, "resolution", (int64_t)step))
        return err_no_memory(err);
    m->confidence = (double)same / (double)found->curve_count;
    if (same >= AGREE_MIN || same == found->curve_count)
        return 0;
    return measure_set_status(m, MEASURE_NOISY, "SMs disagree") ? err_no_memory(err) : 0;
}

/* Four lengths in the middle of a level, whole threes of lengths apart (code_levels.c). */
static void choose_lengths(const struct found *found, size_t level, uint32_t *out_lengths)
{
    size_t curve = 0;
    while (!counts(found, curve))
        curve++;
    const struct code_level *at = &found->levels[curve].levels[level];
    size_t third = (at->end - at->first) / 3, apart = third / (COST_POINTS - 1);
    apart = apart > 3 ? apart - apart % 3 : apart ? apart : 1;
    for (size_t i = 0; i < COST_POINTS; i++)
        out_lengths[i] = found->curves[curve].lengths[at->first + third + i * apart];
}

/* The median of the costs between them: a jump in between is left out. */
static int measure_cost(struct probe_context *context, uint32_t sm, const uint32_t *lengths,
                        double *out_cycles, struct err *err)
{
    double cycles[COST_POINTS], costs[COST_POINTS - 1];
    for (size_t i = 0; i < COST_POINTS; i++) {
        uint32_t ignored;
        int rc = measure_pass(context, sm, lengths[i], &cycles[i], &ignored, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i + 1 < COST_POINTS; i++)
        costs[i] = (cycles[i + 1] - cycles[i]) / (lengths[i + 1] - lengths[i]);
    *out_cycles = cpd_quantile(costs, COST_POINTS - 1, 0.5);
    return 0;
}

/* Of all SMs: those that are far from a cache take longer. */
static int report_cycles(struct probe_context *context, const struct found *found, size_t level,
                         const char *metric, struct err *err)
{
    uint32_t lengths[COST_POINTS], sms = device_limits(context->device)->sm_count;
    double *cycles = mem_array(sms, sizeof *cycles);
    int rc = cycles ? 0 : err_no_memory(err);
    choose_lengths(found, level, lengths);
    for (uint32_t sm = 0; sm < sms && !rc; sm++)
        rc = measure_cost(context, sm, lengths, &cycles[sm], err);
    struct measure *m = rc ? NULL
                           : repeats_add(context, metric, cycles, sms, "cycles",
                                         "straight code of four lengths on each SM");
    if (!rc && (!m || facts_set_real(&m->notes, "least", cpd_quantile(cycles, sms, 0)) ||
                facts_set_real(&m->notes, "most", cpd_quantile(cycles, sms, 1))))
        rc = err_no_memory(err);
    if (m)
        m->confidence = NAN;
    free(cycles);
    return rc ? rc : doubt_unless_agreed(found, m, err);
}

/* If the last transition is longer than the code, the cost beyond is not known. */
static int report_beyond(struct probe_context *context, const struct found *found, struct err *err)
{
    static const char metric[] = "instruction_cache.beyond.cycles";
    const struct code_curve *curve = &found->curves[0];
    double cycles = cycles_of(found, found->level_count - 1);
    double pass = curve->cycles[curve->count - 1] / curve->lengths[curve->count - 1];
    if (pass < COMPLETE_SHARE * cycles)
        return measures_add_missing(context->measures, metric, MEASURE_FAILED,
                                    "the code is too short to replace the last level")
                   ? 0
                   : err_no_memory(err);
    return report_cycles(context, found, found->level_count - 1, metric, err);
}

static int report_sharing(struct probe_context *context, const struct found *found,
                          const char *metric, const struct code_sharing *sharing, struct err *err)
{
    char reason[REASON_MAX];
    struct measure *m = measures_add(context->measures, metric, sharing->count, "",
                                     "copies of straight code on pairs of SMs");
    if (!m || code_sharing_note(context, sharing, m))
        return err_no_memory(err);
    m->n = device_limits(context->device)->sm_count - 1;
    m->confidence = 1 - (double)(sharing->unclear + sharing->slowed) / fmax(m->n, 1);
    if (!sharing->unclear && !sharing->slowed)
        return doubt_unless_agreed(found, m, err);
    snprintf(reason, sizeof reason, "%u SMs slow SM 0 only a little, %u even with the same code",
             sharing->unclear, sharing->slowed);
    return measure_set_status(m, MEASURE_NOISY, reason) ? err_no_memory(err) : 0;
}

/* The longest code up to `length` that can be asked for. */
static uint32_t round_down(double length)
{
    uint32_t best = device_straight_length(0), next;
    for (size_t i = 0; (next = device_straight_length(i)) && next <= length; i++)
        best = next;
    return best;
}

static int find_sharing(struct probe_context *context, const struct found *found, size_t level,
                        struct err *err)
{
    char metric[NAME_MAX_BYTES];
    double bytes = found->instruction_bytes;
    double holds = size_of(found, level) / bytes;
    double before = level ? size_of(found, level - 1) / bytes : 0;
    struct code_sharing_question question = {
        .length = round_down(fmax(SHARED_SHARE * holds, BEFORE_SHARE * before)),
        .gain = cycles_of(found, level + 1) - cycles_of(found, level)};
    struct code_sharing sharing;
    name_level(level, "shared_by", metric);
    const char *reason =
        question.length > SHARED_MAX * holds           ? "the level before is nearly as large"
        : question.length > DEVICE_STRAIGHT_SECOND_MAX ? "the second copy of the code is too short"
                                                       : NULL;
    if (reason)
        return measures_add_missing(context->measures, metric, MEASURE_FAILED, reason)
                   ? 0
                   : err_no_memory(err);
    int rc = code_sharing_find(context, &question, &sharing, err);
    if (!rc)
        rc = report_sharing(context, found, metric, &sharing, err);
    code_sharing_fini(&sharing);
    return rc;
}

static int report(struct probe_context *context, const struct found *found, struct err *err)
{
    char metric[NAME_MAX_BYTES];
    size_t sized = found->level_count - 1;
    for (size_t i = 0; i < sized; i++) {
        int rc = report_size(context, found, i, err);
        name_level(i, "cycles", metric);
        if (!rc)
            rc = report_cycles(context, found, i, metric, err);
        if (!rc)
            rc = find_sharing(context, found, i, err);
        if (rc)
            return rc;
    }
    int rc = report_beyond(context, found, err);
    if (rc)
        return rc;
    struct measure *m = measures_add(context->measures, "instruction_cache.levels", (double)sized,
                                     "", "straight code of rising length");
    if (!m)
        return err_no_memory(err);
    m->n = (uint32_t)found->curve_count;
    m->confidence = (double)found->agree / (double)found->curve_count;
    return doubt_unless_agreed(found, m, err);
}

static int run(struct probe_context *context, struct err *err)
{
    static const char metric[] = "instruction_cache.levels";
    struct found found = {0};
    struct err own = {0};
    size_t count = level_sm_count(context, CURVES);
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = measure_curve(context, (uint32_t)level_sm(context, i, count), &found, &own);
    if (rc == -ENOSYS)
        return repeats_unsupported(context, metric, own.text, err);
    if (rc)
        return repeats_end(context, metric, rc, &own, err);
    count_levels(&found);
    if (!found.level_count)
        return err_set(err, -ENODATA,
                       "no range of code lengths has a constant cost per instruction");
    return report(context, &found, err);
}

const struct probe probe_instruction_cache = {
    .description = {"instruction_cache", "size and sharing of the caches of instructions",
                    PROFILE_FULL},
    .depends = {"sm.groups"},
    .metrics = {"instruction_cache.levels", "instruction_cache.*"},
    .run = run,
};
