/* The curve of a sustained load as text. */
#include "inventory/load_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const load_curve_keys[LOAD_CURVE_KEYS] = {"throttle", "gpus_of_node", "begun_after_s",
                                                      LOAD_CURVE_KEY};

static bool read_point(const char **text, double point[LOAD_CURVE_COLUMNS])
{
    for (int c = 0; c < LOAD_CURVE_COLUMNS; c++) {
        char *end;
        point[c] = strtod(*text, &end);
        if (end == *text || !isfinite(point[c]) || point[c] < 0)
            return false;
        *text = end;
    }
    return **text == 0 || **text == ';';
}

bool load_curve_read(const char *text, struct load_curve *out_curve)
{
    double last_s = 0;
    out_curve->count = 0;
    for (text = strchr(text, ';'); text && *text;) {
        if (out_curve->count == LOAD_CURVE_POINTS_MAX)
            return false;
        double *point = out_curve->points[out_curve->count++];
        text++;
        if (!read_point(&text, point) || point[LOAD_CURVE_S] <= last_s)
            return false;
        last_s = point[LOAD_CURVE_S];
    }
    return out_curve->count > 1;
}
