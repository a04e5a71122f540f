/* Curves as lists, one for each column. */
#include "inventory/curve.h"

#include <math.h>

enum { CURVE_BYTES, CURVE_CYCLES, CURVE_MISSED, CURVE_COLUMNS, CURVE_LEVELS = 3 };
static const char *const columns[CURVE_COLUMNS] = {"curve_bytes", "curve_cycles", "curve_missed"};

void curve_put(const struct curve *curve, struct facts *out_notes)
{
    double values[CURVE_COLUMNS][CURVE_POINTS_MAX];
    for (size_t i = 0; i < curve->count; i++) {
        values[CURVE_BYTES][i] = facts_decimals(curve->points[i].bytes, 0);
        values[CURVE_CYCLES][i] = facts_decimals(curve->points[i].cycles, 1);
        values[CURVE_MISSED][i] = facts_rounded(curve->points[i].missed, 4);
    }
    const double levels[CURVE_LEVELS] = {facts_rounded(curve->hit, 6),
                                         curve->far > 0 ? facts_rounded(curve->far, 6) : NAN,
                                         facts_rounded(curve->miss, 6)};
    facts_set_numbers(out_notes, "curve_levels", levels, CURVE_LEVELS);
    for (int c = 0; c < CURVE_COLUMNS; c++)
        facts_set_numbers(out_notes, columns[c], values[c], curve->count);
}

bool curve_read(const struct facts *notes, struct curve *out_curve)
{
    struct curve curve = {0};
    const double *values[CURVE_COLUMNS];
    size_t count = 0;
    const double *levels = facts_numbers(notes, "curve_levels", &count);
    if (!levels || count != CURVE_LEVELS || !isfinite(levels[0]) || !isfinite(levels[2]))
        return false;
    curve.hit = levels[0];
    curve.far = isnan(levels[1]) ? 0 : levels[1];
    curve.miss = levels[2];
    for (int c = 0; c < CURVE_COLUMNS; c++) {
        values[c] = facts_numbers(notes, columns[c], &count);
        if (!values[c] || !count || count > CURVE_POINTS_MAX || (c && count != curve.count))
            return false;
        curve.count = count;
        for (size_t i = 0; i < count; i++)
            if (!isfinite(values[c][i]))
                return false;
    }
    for (size_t i = 0; i < curve.count; i++)
        curve.points[i] = (struct curve_point){values[CURVE_BYTES][i], values[CURVE_CYCLES][i],
                                               values[CURVE_MISSED][i]};
    *out_curve = curve;
    return true;
}
