/* Random numbers: reproducible, independent by purpose, of the right distribution. */
#include "../check.h"

#include <math.h>

#include "base/rng.h"

static void reproducible(void **state)
{
    (void)state;
    struct rng a, b, c;
    rng_init(&a, 7, "jitter");
    rng_init(&b, 7, "jitter");
    rng_init(&c, 7, "spikes");
    uint64_t first = rng_next(&a);
    assert_true(first == rng_next(&b));
    assert_true(first != rng_next(&c));
    assert_true(rng_derive(1, "x", 2) == rng_derive(1, "x", 2));
    assert_true(rng_derive(1, "x", 2) != rng_derive(1, "x", 3));
    assert_true(rng_derive(1, "x", 2) != rng_derive(2, "x", 2));
}

/* The first numbers of xoshiro256** from state {1, 2, 3, 4}: 11520, 0, 1509978240. */
static void known_sequence(void **state)
{
    (void)state;
    struct rng rng = {{1, 2, 3, 4}};
    assert_true(rng_next(&rng) == 11520);
    assert_true(rng_next(&rng) == 0);
    assert_true(rng_next(&rng) == 1509978240);
}

static void distributions(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct rng rng;
    double sum = 0, squares = 0, uniform = 0;
    uint32_t counts[6] = {0};
    rng_init(&rng, 1, "test");
    for (int i = 0; i < N; i++) {
        double x = rng_normal(&rng), u = rng_uniform(&rng);
        sum += x;
        squares += x * x;
        uniform += u;
        assert_true(u >= 0 && u < 1);
        counts[rng_below(&rng, 6)]++;
    }
    assert_true(fabs(sum / N) < 0.02);
    assert_true(fabs(squares / N - 1) < 0.03);
    assert_true(fabs(uniform / N - 0.5) < 0.01);
    for (int i = 0; i < 6; i++)
        assert_true(fabs(counts[i] / (double)N - 1.0 / 6) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reproducible),
                                       cmocka_unit_test(known_sequence),
                                       cmocka_unit_test(distributions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
