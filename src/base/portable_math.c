/* Exponential, logarithm and what follows from them, with sums and products of doubles only. */
#include "base/portable_math.h"

#include <float.h>
#include <stdbool.h>

#include "base/mem.h"

#if FLT_EVAL_METHOD != 0 || defined(__FAST_MATH__)
#error "results differ between machines unless doubles are rounded after every operation"
#endif

/* high + low, where |low| is at most half a unit of the last place of high. */
struct twofold {
    double high, low;
};

static const struct twofold LN2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const struct twofold PER_LN2 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
static const struct twofold PER_LN10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
static const struct twofold THIRD = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
static const struct twofold HALF_PI = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const double LN_SQRT_2PI = 0x1.d67f1c864beb5p-1;
static const double SQRT_PI = 0x1.c5bf891b4ef6bp+0;

/* The sum, exactly (Knuth). */
static inline struct twofold twofold_sum(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (struct twofold){sum, (a - (sum - part)) + (b - part)};
}

/* The product, exactly unless it is near overflow or underflow (Dekker). */
static inline struct twofold twofold_product(double a, double b)
{
    const double split = 0x1p27 + 1;
    double a1 = a * split - (a * split - a), a2 = a - a1;
    double b1 = b * split - (b * split - b), b2 = b - b1;
    double product = a * b;
    return (struct twofold){product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2};
}

static inline struct twofold twofold_add(struct twofold a, struct twofold b)
{
    struct twofold sum = twofold_sum(a.high, b.high);
    return twofold_sum(sum.high, sum.low + (a.low + b.low));
}

static inline struct twofold twofold_multiply(struct twofold a, struct twofold b)
{
    struct twofold product = twofold_product(a.high, b.high);
    return twofold_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static struct twofold twofold_negative(struct twofold a)
{
    return (struct twofold){-a.high, -a.low};
}

static double twofold_round(struct twofold a)
{
    return a.high + a.low;
}

/* The rounded root h, less (h^2 - a^2 - b^2) / 2h, where the difference is written so that little
 * cancels (Borges, "An improved algorithm for hypot(a, b)", 2019). This is what hypot of glibc does
 * on x86-64 since 2.35: the records of version 0.2.0 were made by it. */
double portable_hypot(double a, double b)
{
    double h = sqrt(a * a + b * b), over;
    if (!(h > 0) || isinf(h))
        return h;
    double longer = fmax(fabs(a), fabs(b)), shorter = fmin(fabs(a), fabs(b));
    if (h <= 2 * shorter) {
        double rest = h - shorter;
        over = longer * (2 * rest - longer) + (rest - 2 * (longer - shorter)) * rest;
    } else {
        double rest = h - longer;
        over = 2 * rest * (longer - 2 * shorter) + ((4 * rest - shorter) * shorter + rest * rest);
    }
    return h - over / (2 * h);
}

/* e^x - 1 for |x| <= ln(2) / 2: the series for x / 256, where three terms have nearly all, then
 * e^2x - 1 = 2 (e^x - 1) + (e^x - 1)^2. */
static struct twofold twofold_expm1_near(struct twofold x)
{
    enum { DOUBLINGS = 8 };
    const double scale = 1.0 / (1 << DOUBLINGS);
    struct twofold r = {x.high * scale, x.low * scale};
    struct twofold half = twofold_multiply(r, r);
    double h = r.high;
    double tail = h * h * h * (1.0 / 6 + h * (1.0 / 24 + h * (1.0 / 120 + h * (1.0 / 720))));
    half = (struct twofold){half.high / 2, half.low / 2};
    struct twofold e = twofold_add(r, twofold_add(half, (struct twofold){tail, 0}));
    for (int i = 0; i < DOUBLINGS; i++)
        e = twofold_add((struct twofold){2 * e.high, 2 * e.low}, twofold_multiply(e, e));
    return e;
}

/* e^x = (1 + returned value) * 2^exponent, for |x| < 800. */
static struct twofold twofold_exp(struct twofold x, int *out_exponent)
{
    double k = round(x.high * PER_LN2.high);
    struct twofold whole = twofold_multiply((struct twofold){k, 0}, LN2);
    *out_exponent = (int)k;
    return twofold_expm1_near(twofold_add(x, twofold_negative(whole)));
}

static double exp_rounded(struct twofold x)
{
    const double most = 800; /* beyond overflow and underflow */
    int exponent = 0;
    if (isnan(x.high))
        return x.high;
    if (fabs(x.high) > most)
        return x.high > 0 ? INFINITY : 0;
    struct twofold e = twofold_exp(x, &exponent);
    return ldexp(twofold_round(twofold_add((struct twofold){1, 0}, e)), exponent);
}

/* The logarithm of a positive, finite value: that of its mantissa from the series of atanh, which
 * is right to the digits of a double, and one step of Newton's method. */
static struct twofold twofold_log(struct twofold x)
{
    const double root_half = 0x1.6a09e667f3bcdp-1;
    int exponent;
    double m = frexp(x.high, &exponent);
    if (m < root_half) {
        m *= 2;
        exponent--;
    }
    double low = ldexp(x.low, -exponent);
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * s2 + 1.0 / k;
    double guess = 2 * s * sum;
    /* m e^-guess - 1 = (m - 1) + m (e^-guess - 1): what the guess lacks */
    struct twofold e = twofold_expm1_near((struct twofold){-guess, 0});
    struct twofold rest = twofold_multiply((struct twofold){m, low}, e);
    rest = twofold_add(rest, twofold_sum(m - 1, low));
    double lacks = twofold_round(rest);
    lacks -= lacks * lacks / 2;
    struct twofold whole = twofold_multiply((struct twofold){exponent, 0}, LN2);
    return twofold_add(whole, twofold_sum(guess, lacks));
}

/* True: *out_value is the logarithm of x in any base, since x is 0, infinite, or has none. */
static bool log_is_special(double x, double *out_value)
{
    if (x > 0 && x < INFINITY)
        return false;
    *out_value = x == 0 ? -INFINITY : x > 0 ? x : NAN;
    return true;
}

static double log_in_base(double x, struct twofold per_unit)
{
    double special;
    return log_is_special(x, &special)
               ? special
               : twofold_round(twofold_multiply(twofold_log((struct twofold){x, 0}), per_unit));
}

double portable_exp(double x)
{
    return exp_rounded((struct twofold){x, 0});
}

double portable_exp2(double x)
{
    const double most = 1200; /* beyond overflow and underflow */
    x = x > most ? most : x < -most ? -most : x;
    return exp_rounded(twofold_multiply((struct twofold){x, 0}, LN2));
}

double portable_expm1(double x)
{
    const double near = 0.34, large = 40; /* from there on, 1 is less than the last place */
    if (fabs(x) <= near)
        return fabs(x) < 0x1p-60 ? x : twofold_round(twofold_expm1_near((struct twofold){x, 0}));
    if (!(fabs(x) <= large))
        return x < 0 ? -1 : portable_exp(x);
    int exponent;
    struct twofold e = twofold_exp((struct twofold){x, 0}, &exponent);
    e = twofold_add((struct twofold){1, 0}, e);
    e = (struct twofold){ldexp(e.high, exponent), ldexp(e.low, exponent)};
    return twofold_round(twofold_add(e, (struct twofold){-1, 0}));
}

double portable_log(double x)
{
    double special;
    return log_is_special(x, &special) ? special
                                       : twofold_round(twofold_log((struct twofold){x, 0}));
}

double portable_log2(double x)
{
    return log_in_base(x, PER_LN2);
}

double portable_log10(double x)
{
    return log_in_base(x, PER_LN10);
}

double portable_log1p(double x)
{
    double special;
    if (log_is_special(1 + x, &special))
        return special;
    return fabs(x) < 0x1p-60 ? x : twofold_round(twofold_log(twofold_sum(1, x)));
}

double portable_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (isnan(x) || isnan(y))
        return NAN;
    if (isinf(y))
        return fabs(x) == 1 ? 1 : (fabs(x) > 1) == (y > 0) ? INFINITY : 0;
    bool odd = fabs(fmod(y, 2)) == 1;
    if (x < 0 && floor(y) != y && !isinf(x))
        return NAN;
    double sign = signbit(x) && odd ? -1 : 1;
    x = fabs(x);
    if (x == 0 || isinf(x))
        return sign * ((x == 0) == (y < 0) ? INFINITY : 0);
    struct twofold log_x = twofold_log((struct twofold){x, 0});
    if (fabs(log_x.high * y) > 1000) /* the product might overflow */
        return sign * ((log_x.high > 0) == (y > 0) ? INFINITY : 0);
    return sign * exp_rounded(twofold_multiply(log_x, (struct twofold){y, 0}));
}

double portable_cbrt(double x)
{
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    struct twofold log_x = twofold_log((struct twofold){fabs(x), 0});
    return copysign(exp_rounded(twofold_multiply(log_x, THIRD)), x);
}

/* By quarter turns: x = k pi/2 + r, |r| <= pi/4. The series of cos r (n = 0) and sin r (n = 1) are
 * 1 - r^2 / (n + 1)(n + 2) (1 - r^2 / (n + 3)(n + 4) (...)), the second one times r. */
double portable_cos(double x)
{
    enum { LAST = 18 };
    if (isnan(x) || isinf(x))
        return NAN;
    x = fabs(x);
    double k = round(x / HALF_PI.high);
    int quarter = (int)fmod(k, 4), n = quarter % 2;
    struct twofold whole = twofold_multiply((struct twofold){k, 0}, HALF_PI);
    struct twofold r = twofold_add((struct twofold){x, 0}, twofold_negative(whole));
    struct twofold r2 = twofold_multiply(r, r);
    double inner = 1;
    for (int i = LAST; i >= 2; i -= 2)
        inner = 1 - r2.high / ((n + i + 1) * (n + i + 2)) * inner;
    struct twofold lacks = {r2.high / 2, r2.low / 2};
    if (n == 1)
        lacks = twofold_multiply(lacks, THIRD);
    lacks = twofold_multiply(lacks, (struct twofold){inner, 0});
    struct twofold value = twofold_add((struct twofold){1, 0}, twofold_negative(lacks));
    if (n == 1)
        value = twofold_multiply(value, r);
    return quarter == 1 || quarter == 2 ? -twofold_round(value) : twofold_round(value);
}

/* Near 0, 1 - erf by the series of which all terms are positive; else a continued fraction,
 * which ends where what lies deeper changes no bit. */
double portable_erfc(double x)
{
    enum { TERMS = 40, DEPTH_LEAST = 20, DEPTH_MOST = 200 };
    const double near = 1, far = 30; /* there it is less than the least double */
    if (isnan(x))
        return x;
    if (x < 0)
        return 2 - portable_erfc(-x);
    if (x > far)
        return 0;
    double density = exp_rounded(twofold_negative(twofold_product(x, x))) / SQRT_PI;
    if (x < near) {
        double sum = 1;
        for (int n = TERMS; n >= 1; n--)
            sum = 1 + 2 * x * x / (2 * n + 1) * sum;
        return 1 - 2 * x * density * sum;
    }
    double fraction = x;
    for (int n = (int)fmin(DEPTH_LEAST + 400 / (x * x), DEPTH_MOST); n >= 1; n--)
        fraction = x + n / 2.0 / fraction;
    return density / fraction;
}

/* Stirling's series, which is short from 16 on: Gamma(x) = Gamma(x + 1) / x leads there. */
double portable_lgamma(double x)
{
    static const double stirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                      1.0 / 1188, -691.0 / 360360, 1.0 / 156};
    const double from = 16;
    double series = 0;
    if (isnan(x))
        return x;
    if (x <= 0 || isinf(x))
        return INFINITY;
    double product = 1;
    for (; x < from; x++)
        product *= x;
    double per_x2 = 1 / (x * x);
    for (size_t i = COUNT_OF(stirling); i > 0; i--)
        series = series * per_x2 + stirling[i - 1];
    struct twofold log_x = twofold_log((struct twofold){x, 0});
    struct twofold value = twofold_multiply(log_x, twofold_sum(x, -0.5));
    value = twofold_add(value, (struct twofold){-x, 0});
    value = twofold_add(value, twofold_sum(LN_SQRT_2PI, series / x));
    value = twofold_add(value, twofold_negative(twofold_log((struct twofold){product, 0})));
    return twofold_round(value);
}
