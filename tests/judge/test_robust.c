/* Centre, scale, tails and slopes against values known by other means. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "cpd/cpd.h"
#include "judge/robust.h"

enum { MANY = 20000 };

static void expect_near(double value, double wanted, double share)
{
    if (!(fabs(value - wanted) <= share * fabs(wanted)))
        fail_msg("%g, expected %g", value, wanted);
}

/* By numerical integration of the density; the last ones are from the normal distribution and from
 * the Cauchy distribution's closed form. */
static void student(void **state)
{
    (void)state;
    static const struct {
        double t, dof, tail;
    } cases[] = {
        {2, 5, 0.0509697},      {5.9, 30, 9.22253e-7}, {10, 2.5, 0.00222075},
        {13.6, 5, 1.926394e-5}, {0.7, 3, 0.2671635},   {0, 7, 0.5},
        {1.959964, 1e7, 0.025}, {4.753424, 1e8, 1e-6}, {1, 1, 0.25},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_near(robust_student_tail(cases[i].t, cases[i].dof), cases[i].tail, 1e-5);
        if (cases[i].t > 0)
            expect_near(robust_student_quantile(cases[i].tail, cases[i].dof), cases[i].t, 1e-5);
    }
    assert_true(robust_student_quantile(1e-12, 3) > robust_student_quantile(1e-12, 4));
}

static void quantiles(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1, "quantiles");
    for (size_t n = 1; n < 60; n++) {
        double values[60], copy[60];
        for (size_t i = 0; i < n; i++)
            values[i] = (double)rng_below(&rng, n % 2 ? 1000 : 4); /* with and without ties */
        for (int q = 0; q <= 10; q++) {
            for (size_t i = 0; i < n; i++)
                copy[i] = values[i];
            assert_true(fabs(robust_quantile(copy, n, q / 10.0) -
                             cpd_quantile(values, n, q / 10.0)) < 1e-9);
        }
    }
    assert_true(isnan(robust_median(NULL, 0)));
}

/* As if each value were there `weight` times. */
static void weighted_quantiles(void **state)
{
    (void)state;
    enum { MOST = 12 };
    struct rng rng;
    rng_init(&rng, 1, "weighted quantiles");
    for (size_t n = 1; n < MOST; n++)
        for (int q = 0; q <= 20; q++) {
            struct robust_weighted weighted[MOST];
            double values[MOST * 5];
            size_t count = 0;
            for (size_t i = 0; i < n; i++) {
                weighted[i].value = (double)rng_below(&rng, n % 2 ? 1000 : 4);
                weighted[i].weight = 1 + (uint32_t)rng_below(&rng, 5);
                for (uint32_t k = 0; k < weighted[i].weight; k++)
                    values[count++] = weighted[i].value;
            }
            assert_true(fabs(robust_weighted_quantile(weighted, n, q / 20.0) -
                             cpd_quantile(values, count, q / 20.0)) < 1e-9);
        }
    assert_true(isnan(robust_weighted_quantile(NULL, 0, 0.5)));
}

static void fits(void **state)
{
    (void)state;
    static double values[MANY], scratch[MANY];
    struct rng rng;
    rng_init(&rng, 2, "fit");
    for (size_t i = 0; i < MANY; i++)
        values[i] = 100 + 2 * rng_normal(&rng);
    struct robust_fit fit = robust_fit(values, MANY, scratch);
    expect_near(fit.center, 100, 0.001);
    expect_near(fit.sigma, 2, 0.03);
    for (size_t i = 0; i < MANY / 10; i++) /* a tenth is wrong, all on one side */
        values[i] = 60;
    fit = robust_fit(values, MANY, scratch);
    expect_near(fit.center, 100, 0.005);
    expect_near(fit.sigma, 2, 0.2);
    assert_true(fit.kept < MANY * 0.91 && fit.kept > MANY * 0.89);
}

/* Few values, ties, none: every answer is defined. */
static void odd_fits(void **state)
{
    (void)state;
    double scratch[8];
    static const double same[] = {5, 5, 5, 5, 5, 5, 5, 2}, spread[] = {5, 5, 5, 5, 5, 6, 4, 6};
    struct robust_fit fit = robust_fit(same, 8, scratch);
    assert_true(fit.center == 5 && fit.sigma == 0 && fit.kept == 7);
    fit = robust_fit(spread, 8, scratch);
    assert_true(fit.center == 5 && fit.sigma > 0.5);
    fit = robust_fit(same, 1, scratch);
    assert_true(fit.center == 5 && fit.sigma == 0 && fit.kept == 1);
    assert_true(isnan(robust_fit(same, 0, scratch).center));
}

/* Absolute values of Student's distribution with so many degrees of freedom; 0: normal. */
static double tail_of(int dof, struct rng *rng)
{
    static double sizes[MANY];
    for (size_t i = 0; i < MANY; i++) {
        double squares = 0;
        for (int k = 0; k < dof; k++)
            squares += pow(rng_normal(rng), 2);
        sizes[i] = fabs(rng_normal(rng)) / (dof ? sqrt(squares / dof) : 1);
    }
    return robust_tail_dof(sizes, MANY, 1);
}

static void tails(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3, "tails");
    assert_true(tail_of(0, &rng) > 20);
    expect_near(tail_of(12, &rng), 12, 0.3);
    expect_near(tail_of(8, &rng), 8, 0.3);
    assert_true(tail_of(6, &rng) < 8);
    assert_true(tail_of(3, &rng) < 6.5);
    double zeros[10] = {0};
    assert_true(robust_tail_dof(zeros, 10, 1) == ROBUST_DOF_MIN);
}

static void shares(void **state)
{
    (void)state;
    enum { N = 512 };
    static double x[N], y[N], scratch[4 * N];
    struct rng rng;
    rng_init(&rng, 4, "shares");
    static const double wanted[] = {0, 0.6, 1};
    for (size_t k = 0; k < COUNT_OF(wanted); k++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = 0.96 + 0.08 * rng_uniform(&rng);
            y[i] = 5000 * (1 + wanted[k] * (x[i] - 1)) * (1 + 0.005 * rng_normal(&rng));
        }
        for (size_t i = 0; i < N / 20; i++) /* faulty ones, all with a high x */
            x[i] = 1.04, y[i] = 3000;
        double share = robust_share(x, y, N, 0.01, scratch);
        if (!(fabs(share - wanted[k]) < 0.06))
            fail_msg("%g, expected %g", share, wanted[k]);
    }
    for (size_t i = 0; i < N; i++)
        x[i] = 1;
    assert_true(isnan(robust_share(x, y, N, 0.01, scratch)));
    assert_true(isnan(robust_share(x, y, 2, 0.01, scratch)));
}

/* An even distribution has an end, a normal one and Student's have none. */
static void edge(void **state)
{
    (void)state;
    enum { N = 200 };
    double even[N], normal[N];
    struct rng rng;
    rng_init(&rng, 5, "edge");
    for (size_t i = 0; i < N; i++) {
        even[i] = 1.4 * (double)(i + 1) / N;
        normal[i] = fabs(rng_normal(&rng));
    }
    assert_true(fabs(robust_edge(even, N) - 2.8) < 1e-12);
    assert_true(isinf(robust_edge(normal, N)));
    even[7] = 6; /* one far out: no end to be seen */
    assert_true(isinf(robust_edge(even, N)));
    const double zeros[2] = {0};
    assert_true(isinf(robust_edge(zeros, 2)));
    assert_true(isinf(robust_edge(zeros, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(student),
                                       cmocka_unit_test(quantiles),
                                       cmocka_unit_test(weighted_quantiles),
                                       cmocka_unit_test(fits),
                                       cmocka_unit_test(odd_fits),
                                       cmocka_unit_test(tails),
                                       cmocka_unit_test(shares),
                                       cmocka_unit_test(edge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
