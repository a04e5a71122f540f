/* L2 in parts whose near part keeps copies of far lines.
 *
 * One SM loads an array, another one times it three times. If both are near the same part, the
 * second SM finds everything near: the three passes are alike. If not, its first load of a line
 * whose home is another part takes longer; its second does not, since its part then has a copy.
 * Each load is compared with the same load of another pass, since the slices of one part are not
 * equally far either. The third pass shows how much two passes differ by chance. Every pair of a
 * sample of SMs is measured, so that the part of each SM is confirmed by all others. */
#include "probes/caches/l2_copies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

enum {
    TOUCHES = 3,
    PAIRS_MAX = L2_SAMPLE_MAX * (L2_SAMPLE_MAX - 1) / 2,
    AT_ONCE_MAX = L2_SAMPLE_MAX / 2,
    ELEMENTS_MAX = 128,
    STRIDE_BYTES = 512, /* more than the fetch of L2: a touch must not bring in the next element */
    LOOKED_AT_MAX = 8,  /* pairs that are measured repeatedly, under noise */
    REPEATS_MAX = 30,
};

/* All arrays together take this share of L2: the copies fit too, even with few ways. */
static const double L2_SHARE = 1.0 / 8;

static const uint64_t ARRAY_MIN_BYTES = 32 * 1024, ARRAY_MAX_BYTES = 256 * 1024;

/* First touches exceed second ones by chance by up to SIGNIFICANT standard errors. A mean
 * difference below the other two limits is too small for half of the lines being in another
 * part. */
static const double SIGNIFICANT = 4, SHIFT_SHARE = 0.015, SHIFT_CYCLES = 2;

/* Of the differences between two equal passes, this share is scatter; the rest are spikes. */
static const double SCATTER_SHARE = 0.97;

/* Half the distance of near and far in standard deviations: enough to see a level that is much
 * nearer than the mean one. And the number of repeats above which single touches do not show
 * that. */
static const double CLEAR = 6, REPEATS_FREE = 2;

/* The largest share of far lines (four parts): the distance of far lines is at least the mean of
 * all lines over this. */
static const double FAR_SHARE_MAX = 0.75;

/* Touches above this quantile of the chance differences, plus some cycles, are far. */
static const double CHANCE = 0.995, CHANCE_CYCLES = 2;

/* Largest share of pairs that contradict the groups, and largest error of the share of far
 * lines. */
static const double CONTRADICTIONS_MAX = 0.05, SHARE_OFF_MAX = 0.08;

struct pair {
    size_t a, b;     /* indices in the sample: a loads, b times */
    double *touches; /* TOUCHES rows of elements */
    double *firsts;  /* the first touches of each repeat, if there are repeats */
    size_t repeats;
    bool apart; /* the SMs are near different parts */
};

struct copies {
    struct probe_context *context;
    double near;
    int32_t sms[L2_SAMPLE_MAX];
    size_t sm_count, groups[L2_SAMPLE_MAX], group_count;
    struct pair pairs[PAIRS_MAX];
    size_t pair_count;
    struct device_array array;
    size_t elements;
    uint32_t at_once;
    struct l2_values chance; /* second less third touches, with both signs; sorted */
};

static double touch(const struct copies *copies, const struct pair *pair, size_t number, size_t e)
{
    return pair->touches[number * copies->elements + e];
}

static double extra(const struct copies *copies, const struct pair *pair, size_t e)
{
    return touch(copies, pair, 0, e) - touch(copies, pair, 1, e);
}

static void choose_array(struct copies *copies)
{
    const struct device_limits *limits = device_limits(copies->context->device);
    double room = L2_SHARE * (double)limits->l2_reported_bytes;
    double size = fmin(fmax(room / AT_ONCE_MAX, (double)ARRAY_MIN_BYTES), (double)ARRAY_MAX_BYTES);
    if (room > 0)
        size = fmin(size, fmax(2 * room, STRIDE_BYTES));
    uint64_t stride = (uint64_t)size / ELEMENTS_MAX / STRIDE_BYTES * STRIDE_BYTES;
    stride = stride ? stride : STRIDE_BYTES;
    copies->elements = (size_t)((uint64_t)size / stride);
    copies->array = (struct device_array){
        .path = DEVICE_GLOBAL_CG, .size_bytes = copies->elements * stride, .stride_bytes = stride};
    copies->at_once = (uint32_t)fmin(fmax(room / size, 1), AT_ONCE_MAX);
}

/* All pairs, in rounds of pairs that have no SM in common (the circle method): the pairs of a round
 * can run at once. */
static void list_pairs(struct copies *copies)
{
    size_t seats = copies->sm_count + copies->sm_count % 2;
    for (size_t round = 0; round + 1 < seats; round++)
        for (size_t i = 0; i < seats / 2; i++) {
            size_t turn = seats - 1;
            size_t a = i ? (round + i) % turn : turn, b = (round + turn - i) % turn;
            if (a >= copies->sm_count || b >= copies->sm_count)
                continue;
            copies->pairs[copies->pair_count++] =
                (struct pair){.a = round % 2 ? a : b, .b = round % 2 ? b : a};
        }
}

/* The second SM first loads between the elements, to find the pages: address translation is no part
 * of L2's latency. */
static struct device_job copies_pair_job(const struct copies *copies, const struct pair *pair,
                                         uint64_t offset_bytes)
{
    struct device_job job = {.agent_count = 2, .cold_l2 = true};
    struct device_array array = copies->array, pages = copies->array;
    array.offset_bytes = offset_bytes;
    pages.offset_bytes = offset_bytes + STRIDE_BYTES / 2;
    pages.stride_bytes = L2_PAGE_MIN_BYTES;
    pages.size_bytes = array.size_bytes / L2_PAGE_MIN_BYTES * L2_PAGE_MIN_BYTES;
    job.agents[0].sm = copies->sms[pair->a];
    job.agents[1].sm = copies->sms[pair->b];
    chase_add(&job, DEVICE_WARM, &array, 0);
    if (pages.size_bytes)
        chase_add(&job, DEVICE_WARM, &pages, 0)->agent = 1;
    for (int i = 0; i < TOUCHES; i++) {
        struct device_step *step = chase_add(&job, DEVICE_CHASE, &array, copies->elements);
        step->agent = 1;
        step->keep = (uint32_t)copies->elements;
    }
    return job;
}

/* Each pair has its own memory, which no job loaded before. */
static int run_pairs(struct copies *copies, struct err *err)
{
    struct device_job *jobs = mem_array(copies->pair_count, sizeof *jobs);
    struct device_answer *answers;
    uint64_t size = copies->array.size_bytes;
    uint64_t base = probe_fresh(copies->context, copies->pair_count * size);
    for (size_t i = 0; i < copies->pair_count; i++)
        jobs[i] = copies_pair_job(copies, &copies->pairs[i], base + i * size);
    int rc = chase_run(copies->context, jobs, copies->pair_count, copies->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < copies->pair_count; i++) {
        size_t n = copies->elements;
        double *touches = copies->pairs[i].touches = mem_array(TOUCHES * n, sizeof *touches);
        for (size_t k = 0; k < TOUCHES * n; k++)
            touches[k] = answers[i].samples[k / n].kept[k % n];
    }
    chase_free(answers, copies->pair_count);
    return rc;
}

static void collect_chance(struct copies *copies)
{
    for (size_t i = 0; i < copies->pair_count; i++)
        for (size_t e = 0; e < copies->elements; e++) {
            double off =
                touch(copies, &copies->pairs[i], 1, e) - touch(copies, &copies->pairs[i], 2, e);
            l2_values_add(&copies->chance, off);
            l2_values_add(&copies->chance, -off);
        }
    l2_values_sort(&copies->chance);
}

/* How many of the sorted values are below `value`; equal ones count half. */
static double copies_rank_of(const struct l2_values *sorted, double value)
{
    size_t ends[2];
    for (int after = 0; after < 2; after++) {
        size_t low = 0, high = sorted->count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            bool right = after ? sorted->at[middle] <= value : sorted->at[middle] < value;
            low = right ? middle + 1 : low;
            high = right ? high : middle;
        }
        ends[after] = low;
    }
    return (double)(ends[0] + ends[1]) / 2;
}

/* Mean of first less second touches of a pair. */
static double mean_extra(const struct copies *copies, const struct pair *pair)
{
    struct l2_values all = {0};
    for (size_t e = 0; e < copies->elements; e++)
        l2_values_add(&all, extra(copies, pair, e));
    double mean = l2_values_mean(&all);
    l2_values_fini(&all);
    return mean;
}

/* By ranks (Mann, Whitney 1947): spikes and coarse timers do no harm. */
static void judge_pair(const struct copies *copies, struct pair *pair)
{
    double n = (double)copies->elements, rank = 0;
    for (size_t e = 0; e < copies->elements; e++)
        rank +=
            copies_rank_of(&copies->chance, extra(copies, pair, e)) / (double)copies->chance.count;
    double deviations = (rank / n - 0.5) * sqrt(12 * n);
    double shift = mean_extra(copies, pair);
    pair->apart =
        deviations > SIGNIFICANT && shift > fmax(SHIFT_CYCLES, SHIFT_SHARE * copies->near);
}

/* Among the SMs of the group before `sm`: how many are near another part than `sm`, less how many
 * are not. */
static int balance(const struct copies *copies, size_t sm, size_t group)
{
    int apart = 0;
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct pair *pair = &copies->pairs[i];
        size_t other = pair->a == sm ? pair->b : pair->a;
        if ((pair->a == sm || pair->b == sm) && other < sm && copies->groups[other] == group)
            apart += pair->apart ? 1 : -1;
    }
    return apart;
}

static void copies_group_sms(struct copies *copies)
{
    for (size_t sm = 0; sm < copies->sm_count; sm++) {
        size_t g = 0;
        while (g < copies->group_count && balance(copies, sm, g) >= 0)
            g++;
        copies->groups[sm] = g;
        copies->group_count += g == copies->group_count;
    }
}

static bool crosses(const struct copies *copies, const struct pair *pair)
{
    return copies->groups[pair->a] != copies->groups[pair->b];
}

static size_t count_contradictions(const struct copies *copies)
{
    size_t count = 0;
    for (size_t i = 0; i < copies->pair_count; i++)
        count += copies->pairs[i].apart != crosses(copies, &copies->pairs[i]);
    return count;
}

/* How often a touch must be repeated to tell near from far; 1: not repeated. */
static size_t choose_repeats(const struct copies *copies)
{
    double sum = 0, squares = 0;
    size_t crossing = 0;
    for (size_t i = 0; i < copies->pair_count; i++) {
        if (!crosses(copies, &copies->pairs[i]))
            continue;
        sum += mean_extra(copies, &copies->pairs[i]);
        crossing++;
    }
    size_t inner = (size_t)(SCATTER_SHARE * (double)copies->chance.count);
    size_t first = (copies->chance.count - inner) / 2;
    for (size_t i = first; i < first + inner; i++)
        squares += copies->chance.at[i] * copies->chance.at[i] / (double)inner;
    double distance = sum / (double)crossing / FAR_SHARE_MAX;
    double repeats = ceil(4 * CLEAR * CLEAR * squares / (distance * distance));
    return repeats <= REPEATS_FREE ? 1 : (size_t)fmin(repeats, REPEATS_MAX);
}

/* Means over the repeats of the readings inside the fence. */
static void average_pair(const struct copies *copies, const struct device_answer *answers,
                         size_t apart, const struct l2_fence *fence, struct pair *pair)
{
    size_t n = copies->elements;
    for (size_t k = 0; k < TOUCHES * n; k++) {
        double sum = 0, used = 0;
        for (size_t r = 0; r < pair->repeats; r++) {
            double cycles = answers[r * apart].samples[k / n].kept[k % n];
            bool inside = cycles >= fence->low && cycles <= fence->high;
            sum += inside ? cycles : 0;
            used += inside;
            if (k < n)
                pair->firsts[r * n + k] = cycles;
        }
        pair->touches[k] = used > 0 ? sum / used : fence->high;
    }
}

static void average_repeats(const struct copies *copies, const struct device_answer *answers,
                            size_t repeats, size_t count, struct pair *const *pairs)
{
    size_t n = copies->elements;
    struct l2_values all = {0};
    for (size_t i = 0; i < repeats * count * TOUCHES * n; i++)
        l2_values_add(&all, answers[i / n / TOUCHES].samples[i / n % TOUCHES].kept[i % n]);
    const struct l2_fence fence = l2_values_fence(&all);
    l2_values_fini(&all);
    for (size_t p = 0; p < count; p++) {
        pairs[p]->repeats = repeats;
        pairs[p]->firsts = mem_array(repeats * n, sizeof *pairs[p]->firsts);
        average_pair(copies, answers + p, count, &fence, pairs[p]);
    }
}

/* Measures some pairs repeatedly, with the same elements, and moves them to the front. */
static int repeat_pairs(struct copies *copies, size_t repeats, size_t *out_count, struct err *err)
{
    struct pair *chosen[LOOKED_AT_MAX];
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < copies->pair_count && count < LOOKED_AT_MAX; i++)
        if (crosses(copies, &copies->pairs[i]))
            chosen[count++] = &copies->pairs[i];
    struct device_job *jobs = mem_array(repeats * count, sizeof *jobs);
    struct device_answer *answers;
    uint64_t base = probe_fresh(copies->context, count * copies->array.size_bytes);
    for (size_t i = 0; i < repeats * count; i++)
        jobs[i] =
            copies_pair_job(copies, chosen[i % count], base + i % count * copies->array.size_bytes);
    int rc = chase_run(copies->context, jobs, repeats * count, copies->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    average_repeats(copies, answers, repeats, count, chosen);
    chase_free(answers, repeats * count);
    for (size_t i = 0; i < copies->pair_count; i++) {
        if (kept < count && &copies->pairs[i] == chosen[kept]) {
            struct pair moved = copies->pairs[i];
            copies->pairs[i] = copies->pairs[kept];
            copies->pairs[kept++] = moved;
        }
    }
    *out_count = count;
    return rc;
}

/* The number of extra cycles above which a touch was far: what chance explains, or half the usual
 * far touch if chance explains that much. */
static double far_from(const struct l2_values *extras, const struct l2_values *chance)
{
    double mean = l2_values_mean_below(extras, INFINITY), sum = 0, count = 0;
    for (size_t i = 0; i < extras->count; i++)
        if (extras->at[i] > mean) {
            sum += extras->at[i];
            count++;
        }
    return fmin(l2_values_quantile(chance, CHANCE) + CHANCE_CYCLES, sum / count / 2);
}

static void add_far(const struct copies *copies, const struct pair *pair, size_t e,
                    struct l2_parts *parts)
{
    double first = touch(copies, pair, 0, e);
    l2_values_add(&parts->far_lines, first);
    if (!pair->repeats) {
        l2_values_add(&parts->far_loads, first);
        return;
    }
    for (size_t r = 0; r < pair->repeats; r++)
        l2_values_add(&parts->far_loads, pair->firsts[r * copies->elements + e]);
}

/* Collects the extra cycles of those of the first `count` pairs that cross parts, and the
 * differences by chance. */
static void collect_extras(const struct copies *copies, size_t count, struct l2_values *extras,
                           struct l2_values *chance)
{
    size_t n = copies->elements;
    for (size_t i = 0; i < count * n; i++) {
        const struct pair *pair = &copies->pairs[i / n];
        double off = touch(copies, pair, 1, i % n) - touch(copies, pair, 2, i % n);
        if (crosses(copies, pair))
            l2_values_add(extras, extra(copies, pair, i % n));
        l2_values_add(chance, off);
        l2_values_add(chance, -off);
    }
    l2_values_sort(chance);
}

/* Collects the far touches of the first `count` pairs, and their share. */
static void copies_collect_far(const struct copies *copies, size_t count, struct l2_parts *parts,
                               double *out_share)
{
    struct l2_values extras = {0}, chance = {0};
    size_t n = copies->elements;
    collect_extras(copies, count, &extras, &chance);
    double from = far_from(&extras, &chance);
    for (size_t i = 0; i < count * n; i++) {
        const struct pair *pair = &copies->pairs[i / n];
        if (crosses(copies, pair) && extra(copies, pair, i % n) > from)
            add_far(copies, pair, i % n, parts);
    }
    *out_share = (double)parts->far_lines.count / (double)extras.count;
    l2_values_fini(&extras);
    l2_values_fini(&chance);
}

/* Laplace's rule of succession: the probability that the next pair agrees with the groups. */
static void copies_judge_groups(const struct copies *copies, struct l2_parts *parts)
{
    size_t against = count_contradictions(copies), pairs = copies->pair_count;
    parts->confidence = (double)(pairs - against + 1) / (double)(pairs + 2);
    if (copies->group_count > L2_PARTS_MAX || (double)against > CONTRADICTIONS_MAX * (double)pairs)
        snprintf(parts->doubt, sizeof parts->doubt,
                 "%zu groups of SMs, %zu of %zu pairs of SMs contradict them", copies->group_count,
                 against, pairs);
}

/* There are as many parts as groups of SMs, and 1 / parts of the lines are near. */
static void copies_settle(const struct copies *copies, double far_share, struct l2_parts *parts)
{
    double groups = (double)copies->group_count, expected = (groups - 1) / groups;
    parts->count = (uint32_t)fmin(groups, L2_PARTS_MAX);
    parts->seen_part = mem_array(device_limits(copies->context->device)->sm_count, 1);
    for (size_t sm = copies->sm_count; sm-- > 0;) {
        if (copies->groups[sm] >= L2_PARTS_MAX)
            continue;
        parts->sms[copies->groups[sm]] = copies->sms[sm];
        parts->seen_part[copies->sms[sm]] = (uint8_t)(copies->groups[sm] + 1);
    }
    if (!parts->doubt[0] && fabs(far_share - expected) > SHARE_OFF_MAX)
        snprintf(parts->doubt, sizeof parts->doubt,
                 "%zu groups of SMs, but %.0f %% of the lines are far", copies->group_count,
                 100 * far_share);
}

static int copies_find_groups(struct copies *copies, struct err *err)
{
    choose_array(copies);
    list_pairs(copies);
    int rc = run_pairs(copies, err);
    if (rc)
        return rc;
    collect_chance(copies);
    for (size_t i = 0; i < copies->pair_count; i++)
        judge_pair(copies, &copies->pairs[i]);
    copies_group_sms(copies);
    return 0;
}

static int measure_far(struct copies *copies, double near_width, struct l2_parts *parts,
                       struct err *err)
{
    size_t repeats = choose_repeats(copies), count = copies->pair_count;
    double far_share;
    int rc = 0;
    if (repeats > 1)
        rc = repeat_pairs(copies, repeats, &count, err);
    if (rc)
        return rc;
    copies_collect_far(copies, count, parts, &far_share);
    copies_settle(copies, far_share, parts);
    l2_parts_set_far(parts, near_width);
    return 0;
}

int l2_look_for_copies(struct probe_context *context, double near, double near_width,
                       struct l2_parts *out_parts, struct err *err)
{
    struct copies *copies = mem_array(1, sizeof *copies);
    copies->context = context;
    copies->near = near;
    copies->sm_count = l2_sample_sms(context, copies->sms);
    int rc = copies->sm_count > 1 ? copies_find_groups(copies, err) : 0;
    if (!rc && copies->pair_count)
        copies_judge_groups(copies, out_parts);
    if (!rc && copies->group_count > 1)
        rc = measure_far(copies, near_width, out_parts, err);
    for (size_t i = 0; i < copies->pair_count; i++) {
        free(copies->pairs[i].touches);
        free(copies->pairs[i].firsts);
    }
    l2_values_fini(&copies->chance);
    free(copies);
    return rc;
}
