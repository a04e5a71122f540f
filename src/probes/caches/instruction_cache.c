/* The probes of the caches of instructions: how large each level is, what an instruction costs in
 * it, and how many SMs share it, by straight code; the cache of a sub-core before them, and what a
 * jump costs, by jumping code. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "device/straight.h"
#include "probes/caches/code_levels.h"
#include "probes/caches/level.h"
#include "probes/maps/sm_groups.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

/* Code of one copy fits into the level alone; that of both together does not. */
struct code_sharing_question {
    uint32_t sm;
    uint32_t length;
    double gain; /* additional cycles of one instruction that the level does not have */
};

struct code_sharing {
    bool *shares; /* by SM; the SM itself too */
    uint32_t count;
    uint32_t unclear; /* SMs that disturb too little to share, and too much not to */
    uint32_t slowed;  /* SMs that disturb also with the same code: not by the cache's size */
};

/* One SM executes code that fits into the level alone, while another executes a copy of it. If both
 * share the cache, the copies drive each other out. The control is the same copy on both SMs, which
 * needs no further room: if that is slow too, something else is shared. */

enum { REPEATS = 8, TRIES = 3 };

/* Of what it costs if the level has nothing: below the first an SM is not disturbed, above the
 * second it is. */
static const double QUIET_SHARE = 0.1, DISTURBED_SHARE = 0.3;

/* Cycles of a pass on the SM; `other` is the SM itself: alone. */
static int code_sharing_measure_pass(struct probe_context *context,
                                     const struct code_sharing_question *question, uint32_t other,
                                     uint32_t copy, double *out_cycles, struct err *err)
{
    struct device_straight straight = {
        .jobs = {{.sm = question->sm, .length = question->length, .repeats = REPEATS},
                 {.sm = other, .copy = copy, .length = question->length, .repeats = REPEATS}},
        .job_count = other == question->sm ? 1 : 2};
    struct device_straight_answer answer;
    if (straight.job_count == 1)
        straight.jobs[1] = (struct device_straight_job){0};
    int rc = device_run_straight(context->device, &straight, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.cycles[0] / REPEATS;
    return 0;
}

static int measure_median(struct probe_context *context,
                          const struct code_sharing_question *question, uint32_t other,
                          uint32_t copy, double *out_cycles, struct err *err)
{
    double cycles[TRIES];
    for (size_t i = 0; i < TRIES; i++) {
        int rc = code_sharing_measure_pass(context, question, other, copy, &cycles[i], err);
        if (rc)
            return rc;
    }
    *out_cycles = cpd_quantile(cycles, TRIES, 0.5);
    return 0;
}

/* Twice, since one that shares must not be missed. */
static int is_quiet(struct probe_context *context, const struct code_sharing_question *question,
                    double limit, uint32_t other, bool *out_quiet, struct err *err)
{
    *out_quiet = true;
    for (int i = 0; i < 2 && *out_quiet; i++) {
        double cycles = 0;
        int rc = code_sharing_measure_pass(context, question, other, 1, &cycles, err);
        if (rc)
            return rc;
        *out_quiet = cycles < limit;
    }
    return 0;
}

/* An SM that disturbs is asked again, and with the same copy. */
static int ask_other(struct probe_context *context, const struct code_sharing_question *question,
                     double alone, uint32_t other, struct code_sharing *sharing, struct err *err)
{
    double whole = question->gain * question->length, copied = 0, same = 0;
    bool quiet = false;
    int rc = is_quiet(context, question, alone + QUIET_SHARE * whole, other, &quiet, err);
    if (rc || quiet)
        return rc;
    rc = measure_median(context, question, other, 1, &copied, err);
    if (rc || copied - alone < QUIET_SHARE * whole)
        return rc;
    rc = measure_median(context, question, other, 0, &same, err);
    if (rc)
        return rc;
    if (same - alone > QUIET_SHARE * whole) {
        sharing->slowed++;
        return 0;
    }
    if (copied - alone < DISTURBED_SHARE * whole) {
        sharing->unclear++;
        return 0;
    }
    sharing->shares[other] = true;
    sharing->count++;
    return 0;
}

/* The caller frees out_sharing->shares, also after an error. */
static int code_sharing_find(struct probe_context *context,
                             const struct code_sharing_question *question,
                             struct code_sharing *out_sharing, struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    double alone = 0;
    *out_sharing = (struct code_sharing){.shares = mem_array(sms, sizeof(bool)), .count = 1};
    out_sharing->shares[question->sm] = true;
    int rc = measure_median(context, question, question->sm, 0, &alone, err);
    for (uint32_t other = 0; other < sms && !rc; other++)
        if (other != question->sm)
            rc = ask_other(context, question, alone, other, out_sharing, err);
    return rc;
}

/* Whether those that share are just the group of the first SM, as sm.groups found it. */
static bool is_group(const struct probe_context *context, const struct code_sharing *sharing,
                     size_t sms, uint16_t *groups)
{
    bool same = sm_group_map_read(context, sms, groups);
    for (size_t i = 0; i < sms && same; i++)
        same = (groups[i] == groups[0]) == sharing->shares[i];
    return same;
}

/* Notes which SMs share it (SM 0 among them), and what part of the GPU they are, if that is known.
 */
static void code_sharing_note(const struct probe_context *context,
                              const struct code_sharing *sharing, struct measure *m)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    uint16_t *groups = mem_array(sms, sizeof *groups);
    double *list = mem_array(sms, sizeof *list);
    size_t count = 0;
    for (uint32_t i = 0; i < sms; i++)
        if (sharing->shares[i])
            list[count++] = i;
    const char *scope = sharing->count == 1                         ? "sm"
                        : sharing->count == sms                     ? "gpu"
                        : is_group(context, sharing, sms, groups)   ? "gpc"
                        : sharing->count == 2 && sharing->shares[1] ? "tpc"
                                                                    : NULL;
    facts_set_numbers(&m->notes, "sms", list, count);
    if (scope)
        facts_set_text(&m->notes, "scope", scope);
    free(list);
    free(groups);
}

/* A curve on each of so many SMs; passes of each length. */
enum { CURVES = 5, PASSES = 4, AGREE_MIN = 4, NAME_MAX_BYTES = 64, REASON_MAX = 160 };

/* Code of so many lengths shows what an instruction costs on each SM. */
enum { COST_POINTS = 4 };

/* The loop around the code occupies the cache too, and what is fetched ahead behind its end. */
static const double LOOP_BYTES = 384;

/* Of the level's size: two copies of so much do not fit. It must not fit into the level before. */
static const double SHARED_SHARE = 0.75, SHARED_MAX = 0.9, BEFORE_SHARE = 1.25;

/* Of the cost of an instruction: if the median of some SMs is further from their curves, it is
 * noisy.
 */
static const double SCATTER_SHARE = 0.025;

/* So many standard errors of chance may be as large. */
static const double CHANCE_ERRORS = 2;

/* What the first points cost, of which the first level costs more by this share: it is not theirs.
 */
enum { FIRST_POINTS = 8 };
static const double FASTER_SHARE = 0.12;

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

static int instruction_cache_measure_pass(struct probe_context *context, uint32_t sm,
                                          uint32_t length, double *out_cycles,
                                          uint32_t *out_instruction_bytes, struct err *err)
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
        int rc = instruction_cache_measure_pass(context, sm, length, &curve->cycles[i],
                                                &found->instruction_bytes, err);
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

static double instruction_cache_size_of(const struct found *found, size_t level)
{
    double sizes[CURVES];
    return cpd_quantile(sizes, collect_sizes(found, level, sizes), 0.5);
}

static double instruction_cache_cycles_of(const struct found *found, size_t level)
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

/* True when short code is clearly faster than the first level that was found: then there is one
 * before it, and the figures are those of another level than their names say. */
static bool overlooks_first(const struct found *found)
{
    size_t faster = 0, all = 0;
    for (size_t i = 0; i < found->curve_count; i++) {
        const struct code_curve *curve = &found->curves[i];
        size_t last = FIRST_POINTS < curve->count ? FIRST_POINTS : curve->count - 1;
        double cost = (curve->cycles[last] - curve->cycles[0]) /
                      (double)(curve->lengths[last] - curve->lengths[0]);
        all += counts(found, i);
        faster += counts(found, i) && cost * (1 + FASTER_SHARE) < found->levels[i].levels[0].cycles;
    }
    return 2 * faster > all;
}

static void doubt_unless_agreed(const struct found *found, struct measure *m)
{
    const char *reason = !agreed(found) ? "SMs disagree"
                         : overlooks_first(found)
                             ? "short code is faster: a level before is not told"
                             : NULL;
    if (reason && m->status == MEASURE_OK)
        measure_set_status(m, MEASURE_NOISY, reason);
}

static void name_level(size_t level, const char *what, char out_name[NAME_MAX_BYTES])
{
    snprintf(out_name, NAME_MAX_BYTES, "instruction_cache.level%zu.%s", level + 1, what);
}

static void instruction_cache_report_size(struct probe_context *context, const struct found *found,
                                          size_t level)
{
    char metric[NAME_MAX_BYTES];
    double sizes[CURVES], size = instruction_cache_size_of(found, level),
                          step = step_at(found, size);
    size_t count = collect_sizes(found, level, sizes), same = 0;
    for (size_t i = 0; i < count; i++)
        same += fabs(sizes[i] - size) <= step;
    name_level(level, "size", metric);
    struct measure *m =
        repeats_add(context, metric, sizes, count, "B", "straight code of rising length");
    facts_set_int(&m->notes, "resolution", (int64_t)step);
    m->confidence = (double)same / (double)found->curve_count;
    doubt_unless_agreed(found, m);
    if (same >= AGREE_MIN || same == found->curve_count)
        return;
    measure_set_status(m, MEASURE_NOISY, "SMs disagree");
}

/* There is always one that counts. */
static size_t first_curve(const struct found *found)
{
    size_t curve = 0;
    while (!counts(found, curve))
        curve++;
    return curve;
}

/* Four lengths in the middle of a level, whole threes of lengths apart (code_levels.c). */
static void choose_lengths(const struct found *found, size_t level, uint32_t *out_lengths)
{
    const size_t curve = first_curve(found);
    const struct code_level *at = &found->levels[curve].levels[level];
    size_t third = (at->end - at->first) / 3, apart = third / (COST_POINTS - 1);
    apart = apart > 3 ? apart - apart % 3 : apart ? apart : 1;
    for (size_t i = 0; i < COST_POINTS; i++)
        out_lengths[i] = found->curves[curve].lengths[at->first + third + i * apart];
}

/* The median of the costs between them: a jump in between is left out. */
static int instruction_cache_measure_cost(struct probe_context *context, uint32_t sm,
                                          const uint32_t *lengths, double *out_cycles,
                                          struct err *err)
{
    double cycles[COST_POINTS], costs[COST_POINTS - 1];
    for (size_t i = 0; i < COST_POINTS; i++) {
        uint32_t ignored;
        int rc = instruction_cache_measure_pass(context, sm, lengths[i], &cycles[i], &ignored, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i + 1 < COST_POINTS; i++)
        costs[i] = (cycles[i + 1] - cycles[i]) / (lengths[i + 1] - lengths[i]);
    *out_cycles = cpd_quantile(costs, COST_POINTS - 1, 0.5);
    return 0;
}

/* Whether the costs from four lengths are not those of the same SMs' curves, which have many. */
static bool scatters(const struct probe_context *context, const struct found *found, size_t level,
                     const double *cycles)
{
    double apart[CURVES];
    size_t count = 0;
    for (size_t i = 0; i < found->curve_count; i++) {
        double curve = found->levels[i].levels[level].cycles;
        if (counts(found, i))
            apart[count++] = fabs(cycles[level_sm(context, i, found->curve_count)] - curve) / curve;
    }
    return cpd_quantile(apart, count, 0.5) > SCATTER_SHARE;
}

/* How far chance may move the median of costs from four lengths, as a share: by the scatter of the
 * costs of the first curve, which are over three lengths. */
static double chance_of(const struct found *found, size_t level, const uint32_t *lengths,
                        uint32_t sms)
{
    double costs[CODE_POINTS_MAX];
    size_t curve = first_curve(found), count = 0;
    const struct code_curve *c = &found->curves[curve];
    const struct code_level *at = &found->levels[curve].levels[level];
    for (size_t i = at->first; i + CODE_ACROSS < at->end; i++)
        costs[count++] = (c->cycles[i + CODE_ACROSS] - c->cycles[i]) /
                         (c->lengths[i + CODE_ACROSS] - c->lengths[i]);
    double over = c->lengths[at->first + CODE_ACROSS] - c->lengths[at->first];
    return CPD_MEDIAN_ERROR * CPD_MEDIAN_ERROR * CPD_MAD_SIGMA * cpd_mad(costs, count) /
           at->cycles * over / (lengths[1] - lengths[0]) / sqrt((COST_POINTS - 1.0) * sms);
}

/* Of all SMs: those that are far from a cache take longer. */
static int report_cycles(struct probe_context *context, const struct found *found, size_t level,
                         const char *metric, struct err *err)
{
    uint32_t lengths[COST_POINTS], sms = device_limits(context->device)->sm_count;
    double *cycles = mem_array(sms, sizeof *cycles);
    int rc = 0;
    choose_lengths(found, level, lengths);
    for (uint32_t sm = 0; sm < sms && !rc; sm++)
        rc = instruction_cache_measure_cost(context, sm, lengths, &cycles[sm], err);
    if (!rc) {
        struct measure *m = repeats_add(context, metric, cycles, sms, "cycles",
                                        "straight code of four lengths on each SM");
        facts_set_real(&m->notes, "least", cpd_quantile(cycles, sms, 0));
        facts_set_real(&m->notes, "most", cpd_quantile(cycles, sms, 1));
        m->confidence = NAN;
        if (scatters(context, found, level, cycles))
            measure_set_status(m, MEASURE_NOISY, "single lengths scatter about the curves");
        else if (CHANCE_ERRORS * chance_of(found, level, lengths, sms) > SCATTER_SHARE)
            measure_set_status(m, MEASURE_NOISY, "passes scatter too much for so few SMs");
        doubt_unless_agreed(found, m);
    }
    free(cycles);
    return rc;
}

/* If the last transition is longer than the code, the cost beyond is not known. */
static int report_beyond(struct probe_context *context, const struct found *found, struct err *err)
{
    static const char metric[] = "instruction_cache.beyond.cycles";
    const struct code_curve *curve = &found->curves[0];
    double cycles = instruction_cache_cycles_of(found, found->level_count - 1);
    double pass = curve->cycles[curve->count - 1] / curve->lengths[curve->count - 1];
    if (pass < COMPLETE_SHARE * cycles) {
        measures_add_missing(context->measures, metric, MEASURE_FAILED,
                             "the code is too short to replace the last level");
        return 0;
    }
    return report_cycles(context, found, found->level_count - 1, metric, err);
}

static void report_sharing(struct probe_context *context, const struct found *found,
                           const char *metric, const struct code_sharing *sharing)
{
    char reason[REASON_MAX];
    struct measure *m = measures_add(context->measures, metric, sharing->count, "",
                                     "copies of straight code on pairs of SMs");
    code_sharing_note(context, sharing, m);
    m->n = device_limits(context->device)->sm_count - 1;
    m->confidence = 1 - (double)(sharing->unclear + sharing->slowed) / fmax(m->n, 1);
    if (!sharing->unclear && !sharing->slowed) {
        doubt_unless_agreed(found, m);
        return;
    }
    snprintf(reason, sizeof reason, "%u SMs slow SM 0 only a little, %u even with the same code",
             sharing->unclear, sharing->slowed);
    measure_set_status(m, MEASURE_NOISY, reason);
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
    double holds = instruction_cache_size_of(found, level) / bytes;
    double before = level ? instruction_cache_size_of(found, level - 1) / bytes : 0;
    struct code_sharing_question question = {
        .length = round_down(fmax(SHARED_SHARE * holds, BEFORE_SHARE * before)),
        .gain = instruction_cache_cycles_of(found, level + 1) -
                instruction_cache_cycles_of(found, level)};
    struct code_sharing sharing;
    name_level(level, "shared_by", metric);
    const char *reason =
        question.length > SHARED_MAX * holds           ? "the level before is nearly as large"
        : question.length > DEVICE_STRAIGHT_SECOND_MAX ? "the second copy of the code is too short"
                                                       : NULL;
    if (reason) {
        measures_add_missing(context->measures, metric, MEASURE_FAILED, reason);
        return 0;
    }
    int rc = code_sharing_find(context, &question, &sharing, err);
    if (!rc)
        report_sharing(context, found, metric, &sharing);
    free(sharing.shares);
    return rc;
}

static int instruction_cache_report(struct probe_context *context, const struct found *found,
                                    struct err *err)
{
    char metric[NAME_MAX_BYTES];
    size_t sized = found->level_count - 1;
    for (size_t i = 0; i < sized; i++) {
        instruction_cache_report_size(context, found, i);
        name_level(i, "cycles", metric);
        int rc = report_cycles(context, found, i, metric, err);
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
    m->bound = MEASURE_AT_LEAST; /* straight code does not show the L0 of a sub-core */
    m->n = (uint32_t)found->curve_count;
    m->confidence = (double)found->agree / (double)found->curve_count;
    doubt_unless_agreed(found, m);
    return 0;
}

/* The curves of some SMs and their levels. Without any if the metric says why instead. */
static int measure_curves(struct probe_context *context, const char *metric,
                          int (*measure)(struct probe_context *, uint32_t, struct found *,
                                         struct err *),
                          struct found *found, struct err *err)
{
    struct err own = {0};
    size_t count = level_sm_count(context, CURVES);
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = measure(context, (uint32_t)level_sm(context, i, count), found, &own);
    if (!rc) {
        count_levels(found);
        return 0;
    }
    found->curve_count = 0;
    if (rc != -ENOSYS)
        return repeats_end(context, metric, rc, &own, err);
    repeats_unsupported(context, metric, own.text);
    return 0;
}

static int instruction_cache_run(struct probe_context *context, struct err *err)
{
    struct found found = {0};
    int rc = measure_curves(context, "instruction_cache.levels", measure_curve, &found, err);
    if (rc || !found.curve_count)
        return rc;
    if (!found.level_count)
        return err_set(err, -ENODATA,
                       "no range of code lengths has a constant cost per instruction");
    return instruction_cache_report(context, &found, err);
}

const struct probe probe_instruction_cache = {
    .description = {"instruction_cache", "size and sharing of the caches of instructions",
                    PROFILE_FULL},
    .depends = {"sm.groups"},
    .metrics = {"instruction_cache.levels", "instruction_cache.*"},
    .run = instruction_cache_run,
};

/* Jumping code. The curve has one level more than that of straight code if a sub-core has a cache
 * of its own. A cost is that of one more block, with its jump. */

/* Jumps over so many blocks. Numbers of blocks in steps that grow: by 1, and by 1 more for each
 * further JUMP_GROWTH blocks. */
enum { JUMP_STRIDE = 5, JUMP_FIRST = 6, JUMP_GROWTH = 48, JUMP_TRIES = 3 };

/* Sizes are rounded to this many bytes at least: on an H200 those of five SMs are within it. */
static const double JUMP_RESOLUTION = 512;

/* Of the size of level 1: the cache of a sub-core is smaller. Of a size: levels that are the same
 * for both kinds of code. Jumping code may show the end of a transition (H200: 41 of 32 KiB). */
static const double SUB_CORE_SHARE = 0.75, SAME_LEVEL = 0.35;

/* Of the blocks: between these shares the number of those that a sub-core's cache has lost rises.
 */
static const double JUMP_RISE_LOW = 0.2, JUMP_RISE_HIGH = 0.6;

static int measure_jumps(struct probe_context *context, uint32_t sm, struct found *found,
                         struct err *err)
{
    struct code_curve *curve = &found->curves[found->curve_count];
    for (uint32_t blocks = JUMP_FIRST; blocks <= DEVICE_WALK_BLOCKS_MAX;
         blocks += 1 + blocks / JUMP_GROWTH) {
        const struct device_walk walk = {
            .sm = sm, .blocks = blocks, .stride = JUMP_STRIDE, .repeats = PASSES};
        struct device_walk_answer answer;
        double cycles[JUMP_TRIES];
        for (size_t i = 0; i < JUMP_TRIES; i++) {
            int rc = device_run_walk(context->device, &walk, &answer, err);
            if (rc)
                return rc;
            cycles[i] = (double)answer.code_cycles / PASSES;
        }
        found->instruction_bytes = answer.block_bytes;
        curve->lengths[curve->count] = blocks;
        curve->cycles[curve->count++] = cpd_quantile(cycles, JUMP_TRIES, 0.5);
    }
    code_levels_find(curve, &found->levels[found->curve_count++]);
    return 0;
}

static void report_jump(struct probe_context *context, const struct found *found, size_t level,
                        const char *metric)
{
    double cycles[CURVES];
    size_t count = 0;
    for (size_t i = 0; i < found->curve_count; i++)
        if (counts(found, i))
            cycles[count++] = found->levels[i].levels[level].cycles;
    struct measure *m =
        repeats_add(context, metric, cycles, count, "cycles", "jumping code of rising length");
    m->confidence = NAN;
    doubt_unless_agreed(found, m);
}

/* What a jump costs in the levels of straight code. The curve of jumping code must have the same
 * ones, one after the other; it may end before the last. */
static void report_jumps(struct probe_context *context, const struct found *found, size_t first)
{
    char metric[NAME_MAX_BYTES];
    double size;
    for (size_t i = first; i < found->level_count; i++) {
        bool last = i + 1 == found->level_count;
        name_level(i - first, "size", metric);
        if (!measures_value(context->measures, metric, &size))
            return;
        if (!last && fabs(instruction_cache_size_of(found, i) - size) > SAME_LEVEL * size)
            return;
        name_level(i - first, "jump", metric);
        report_jump(context, found, i, metric);
    }
}

/* By the share of blocks that cost what one more costs in the second level of the curve. */
static double sub_core_size(const struct found *found, size_t number, double *out_error)
{
    const struct code_curve *curve = &found->curves[number];
    const struct code_level *own = &found->levels[number].levels[0], *next = own + 1;
    double at[CODE_POINTS_MAX], shares[CODE_POINTS_MAX], pass[CODE_POINTS_MAX];
    size_t fits = own->end / 2;
    for (size_t i = 0; i < curve->count; i++) {
        at[i] = curve->lengths[i];
        pass[i] = curve->cycles[i] - own->cycles * at[i];
    }
    double once = cpd_quantile(pass, fits ? fits : 1, 0.5); /* of a pass beside its blocks */
    for (size_t i = 0; i < curve->count; i++)
        shares[i] = (pass[i] - once) / (at[i] * (next->cycles - own->cycles));
    /* What fits must look so: noise is large where code is short. */
    const struct code_rise rise = {at + fits, shares + fits, next->end - fits, JUMP_RISE_LOW,
                                   JUMP_RISE_HIGH};
    double begin = code_rise_begin(&rise, out_error);
    *out_error *= found->instruction_bytes;
    return begin * found->instruction_bytes + LOOP_BYTES;
}

/* Nothing is said if no level is smaller than the first one of straight code: a very small cache
 * would not show. */
static bool report_sub_core(struct probe_context *context, const struct found *found)
{
    static const char levels_name[] = "instruction_cache.levels";
    double sizes[CURVES], errors[CURVES], levels;
    size_t count = 0, same = 0;
    if (found->level_count < 2)
        return false;
    for (size_t i = 0; i < found->curve_count; i++)
        if (counts(found, i) && !isnan(sizes[count] = sub_core_size(found, i, &errors[count])))
            count++;
    if (!count)
        return false;
    double size = cpd_quantile(sizes, count, 0.5),
           step = fmax(step_at(found, size), JUMP_RESOLUTION);
    for (size_t i = 0; i < count; i++)
        sizes[i] = round(sizes[i] / step) * step;
    size = cpd_quantile(sizes, count, 0.5);
    const struct measure *first = measures_get(context->measures, "instruction_cache.level1.size");
    if (!first || first->status != MEASURE_OK ||
        !measures_value(context->measures, levels_name, &levels) ||
        !(size <= SUB_CORE_SHARE * first->value))
        return false;
    for (size_t i = 0; i < count; i++)
        same += fabs(sizes[i] - size) <= step;
    struct measure *m = repeats_add(context, "instruction_cache.l0.size", sizes, count, "B",
                                    "jumping code of rising length");
    facts_set_int(&m->notes, "resolution", (int64_t)step);
    m->confidence = (double)same / (double)found->curve_count;
    if (same < found->curve_count)
        measure_set_status(m, MEASURE_NOISY, "SMs disagree");
    if (cpd_quantile(errors, count, 0.5) > step) {
        m->confidence = fmin(m->confidence, 0.5);
        measure_set_status(m, MEASURE_NOISY, "the cost of further code does not rise evenly");
    }
    report_jump(context, found, 0, "instruction_cache.l0.jump");
    struct measure *all = measures_add(context->measures, levels_name, levels + 1, "",
                                       "straight code and jumping code of rising length");
    all->bound = MEASURE_AT_LEAST;
    all->n = (uint32_t)found->curve_count;
    all->confidence = (double)found->agree / (double)found->curve_count;
    doubt_unless_agreed(found, all);
    return true;
}

static int jumping_code_run(struct probe_context *context, struct err *err)
{
    struct found found = {0};
    int rc = measure_curves(context, "instruction_cache.l0.size", measure_jumps, &found, err);
    if (rc || !found.curve_count)
        return rc;
    if (found.level_count)
        report_jumps(context, &found, report_sub_core(context, &found) ? 1 : 0);
    return 0;
}

const struct probe probe_jumping_code = {
    .description = {"instruction_cache.l0",
                    "the cache of instructions of a sub-core, costs of jumps", PROFILE_FULL},
    .depends = {"instruction_cache"},
    .metrics = {"instruction_cache.l0.size", "instruction_cache.*"},
    .run = jumping_code_run,
};
