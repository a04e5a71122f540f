/* Functions of real numbers that give the same to the last bit on every machine.
 *
 * What is measured next follows from what was measured, and figures that are equally good are told
 * apart by their last bit: a cache of which one stride is known is explained equally well by every
 * line, and rounding decides which one is tried first (line_judge). A record replays everywhere
 * only if the last bit is the same everywhere. libm promises no such thing: glibc chooses other
 * code where the CPU fuses multiplication and addition (aarch64 always, x86-64 at run time), and
 * other versions have other code. hypot differs in one of ten cases between x86-64 and aarch64; a
 * record of the one was asked on the other for a sweep that it does not have.
 *
 * Only +, -, *, / and sqrt are exact by IEEE 754, as are the functions that move or cut bits (fabs,
 * floor, ldexp, fmod ...). All here is made of these; the build forbids to fuse them
 * (-ffp-contract=off), and tests/tree/portable_calls.py forbids the rest of libm. exp, log and what
 * is made of them are computed with twice the digits of a double and rounded once: half a unit of
 * the last place, as glibc's are. */
#ifndef GPUMEMTOPO_BASE_PORTABLE_MATH_H
#define GPUMEMTOPO_BASE_PORTABLE_MATH_H

#include <math.h>

static inline double square(double x)
{
    return x * x;
}

/* As the functions of C of the same name, infinities and NaN included. */
double portable_exp(double x);
double portable_exp2(double x);
double portable_expm1(double x);
double portable_log(double x);
double portable_log2(double x);
double portable_log10(double x);
double portable_log1p(double x);
double portable_pow(double x, double y);
double portable_cbrt(double x);

/* sqrt(a^2 + b^2): the sum of independent errors. */
double portable_hypot(double a, double b);

/* The cosine of an angle of a few turns. */
double portable_cos(double x);

/* The last digits may be wrong, the same ones everywhere. lgamma is infinite for all x <= 0. */
double portable_erfc(double x);
double portable_lgamma(double x);

#endif
