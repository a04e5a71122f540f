/* The sum of independent errors, the same to the last bit on every machine.
 *
 * hypot() of glibc has another formula where the CPU fuses multiplication and addition (aarch64),
 * and rounds its last bit differently in one of two hundred cases. That is enough to change what is
 * measured next: a cache of which one stride is known is explained equally well by every line, and
 * rounding decides which one is tried first (line_judge). A record made on x86-64 was then asked on
 * aarch64 for a sweep that it does not have. Only +, *, / and sqrt are exact by IEEE 754; the build
 * forbids to fuse them (-ffp-contract=off). pow, exp and log agreed on both machines in all
 * records, but nothing guarantees that they do. */
#ifndef GPUMEMTOPO_BASE_QUADRATURE_H
#define GPUMEMTOPO_BASE_QUADRATURE_H

#include <math.h>

static inline double quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

#endif
