/* The map of the die on simulated GPUs: a card is known again, another one is not taken for it. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"
#include "probed.h"
#include "probes/maps/die_map.h"

static const char MODEL[] =
    "name: Die\nsms: 32\nmemory: {size: 4 GiB}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "noise: {jitter_cycles: 2, spike_rate: 0.001, spike_cycles: 500, bandwidth: 0.004}\n"
    "l2: {size: 16 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

static struct fingerprint run(const struct sim_fault *fault)
{
    struct probed probed = {.model = MODEL, .profile = PROFILE_STANDARD, .list = "die.map"};
    struct fingerprint fingerprint;
    probed.faulty = fault != NULL;
    if (fault)
        probed.fault = *fault;
    struct measures measures = probed_run(&probed);
    const struct measure *m = measures_get(&measures, "die.fingerprint");
    assert_int_equal(fingerprint_read(&m->notes, &fingerprint), 0);
    assert_true(fingerprint.noise_cycles < 0.4);
    measures_fini(&measures);
    return fingerprint;
}

static void slow_sm(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SLOW_SM, .sm = 7, .share = 0.05};
    struct fingerprint healthy = run(NULL), again = run(NULL), slow = run(&fault);
    assert_int_equal(fingerprint_compare(&healthy, &again).match, FINGERPRINT_SAME);
    struct fingerprint_score score = fingerprint_compare(&healthy, &slow);
    assert_int_equal(score.match, FINGERPRINT_CHANGED);
    assert_int_equal(score.worst_sm, 7);
    assert_true(score.worst_cycles > 8 && score.worst_cycles < 12);
}

static struct measures run_maps(const struct sim_fault *fault, struct sm_rates *out_rates)
{
    struct probed probed = {
        .model = MODEL, .profile = PROFILE_FULL, .list = "die.bandwidth,die.memory"};
    probed.faulty = fault != NULL;
    if (fault)
        probed.fault = *fault;
    struct measures measures = probed_run(&probed);
    const struct measure *m = measures_get(&measures, "die.bandwidth.alone");
    assert_int_equal(sm_rates_read(&m->notes, out_rates), 0);
    return measures;
}

/* An SM reads 64 bytes per cycle of 1 ns; 32 of them share 400 GB/s. An SM that is slow shows
 * alone, and nothing else does. */
static void bandwidths(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SLOW_SM, .sm = 7, .share = 0.25};
    struct sm_rates healthy, slow;
    struct measures measures = run_maps(NULL, &healthy);
    probed_expect(&measures, "die.bandwidth.alone", 64, "alone");
    probed_expect(&measures, "die.bandwidth.together", 12.5, "together");
    assert_int_equal(healthy.sms, 32);
    assert_int_equal(sm_rates_weak(&healthy).count, 0);
    measures_fini(&measures);
    measures = run_maps(&fault, &slow);
    struct sm_loss loss = sm_rates_slower(&healthy, &slow), weak = sm_rates_weak(&slow);
    assert_true(loss.count == 1 && loss.sms[0] == 7 && loss.group == -1);
    assert_true(weak.count == 1 && weak.sms[0] == 7 && fabs(weak.share - 0.2) < 0.02);
    assert_int_equal(sm_rates_slower(&slow, &healthy).count, 0);
    measures_fini(&measures);
}

/* In an L2 of 1 MiB all SMs together would read the same lines at once. */
static void small_l2(void **state)
{
    (void)state;
    char *model = str_copy(MODEL), *size = strstr(model, "16 MiB");
    memcpy(size, " 1 MiB", strlen("16 MiB"));
    struct measures measures = probed_run(
        &(struct probed){.model = model, .profile = PROFILE_FULL, .list = "die.bandwidth"});
    const struct measure *together = measures_get(&measures, "die.bandwidth.together");
    assert_int_equal(together->status, MEASURE_UNSUPPORTED);
    assert_non_null(strstr(together->reason, "L2 is too small"));
    probed_expect(&measures, "die.bandwidth.alone", 64, "alone");
    measures_fini(&measures);
    free(model);
}

/* GPCs of CPCs with 6, 6 and 4 SMs: each CPC gets the same, so the SMs of the small ones get 1.5
 * times as much as the others. */
static void cpcs_share_alike(void **state)
{
    (void)state;
    struct strbuf model = {0};
    strbuf_puts(&model, MODEL);
    strbuf_puts(&model, "sms_per_gpc: 16\nsms_per_cpc: 6\n");
    const struct probed probed = {
        .model = model.data, .profile = PROFILE_FULL, .list = "die.bandwidth"};
    struct measures measures = probed_run(&probed);
    probed_expect(&measures, "die.bandwidth.together", 12.5, "together");
    size_t more = 0, sms = 0;
    const double *rates =
        facts_numbers(&measures_get(&measures, "die.bandwidth.together")->notes, "map", &sms);
    for (size_t i = 0; i < sms; i++) {
        assert_true(fabs(rates[i] - 12.5) < 0.5 || fabs(rates[i] - 18.75) < 0.75);
        more += rates[i] > 15;
    }
    assert_true(sms == 32 && more == 8);
    measures_fini(&measures);
    strbuf_fini(&model);
}

/* 300 cycles behind L2, whose slow SM takes a quarter longer: one row of the map is dark. */
static void regions(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SLOW_SM, .sm = 7, .share = 0.25};
    struct sm_rates rates;
    struct measures measures = run_maps(&fault, &rates);
    probed_expect(&measures, "die.memory_latency", 500, "memory");
    const struct measure *m = measures_get(&measures, "die.memory_latency");
    size_t sms = 0, columns = 0;
    const double *cycles = facts_rows(&m->notes, FINGERPRINT_REGIONS, &sms, &columns);
    assert_true(cycles && sms == 32 && columns == 16);
    assert_true(facts_int(&m->notes, "region_bytes", 0) > 0);
    double low = INFINITY;
    for (size_t i = 0; i < sms * columns; i++)
        low = fmin(low, cycles[i]);
    for (size_t sm = 0; sm < sms; sm++) {
        size_t dark = 0;
        for (size_t i = 0; i < columns; i++)
            dark += cycles[sm * columns + i] > low + 32;
        assert_true(sm == 7 ? dark > 13 : dark < 3); /* a spike may be in a cell */
    }
    measures_fini(&measures);
}

enum { SMS = 24, LINES = 60, SLICES = 6 };

/* Lines of six slices, three on each side of the die; `shift` draws other lines. */
static void draw(double *cycles, size_t shift)
{
    for (size_t sm = 0; sm < SMS; sm++)
        for (size_t i = 0; i < LINES; i++) {
            size_t slice = (i * i + shift * (i / 7)) % SLICES;
            double side = (sm < SMS / 2) == (slice < SLICES / 2) ? -15 : 15;
            cycles[sm * LINES + i] = 280 + side + 6 * (double)(slice % 3) + (double)(sm % 4);
        }
}

static void groups_are_slices(void **state)
{
    (void)state;
    double cycles[SMS * LINES];
    struct slice_groups groups;
    draw(cycles, 1);
    const struct slice_profiles profiles = {cycles, SMS, LINES, 0.5};
    slice_groups_find(&profiles, &groups);
    assert_int_equal(groups.count, SLICES);
    for (size_t i = 0; i < LINES; i++)
        for (size_t k = 0; k < LINES; k++)
            assert_int_equal(groups.of_line[i] == groups.of_line[k],
                             (i * i + i / 7) % SLICES == (k * k + k / 7) % SLICES);
    slice_groups_fini(&groups);
}

/* With other lines the share of each side changes; the means of SMs stay in their order. */
static void sides_count_equally(void **state)
{
    (void)state;
    double cycles[SMS * LINES], first[SMS], second[SMS], error;
    draw(cycles, 1);
    die_sides_means(cycles, SMS, LINES, first, &error);
    draw(cycles, 2);
    die_sides_means(cycles, SMS, LINES, second, &error);
    for (size_t sm = 1; sm < SMS; sm++)
        assert_true(fabs((first[sm] - first[0]) - (second[sm] - second[0])) < 1e-6);
}

/* Without sides, one load that was interrupted must not move its SM: it is one of many lines. */
static void one_interrupted_load(void **state)
{
    (void)state;
    static double cycles[SMS * LINES], means[SMS];
    double error;
    struct rng rng;
    rng_init(&rng, 5, "no sides");
    for (size_t i = 0; i < SMS * LINES; i++)
        cycles[i] = 220 + rng_normal(&rng);
    cycles[7 * LINES + 11] += 110;
    die_sides_means(cycles, SMS, LINES, means, &error);
    for (size_t sm = 0; sm < SMS; sm++)
        assert_true(fabs(means[sm] - 220) < 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_sm),
        cmocka_unit_test(bandwidths),
        cmocka_unit_test(small_l2),
        cmocka_unit_test(cpcs_share_alike),
        cmocka_unit_test(regions),
        cmocka_unit_test(groups_are_slices),
        cmocka_unit_test(sides_count_equally),
        cmocka_unit_test(one_interrupted_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
