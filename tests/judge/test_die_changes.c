/* A GPU whose die is not that of the baseline is watched, and a die under another UUID is found. */
#include "made.h"

#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"

enum { COUNT = 16, SMS = 132 };

static void set_die(struct gpu_result *gpu, uint64_t die, uint64_t run)
{
    struct rng places, chance;
    double latencies[SMS];
    struct fingerprint fingerprint;
    rng_init(&places, die, "die");
    rng_init(&chance, run, "run");
    for (size_t i = 0; i < SMS; i++)
        latencies[i] = 280 + 5 * (double)(rng_next(&places) % 5) + 0.2 * rng_normal(&chance);
    fingerprint_make(latencies, SMS, 0.2, &fingerprint);
    fingerprint_put(&fingerprint, &gpu->board);
}

static struct inventory judged(const struct gpu_result *gpus, const struct inventory *baseline)
{
    const struct judge_basis basis = {.config = made_config(), .baseline = baseline};
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
    return inventory;
}

static bool has_text(const struct inventory *inventory, const char *text)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strstr(inventory->node_findings[i].finding, text))
            return true;
    return false;
}

static void swapped(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i, i);
    struct inventory then = judged(gpus, NULL);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i == 5 ? 99 : i, 100 + i);
    struct inventory now = judged(gpus, &then);
    assert_int_equal(now.total_outliers, 0);
    assert_int_equal(now.watch_count, 1);
    const struct inventory_outlier *watched = made_watched(&now, gpus[5].uuid);
    assert_non_null(watched);
    assert_non_null(strstr(made_finding(watched, "board.fingerprint")->cause,
                           "this UUID is not the die it was"));
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

static void other_uuid(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i, i);
    struct inventory then = judged(gpus, NULL);
    free(gpus[5].uuid);
    gpus[5].uuid = str_copy("GPU-flashed");
    set_die(&gpus[5], 5, 200);
    struct inventory now = judged(gpus, &then);
    assert_true(has_text(&now, "its fingerprint is that of GPU-005"));
    inventory_fini(&now);
    set_die(&gpus[6], 5, 201); /* two dies of one layout: it is not certain which one it is */
    now = judged(gpus, &then);
    assert_false(has_text(&now, "its fingerprint is that of"));
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

/* Each SM reads 90 GB/s, in eight groups, with chance of 0.2 %. */
static struct sm_rates draw_rates(uint64_t run)
{
    struct sm_rates rates = {.sms = SMS, .groups = 8, .noise = 0.002};
    struct rng chance;
    rng_init(&chance, run, "rates");
    for (size_t i = 0; i < SMS; i++) {
        rates.gbs[i] = 90 * (1 + 0.002 * rng_normal(&chance));
        rates.group_of[i] = (uint8_t)(i / 2 % 8);
        rates.group_gbs[i / 2 % 8] += 70 * (1 + 0.002 * rng_normal(&chance));
    }
    return rates;
}

static void set_rates(struct gpu_result *gpu, const struct sm_rates *rates)
{
    struct sm_rates back;
    sm_rates_put(rates, &gpu->board);
    assert_int_equal(sm_rates_read(&gpu->board, &back), 0);
    for (size_t i = 0; i < SMS; i++)
        assert_true(fabs(back.gbs[i] - rates->gbs[i]) < 0.0051 &&
                    back.group_of[i] == rates->group_of[i]);
}

static void slow_down(struct sm_rates *rates, size_t group)
{
    for (size_t i = 0; i < SMS; i++)
        rates->gbs[i] *= rates->group_of[i] == group ? 0.8 : 1;
}

/* Of 16 GPUs one has a slower SM, one a slower group, one a group that is slower only together; one
 * is slower as a whole, which is not a matter of its SMs. */
static void slower_sms(void **state)
{
    (void)state;
    static const struct {
        size_t gpu;
        const char *words;
    } rows[] = {
        {3, "SM 20 reads L2 20 % slower than in the baseline"},
        {6, "the 16 SMs of group 4 read L2 20 % slower than in the baseline"},
        {9, "the 18 SMs of group 1 read L2 30 % slower when they read at once than"},
    };
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++) {
        struct sm_rates rates = draw_rates(i);
        set_rates(&gpus[i], &rates);
    }
    struct inventory then = judged(gpus, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        struct sm_rates rates = draw_rates(100 + i);
        rates.gbs[20] *= i == 3 ? 0.8 : 1;
        rates.group_gbs[1] *= i == 9 ? 0.7 : 1;
        if (i == 6)
            slow_down(&rates, 4);
        for (size_t k = 0; k < SMS && i == 12; k++)
            rates.gbs[k] *= 0.8;
        set_rates(&gpus[i], &rates);
    }
    struct inventory now = judged(gpus, &then);
    assert_int_equal(now.total_outliers, 0);
    assert_int_equal(now.watch_count, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct inventory_outlier *watched = made_watched(&now, gpus[rows[i].gpu].uuid);
        assert_non_null(watched);
        const char *cause = made_finding(watched, "board.sm_bandwidth")->cause;
        if (!strstr(cause, rows[i].words))
            print_error("%s\n", cause);
        assert_non_null(strstr(cause, rows[i].words));
    }
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

/* The SMs of one group that are farther from L2 are one die's, with the group named. */
static void farther_group(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    double latencies[SMS];
    struct fingerprint fingerprint;
    for (size_t i = 0; i < COUNT; i++) {
        struct sm_rates rates = draw_rates(i);
        set_rates(&gpus[i], &rates);
        set_die(&gpus[i], i, i);
    }
    struct inventory then = judged(gpus, NULL);
    assert_int_equal(fingerprint_read(&gpus[5].board, &fingerprint), 0);
    for (size_t i = 0; i < SMS; i++)
        latencies[i] = 280 + fingerprint.cycles[i] + (i / 2 % 8 == 4 ? 9 : 0);
    fingerprint_make(latencies, SMS, 0.2, &fingerprint);
    fingerprint_put(&fingerprint, &gpus[5].board);
    struct inventory now = judged(gpus, &then);
    assert_int_equal(now.watch_count, 1);
    const struct inventory_outlier *watched = made_watched(&now, gpus[5].uuid);
    assert_non_null(strstr(made_finding(watched, "board.fingerprint")->cause,
                           "the 16 SMs of group 4 are up to 9.0 cycles farther from L2"));
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

static void bad_rates(void **state)
{
    (void)state;
    static const double gbs[SM_RATES_SMS_MAX + 1] = {90, 90}, none[2] = {0}, odd[] = {90, NAN},
                                               below[] = {90, -1}, both[] = {0, 1},
                                               half[] = {0, 0.5}, third[] = {0, 2},
                                               minus[] = {-1, 0}, groups[] = {1200, 1200, 1200},
                                               bad[] = {1200, -5};
    static const struct {
        const double *gbs;
        size_t sms;
        double noise;
        const double *group_of;
        size_t group_sms;
        const double *groups;
        size_t group_count;
        bool good;
    } rows[] = {
        {gbs, 2, 0.01, NULL, 0, NULL, 0, true},     {gbs, 2, 0.01, both, 2, groups, 2, true},
        {gbs, 2, 0.01, both, 2, groups, 3, true},   {NULL, 0, 0.01, NULL, 0, NULL, 0, false},
        {gbs, 0, 0.01, NULL, 0, NULL, 0, false},    {gbs, 513, 0.01, NULL, 0, NULL, 0, false},
        {none, 2, 0.01, NULL, 0, NULL, 0, false},   {odd, 2, 0.01, NULL, 0, NULL, 0, false},
        {below, 2, 0.01, NULL, 0, NULL, 0, false},  {gbs, 2, -1, NULL, 0, NULL, 0, false},
        {gbs, 2, NAN, NULL, 0, NULL, 0, false},     {gbs, 2, 0.01, both, 1, groups, 2, false},
        {gbs, 2, 0.01, both, 2, groups, 1, false},  {gbs, 2, 0.01, both, 2, NULL, 0, false},
        {gbs, 2, 0.01, NULL, 0, groups, 2, false},  {gbs, 2, 0.01, half, 2, groups, 2, false},
        {gbs, 2, 0.01, third, 2, groups, 2, false}, {gbs, 2, 0.01, minus, 2, groups, 2, false},
        {gbs, 2, 0.01, both, 2, bad, 2, false},     {gbs, 2, 0.01, both, 2, gbs, 65, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts = {0};
        struct sm_rates rates;
        if (rows[i].gbs)
            facts_set_numbers(&facts, sm_rates_keys[0], rows[i].gbs, rows[i].sms);
        facts_set_real(&facts, sm_rates_keys[1], rows[i].noise);
        if (rows[i].group_of)
            facts_set_numbers(&facts, sm_rates_keys[2], rows[i].group_of, rows[i].group_sms);
        if (rows[i].groups)
            facts_set_numbers(&facts, sm_rates_keys[3], rows[i].groups, rows[i].group_count);
        if (sm_rates_read(&facts, &rates) != (rows[i].good ? 0 : -EINVAL))
            fail_msg("row %zu", i);
        facts_fini(&facts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swapped),       cmocka_unit_test(other_uuid), cmocka_unit_test(slower_sms),
        cmocka_unit_test(farther_group), cmocka_unit_test(bad_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
