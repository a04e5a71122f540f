/* Which SMs share a constant L1.5: on NVIDIA's GPUs these groups are the GPCs.
 *
 * Every pair of SMs is tested once. One of the two loads a piece of constant memory that no other
 * SM loads in this launch. Then the other touches it for the first time: it comes from the L1.5
 * that they share, or from L2. Both happen in one launch, since the next one finds L1.5 empty.
 * Other pairs are tested at the same time, with other pieces.
 *
 * Two controls show beforehand what the answers look like. In one, the same SM touches its own
 * piece again after it was pushed out of L1: the answer of a shared cache. In the other, an SM
 * touches a piece that no SM has loaded: the answer of L2. If the controls fail, so does the
 * probe. */
#include "probes/maps/sm_groups.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/caches/level.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"

/* Divides SMs into groups, by the odds of every pair to belong together. */

enum {
    SETTLE_MAX = 16, /* rounds until no SM changes its group */
    ALONE = UINT32_MAX,
};

void partition_init(struct partition *p, size_t sms)
{
    *p = (struct partition){.sms = sms,
                            .odds = mem_array(sms * sms, sizeof *p->odds),
                            .group = mem_array(sms, sizeof *p->group)};
}

void partition_fini(struct partition *p)
{
    free(p->odds);
    free(p->group);
    *p = (struct partition){0};
}

void partition_add(struct partition *p, size_t a, size_t b, double odds)
{
    p->odds[a * p->sms + b] += odds;
    p->odds[b * p->sms + a] += odds;
}

uint32_t partition_size(const struct partition *p, uint32_t group)
{
    uint32_t size = 0;
    for (size_t i = 0; i < p->sms; i++)
        size += p->group[i] == group;
    return size;
}

/* The other SMs' group that an SM most probably belongs to, and by how much it beats the second
 * best. ALONE has odds of 0. */
static uint32_t best_group(const struct partition *p, size_t sm, double *sums, double *out_margin)
{
    uint32_t best = ALONE;
    double first = 0, second = -INFINITY;
    for (uint32_t g = 0; g < p->group_count; g++)
        sums[g] = 0;
    for (size_t i = 0; i < p->sms; i++)
        if (i != sm && p->group[i] != ALONE)
            sums[p->group[i]] += p->odds[sm * p->sms + i];
    for (uint32_t g = 0; g < p->group_count; g++) {
        if (sums[g] > first) {
            second = first;
            first = sums[g];
            best = g;
        } else if (sums[g] != 0) { /* neither the SM's own group nor one that was abandoned */
            second = fmax(second, sums[g]);
        }
    }
    *out_margin = best == ALONE ? -second : first - fmax(second, 0);
    return best;
}

/* One after the other, each SM joins the group that fits best. */
static void found_groups(struct partition *p, double *sums)
{
    double margin;
    p->group_count = 0;
    for (size_t i = 0; i < p->sms; i++)
        p->group[i] = ALONE;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t best = best_group(p, i, sums, &margin);
        p->group[i] = best == ALONE ? p->group_count++ : best;
    }
}

/* Merges groups that belong together by the odds of all their pairs. */
static bool merge_groups(struct partition *p, double *sums)
{
    for (uint32_t g = 0; g < p->group_count; g++) {
        for (uint32_t h = 0; h < p->group_count; h++)
            sums[h] = 0;
        for (size_t i = 0; i < p->sms; i++)
            for (size_t k = 0; p->group[i] == g && k < p->sms; k++)
                sums[p->group[k]] += i == k ? 0 : p->odds[i * p->sms + k];
        for (uint32_t h = g + 1; h < p->group_count; h++) {
            if (sums[h] <= 0)
                continue;
            for (size_t i = 0; i < p->sms; i++)
                p->group[i] = p->group[i] == h ? g : p->group[i];
            return true;
        }
    }
    return false;
}

static void number_groups(struct partition *p, uint32_t *numbers)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < p->group_count; g++)
        numbers[g] = ALONE;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t *number = &numbers[p->group[i]];
        if (*number == ALONE)
            *number = count++;
        p->group[i] = *number;
    }
    p->group_count = count;
}

/* Moves each SM to the group that fits best, or out of a group that does not fit. */
static bool move_sms(struct partition *p, double *sums)
{
    bool moved = false;
    double margin;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t best = best_group(p, i, sums, &margin);
        if (best == p->group[i] || (best == ALONE && partition_size(p, p->group[i]) == 1))
            continue;
        p->group[i] = best == ALONE ? p->group_count++ : best;
        moved = true;
    }
    return moved;
}

static void partition_judge_groups(struct partition *p, double *sums)
{
    double against = 0, pairs = 0, margin;
    p->confidence = 1;
    for (size_t i = 0; i < p->sms; i++) {
        best_group(p, i, sums, &margin);
        p->confidence -= portable_exp(-fmax(margin, 0));
        for (size_t k = i + 1; k < p->sms; k++, pairs++)
            against += (p->odds[i * p->sms + k] > 0) != (p->group[i] == p->group[k]);
    }
    p->confidence = fmax(p->confidence, 0);
    p->contradicted = pairs > 0 ? against / pairs : 0;
}

void partition_divide(struct partition *p)
{
    /* In one round every SM may leave its group and found a new one. */
    double *sums = mem_array(2 * p->sms, sizeof *sums);
    uint32_t *numbers = mem_array(2 * p->sms, sizeof *numbers);
    found_groups(p, sums);
    int moved = 1;
    for (uint32_t round = 0; moved && round < SETTLE_MAX; round++) {
        moved = merge_groups(p, sums);
        number_groups(p, numbers);
        moved |= move_sms(p, sums);
    }
    number_groups(p, numbers);
    partition_judge_groups(p, sums);
    free(sums);
    free(numbers);
}

bool sm_group_map_read(const struct probe_context *context, size_t sms, uint16_t *out_groups)
{
    const struct measure *m = measures_get(context->measures, "sm.groups");
    size_t count = 0;
    const double *map =
        m && measure_status_valued(m->status) ? facts_numbers(&m->notes, "map", &count) : NULL;
    if (!map || count != sms)
        return false;
    for (size_t i = 0; i < sms; i++) {
        if (!(map[i] >= 0 && map[i] < (double)sms))
            return false;
        out_groups[i] = (uint16_t)map[i];
    }
    return true;
}

enum {
    LINE_BYTES = 64,
    PIECE_ELEMENTS = 2,
    PIECE_MIN_BYTES = 512, /* no cache fetches more than that at once */
    CONTROLS = 16,         /* SMs that each control runs on */
    COMPANY_MIN = 3,       /* SMs that share with one: with fewer, a single pair could decide */
    AGAIN_REPEATS = 4,
    AGAIN_MAX = 512,
    REASON_MAX = 200,
};

/* This share of the controls' loads must be on the right side. */
static const double CONTROLS_CLEAR = 0.9;

/* The least probability that a load is misjudged, whatever the references say. */
static const double MISJUDGED_MIN = 0.005;

/* The largest share of pairs that may contradict the partition, beyond the misjudged ones. */
static const double CONTRADICTED_MAX = 0.02;

/* The pieces of one launch fill at most this share of an L1.5: on an H200 one launch is enough for
 * a round of pairs. */
static const double FILLED_SHARE = 0.55;

/* How pairs of SMs are tested, and the results so far. */
struct pairs {
    struct device_array piece; /* the first one */
    uint64_t piece_count;
    uint32_t at_once;
    double threshold, together, apart; /* logarithm of the odds from a fast, or slow, load */
    struct partition partition;
};

static struct device_array piece_of(const struct pairs *pairs, size_t number)
{
    struct device_array piece = pairs->piece;
    piece.offset_bytes += number % pairs->piece_count * piece.size_bytes;
    return piece;
}

/* The first SM loads a piece, the second touches it. */
static struct device_job sm_groups_pair_job(const struct probe_context *context,
                                            const struct pairs *pairs, const size_t sms[2],
                                            size_t number)
{
    const struct device_array piece = piece_of(pairs, number);
    struct device_job job = chase_job();
    job.agent_count = 2;
    job.agents[0].sm = (int32_t)sms[0];
    job.agents[1].sm = (int32_t)sms[1];
    level_prime_constant(context, &job, 1);
    chase_add(&job, DEVICE_WARM, &piece, 0);
    struct device_step *touch = chase_add(&job, DEVICE_CHASE, &piece, 0);
    touch->agent = 1;
    touch->keep = PIECE_ELEMENTS;
    return job;
}

/* The pairs of one round, such that after all rounds every SM was paired with every other (the
 * circle method): the last SM stays, the others rotate. With an odd number, one SM has no
 * partner. */
static size_t pair_up(size_t sms, size_t round, size_t (*out_pairs)[2])
{
    size_t seats = sms + sms % 2, circle = seats - 1, count = 0;
    for (size_t i = 0; i < seats / 2; i++) {
        size_t a = i ? (round + i) % circle : round;
        size_t b = i ? (round + circle - i) % circle : circle;
        if (a >= sms || b >= sms)
            continue;
        out_pairs[count][0] = a < b ? a : b;
        out_pairs[count++][1] = a < b ? b : a;
    }
    return count;
}

/* Tests `count` pairs, at most at_once at the same time. */
static int ask(struct probe_context *context, struct pairs *pairs, size_t (*sms)[2], size_t count,
               uint32_t at_once, struct err *err)
{
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++)
        jobs[i] = sm_groups_pair_job(context, pairs, sms[i], i);
    int rc = chase_run(context, jobs, count, at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        const struct device_sample *touch = &answers[i].samples[0];
        double odds = 0;
        for (uint32_t k = 0; k < touch->kept_count; k++)
            odds += touch->kept[k] <= pairs->threshold ? pairs->together : pairs->apart;
        partition_add(&pairs->partition, sms[i][0], sms[i][1], odds);
    }
    chase_free(answers, count);
    return 0;
}

static int sm_groups_ask_all(struct probe_context *context, struct pairs *pairs, struct err *err)
{
    size_t sms = pairs->partition.sms, rounds = sms + sms % 2 - 1;
    size_t(*round)[2] = mem_array(sms / 2 + 1, sizeof *round);
    int rc = 0;
    for (size_t r = 0; r < rounds && !rc; r++) {
        size_t count = pair_up(sms, r, round);
        rc = ask(context, pairs, round, count, pairs->at_once, err);
    }
    free(round);
    return rc;
}

/* True when few SMs share with this one: then a single pair of loads could decide. */
static bool is_lonely(const struct partition *p, size_t sm)
{
    size_t together = 0;
    for (size_t i = 0; i < p->sms; i++)
        together += i != sm && p->odds[sm * p->sms + i] > 0;
    return together < COMPANY_MIN;
}

/* Pairs that seem to share although few do are tested again, alone and in both directions. */
static int sm_groups_ask_again(struct probe_context *context, struct pairs *pairs, struct err *err)
{
    const struct partition *p = &pairs->partition;
    size_t sms[AGAIN_MAX][2], count = 0;
    for (size_t a = 0; a < p->sms; a++)
        for (size_t b = a + 1; b < p->sms && count + AGAIN_REPEATS <= AGAIN_MAX; b++) {
            if (p->odds[a * p->sms + b] <= 0 || !(is_lonely(p, a) || is_lonely(p, b)))
                continue;
            for (size_t r = 0; r < AGAIN_REPEATS; r++, count++) {
                sms[count][0] = r % 2 ? b : a;
                sms[count][1] = r % 2 ? a : b;
            }
        }
    return count ? ask(context, pairs, sms, count, 1, err) : 0;
}

/* SMs without company are tested again among themselves, as many as there is room for, neighbours
 * first: in a group of two, a single spike decides. */
static int ask_singles(struct probe_context *context, struct pairs *pairs, struct err *err)
{
    const struct partition *p = &pairs->partition;
    size_t sms[AGAIN_MAX][2], single_count = 0, count = 0;
    size_t *singles = mem_array(p->sms, sizeof *singles);
    for (size_t i = 0; i < p->sms; i++)
        if (partition_size(p, p->group[i]) == 1)
            singles[single_count++] = i;
    for (size_t distance = 1; distance < single_count; distance++)
        for (size_t i = distance; i < single_count && count + AGAIN_REPEATS <= AGAIN_MAX; i++)
            for (size_t r = 0; r < AGAIN_REPEATS; r++, count++) {
                sms[count][0] = singles[r % 2 ? i : i - distance];
                sms[count][1] = singles[r % 2 ? i - distance : i];
            }
    free(singles);
    int rc = count ? ask(context, pairs, sms, count, 1, err) : 0;
    if (rc)
        return rc;
    partition_divide(&pairs->partition);
    return 0;
}

/* Two controls of the same form as the jobs of pairs: an SM with itself, after its piece was pushed
 * out of L1; and a piece that no SM has loaded. */
static struct device_job control_job(const struct probe_context *context, const struct pairs *pairs,
                                     size_t number, bool same)
{
    size_t count = level_sm_count(context, CONTROLS);
    int32_t sm = level_sm(context, number % count, count);
    const struct device_array push = {.path = DEVICE_CONSTANT,
                                      .size_bytes = context->studies[STUDY_CONSTANT_L15].push_bytes,
                                      .stride_bytes = LINE_BYTES};
    /* Behind the array that pushes, as far as there is room. */
    uint64_t last = pairs->piece_count - 1;
    const struct device_array piece = piece_of(pairs, same ? last : last - 1);
    struct device_job job = chase_job();
    job.agent_count = 2;
    job.agents[0].sm = sm;
    job.agents[1].sm = DEVICE_SM_SAME;
    level_prime_constant(context, &job, 1);
    if (same) {
        chase_add(&job, DEVICE_WARM, &piece, 0);
        chase_add(&job, DEVICE_WARM, &push, 0);
    }
    struct device_step *touch = chase_add(&job, DEVICE_CHASE, &piece, 0);
    touch->agent = 1;
    touch->keep = PIECE_ELEMENTS;
    return job;
}

static double share_fast(const struct pairs *pairs, const struct device_answer *answers,
                         size_t count)
{
    double fast = 0, all = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < answers[i].samples[0].kept_count; k++, all++)
            fast += answers[i].samples[0].kept[k] <= pairs->threshold;
    return all > 0 ? fast / all : 0;
}

static int run_controls(struct probe_context *context, const struct pairs *pairs, struct err *err)
{
    struct device_job jobs[2 * CONTROLS];
    struct device_answer *answers;
    size_t count = level_sm_count(context, CONTROLS);
    for (size_t i = 0; i < 2 * count; i++)
        jobs[i] = control_job(context, pairs, i, i < count);
    int rc = chase_run(context, jobs, 2 * count, 1, &answers, err);
    if (rc)
        return rc;
    double same = share_fast(pairs, answers, count),
           nobody = share_fast(pairs, answers + count, count);
    chase_free(answers, 2 * count);
    if (same >= CONTROLS_CLEAR && nobody <= 1 - CONTROLS_CLEAR)
        return 0;
    return err_set(err, -ENODATA,
                   "the controls fail: an SM finds %.0f %% of what it has loaded itself in L1.5, "
                   "and %.0f %% of what nobody has loaded",
                   100 * same, 100 * nobody);
}

static int pairs_init(struct probe_context *context, struct pairs *pairs, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    const struct study *l15 = &context->studies[STUDY_CONSTANT_L15];
    uint64_t bytes = PIECE_ELEMENTS * l15->fetch_bytes;
    double stray = fmax(l15->stray_share, MISJUDGED_MIN);
    double slip = fmax(l15->slip_share, MISJUDGED_MIN);
    bytes = bytes > PIECE_MIN_BYTES ? bytes : PIECE_MIN_BYTES;
    *pairs = (struct pairs){.piece = {.path = DEVICE_CONSTANT,
                                      .size_bytes = bytes,
                                      .stride_bytes = bytes / PIECE_ELEMENTS},
                            .piece_count = (limits->constant_bytes - LINE_BYTES) / bytes,
                            .threshold = l15->threshold,
                            .together = portable_log((1 - stray) / slip),
                            .apart = portable_log(stray / (1 - slip))};
    if (pairs->piece_count < 2)
        return err_set(err, -ENODATA, "constant memory is too small for pairs of SMs");
    uint64_t held = (uint64_t)(FILLED_SHARE * (double)l15->region_low_bytes) / bytes;
    held = held < pairs->piece_count ? held : pairs->piece_count;
    pairs->at_once = held ? (uint32_t)held : 1;
    partition_init(&pairs->partition, limits->sm_count);
    return 0;
}

static void note_groups(struct measure *measure, const struct partition *p)
{
    double *sizes = mem_array(p->group_count, sizeof *sizes);
    double *map = mem_array(p->sms, sizeof *map);
    for (uint32_t g = 0; g < p->group_count; g++)
        sizes[g] = partition_size(p, g);
    for (size_t i = 0; i < p->sms; i++)
        map[i] = p->group[i];
    facts_set_numbers(&measure->notes, "sizes", sizes, p->group_count);
    facts_set_numbers(&measure->notes, "map", map, p->sms);
    free(sizes);
    free(map);
}

static void sm_groups_note_doubt(struct measure *measure, const struct pairs *pairs)
{
    char reason[REASON_MAX];
    double misjudged = portable_exp(-fmin(pairs->together, -pairs->apart));
    double contradicted = pairs->partition.contradicted;
    if (contradicted <= CONTRADICTED_MAX + PIECE_ELEMENTS * misjudged)
        return;
    snprintf(reason, sizeof reason, "%.1f %% of the pairs of SMs contradict the groups",
             100 * contradicted);
    measure_set_status(measure, MEASURE_NOISY, reason);
}

static struct measure *sm_groups_add(struct probe_context *context, const struct pairs *pairs,
                                     const char *metric, double value)
{
    const struct partition *p = &pairs->partition;
    struct measure *m = measures_add(context->measures, metric, value, "",
                                     "first touch after another SM's, every pair");
    m->n = (uint32_t)(p->sms * (p->sms - 1) / 2);
    m->confidence = p->confidence;
    sm_groups_note_doubt(m, pairs);
    return m;
}

/* Groups may differ in size: the smallest one, and the one of the median SM. */
static void sm_groups_report_size(struct probe_context *context, const struct pairs *pairs)
{
    const struct partition *p = &pairs->partition;
    double *sizes = mem_array(p->sms, sizeof *sizes);
    for (size_t i = 0; i < p->sms; i++)
        sizes[i] = partition_size(p, p->group[i]);
    size_t middle = (p->sms - 1) / 2; /* an index, not a value between two sizes */
    double usual = cpd_quantile(sizes, p->sms, (double)middle / (double)(p->sms - 1));
    double least = cpd_quantile(sizes, p->sms, 0), most = cpd_quantile(sizes, p->sms, 1);
    free(sizes);
    sm_groups_add(context, pairs, "sm.group_sms", least);
    struct measure *sms = sm_groups_add(context, pairs, "constant_l15.sms", usual);
    if (least < most) {
        facts_set_int(&sms->notes, "least", (int64_t)least);
        facts_set_int(&sms->notes, "most", (int64_t)most);
    }
}

static void report_none(struct probe_context *context, const char *reason)
{
    repeats_unsupported(context, "sm.groups", reason);
    repeats_unsupported(context, "sm.group_sms", reason);
    repeats_unsupported(context, "constant_l15.sms", reason);
}

static int run_groups(struct probe_context *context, struct err *err)
{
    const struct study *study = &context->studies[STUDY_CONSTANT_L15];
    struct pairs pairs = {0};
    int rc = study_reach(context, STUDY_CONSTANT_L15, STUDY_REGION, err);
    if (rc)
        return rc;
    if (!study->supported) {
        report_none(context, "no constant cache behind L1 that SMs could share");
        return 0;
    }
    if (device_limits(context->device)->sm_count < 2) {
        report_none(context, "only one SM");
        return 0;
    }
    rc = pairs_init(context, &pairs, err);
    if (rc)
        goto out;
    rc = run_controls(context, &pairs, err);
    if (rc)
        goto out;
    rc = sm_groups_ask_all(context, &pairs, err);
    if (rc)
        goto out;
    rc = sm_groups_ask_again(context, &pairs, err);
    if (rc)
        goto out;
    partition_divide(&pairs.partition);
    rc = ask_singles(context, &pairs, err);
    if (rc)
        goto out;
    struct measure *groups =
        sm_groups_add(context, &pairs, "sm.groups", pairs.partition.group_count);
    note_groups(groups, &pairs.partition);
    sm_groups_report_size(context, &pairs);
out:
    partition_fini(&pairs.partition);
    return rc;
}

const struct probe probe_sm_groups = {
    .description = {"sm.groups", "which SMs share a constant L1.5: the GPCs, and the smallest one",
                    PROFILE_QUICK},
    .metrics = {"sm.groups", "sm.group_sms", "constant_l15.sms"},
    .run = run_groups,
};
