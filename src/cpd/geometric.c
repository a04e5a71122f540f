/* Geometric mapping: many values per row become a distance and an angle (thesis 3.3.2). */
#include <errno.h>
#include <math.h>

#include "cpd/cpd_internal.h"

struct mapped {
    double distance;
    double angle;
};

/* The angle comes from the parts along and across the diagonal: the arc cosine of the scalar
 * product loses half of the digits near 0, where flat rows lie. */
static struct mapped map_row(const double *row, size_t dimension, double reference)
{
    long double sum = 0.0L;
    for (size_t i = 0; i < dimension; i++)
        sum += row[i];
    long double mean = sum / (long double)dimension;
    long double across = 0.0L;
    long double away = 0.0L;
    for (size_t i = 0; i < dimension; i++) {
        across += (row[i] - mean) * (row[i] - mean);
        away += ((long double)row[i] - reference) * ((long double)row[i] - reference);
    }
    long double along = mean * sqrtl((long double)dimension);
    struct mapped out = {.distance = (double)sqrtl(away)};
    if (reference != 0.0 && (across > 0.0L || along != 0.0L))
        out.angle = (double)atan2l(sqrtl(across), reference > 0.0 ? along : -along);
    return out;
}

int cpd_map_geometric(const double *rows, size_t row_count, size_t dimension, double reference,
                      double *out_distance, double *out_angle)
{
    if (dimension == 0 || row_count > SIZE_MAX / dimension)
        return -EINVAL;
    if (!isfinite(reference) || !cpd__finite(rows, row_count * dimension))
        return -EDOM;
    for (size_t i = 0; i < row_count; i++) {
        struct mapped mapped = map_row(rows + i * dimension, dimension, reference);
        if (out_distance)
            out_distance[i] = mapped.distance;
        if (out_angle)
            out_angle[i] = mapped.angle;
    }
    return 0;
}
