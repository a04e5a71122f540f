/* The longest of the bounds is the limit, whichever it is and whatever is unknown. */
#include <math.h>

#include "../check.h"
#include "predict/prediction.h"

/* Each count moves one bound only: 1 s is a thousand million sectors of 32 B by 32 GB/s. */
static const uint64_t second = 1000000000;

static struct machine usual_machine(void)
{
    struct machine machine = {.config = {.l1 = {.sector = 32}},
                              .figures = {32, 32, 32, 32, 32, 1, 1, 1}};
    return machine;
}

static void set_seconds(struct model_counts *counts, enum bound_limit limit, uint64_t seconds)
{
    uint64_t *const fields[BOUND_LIMITS] = {
        [BOUND_L1] = &counts->l1_reads,
        [BOUND_L2_READ] = &counts->l2.reads,
        [BOUND_L2_WRITE] = &counts->l2.writes,
        [BOUND_MAIN_READ] = &counts->l2.main_reads,
        [BOUND_MAIN_WRITE] = &counts->l2.main_writes,
        [BOUND_LATENCY] = &counts->waits_l2,
    };
    *fields[limit] = seconds * second;
}

/* Without this figure its bound is not known. */
static void forget(struct machine *machine, enum bound_limit limit)
{
    struct machine_figures *f = &machine->figures;
    double *const fields[BOUND_LIMITS] = {
        [BOUND_L1] = &f->l1_read,
        [BOUND_L2_READ] = &f->l2_read,
        [BOUND_L2_WRITE] = &f->l2_write,
        [BOUND_MAIN_READ] = &f->main_read,
        [BOUND_MAIN_WRITE] = &f->main_write,
        [BOUND_LATENCY] = &f->l2_latency,
    };
    *fields[limit] = NAN;
}

/* Bound i takes (i + turn) modulo 6, plus one, seconds: each is the longest once. */
static struct model_counts turned(unsigned turn)
{
    struct model_counts counts = {.warps_in_flight = 1, .active_sms = 1};
    for (unsigned i = 0; i < BOUND_LIMITS; i++)
        set_seconds(&counts, (enum bound_limit)i, 1 + (i + turn) % BOUND_LIMITS);
    return counts;
}

static void longest_is_the_limit(void **state)
{
    (void)state;
    struct machine machine = usual_machine();
    for (unsigned turn = 0; turn < BOUND_LIMITS; turn++) {
        struct model_counts counts = turned(turn);
        struct bound bound = bound_of(&counts, &machine);
        for (unsigned i = 0; i < BOUND_LIMITS; i++)
            assert_float_equal(bound.seconds[i], 1 + (i + turn) % BOUND_LIMITS, 1e-9);
        assert_int_equal(bound.limit, BOUND_LIMITS - 1 - turn);
        assert_float_equal(bound.longest, BOUND_LIMITS, 1e-9);
    }
}

/* Every set of unknown figures in every order: the longest known one is the limit. */
static void unknown_figures_are_left_out(void **state)
{
    (void)state;
    for (unsigned unknown = 1; unknown < 1u << BOUND_LIMITS; unknown++) {
        struct machine machine = usual_machine();
        for (unsigned i = 0; i < BOUND_LIMITS; i++)
            if (unknown >> i & 1)
                forget(&machine, (enum bound_limit)i);
        for (unsigned turn = 0; turn < BOUND_LIMITS; turn++) {
            struct model_counts counts = turned(turn);
            struct bound bound = bound_of(&counts, &machine);
            unsigned expected = BOUND_LIMITS, most = 0;
            for (unsigned i = 0; i < BOUND_LIMITS; i++) {
                unsigned seconds = 1 + (i + turn) % BOUND_LIMITS;
                assert_int_equal(isnan(bound.seconds[i]), unknown >> i & 1);
                if (!(unknown >> i & 1) && seconds > most) {
                    most = seconds;
                    expected = i;
                }
            }
            assert_int_equal(bound.limit, expected);
            if (expected == BOUND_LIMITS)
                assert_true(isnan(bound.longest));
            else
                assert_float_equal(bound.longest, most, 1e-9);
        }
    }
}

static void nothing_takes_no_time(void **state)
{
    (void)state;
    struct machine machine = usual_machine();
    struct model_counts counts = {.warps_in_flight = 1, .active_sms = 1};
    struct bound bound = bound_of(&counts, &machine);
    assert_float_equal(bound.longest, 0, 0);
    assert_int_equal(bound.limit, BOUND_L1);
    assert_string_equal(bound_limit_name(BOUND_LIMITS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_is_the_limit),
        cmocka_unit_test(unknown_figures_are_left_out),
        cmocka_unit_test(nothing_takes_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
