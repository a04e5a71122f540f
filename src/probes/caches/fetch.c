/* The fetch unit of a cache, from which loads of cold chases miss. */
#include "probes/caches/fetch.h"

#include <math.h>
#include <stdbool.h>

#include "base/portable_math.h"

const double FETCH_CLEAR = 0.3;

/* Loads that begin a fetch unit, and the others. */
struct fetch_sides {
    double on, off;             /* misses */
    double on_count, off_count; /* loads */
};

/* Log-likelihood of `hits` in `count` draws at their own rate. */
static double certainty(double hits, double count)
{
    double rate = count > 0 ? hits / count : 0;
    return rate > 0 && rate < 1
               ? hits * portable_log(rate) + (count - hits) * portable_log(1 - rate)
               : 0;
}

static void fetch_add_row(const struct fetch_row *row, enum fetch_order order, uint64_t unit,
                          struct fetch_sides *sides)
{
    uint64_t first = order == FETCH_WITHOUT_FIRST;
    double misses = 0, begun = 0;
    for (size_t i = 0; i < row->loads; i++) {
        uint64_t at = (first + i) * row->stride_bytes;
        bool begins = at < row->stride_bytes || at / unit != (at - row->stride_bytes) / unit;
        if (order == FETCH_IN_RANDOM_ORDER) {
            misses += row->misses[i];
            begun += begins * row->passes;
            continue;
        }
        *(begins ? &sides->on : &sides->off) += row->misses[i];
        *(begins ? &sides->on_count : &sides->off_count) += row->passes;
    }
    if (order != FETCH_IN_RANDOM_ORDER)
        return;
    /* The loads that missed are taken to be the first ones of their units. */
    sides->on += fmin(misses, begun);
    sides->off += misses - fmin(misses, begun);
    sides->on_count += begun;
    sides->off_count += (double)row->loads * row->passes - begun;
}

/* How well "the first load of every unit misses, the others do not" explains the misses is highest
 * for the fetch unit. A multiple of it leaves misses among the others, a fraction has hits among
 * its own loads. */
struct fetch_unit fetch_judge(const struct fetch_row *rows, size_t count, enum fetch_order order,
                              uint64_t word_bytes, uint64_t longest_bytes)
{
    struct fetch_unit best = {.likely = -INFINITY};
    for (uint64_t unit = word_bytes; unit <= longest_bytes; unit += word_bytes) {
        struct fetch_sides s = {0};
        for (size_t i = 0; i < count; i++)
            fetch_add_row(&rows[i], order, unit, &s);
        double contrast = s.on / s.on_count - (s.off_count > 0 ? s.off / s.off_count : 0);
        double likely = certainty(s.on, s.on_count) + certainty(s.off, s.off_count);
        if (likely > best.likely && contrast > 0)
            best = (struct fetch_unit){.bytes = unit, .contrast = contrast, .likely = likely};
    }
    return best;
}
