/* The curve of a sustained load as lists, one for each column. */
#include "inventory/load_curve.h"

#include <math.h>

#include "base/str.h"

const char *const load_curve_keys[LOAD_CURVE_KEYS] = {"throttle", "gpus_of_node",  "begun_after_s",
                                                      "curve_s",  "curve_mhz",     "curve_w",
                                                      "curve_c",  "curve_memory_c"};

static const char *const *const columns = load_curve_keys + LOAD_CURVE_KEYS - LOAD_CURVE_COLUMNS;

bool load_curve_has(const char *key)
{
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++)
        if (str_equal(key, columns[c]))
            return true;
    return false;
}

void load_curve_put(const struct load_curve *curve, struct facts *out_notes)
{
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++) {
        double values[LOAD_CURVE_POINTS_MAX];
        for (size_t i = 0; i < curve->count; i++)
            values[i] = curve->points[i][c] > 0 ? curve->points[i][c] : NAN;
        facts_set_numbers(out_notes, columns[c], values, curve->count);
    }
}

bool load_curve_read(const struct facts *notes, struct load_curve *out_curve)
{
    double last_s = 0;
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++) {
        size_t count = 0;
        const double *values = facts_numbers(notes, columns[c], &count);
        if (!values || count < 2 || count > LOAD_CURVE_POINTS_MAX ||
            (c && count != out_curve->count))
            return false;
        out_curve->count = count;
        for (size_t i = 0; i < count; i++) {
            if (values[i] < 0)
                return false;
            out_curve->points[i][c] = isnan(values[i]) ? 0 : values[i];
        }
    }
    for (size_t i = 0; i < out_curve->count; i++) {
        if (out_curve->points[i][LOAD_CURVE_S] <= last_s)
            return false;
        last_s = out_curve->points[i][LOAD_CURVE_S];
    }
    return true;
}
