/* Curves of a surface as lists: the values of the axis, the names of the curves, and one list for
 * each curve. */
#include "inventory/surface_curves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 32 };

/* The key of curve `i`; they are numbered from 1. */
static const char *curve_key(size_t i, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, SURFACE_CURVES_KEYS "%zu", i + 1);
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
        char key[KEY_MAX];
        for (size_t k = 0; k < curves->x_count; k++)
            gbs[k] = facts_rounded(curves->gbs[i][k], 4);
        facts_set_numbers(out_notes, curve_key(i, key), gbs, curves->x_count);
    }
}

static bool read_axis(const struct facts *notes, struct surface_curves *curves)
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
    if (!read_axis(notes, &curves) || !names || !curves.count || curves.count > SURFACE_CURVES_MAX)
        return false;
    for (size_t i = 0; i < curves.count; i++) {
        char key[KEY_MAX];
        size_t count = 0;
        const double *gbs = facts_numbers(notes, curve_key(i, key), &count);
        if (!gbs || count != curves.x_count)
            return false;
        snprintf(curves.names[i], sizeof curves.names[i], "%s", names[i]);
        memcpy(curves.gbs[i], gbs, count * sizeof *gbs);
    }
    *out_curves = curves;
    return true;
}
