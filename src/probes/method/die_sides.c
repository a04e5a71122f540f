/* Mean latencies over lines of both sides of the die.
 *
 * Half of the slices are near one half of the SMs, the other slices near the other half: 30 cycles
 * apart on H200s. Of 256 lines of other addresses, other shares lie on each side, which moves all
 * SMs of a side by up to 3 cycles. The first principal component of the latencies, less what an SM
 * and what a line has on average, tells the sides apart. */
#include "probes/method/die_sides.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"

enum { ITERATIONS = 30, SIDES = 2, HALVES = 2 };

/* Of the lines, on each side. If there are no sides, the component may be a single interrupted
 * load, whose line would count as much as all others. */
static const double SIDE_MIN = 0.25;

struct sides {
    const double *cycles;
    size_t sms, lines;
    double *of_sm, *of_line; /* means */
    double *weights;         /* per SM */
    double *axis;            /* per line: the first principal component */
};

/* Without what the SM and the line have on average. */
static double rest(const struct sides *sides, size_t sm, size_t line)
{
    return sides->cycles[sm * sides->lines + line] - sides->of_sm[sm] - sides->of_line[line];
}

static void average(struct sides *sides)
{
    for (size_t sm = 0; sm < sides->sms; sm++)
        for (size_t i = 0; i < sides->lines; i++)
            sides->of_sm[sm] += sides->cycles[sm * sides->lines + i] / (double)sides->lines;
    for (size_t i = 0; i < sides->lines; i++)
        for (size_t sm = 0; sm < sides->sms; sm++)
            sides->of_line[i] +=
                (sides->cycles[sm * sides->lines + i] - sides->of_sm[sm]) / (double)sides->sms;
}

/* Power iteration, from the latencies of the first SM. */
static void find_axis(struct sides *sides)
{
    for (size_t i = 0; i < sides->lines; i++)
        sides->axis[i] = rest(sides, 0, i);
    for (int k = 0; k < ITERATIONS; k++) {
        double length = 0;
        for (size_t sm = 0; sm < sides->sms; sm++) {
            sides->weights[sm] = 0;
            for (size_t i = 0; i < sides->lines; i++)
                sides->weights[sm] += rest(sides, sm, i) * sides->axis[i];
        }
        for (size_t i = 0; i < sides->lines; i++) {
            sides->axis[i] = 0;
            for (size_t sm = 0; sm < sides->sms; sm++)
                sides->axis[i] += rest(sides, sm, i) * sides->weights[sm];
            length += sides->axis[i] * sides->axis[i];
        }
        for (size_t i = 0; i < sides->lines && length > 0; i++)
            sides->axis[i] /= sqrt(length);
    }
}

/* One side for all lines, unless there are two of about the same size. */
static void merge_unequal(struct sides *sides)
{
    size_t above = 0;
    for (size_t i = 0; i < sides->lines; i++)
        above += sides->axis[i] > 0;
    size_t smaller = above < sides->lines - above ? above : sides->lines - above;
    for (size_t i = 0; i < sides->lines && (double)smaller < SIDE_MIN * (double)sides->lines; i++)
        sides->axis[i] = 0;
}

/* The mean of both sides over every second line of each (half 0 or 1). */
static double half_mean(const struct sides *sides, size_t sm, size_t half)
{
    double sums[SIDES] = {0}, mean = 0;
    size_t seen[SIDES] = {0}, counts[SIDES] = {0}, used = 0;
    for (size_t i = 0; i < sides->lines; i++) {
        bool side = sides->axis[i] > 0;
        if (seen[side]++ % HALVES != half)
            continue;
        sums[side] += sides->cycles[sm * sides->lines + i];
        counts[side]++;
    }
    for (size_t s = 0; s < SIDES; s++) {
        mean += counts[s] ? sums[s] / (double)counts[s] : 0;
        used += counts[s] > 0;
    }
    return mean / (double)used;
}

static void take_means(struct sides *sides, double *out_means, double *out_error)
{
    for (size_t sm = 0; sm < sides->sms; sm++) {
        double first = half_mean(sides, sm, 0), second = half_mean(sides, sm, 1);
        out_means[sm] = (first + second) / 2;
        sides->weights[sm] = (first - second) / 2;
    }
    *out_error = CPD_MAD_SIGMA * cpd_mad(sides->weights, sides->sms);
}

int die_sides_means(const double *cycles, size_t sms, size_t lines, double *out_means,
                    double *out_error, struct err *err)
{
    struct sides sides = {.cycles = cycles, .sms = sms, .lines = lines};
    sides.of_sm = mem_array(sms, sizeof *sides.of_sm);
    sides.of_line = mem_array(lines, sizeof *sides.of_line);
    sides.weights = mem_array(sms, sizeof *sides.weights);
    sides.axis = mem_array(lines, sizeof *sides.axis);
    int rc = 0;
    if (sides.of_sm && sides.of_line && sides.weights && sides.axis) {
        average(&sides);
        find_axis(&sides);
        merge_unequal(&sides);
        take_means(&sides, out_means, out_error);
    } else {
        rc = err_no_memory(err);
    }
    free(sides.of_sm);
    free(sides.of_line);
    free(sides.weights);
    free(sides.axis);
    return rc;
}
