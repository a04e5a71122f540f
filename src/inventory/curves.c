/* Curves as lists in the notes of a measure, one list for each column. */
#include "inventory/curves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { CURVE_BYTES, CURVE_CYCLES, CURVE_MISSED, CURVE_COLUMNS, CURVE_LEVELS = 3 };
static const char *const curve_columns[CURVE_COLUMNS] = {"curve_bytes", "curve_cycles",
                                                         "curve_missed"};

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
        facts_set_numbers(out_notes, curve_columns[c], values[c], curve->count);
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
        values[c] = facts_numbers(notes, curve_columns[c], &count);
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

const char *const load_curve_keys[LOAD_CURVE_KEYS] = {"throttle", "gpus_of_node",  "begun_after_s",
                                                      "curve_s",  "curve_mhz",     "curve_w",
                                                      "curve_c",  "curve_memory_c"};

static const char *const *const load_columns =
    load_curve_keys + LOAD_CURVE_KEYS - LOAD_CURVE_COLUMNS;

bool load_curve_has(const char *key)
{
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++)
        if (str_equal(key, load_columns[c]))
            return true;
    return false;
}

void load_curve_put(const struct load_curve *curve, struct facts *out_notes)
{
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++) {
        double values[LOAD_CURVE_POINTS_MAX];
        for (size_t i = 0; i < curve->count; i++)
            values[i] = curve->points[i][c] > 0 ? curve->points[i][c] : NAN;
        facts_set_numbers(out_notes, load_columns[c], values, curve->count);
    }
}

bool load_curve_read(const struct facts *notes, struct load_curve *out_curve)
{
    double last_s = 0;
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++) {
        size_t count = 0;
        const double *values = facts_numbers(notes, load_columns[c], &count);
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

enum { LATENCY_COLUMNS = 4 };
static const char *const latency_columns[LATENCY_COLUMNS] = {LATENCY_CURVE_KEY, "curve_cycles",
                                                             "curve_spread", "curve_deviation"};

void latency_curve_put(const struct latency_curve *curve, struct facts *out_notes)
{
    double values[LATENCY_COLUMNS][LATENCY_CURVE_POINTS_MAX];
    for (size_t i = 0; i < curve->count; i++) {
        values[0][i] = facts_rounded(curve->points[i].gbs, 4);
        values[1][i] = facts_decimals(curve->points[i].cycles, 1);
        values[2][i] = facts_decimals(curve->points[i].spread, 1);
        values[3][i] = facts_decimals(curve->points[i].deviation, 1);
    }
    for (int c = 0; c < LATENCY_COLUMNS; c++)
        facts_set_numbers(out_notes, latency_columns[c], values[c], curve->count);
}

bool latency_curve_read(const struct facts *notes, struct latency_curve *out_curve)
{
    const double *values[LATENCY_COLUMNS];
    struct latency_curve curve = {.count = 0};
    for (int c = 0; c < LATENCY_COLUMNS; c++) {
        size_t count = 0;
        values[c] = facts_numbers(notes, latency_columns[c], &count);
        if (!values[c] || count < 2 || count > LATENCY_CURVE_POINTS_MAX ||
            (c && count != curve.count))
            return false;
        curve.count = count;
        for (size_t i = 0; i < count; i++)
            if (!isfinite(values[c][i]) || values[c][i] < 0)
                return false;
    }
    for (size_t i = 0; i < curve.count; i++)
        curve.points[i] =
            (struct latency_curve_point){values[0][i], values[1][i], values[2][i], values[3][i]};
    *out_curve = curve;
    return true;
}

enum { SURFACE_KEY_MAX = 32 };

/* The key of curve `i`; they are numbered from 1. */
static const char *surface_key(size_t i, char key[SURFACE_KEY_MAX])
{
    snprintf(key, SURFACE_KEY_MAX, SURFACE_CURVES_KEYS "%zu", i + 1);
    return key;
}

void surface_curves_put(const struct surface_curves *curves, struct facts *out_notes)
{
    const char *names[SURFACE_CURVES_MAX];
    for (size_t i = 0; i < curves->count; i++)
        names[i] = curves->names[i];
    facts_set_text(out_notes, SURFACE_CURVES_KEYS "by", curves->axis);
    facts_set_numbers(out_notes, SURFACE_CURVES_KEYS "at", curves->xs, curves->x_count);
    facts_set_texts(out_notes, SURFACE_CURVES_KEYS "of", names, curves->count);
    for (size_t i = 0; i < curves->count; i++) {
        double gbs[SURFACE_CURVES_XS_MAX];
        char key[SURFACE_KEY_MAX];
        for (size_t k = 0; k < curves->x_count; k++)
            gbs[k] = facts_rounded(curves->gbs[i][k], 4);
        facts_set_numbers(out_notes, surface_key(i, key), gbs, curves->x_count);
    }
}

static bool surface_read_axis(const struct facts *notes, struct surface_curves *curves)
{
    const char *axis = facts_text(notes, SURFACE_CURVES_KEYS "by");
    const double *xs = facts_numbers(notes, SURFACE_CURVES_KEYS "at", &curves->x_count);
    if (!axis || !xs || curves->x_count < 2 || curves->x_count > SURFACE_CURVES_XS_MAX)
        return false;
    snprintf(curves->axis, sizeof curves->axis, "%s", axis);
    for (size_t i = 0; i < curves->x_count; i++) {
        if (!(xs[i] > 0) || (i && !(xs[i] >= xs[i - 1])))
            return false;
        curves->xs[i] = xs[i];
    }
    return true;
}

bool surface_curves_read(const struct facts *notes, struct surface_curves *out_curves)
{
    struct surface_curves curves = {.count = 0};
    char *const *names = facts_texts(notes, SURFACE_CURVES_KEYS "of", &curves.count);
    if (!surface_read_axis(notes, &curves) || !names || !curves.count ||
        curves.count > SURFACE_CURVES_MAX)
        return false;
    for (size_t i = 0; i < curves.count; i++) {
        char key[SURFACE_KEY_MAX];
        size_t count = 0;
        const double *gbs = facts_numbers(notes, surface_key(i, key), &count);
        if (!gbs || count != curves.x_count)
            return false;
        snprintf(curves.names[i], sizeof curves.names[i], "%s", names[i]);
        memcpy(curves.gbs[i], gbs, count * sizeof *gbs);
    }
    *out_curves = curves;
    return true;
}
