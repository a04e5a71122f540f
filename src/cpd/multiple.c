/* Several change points: the segmentation of least squared error plus a penalty per change.
 *
 * The optimum is that of optimal partitioning and PELT (Killick et al. 2012), whose pruning only
 * works where changes are frequent: on long plateaus it is quadratic. Here candidates are pruned
 * by the level of their last segment (FPOP; Maidstone, Hocking, Rigaill, Fearnhead 2017): for each
 * level the best start of the last segment is kept, and few starts are best anywhere. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd_internal.h"

/* In squared units of the series' range: what rounding may leave of a constant segment. */
static const double penalty_least = 1e-30;

/* Count, mean and sum of squared deviations (Welford 1962): differences of large sums would drown
 * a segment's cost once a wild value has passed. */
struct moments {
    double count;
    double mean;
    double squares;
};

/* For levels in [lo, hi], a last segment from `start` on is best. */
struct piece {
    double lo, hi;
    size_t start;
    double base; /* cost of everything before start, with the penalties */
    struct moments last;
};

struct pieces {
    struct piece *items;
    size_t count;
    size_t capacity;
};

/* The moments of the newest min_length values: those of the newest block so far, and of the rest
 * of the block before it. */
struct window {
    struct moments *tails; /* of the block before, from each place to its end */
    struct moments newest;
};

struct search {
    const double *values;
    size_t n;
    size_t min_length;
    double penalty;
    double lo, hi;
    struct pieces pieces, spare;
    struct window window;
    double *costs;  /* of the best segmentation of the first t values */
    size_t *starts; /* of its last segment */
};

static void moments_add(struct moments *moments, double value)
{
    double delta = value - moments->mean;
    moments->count += 1.0;
    moments->mean += delta / moments->count;
    moments->squares += delta * (value - moments->mean);
}

static struct moments moments_join(const struct moments *a, const struct moments *b)
{
    double count = a->count + b->count;
    double delta = b->mean - a->mean;
    return (struct moments){
        .count = count,
        .mean = a->mean + delta * b->count / count,
        .squares = a->squares + b->squares + delta * delta * a->count * b->count / count,
    };
}

/* Takes in value t - 1 and gives the moments of the newest min_length values, once there are so
 * many. */
static struct moments window_step(struct search *search, size_t t)
{
    size_t length = search->min_length;
    struct window *window = &search->window;
    size_t place = (t - 1) % length;
    if (place == 0)
        window->newest = (struct moments){0};
    moments_add(&window->newest, search->values[t - 1]);
    if (place + 1 < length)
        return t < length ? window->newest
                          : moments_join(&window->tails[place + 1], &window->newest);
    struct moments tail = {0};
    for (size_t i = 0; i < length; i++) {
        moments_add(&tail, search->values[t - 1 - i]);
        window->tails[length - 1 - i] = tail;
    }
    return window->newest;
}

/* Adds a stretch to the list; stretches of one start that touch become one. */
static void pieces_push(struct pieces *pieces, const struct piece *piece, double lo, double hi)
{
    if (pieces->count > 0 && pieces->items[pieces->count - 1].start == piece->start) {
        pieces->items[pieces->count - 1].hi = hi;
        return;
    }
    struct piece *added = &pieces->items[pieces->count++];
    *added = *piece;
    added->lo = lo;
    added->hi = hi;
}

/* Where the older of two starts is at least as good: both see the same future, so that their costs
 * by level differ by a parabola that opens upwards, for good. hi < lo: nowhere. */
static void older_wins(const struct piece *older, const struct piece *newer, double *out_lo,
                       double *out_hi)
{
    double more = older->last.count - newer->last.count;
    double delta = newer->last.mean - older->last.mean;
    double lead = newer->base + newer->last.squares - older->base - older->last.squares;
    double centre = -newer->last.count * delta / more;
    double square = centre * centre + (lead + newer->last.count * delta * delta) / more;
    double radius = square > 0.0 ? sqrt(square) : -1.0;
    *out_lo = fmax(older->lo, older->last.mean + centre - radius);
    *out_hi = fmin(older->hi, older->last.mean + centre + radius);
}

static int add_start(struct search *search, const struct piece *newer)
{
    struct pieces *from = &search->pieces;
    struct pieces *to = &search->spare;
    void *room = mem_grow(to->items, &to->capacity, 2 * from->count + 1, sizeof *to->items);
    if (!room)
        return -ENOMEM;
    to->items = room;
    to->count = 0;
    if (from->count == 0)
        pieces_push(to, newer, newer->lo, newer->hi);
    for (size_t i = 0; i < from->count; i++) {
        const struct piece *older = &from->items[i];
        double lo;
        double hi;
        older_wins(older, newer, &lo, &hi);
        if (!(lo < hi)) {
            pieces_push(to, newer, older->lo, older->hi);
            continue;
        }
        if (older->lo < lo)
            pieces_push(to, newer, older->lo, lo);
        pieces_push(to, older, lo, hi);
        if (hi < older->hi)
            pieces_push(to, newer, hi, older->hi);
    }
    struct pieces swap = *from;
    *from = *to;
    *to = swap;
    return 0;
}

/* The best segmentation of the first t values. */
static int search_step(struct search *search, size_t t)
{
    struct pieces *pieces = &search->pieces;
    for (size_t i = 0; i < pieces->count; i++)
        moments_add(&pieces->items[i].last, search->values[t - 1]);
    struct moments newest = window_step(search, t);
    search->costs[t] = INFINITY;
    if (t < search->min_length)
        return 0;
    size_t start = t - search->min_length;
    double base = start > 0 ? search->costs[start] + search->penalty : 0.0;
    if (isfinite(base)) {
        struct piece newer = {search->lo, search->hi, start, base, newest};
        int result = add_start(search, &newer);
        if (result < 0)
            return result;
    }
    for (size_t i = 0; i < pieces->count; i++) {
        double cost = pieces->items[i].base + pieces->items[i].last.squares;
        if (cost < search->costs[t]) {
            search->costs[t] = cost;
            search->starts[t] = pieces->items[i].start;
        }
    }
    return 0;
}

static int collect(const struct search *search, size_t **out_splits, size_t *out_count)
{
    size_t count = 0;
    for (size_t t = search->starts[search->n]; t > 0; t = search->starts[t])
        count++;
    size_t *splits = mem_array(count, sizeof *splits);
    if (!splits)
        return -ENOMEM;
    size_t i = count;
    for (size_t t = search->starts[search->n]; t > 0; t = search->starts[t])
        splits[--i] = t;
    *out_splits = splits;
    *out_count = count;
    return 0;
}

static int search_run(struct search *search, size_t **out_splits, size_t *out_count)
{
    int result = -ENOMEM;
    search->costs = mem_array(search->n + 1, sizeof *search->costs);
    search->starts = mem_array(search->n + 1, sizeof *search->starts);
    search->window.tails = mem_array(search->min_length, sizeof *search->window.tails);
    if (!search->costs || !search->starts || !search->window.tails)
        goto out;
    for (size_t t = 1; t <= search->n; t++) {
        result = search_step(search, t);
        if (result < 0)
            goto out;
    }
    result = collect(search, out_splits, out_count);
out:
    free(search->costs);
    free(search->starts);
    free(search->window.tails);
    free(search->pieces.items);
    free(search->spare.items);
    return result;
}

/* The least distance of two different values; 0 when all are equal. */
static double least_distance(const double *values, size_t n)
{
    struct cpd__item *items = cpd__sort(values, n);
    if (!items)
        return NAN;
    double least = 0.0;
    for (size_t i = 1; i < n; i++) {
        double distance = items[i].value - items[i - 1].value;
        if (distance > 0.0 && (least == 0.0 || distance < least))
            least = distance;
    }
    free(items);
    return least;
}

/* Noise from neighbours, which steps hardly touch: the median absolute difference, brought to a
 * normal sigma (1.4826) of one value (1/sqrt 2). Where most neighbours are equal, values are as
 * coarse as the clock's ticks, and half a tick is the noise. NAN when out of memory. */
static double noise_sigma(const double *values, size_t n)
{
    double *steps = mem_array(n - 1, sizeof *steps);
    if (!steps)
        return NAN;
    for (size_t i = 0; i + 1 < n; i++)
        steps[i] = fabs(values[i + 1] - values[i]);
    double median = cpd_median(steps, n - 1);
    free(steps);
    if (median == 0.0)
        return least_distance(values, n) / 2.0;
    return 1.4826 / sqrt(2.0) * median;
}

static int segment(const double *series, size_t n, double lo, double hi, double penalty,
                   size_t min_length, size_t **out_splits, size_t *out_count)
{
    double *scores = mem_array(n, sizeof *scores);
    if (!scores)
        return -ENOMEM;
    int result = -ENOMEM;
    const struct cpd__view view = {.series = series, .n = n, .lo = lo, .hi = hi};
    cpd__scores_mean(&view, scores);
    double half = hi / 2.0 - lo / 2.0; /* the whole range could overflow */
    double scaled = penalty / 4.0 / half / half;
    if (penalty == 0.0) {
        double sigma = noise_sigma(scores, n);
        scaled = 3.0 * sigma * sigma * log((double)n);
    }
    if (!isnan(scaled)) {
        struct search search = {
            .values = scores,
            .n = n,
            .min_length = min_length,
            .penalty = fmax(scaled, penalty_least),
            .lo = -1.0, /* scores are at most 1 from their mean */
            .hi = 1.0,
        };
        result = search_run(&search, out_splits, out_count);
    }
    free(scores);
    return result;
}

int cpd_multiple(const double *series, size_t n, double penalty, size_t min_length,
                 size_t **out_splits, size_t *out_count)
{
    if (!(penalty >= 0.0) || min_length == 0)
        return -EINVAL;
    if (!cpd__finite(series, n))
        return -EDOM;
    double lo = n > 0 ? series[0] : 0.0;
    double hi = lo;
    for (size_t i = 1; i < n; i++) {
        lo = fmin(lo, series[i]);
        hi = fmax(hi, series[i]);
    }
    if (lo < hi && min_length <= n / 2)
        return segment(series, n, lo, hi, penalty, min_length, out_splits, out_count);
    size_t *none = mem_array(0, sizeof *none);
    if (!none)
        return -ENOMEM;
    *out_splits = none;
    *out_count = 0;
    return 0;
}
