/* Series that the tests of src/cpd share. */
#ifndef GPUMEMTOPO_TESTS_CPD_SERIES_H
#define GPUMEMTOPO_TESTS_CPD_SERIES_H

#include <stddef.h>

#include "base/rng.h"

enum series_noise { NOISE_NORMAL, NOISE_TIED, NOISE_HEAVY, NOISE_KINDS };

extern const char *const series_noise_names[NOISE_KINDS];

/* Normal; whole numbers of which most are equal; Cauchy. */
double series_noise(enum series_noise kind, struct rng *rng);

/* Fresh values around 0, freed with free(); NULL when out of memory. */
double *series_flat(size_t n, enum series_noise kind, struct rng *rng);

/* Normal noise of one sigma, raised by `step` from split on. */
double *series_step(size_t n, size_t split, double step, struct rng *rng);

/* Squared error of [begin, end) around its own mean, which is not empty. */
double series_cost(const double *values, size_t begin, size_t end);

#endif
