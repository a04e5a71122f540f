/* The levels of TLBs: how many entries each has, what an entry covers, what a miss costs, and their
 * sets.
 */
#include "probes/tlb/tlb_levels.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"

/* The levels of TLBs: how many entries each has, what one covers, and what a miss costs.
 *
 * The pages of a chase are spread over all memory, so that each has an entry of its own in every
 * TLB. As their number rises, the latency rises wherever a TLB has no more entries. */

/* A rise counts from so many standard errors, and from so many cycles on. */
static const double ERRORS_MIN = 5, CYCLES_MIN = 2, ALL_SHARE = 0.9;

enum { SPAN_BYTES_MIN = 1024 };

struct point {
    uint64_t pages;
    double mean, error;
};

struct sweep {
    struct point points[TLB_SWEEP_MAX];
    size_t count;
};

static int measure_point(struct probe_context *context, uint64_t stride, uint64_t pages,
                         struct point *out_point, struct err *err)
{
    struct page_cycles cycles;
    int rc = page_chase_measure(context, stride, pages, &cycles, err);
    if (rc)
        return rc;
    *out_point = (struct point){.pages = pages, .mean = cycles.mean, .error = cycles.error};
    return 0;
}

/* Two numbers of pages per octave: 1, 2, 3, 4, 6, 8, 12, ... From one page on: spread pages may all
 * come to one set, so that a TLB of few ways misses from three or four pages on. */
static int run_sweep(struct probe_context *context, const struct page_chase *chase,
                     struct sweep *sweep, struct err *err)
{
    sweep->count = 0;
    for (uint64_t pages = 1; pages <= chase->pages_max && sweep->count < TLB_SWEEP_MAX;
         pages += pages & (pages - 1) ? pages / 3 : (pages + 1) / 2) {
        uint64_t stride = page_chase_stride(chase, pages);
        if (stride < SPAN_BYTES_MIN)
            break;
        int rc = measure_point(context, stride, pages, &sweep->points[sweep->count], err);
        if (rc == -ENOENT && pages < 4) /* h200-full-2 of tests/records has no fewer than four */
            continue;
        if (rc)
            return rc;
        sweep->count++;
    }
    return 0;
}

static double tolerance(double error, double other)
{
    return fmax(CYCLES_MIN, ERRORS_MIN * sqrt(error * error + other * other));
}

/* A TLB that replaces at random rises slowly; where the rise is nearly over and grows again, the
 * next level begins. */
static bool next_begins(const struct sweep *sweep, size_t i, double rise)
{
    const struct point *p = sweep->points;
    if (i + 2 >= sweep->count)
        return false;
    double step = p[i + 1].mean - p[i].mean;
    return step < rise / 4 && p[i + 2].mean - p[i + 1].mean > 2 * step;
}

/* From point i on the latency rises: until it no longer does. */
static size_t end_of_rise(const struct sweep *sweep, size_t i, double base)
{
    const struct point *p = sweep->points;
    while (i + 1 < sweep->count &&
           p[i + 1].mean - p[i].mean > tolerance(p[i].error, p[i + 1].error)) {
        bool last = next_begins(sweep, i, p[i].mean - base);
        i++;
        if (last)
            break;
    }
    return i;
}

/* Pages at an unlucky distance may use few sets of a TLB: they miss before it is full. So a rise
 * counts only if it is still there at the next number of pages. */
static void drop_peaks(struct sweep *sweep)
{
    for (size_t i = 0; i + 1 < sweep->count; i++)
        if (sweep->points[i].mean > sweep->points[i + 1].mean) {
            sweep->points[i].mean = sweep->points[i + 1].mean;
            sweep->points[i].error = sweep->points[i + 1].error;
        }
}

/* Mean of both, weighted by how certain they are: a base that followed single points would rise
 * with a slow rise. */
static void add_to_base(struct point *base, const struct point *p)
{
    double own = 1 / (base->error * base->error), other = 1 / (p->error * p->error);
    if (!(base->error > 0) || !(p->error > 0)) {
        base->mean = fmin(base->mean, p->mean);
        return;
    }
    base->mean = (own * base->mean + other * p->mean) / (own + other);
    base->error = 1 / sqrt(own + other);
}

/* A fall is no level: pages closer together than an entry reaches share it. */
static void find_rises(const struct sweep *sweep, struct tlb_levels *levels)
{
    const struct point *p = sweep->points;
    struct point base = p[0];
    levels->smallest_cycles = 0;
    for (size_t i = 1; i < sweep->count; i++) {
        double rise = p[i].mean - base.mean, least = tolerance(base.error, p[i].error);
        levels->smallest_cycles = fmax(levels->smallest_cycles, least);
        if (rise > least && levels->count < TLB_LEVELS_MAX) {
            size_t end = end_of_rise(sweep, i, base.mean);
            struct tlb_level *level = &levels->levels[levels->count++];
            *level = (struct tlb_level){.hit_pages = p[i - 1].pages,
                                        .miss_pages = p[end].pages,
                                        .far_pages = p[sweep->count - 1].pages,
                                        .base_cycles = base.mean,
                                        .miss_cycles = p[end].mean - base.mean,
                                        .error = portable_hypot(base.error, p[end].error)};
            if (levels->count > 1)
                level[-1].far_pages = level->hit_pages;
            i = end;
            base = p[i];
        } else if (rise < -least) {
            base = p[i];
        } else {
            add_to_base(&base, &p[i]);
        }
    }
}

/* How much longer than before the level the loads of so many pages take. */
static int rise_of(struct probe_context *context, const struct tlb_level *level, uint64_t stride,
                   uint64_t pages, double *out_cycles, struct err *err)
{
    struct point point;
    int rc = measure_point(context, stride, pages, &point, err);
    if (rc)
        return rc;
    *out_cycles = point.mean - level->base_cycles;
    return 0;
}

static uint64_t power_below(uint64_t bytes)
{
    uint64_t power = 1;
    while (power <= bytes / 2)
        power *= 2;
    return power;
}

/* The smallest number of pages that shows nearly all of the level, at two distances: one may be
 * unlucky. */
static int tlb_levels_narrow(struct probe_context *context, const struct page_chase *chase,
                             struct tlb_level *level, struct err *err)
{
    uint64_t low = level->hit_pages, high = level->miss_pages;
    const uint64_t odd = page_chase_stride(chase, high), strides[] = {odd, power_below(odd)};
    while (high - low > 1 + low / 128) {
        uint64_t middle = low + (high - low) / 2;
        bool all = true;
        for (int i = 0; i < 2 && all; i++) {
            double cycles;
            int rc = rise_of(context, level, strides[i], middle, &cycles, err);
            if (rc)
                return rc;
            all = cycles > ALL_SHARE * level->miss_cycles;
        }
        if (all)
            high = middle;
        else
            low = middle;
    }
    level->miss_pages = high;
    return 0;
}

/* A little more pages than all that miss; at half the distance that an entry covers they share
 * entries, so that all fit. */
static int find_span(struct probe_context *context, const struct page_chase *chase,
                     struct tlb_level *level, struct err *err)
{
    uint64_t pages = level->miss_pages + level->miss_pages / 4;
    uint64_t stride = power_below(page_chase_stride(chase, pages));
    bool missed = false;
    for (; stride >= SPAN_BYTES_MIN; stride /= 2) {
        double cycles;
        int rc = rise_of(context, level, stride, pages, &cycles, err);
        if (rc)
            return rc;
        if (cycles <= level->miss_cycles / 2)
            break;
        level->page_cycles = cycles;
        missed = true;
    }
    level->span_bytes = missed && stride >= SPAN_BYTES_MIN ? 2 * stride : 0;
    return 0;
}

/* Pages two apart may use every other set only, so that half as many seemed to fit. If so, pages at
 * half the distance all miss too when there are more than twice as many; otherwise two in turn
 * share an entry, and only half of the loads miss. */
static int halve_span(struct probe_context *context, const struct page_chase *chase,
                      struct tlb_level *level, struct err *err)
{
    while (level->span_bytes / 2 >= SPAN_BYTES_MIN) {
        uint64_t stride = level->span_bytes / 2, pages = 2 * level->miss_pages;
        double cycles;
        pages += pages / 4;
        if (pages > page_chase_room(chase, stride) || pages > chase->pages_max)
            break;
        int rc = rise_of(context, level, stride, pages, &cycles, err);
        if (rc)
            return rc;
        if (cycles <= 0.75 * level->page_cycles)
            break;
        level->span_bytes = stride;
        level->miss_pages *= 2;
    }
    return 0;
}

int tlb_levels_find(struct probe_context *context, struct tlb_levels *out_levels, struct err *err)
{
    struct sweep sweep;
    struct tlb_levels levels = {0};
    int rc = page_chase_open(context, &levels.chase, err);
    if (rc)
        return rc;
    rc = run_sweep(context, &levels.chase, &sweep, err);
    if (rc)
        return rc;
    if (sweep.count < 2)
        return err_set(err, -ENODATA, "too little memory for it");
    levels.pages = sweep.points[sweep.count - 1].pages;
    drop_peaks(&sweep);
    find_rises(&sweep, &levels);
    for (size_t i = 0; i < levels.count; i++) {
        rc = tlb_levels_narrow(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
        rc = find_span(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
        rc = halve_span(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
    }
    *out_levels = levels;
    return 0;
}

/* The sets of a TLB, from the number of pages that miss when there is one page too many, two, ...
 *
 * Neighbouring pages are chased in order. In a set that replaces its oldest page, one page too many
 * makes all pages of the set miss (Mei and Chu, section 4.4). So the misses rise by the ways of a
 * set and one at the page that overfills it. */

enum {
    SCAN_MAX = 128,    /* numbers of pages that are counted one by one */
    SAMPLES = 24,      /* if there are more */
    FAR_FACTOR = 4,    /* of the pages that miss, for the whole cost of a miss */
    MOST_FACTOR = 2,   /* of the pages that miss: by then all do */
    AROUND = 4,        /* pages before the first and after the last one of interest */
    SLOPE_PAGES = 4,   /* that a slope needs: fewer are single steps */
    RANDOM_COUNTS = 3, /* that must agree on the entries of random replacement */
    RANDOM_JOBS = 8,   /* one of them must hit in all pages, but for spikes */
    RANDOM_PASSES = 4,
    RANDOM_PAGES_MAX = 128, /* as many passes as pages are too long beyond */
    BEFORE_PART = 8, /* scans begin 1 / BEFORE_PART earlier if that fits into SCAN_MAX: with random
                      * replacement the first misses are few */
    SHOWN_PART = 4,  /* neighbouring pages must cost at least 1 / SHOWN_PART of spread ones */
};

/* A count of pages is a whole number, as is the number of sets: it may be off by this, which leaves
 * a gap between one number and the next. */
static const double EXACT = 0.3;

/* Hits below and misses above, with this many cycles between them, do not overlap: the timer may
 * count in steps of two. */
static const double GAP_CYCLES = 2;

/* The quantiles of hits that a threshold must clear: strays and spikes lie beyond. */
static const double LOW_HITS = 0.01, HIGH_HITS = 0.99;

/* Of one set all pages miss, or none. Counts from means, which noise shifts, may be a fifth off. */
static const double ALL_MISS = 0.8, NONE_MISS = 0.2;

/* A step of one set is its ways and one: at least two misses more, never one. */
static const double STEP_LEAST = 1.5, WHOLE = 0.5;

/* The part of the misses in which they rise in a straight line (sets_by_slope), how far the slope
 * may be from a whole number of ways, and the counts from the line, as a share of the pages. */
static const double LINE_FIRST = 0.05, LINE_LAST = 0.6, SLOPE_ERROR = 0.25, LINE_ERROR = 0.03;

/* Shares of misses from which the entries of random replacement follow well: near 0 and 1 a small
 * error of the share is a large one of the entries. They agree within a page and a share. */
static const double RANDOM_LEAST = 0.25, RANDOM_MOST = 0.85;

static const double RANDOM_ERROR_PAGES = 0.5, RANDOM_ERROR = 0.08;

/* One page too many is at least one miss per pass; fewer are spikes. */
static const double RANDOM_SPIKES = 0.75;

/* Pages are counted from the first number of which more than SOME miss to the first of which more
 * than NEARLY_ALL do. */
static const double SOME = 0.1, NEARLY_ALL = 0.95;

struct count {
    uint64_t pages;
    double misses;
};

struct scan {
    struct probe_context *context;
    uint64_t stride;
    double base_mean, miss_cycles;
    double threshold;   /* of a load that misses; NAN: hits and misses overlap */
    double false_share; /* of hits above the threshold */
    struct count counts[SCAN_MAX];
    size_t count;
};

/* Hits and misses differ by a constant: if their distributions do not overlap, they are counted. */
static void set_threshold(struct scan *scan, const struct pool *hits, const struct pool *misses)
{
    double middle = pool_quantile(hits, 0.5), upper = pool_quantile(hits, HIGH_HITS);
    double least = pool_quantile(misses, 0.5) - (middle - pool_quantile(hits, LOW_HITS));
    scan->threshold = least > upper + GAP_CYCLES ? (least + upper) / 2 : NAN;
    scan->false_share = isnan(scan->threshold) ? 0 : 1 - pool_share_below(hits, scan->threshold);
}

static int count_misses(struct scan *scan, uint64_t pages, double *out_misses, struct err *err)
{
    struct page_cycles cycles;
    int rc = page_chase_measure(scan->context, scan->stride, pages, &cycles, err);
    if (rc)
        return rc;
    double share = (cycles.mean - scan->base_mean) / scan->miss_cycles;
    if (!isnan(scan->threshold))
        share = (1 - pool_share_below(&cycles.loads, scan->threshold) - scan->false_share) /
                (1 - scan->false_share);
    *out_misses = (double)pages * share;
    return 0;
}

static int tlb_sets_begin_scan(struct scan *scan, const struct tlb_levels *levels,
                               const struct tlb_level *level, struct err *err)
{
    struct page_cycles hits, misses;
    uint64_t room = page_chase_room(&levels->chase, scan->stride);
    uint64_t far = FAR_FACTOR * level->miss_pages;
    far = far < level->far_pages ? far : level->far_pages;
    far = far < room ? far : room;
    int rc = page_chase_measure(scan->context, scan->stride, level->hit_pages, &hits, err);
    if (rc)
        return rc;
    rc = page_chase_measure(scan->context, scan->stride, far, &misses, err);
    if (rc)
        return rc;
    scan->base_mean = hits.mean;
    scan->miss_cycles = misses.mean - hits.mean;
    set_threshold(scan, &hits.loads, &misses.loads);
    return 0;
}

/* The smallest number of pages of which more than this share miss, between low and high. */
static int find_share(struct scan *scan, double share, uint64_t low, uint64_t high,
                      uint64_t *out_pages, struct err *err)
{
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        double misses;
        int rc = count_misses(scan, middle, &misses, err);
        if (rc)
            return rc;
        if (misses > share * (double)middle)
            high = middle;
        else
            low = middle;
    }
    *out_pages = high;
    return 0;
}

static int count_range(struct scan *scan, uint64_t first, uint64_t last, uint64_t step,
                       struct err *err)
{
    scan->count = 0;
    for (uint64_t n = first; n <= last && scan->count < SCAN_MAX; n += step) {
        struct count *at = &scan->counts[scan->count++];
        at->pages = n;
        int rc = count_misses(scan, n, &at->misses, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The pages of one set, if all miss as soon as there is one too many. Counts from overlapping
 * distributions are good for this only. */
static bool one_set(const struct scan *scan, struct tlb_sets *sets)
{
    for (size_t i = 1; i < scan->count; i++) {
        const struct count *before = &scan->counts[i - 1], *at = &scan->counts[i];
        if (at->pages == before->pages + 1 && at->misses > ALL_MISS * (double)at->pages &&
            before->misses < NONE_MISS * (double)before->pages) {
            sets->entries = sets->ways = sets->largest = before->pages;
            sets->sets = 1;
            sets->policy = TLB_OLDEST;
            return true;
        }
    }
    return false;
}

/* Steps of a scan page by page: of one more than the ways of a set. The sets must have as many
 * entries together as pages fit without a miss. */
static bool sets_by_steps(const struct scan *scan, struct tlb_sets *sets)
{
    uint64_t first = 0, entries = 0, count = 0, smallest = UINT64_MAX, largest = 0;
    for (size_t i = 1; i < scan->count; i++) {
        double step = scan->counts[i].misses - scan->counts[i - 1].misses;
        uint64_t pages = scan->counts[i].pages;
        if (pages != scan->counts[i - 1].pages + 1 || fabs(step - round(step)) > EXACT)
            return false;
        if (step > STEP_LEAST) {
            uint64_t ways = (uint64_t)llround(step) - 1;
            first = first ? first : pages;
            entries += ways;
            count++;
            smallest = ways < smallest ? ways : smallest;
            largest = ways > largest ? ways : largest;
        }
        if (scan->counts[i].misses > (double)pages - WHOLE)
            break;
    }
    if (!count || entries != first - 1)
        return false;
    *sets = (struct tlb_sets){.entries = entries,
                              .sets = count,
                              .ways = smallest,
                              .largest = largest,
                              .policy = TLB_OLDEST};
    return true;
}

/* Random replacement begins as sets of one way do, with two misses more per page. But when each of
 * these sets has two pages all miss, and at random a sixth of them does not. */
static bool all_miss_from(const struct scan *scan, double pages)
{
    bool seen = false;
    for (size_t i = 0; i < scan->count; i++) {
        const struct count *at = &scan->counts[i];
        if ((double)at->pages < pages)
            continue;
        seen = true;
        if (at->misses < NEARLY_ALL * (double)at->pages)
            return false;
    }
    return seen;
}

/* Many equal sets: the misses rise in a straight line, by the ways and one per page. A few entries
 * may be taken by pages of others. Where a hash chooses the set, the last pages may come to sets
 * that are too full already (H200), so that the line is that of the first half. */
static bool sets_by_slope(const struct scan *scan, struct tlb_sets *sets)
{
    const struct count *low = NULL, *high = NULL;
    for (size_t i = 0; i < scan->count; i++) {
        const struct count *at = &scan->counts[i];
        double share = at->misses / (double)at->pages;
        if (!low && share > LINE_FIRST)
            low = at;
        if (low && share > LINE_LAST)
            break;
        high = at;
    }
    if (!low || !high || high->pages < low->pages + SLOPE_PAGES)
        return false;
    double slope = (high->misses - low->misses) / (double)(high->pages - low->pages);
    double begin = (double)low->pages - low->misses / slope, ways = round(slope - 1);
    if (ways < 1 || fabs(slope - 1 - ways) > SLOPE_ERROR)
        return false;
    for (const struct count *at = scan->counts; at <= high; at++) {
        double n = (double)at->pages, line = fmax(0, slope * (n - begin));
        if (fabs(at->misses - line) > LINE_ERROR * n)
            return false;
    }
    double count = round(begin / ways);
    if (fabs(begin / ways - count) > EXACT)
        return false;
    if (ways < 2 && !all_miss_from(scan, begin + count))
        return false;
    *sets = (struct tlb_sets){.entries = (uint64_t)(ways * count),
                              .sets = (uint64_t)count,
                              .ways = (uint64_t)ways,
                              .largest = (uint64_t)ways,
                              .policy = TLB_OLDEST};
    return true;
}

/* With random replacement a page survives the misses of a round with the probability
 * (1 - 1/entries)^misses, which is the share of hits. */
static bool entries_at_random(const struct scan *scan, struct tlb_sets *sets)
{
    double found[SCAN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        double share = scan->counts[i].misses / (double)scan->counts[i].pages;
        if (share > RANDOM_LEAST && share < RANDOM_MOST)
            found[count++] = 1 / (1 - portable_pow(1 - share, 1 / scan->counts[i].misses));
    }
    if (count < RANDOM_COUNTS)
        return false;
    double entries = cpd_median(found, count);
    for (size_t i = 0; i < count; i++)
        if (fabs(found[i] - entries) > RANDOM_ERROR_PAGES + RANDOM_ERROR * entries)
            return false;
    *sets = (struct tlb_sets){.entries = (uint64_t)llround(entries), .policy = TLB_RANDOM};
    return true;
}

/* The first number of pages with misses of a scan page by page; 0: there is none. */
static uint64_t first_misses(const struct scan *scan)
{
    for (size_t i = 1; i < scan->count; i++)
        if (scan->counts[i].pages == scan->counts[i - 1].pages + 1 &&
            scan->counts[i - 1].misses < EXACT && scan->counts[i].misses > 1 - EXACT)
            return scan->counts[i].pages;
    return 0;
}

/* Whether a TLB that replaces at random holds so many pages. When they just fit, each miss drops
 * the last page of others with a chance of 1 in `pages` only, so it takes about as many passes as
 * pages until all are there. One page too many misses in every pass. */
static int fits_at_random(const struct scan *scan, uint64_t pages, bool *out_fits, struct err *err)
{
    struct device_job jobs[RANDOM_JOBS] = {0};
    struct device_answer *answers;
    for (uint32_t i = 0; i < RANDOM_JOBS; i++) {
        struct device_array array = page_chase_array(scan->stride, pages, i);
        jobs[i] = chase_job();
        jobs[i].agents[0].sm = 0;
        chase_add(&jobs[i], DEVICE_WARM, &array, pages * pages);
        chase_add(&jobs[i], DEVICE_CHASE, &array, RANDOM_PASSES * pages);
    }
    int rc = chase_run(scan->context, jobs, RANDOM_JOBS, 1, &answers, err);
    if (rc)
        return rc;
    *out_fits = false;
    for (uint32_t i = 0; i < RANDOM_JOBS; i++)
        if ((double)pages * chase_share_above(&answers[i].samples[0], scan->threshold) <
            RANDOM_SPIKES)
            *out_fits = true;
    chase_free(answers, RANDOM_JOBS);
    return 0;
}

/* The entries of random replacement, from a number of pages that certainly fits. */
static int count_at_random(const struct scan *scan, uint64_t fits, struct tlb_sets *sets,
                           struct err *err)
{
    bool more = true;
    sets->entries = fits;
    while (more && sets->entries < RANDOM_PAGES_MAX) {
        int rc = fits_at_random(scan, sets->entries + 1, &more, err);
        if (rc)
            return rc;
        sets->entries += more;
    }
    if (more)
        snprintf(sets->doubt, sizeof sets->doubt, "of more than %d entries that replace at random",
                 RANDOM_PAGES_MAX);
    return 0;
}

static int tlb_sets_conclude(const struct scan *scan, const struct tlb_level *level,
                             struct tlb_sets *sets, struct err *err)
{
    int rc = 0;
    bool exact = !isnan(scan->threshold);
    bool by_sets =
        one_set(scan, sets) || (exact && sets_by_steps(scan, sets)) || sets_by_slope(scan, sets);
    uint64_t first = exact ? first_misses(scan) : 0;
    if (!by_sets && entries_at_random(scan, sets)) {
        if (first)
            rc = count_at_random(scan, first - 1, sets, err);
        else
            snprintf(sets->doubt, sizeof sets->doubt, "from the share of misses, at random");
    } else if (!by_sets) {
        *sets = (struct tlb_sets){.entries = first ? first - 1 : level->hit_pages};
        snprintf(sets->doubt, sizeof sets->doubt,
                 "the misses rise in no way that is known: from %llu to %llu pages",
                 (unsigned long long)level->hit_pages, (unsigned long long)level->miss_pages);
    }
    sets->n = (uint32_t)scan->count;
    sets->shown = true;
    sets->clear = exact || !*sets->doubt;
    if (sets->sets > 1 && !*sets->doubt && sets->entries * PAGE_CHASE_LINE_BYTES > scan->stride)
        snprintf(sets->doubt, sizeof sets->doubt, "the pages are too small to be chased in turn");
    return rc;
}

/* The numbers of pages that are counted: from before the first misses until nearly all miss. */
static int choose_range(struct scan *scan, const struct tlb_levels *levels,
                        const struct tlb_level *level, uint64_t *out_first, uint64_t *out_last,
                        struct err *err)
{
    uint64_t room = page_chase_room(&levels->chase, scan->stride);
    uint64_t from, to, most = MOST_FACTOR * level->miss_pages;
    most = most < room ? most : room;
    most = most < level->far_pages ? most : level->far_pages;
    most = most > level->hit_pages ? most : level->hit_pages + 1;
    int rc = find_share(scan, SOME, level->hit_pages / 2, most, &from, err);
    if (rc)
        return rc;
    rc = find_share(scan, NEARLY_ALL, from - 1, most, &to, err);
    if (rc)
        return rc;
    uint64_t margin = AROUND, before = from / BEFORE_PART;
    if (to - from + before + 2 * AROUND < SCAN_MAX)
        margin += before;
    *out_first = from > margin ? from - margin : 1;
    *out_last = to + AROUND < most ? to + AROUND : most;
    return 0;
}

int tlb_sets_measure(struct probe_context *context, const struct tlb_levels *levels, size_t number,
                     struct tlb_sets *out_sets, struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    struct scan scan = {.context = context, .stride = level->span_bytes};
    struct tlb_sets sets = {0};
    uint64_t first, last;
    int rc = tlb_sets_begin_scan(&scan, levels, level, err);
    if (rc)
        return rc;
    /* Neighbouring pages must show it too, or it was another effect. */
    if (scan.miss_cycles < level->miss_cycles / SHOWN_PART) {
        *out_sets = sets;
        return 0;
    }
    rc = choose_range(&scan, levels, level, &first, &last, err);
    if (rc)
        return rc;
    rc = count_range(&scan, first, last, last - first < SCAN_MAX ? 1 : (last - first) / SAMPLES,
                     err);
    if (rc)
        return rc;
    rc = tlb_sets_conclude(&scan, level, &sets, err);
    sets.rise_cycles = scan.miss_cycles;
    if (!rc)
        *out_sets = sets;
    return rc;
}
