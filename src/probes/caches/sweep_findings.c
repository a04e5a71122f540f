/* What a sweep of a file shows: the analysis of the survey.
 *
 * Unlike the survey, a file has no separate references for hits and misses, and nothing can be
 * measured again. So the references are the two ends of the sweep, and what is reported as sure
 * must be found by two ways. */
#include "probes/caches/sweep_findings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cpd/cpd.h"
#include "probes/caches/fetch.h"
#include "probes/caches/level.h"
#include "probes/caches/line.h"
#include "probes/caches/sweep.h"

enum {
    SIDE_MIN = 3,     /* rows on either side of an edge, as in the test of a change point */
    END_MIN = 2,      /* rows of an end of a sweep, and the share of all rows: */
    END_SHARE = 16,   /* one of this many */
    LATE_ROWS = 2,    /* so late may a change point be (sweep_onset) */
    BEFORE_ROWS = 4,  /* that must be free of misses before an edge */
    STRAY_ROWS = 8,   /* that tell the share of strays */
    SIZES_MIN = 8,    /* of each stride, for a sure line */
    FETCH_MAX = 4096, /* bytes; no cache fetches more at once */
    SEED = 1,
};

/* Loads of the next level take at least so many times as long (as SUPPORTED_SHARE in level.c). */
static const double NEXT_LEVEL = 1 / 0.9;

/* Hits that take less than this share of the latency of the memory are those of a cache before. */
static const double BEFORE_SHARE = 0.5;

/* If more than this share of the loads of the smallest arrays misses, the sweep may begin beyond
 * the edge (as OVER_SHARE in study.c). */
static const double OVER_SHARE = 0.02;

/* A size does not fit if it has this many misses more than the smallest ones, and as many standard
 * deviations. */
static const double MORE_MISSES = 1.5, DEVIATIONS = 3;

/* At most this share of the rows on either side may contradict a clear edge. */
static const double CONTRADICT = 0.05;

/* If loads are in order, their addresses explain the misses nearly as well as their number, which
 * leaves more freedom. */
static const double SAME_CONTRAST = 0.1;

/* Hits are of two levels if they differ by this factor, without the few fastest and slowest. */
static const double APART = 1.5, FEW_HITS = 0.05;

/* A latency is sure if the middle 80 % of the loads differ from it by at most this share. */
static const double NEAR = 0.1;

/* Below this confidence nothing is sure. */
static const double SURE = 0.95;

/* Strides up to the line begin to miss at the same size, but for this share. */
static const double SYSTEMATIC = 0.01;

/* Hits and misses. */

static void pool_add_rows(struct pool *pool, const struct file_row *rows, size_t count,
                          double above, double up_to)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < rows[i].count; k++)
            if (rows[i].loads[k] > above && rows[i].loads[k] <= up_to)
                pool_add_load(pool, fmin(rows[i].loads[k], UINT32_MAX));
}

static double row_misses(const struct file_row *row, double threshold)
{
    double misses = 0;
    for (size_t i = 0; i < row->count; i++)
        misses += row->loads[i] > threshold;
    return misses;
}

static size_t end_rows(size_t count)
{
    return count / END_SHARE > END_MIN ? count / END_SHARE : END_MIN;
}

/* The levels of the first rows' loads up to a threshold and of the last rows' loads above it. False
 * if there are none. stray_share: of the first rows. */
static bool levels_settle(const struct file_row *rows, size_t count, double threshold,
                          struct study *study)
{
    size_t ends = end_rows(count);
    struct pool *fast = mem_array(2, sizeof *fast), *slow = fast + 1;
    pool_add_rows(fast, rows, ends, -1, threshold);
    pool_add_rows(slow, rows + count - ends, ends, threshold, INFINITY);
    bool two = fast->all && slow->all;
    if (two) {
        double misses = 0, loads = 0;
        level_settle(study, fast, slow);
        for (size_t i = 0; i < ends; i++) {
            misses += row_misses(&rows[i], study->threshold);
            loads += (double)rows[i].count;
        }
        study->stray_share = misses / loads;
    }
    free(fast);
    return two;
}

/* The two levels between which the rows change: the first rows are taken to hit, and of the last
 * ones the slow loads to miss. False if there are no two. */
static bool levels_find(const struct file_row *rows, size_t count, struct study *study)
{
    size_t ends = end_rows(count);
    if (count < 2 * ends)
        return false;
    struct pool *first = mem_array(2, sizeof *first), *last = first + 1;
    pool_add_rows(first, rows, ends, -1, INFINITY);
    pool_add_rows(last, rows + count - ends, ends, -1, INFINITY);
    double threshold = contrast_between(first, last).threshold;
    free(first);
    return levels_settle(rows, count, threshold, study) &&
           study->hit_cycles * NEXT_LEVEL < study->miss_cycles;
}

/* Whether misses are those of a level before the other one's. */
static bool is_lower(const struct study *lower, const struct study *study)
{
    return lower->stray_share <= OVER_SHARE && lower->miss_cycles * NEXT_LEVEL < study->miss_cycles;
}

/* More misses than this are more than strays. */
static double most_strays(const struct study *study, size_t loads)
{
    double strays = study->stray_share * (double)loads;
    return strays + MORE_MISSES + DEVIATIONS * sqrt(strays);
}

/* Where misses begin. */

struct edge {
    struct study study;
    size_t at;      /* the first row that does not fit */
    bool clear;     /* nearly no row contradicts it, and those before have no more strays */
    bool confirmed; /* the change point is there too */
    double confidence;
    size_t by_mean;      /* the first row that is slower on average */
    double first_strays; /* share of the loads of the first rows that seem to miss */
};

/* The first row from which on the mean latency is higher than that of any of the first rows. */
static size_t first_slower(const double *means, size_t count, size_t first)
{
    double limit = means[0];
    for (size_t i = 1; i < first; i++)
        limit = fmax(limit, means[i]);
    return sweep_first_over(means, count, limit + OVER_SHARE);
}

/* The change point: the first row after it, 0 if there is none. */
static size_t change_point(const struct study *study, const uint64_t *sizes, const double *shares,
                           size_t count, double *out_confidence)
{
    struct sweep_onset onset;
    struct err ignored = {0};
    if (sweep_onset(study, sizes, shares, count, SEED, &onset, &ignored) || !onset.change.found)
        return 0;
    *out_confidence = onset.change.confidence;
    return onset.change.split;
}

/* Whether a change point is at this row, or as late as it may be. */
static bool is_there(size_t change, size_t at)
{
    return change + 1 >= at && change <= at + LATE_ROWS;
}

/* Whether the rows just before have more misses together than strays explain. */
static bool misses_before(const struct file_row *rows, size_t at, const struct study *study)
{
    double misses = 0;
    size_t loads = 0;
    for (size_t i = at > BEFORE_ROWS ? at - BEFORE_ROWS : 0; i < at; i++) {
        misses += row_misses(&rows[i], study->threshold);
        loads += rows[i].count;
    }
    return misses > most_strays(study, loads);
}

/* Whether the edge cannot be at another row: the first row that misses has twice as many misses as
 * could be seen, and in the rows behind it they grow so fast that not even one row before had any.
 * If there are strays, their share must be known well. */
static bool is_sharp(const struct file_row *rows, size_t count, size_t at,
                     const struct study *study)
{
    size_t later = at + LATE_ROWS + 1 < count ? at + LATE_ROWS + 1 : count - 1;
    double strays = study->stray_share * (double)rows[at].count;
    double seen = most_strays(study, rows[at].count) - strays;
    double more =
        row_misses(&rows[later], study->threshold) - strays - 2 * DEVIATIONS * sqrt(strays);
    return (strays <= 0 || at >= STRAY_ROWS) &&
           row_misses(&rows[at], study->threshold) - strays >= 2 * seen &&
           seen * (double)(later - at + 1) <= more;
}

/* The first row from which on misses are more than strays explain. The share of strays is first
 * that of the first rows, then that of all rows before. */
static size_t first_missing(const struct file_row *rows, size_t count, struct study *study,
                            double *over)
{
    size_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        double misses = 0, loads = 0;
        for (size_t i = 0; i < at; i++) {
            misses += row_misses(&rows[i], study->threshold);
            loads += (double)rows[i].count;
        }
        if (loads > 0)
            study->stray_share = misses / loads;
        for (size_t i = 0; i < count; i++)
            over[i] = row_misses(&rows[i], study->threshold) - most_strays(study, rows[i].count);
        at = sweep_first_over(over, count, 0);
    }
    return at;
}

/* Finds an edge by three ways: the first row from which on misses are more than strays explain, the
 * change point, and the mean latency, which does not depend on the threshold: a latency that is
 * itself a mean of hits and misses counts as the share that missed. */
static bool edge_find(const struct file_row *rows, size_t count, struct edge *out_edge)
{
    struct edge edge = {0};
    struct study *study = &edge.study;
    if (count < 2 * SIDE_MIN || !levels_find(rows, count, study))
        return false;
    double *shares = mem_array(count, sizeof *shares), *over = mem_array(count, sizeof *over);
    double *means = mem_array(count, sizeof *means);
    uint64_t *sizes = mem_array(count, sizeof *sizes);
    edge.first_strays = study->stray_share;
    edge.at = first_missing(rows, count, study, over);
    for (size_t i = 0; i < count; i++) {
        double above = cpd_mean(rows[i].loads, rows[i].count) - study->hit_cycles;
        sizes[i] = (uint64_t)rows[i].x;
        shares[i] = row_misses(&rows[i], study->threshold) / (double)rows[i].count;
        means[i] = fmin(fmax(above / (study->miss_cycles - study->hit_cycles), 0), 1);
    }
    bool found = edge.at > 0 && edge.at < count;
    if (found) {
        double before = 0, after = 0; /* rows that contradict */
        for (size_t i = 0; i < count; i++)
            *(i < edge.at ? &before : &after) += (over[i] > 0) != (i >= edge.at);
        edge.clear = before <= CONTRADICT * (double)edge.at &&
                     after <= CONTRADICT * (double)(count - edge.at) &&
                     !misses_before(rows, edge.at, study) && is_sharp(rows, count, edge.at, study);
        size_t change = change_point(study, sizes, shares, count, &edge.confidence);
        edge.confirmed = change && is_there(change, edge.at) && edge.at >= SIDE_MIN &&
                         count - edge.at >= SIDE_MIN;
        edge.by_mean = first_slower(means, count, edge.at / 2);
        *out_edge = edge;
    }
    free(shares);
    free(over);
    free(means);
    free(sizes);
    return found;
}

/* Whether the same loads of the first rows miss again and again: these are no strays, which hit any
 * load. The first load of a chase may always be slow. */
static bool same_loads_miss(const struct file_row *rows, size_t count, double threshold)
{
    size_t ends = end_rows(count);
    double pairs = 0, misses = 0, loads = 0;
    for (size_t i = 0; i < ends; i++) {
        misses += row_misses(&rows[i], threshold);
        loads += (double)rows[i].count;
    }
    for (size_t k = 1; k < rows[0].count; k++) {
        double missed = 0;
        for (size_t i = 0; i < ends; i++)
            missed += k < rows[i].count && rows[i].loads[k] > threshold;
        pairs += missed * (missed - 1) / 2;
    }
    double share = misses / loads;
    double chance = (double)rows[0].count * (double)(ends * (ends - 1)) / 2 * share * share;
    return pairs > MORE_MISSES + chance + DEVIATIONS * sqrt(chance);
}

/* The array of which most elements hit, if whole passes were timed, and how many bytes they span:
 * an element that hits has stayed since the pass before, so the cache holds at least these. False
 * if passes are only timed in part. The last load of a pass may be missing. */
static bool most_hits(const struct file_row *rows, size_t count, double threshold,
                      double *out_bytes, double *out_array)
{
    double stride = rows[0].x / (double)(rows[0].count + 1), best = 0;
    bool varies = false;
    for (size_t i = 0; i < count; i++) {
        double elements = rows[i].x / stride;
        varies |= rows[i].count != rows[0].count;
        if ((double)rows[i].count + 1 < floor(elements))
            continue;
        double hits = (elements - row_misses(&rows[i], threshold)) * stride;
        if (hits > best) {
            best = hits;
            *out_array = rows[i].x;
        }
    }
    *out_bytes = best;
    return varies && stride == floor(stride);
}

void sweep_find_onset(const struct sweep_file *file, struct file_finding *f)
{
    const struct file_row *rows = file->rows;
    struct edge edge, lower;
    double further = 0, held, array = 0;
    f->step = file->count > 1 ? rows[1].x - rows[0].x : 0;
    if (!edge_find(rows, file->count, &edge)) {
        struct study study = {0};
        bool two = levels_find(rows, file->count, &study);
        f->hit = study.hit_cycles;
        f->miss = two ? study.miss_cycles : 0;
        snprintf(f->why, sizeof f->why,
                 "no size from which on misses begin: this sweep lacks the edge of the cache");
        return;
    }
    /* Before an edge there may be that of a lower level. */
    while (edge_find(rows, edge.at, &lower) && lower.clear && is_lower(&lower.study, &edge.study)) {
        further = further > 0 ? further : rows[edge.at - 1].x;
        edge = lower;
    }
    bool by_mean = edge.by_mean + 1 >= edge.at; /* not earlier */
    if (edge.by_mean && edge.by_mean < edge.at)
        edge.at = edge.by_mean;
    f->known = true;
    f->value = rows[edge.at - 1].x;
    f->step = rows[edge.at].x - f->value;
    f->hit = edge.study.hit_cycles;
    f->miss = edge.study.miss_cycles;
    bool repeats = same_loads_miss(rows, file->count, edge.study.threshold);
    bool begins = edge.first_strays <= OVER_SHARE && !repeats;
    f->sure = edge.confirmed && by_mean && edge.clear && edge.confidence >= SURE && begins;
    if (!begins)
        snprintf(f->why, sizeof f->why,
                 "%.1f %% of the loads of the smallest arrays miss%s: the sweep may begin beyond "
                 "the edge",
                 100 * edge.first_strays, repeats ? ", the same ones each time" : "");
    else if (!f->sure)
        snprintf(f->why, sizeof f->why,
                 "misses do not begin sharply: by other ways it would be another size");
    if (most_hits(rows, file->count, edge.study.threshold, &held, &array) &&
        (!begins || held > f->value + f->step)) {
        f->value = array;
        f->sure = false;
        snprintf(f->why, sizeof f->why,
                 "%s arrays miss too, but in this one most elements hit: %.0f B",
                 begins ? "smaller" : "the smallest", held);
    }
    if (further > 0 && !*f->why)
        snprintf(f->why, sizeof f->why, "a further level begins to miss after %.0f B", further);
}

/* The fetch unit. */

/* The stride unit of all rows: their greatest common divisor. */
static uint64_t common_stride(const struct file_row *rows, size_t count)
{
    uint64_t common = (uint64_t)rows[0].x;
    for (size_t i = 1; i < count; i++)
        for (uint64_t rest = (uint64_t)rows[i].x; rest;) {
            uint64_t next = common % rest;
            common = rest;
            rest = next;
        }
    return common;
}

/* Judges the rows in all orders; the orders that explain the misses best count. */
static struct fetch_unit judge_orders(const struct fetch_row *rows, size_t count, uint64_t word,
                                      uint64_t longest, struct fetch_unit *out_by_count)
{
    struct fetch_unit best = {.likely = -INFINITY};
    for (enum fetch_order order = FETCH_IN_ORDER; order <= FETCH_WITHOUT_FIRST; order++) {
        struct fetch_unit unit = fetch_judge(rows, count, order, word, longest);
        if (unit.likely > best.likely)
            best = unit;
    }
    *out_by_count = fetch_judge(rows, count, FETCH_IN_RANDOM_ORDER, word, longest);
    return best.contrast >= out_by_count->contrast - SAME_CONTRAST ? best : *out_by_count;
}

/* The last rows may miss more slowly than the others. If no load takes a time in most of the range
 * between a hit and the threshold, the threshold belongs there. */
static double lower_threshold(const struct file_row *rows, size_t count, const struct study *study)
{
    struct pool *all = mem_array(1, sizeof *all);
    double below = study->hit_cycles, from = 0, widest = 0;
    pool_add_rows(all, rows, count, study->hit_cycles, study->threshold);
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++) {
        double cycles = device_bin_cycles(bin);
        if (!all->counts[bin] || cycles <= below)
            continue;
        if (cycles - below > widest) {
            widest = cycles - below;
            from = below;
        }
        below = cycles;
    }
    free(all);
    return widest > (study->threshold - study->hit_cycles) / 2 ? from + widest / 2
                                                               : study->threshold;
}

struct fetch_found {
    struct study study;
    struct fetch_unit unit;
    bool agree; /* the addresses and the number of misses say the same */
};

/* The fetch unit of all rows, by the levels of the first `shorter` ones. */
static bool fetch_find(const struct file_row *rows, size_t count, size_t shorter,
                       struct fetch_found *out_found)
{
    struct fetch_found found = {0};
    if (shorter < 2 * SIDE_MIN || !levels_find(rows, shorter, &found.study))
        return false;
    double threshold = lower_threshold(rows, count, &found.study);
    if (threshold < found.study.threshold) {
        levels_settle(rows, shorter, threshold, &found.study);
        found.study.threshold = threshold;
    }
    struct fetch_row *fetch = mem_array(count, sizeof *fetch);
    size_t loads = 0;
    for (size_t i = 0; i < count; i++)
        loads += rows[i].count;
    uint32_t *misses = mem_array(loads, sizeof *misses), *next = misses;
    for (size_t i = 0; i < count; i++) {
        fetch[i] = (struct fetch_row){.stride_bytes = (uint64_t)rows[i].x,
                                      .loads = rows[i].count,
                                      .passes = 1,
                                      .misses = next};
        for (size_t k = 0; k < rows[i].count; k++)
            *next++ = rows[i].loads[k] > found.study.threshold;
    }
    struct fetch_unit by_count;
    uint64_t longest = (uint64_t)fmin(rows[count - 1].x, FETCH_MAX);
    found.unit = judge_orders(fetch, count, common_stride(rows, count), longest, &by_count);
    found.agree = found.unit.bytes == by_count.bytes;
    free(misses);
    free(fetch);
    *out_found = found;
    return found.unit.bytes && found.unit.contrast >= FETCH_CLEAR;
}

/* Whether the loads that count as hits are of two levels themselves. */
static bool hits_of_two_levels(const struct file_row *rows, size_t count, double threshold)
{
    struct pool *hits = mem_array(1, sizeof *hits);
    pool_add_rows(hits, rows, count, -1, threshold);
    bool two = hits->all && pool_reading(hits, 1 - FEW_HITS) > APART * pool_reading(hits, FEW_HITS);
    free(hits);
    return two;
}

void sweep_find_fetch(const struct sweep_file *file, struct file_finding *f)
{
    const struct file_row *rows = file->rows;
    struct fetch_found found, lower;
    size_t count = file->count;
    f->step = count > 1 ? rows[1].x - rows[0].x : 0;
    if (rows[0].x < 1 || !fetch_find(rows, count, count, &found)) {
        snprintf(f->why, sizeof f->why, "no regular misses");
        return;
    }
    /* Among shorter strides, the misses of a lower level may show. */
    for (size_t shorter = count;; found = lower) {
        while (shorter && rows[shorter - 1].x >= (double)found.unit.bytes)
            shorter--;
        if (!fetch_find(rows, count, shorter, &lower) || lower.unit.bytes >= found.unit.bytes ||
            lower.unit.contrast < found.unit.contrast - SAME_CONTRAST)
            break;
    }
    f->known = true;
    f->value = (double)found.unit.bytes;
    f->hit = found.study.hit_cycles;
    f->miss = found.study.miss_cycles;
    bool two = hits_of_two_levels(rows, count, found.study.threshold);
    f->sure = found.unit.contrast >= SURE && found.agree && !two && f->value < rows[count - 1].x;
    if (two)
        snprintf(f->why, sizeof f->why, "the hits are of two levels themselves");
    else if (!f->sure)
        snprintf(f->why, sizeof f->why, "contrast %.2f%s", found.unit.contrast,
                 found.agree ? "" : ", and the number of misses says otherwise");
}

/* The line. */

/* The reach of each stride, in units of the greatest common divisor of the strides. */
static bool add_reach(const struct file_row *rows, size_t count, const struct study *study,
                      double unit, struct line_evidence *e)
{
    double *over = mem_array(count, sizeof *over);
    for (size_t i = 0; i < count; i++)
        over[i] = row_misses(&rows[i], study->threshold) - most_strays(study, rows[i].count);
    size_t at = sweep_first_over(over, count, 0);
    free(over);
    double units = rows[0].x / unit;
    if (at == 0 || units > LINE_STRIDE_MAX || e->count == LINE_OBSERVATIONS_MAX)
        return at > 0;
    double step = count > 1 ? (rows[count - 1].y - rows[0].y) / (double)(count - 1) : 0;
    e->items[e->count++] = (struct line_observation){.units = (uint64_t)units,
                                                     .reach = {rows[at - 1].y / unit, step / unit},
                                                     .open = at == count};
    return true;
}

static int by_stride(const void *a, const void *b)
{
    const struct file_row *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* False if even the smallest arrays miss at some stride. fewest: sizes of a stride. */
static bool gather_reaches(const struct file_row *rows, size_t count, const struct study *study,
                           double unit, struct line_evidence *e, size_t *out_fewest)
{
    bool all = true;
    e->count = 0;
    *out_fewest = count;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && rows[end].x == rows[i].x;)
            end++;
        *out_fewest = end - i < *out_fewest ? end - i : *out_fewest;
        all &= add_reach(rows + i, end - i, study, unit, e);
    }
    return all && e->count;
}

/* Strides beyond the line never begin to miss earlier than others. */
static bool reaches_fit(const struct line_evidence *e, struct line_hypothesis line)
{
    double capacity = line_capacity(e, line).units;
    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].reach.units < capacity - e->items[i].reach.error)
            return false;
    return true;
}

/* The fetch unit of the same memory, if it is known surely; else 0. */
static double sibling_fetch(const struct sweep_file *file)
{
    struct sweep_file fetch;
    struct file_finding unit = {0};
    if (!sweep_file_sibling(file, FIGURE_FETCH, &fetch))
        return 0;
    if (fetch.count)
        sweep_find_fetch(&fetch, &unit);
    sweep_file_fini(&fetch);
    return unit.sure ? unit.value : 0;
}

void sweep_find_line(const struct sweep_file *file, struct file_finding *f)
{
    struct study study = {0};
    if (!levels_find(file->rows, file->count, &study)) {
        snprintf(f->why, sizeof f->why,
                 "no array misses, or all do: this sweep lacks the edge of the cache");
        return;
    }
    f->hit = study.hit_cycles;
    f->miss = study.miss_cycles;
    sort_stable(file->rows, file->count, sizeof *file->rows, by_stride);
    uint64_t word = common_stride(file->rows, file->count);
    double fetch = sibling_fetch(file), longest = file->rows[file->count - 1].x;
    struct line_evidence *e = mem_array(1, sizeof *e);
    e->systematic = SYSTEMATIC;
    e->multiple = fetch > 0 && fmod(fetch, (double)word) == 0 ? (uint64_t)fetch / word : 0;
    f->step = (double)word;
    size_t sizes;
    /* If the threshold that misjudges the fewest loads lets hits near the edge seem to miss, the
     * middle between both levels is tried. */
    for (int attempt = 0; attempt < 2 && !f->sure; attempt++) {
        if (attempt)
            study.threshold = (study.hit_cycles + study.miss_cycles) / 2;
        if (!gather_reaches(file->rows, file->count, &study, (double)word, e, &sizes)) {
            if (!f->known)
                snprintf(f->why, sizeof f->why,
                         "even the smallest arrays miss: this sweep lacks the edge of the cache");
            continue;
        }
        const struct line_verdict verdict = line_judge(e);
        bool fit = reaches_fit(e, verdict.best);
        f->value = verdict.best.line * (double)word;
        f->known = f->value < longest;
        f->sure = f->known && fit && e->multiple && sizes >= SIZES_MIN &&
                  line_confidence(&verdict) >= LINE_SURE;
        f->why[0] = 0;
        if (!f->known)
            snprintf(f->why, sizeof f->why, "no stride surely skips a line");
        else if (!fit)
            snprintf(f->why, sizeof f->why, "where misses begin does not fit any line");
        else if (!e->multiple)
            snprintf(f->why, sizeof f->why, "the fetch unit is not known surely");
        else if (sizes < SIZES_MIN)
            snprintf(f->why, sizeof f->why, "only %zu sizes of a stride", sizes);
        else if (!f->sure)
            snprintf(f->why, sizeof f->why, "%.0f B explain the sizes nearly as well",
                     verdict.second.line * (double)word);
    }
    free(e);
}

/* The latency of a hit: the median, sure if most loads are near it. */
void sweep_find_latency(const struct sweep_file *file, struct file_finding *f)
{
    struct pool *pool = mem_array(1, sizeof *pool);
    pool_add_rows(pool, file->rows, file->count, -1, INFINITY);
    f->known = true;
    f->value = round(pool_reading(pool, 0.5));
    f->step = 1;
    f->sure = pool_reading(pool, 0.1) > (1 - NEAR) * f->value &&
              pool_reading(pool, 0.9) < (1 + NEAR) * f->value;
    if (!f->sure)
        snprintf(f->why, sizeof f->why, "loads from %.0f to %.0f cycles", pool_reading(pool, 0.1),
                 pool_reading(pool, 0.9));
    free(pool);
}

/* Loads that are much faster than the memory itself hit a cache before it. */
void sweep_check_level(const struct sweep_file *file, struct file_finding *f)
{
    struct sweep_file sibling;
    struct file_finding latency = {0};
    if (!f->known || !sweep_file_sibling(file, FIGURE_LATENCY, &sibling))
        return;
    if (sibling.count)
        sweep_find_latency(&sibling, &latency);
    sweep_file_fini(&sibling);
    struct pool *fast = mem_array(1, sizeof *fast);
    size_t ends = end_rows(file->count);
    pool_add_rows(fast, file->rows, ends < file->count ? ends : file->count, -1, INFINITY);
    double cycles = pool_reading(fast, 0.25);
    free(fast);
    if (!latency.known || cycles >= BEFORE_SHARE * latency.value)
        return;
    f->sure = false;
    snprintf(f->why, sizeof f->why,
             "loads of %.0f cycles hit a cache before this one, which takes %.0f", cycles,
             latency.value);
}
