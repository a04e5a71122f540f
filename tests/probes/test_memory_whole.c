/* The test of the whole memory on simulated GPUs: wrong words and weak regions are found where they
 * are, and healthy memory has neither. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "probed.h"

/* 4 GiB: 16 regions of 256 MiB; 1/16 of the memory cannot be allocated. */
static const char MODEL[] =
    "name: Whole\nsms: 8\nmemory: {size: 4 GiB}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "noise: {jitter_cycles: 1, spike_rate: 0.001, spike_cycles: 500, bandwidth: 0.004}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";
static const double REGION = 256 << 20;

static struct measures run(const struct sim_fault *fault, enum probe_profile profile)
{
    struct probed probed = {.model = MODEL, .profile = profile, .list = "memory.whole"};
    probed.faulty = fault != NULL;
    if (fault)
        probed.fault = *fault;
    return probed_run(&probed);
}

static void healthy(void **state)
{
    (void)state;
    for (int profile = PROFILE_QUICK; profile <= PROFILE_FULL; profile++) {
        struct measures measures = run(NULL, (enum probe_profile)profile);
        double tested = probed_value(&measures, "main.whole.tested");
        const struct fact *whole =
            facts_get(&measures_get(&measures, "main.whole.tested")->notes, "free");
        assert_true(tested >= 0.95 * (double)whole->integer);
        assert_true(probed_value(&measures, "main.whole.errors") == 0);
        assert_true(probed_value(&measures, "main.whole.slow_regions") == 0);
        assert_true(probed_value(&measures, "main.whole.late_regions") == 0);
        assert_null(measures_get(&measures, "main.whole.first_error"));
        probed_expect(&measures, "main.whole.latency", 500, "latency");
        measures_fini(&measures);
    }
}

/* Bit 5 is always 1: each pattern shows it where it writes a 0. Words 7 to 9 lie on both sides of
 * byte 64, up to which the address has bit 5 set: an address and its inverse show every word once.
 */
static void wrong_words(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_BIT_ERROR, .bytes = (1 << 30) + 7 * 8, .count = 3, .stride = 8, .bit = 5};
    struct measures measures = run(&fault, PROFILE_QUICK);
    assert_true(probed_value(&measures, "main.whole.errors") == 3);
    assert_true(probed_value(&measures, "main.whole.first_error") == (1 << 30) + 7 * 8);
    const struct measure *errors = measures_get(&measures, "main.whole.errors");
    assert_string_equal(facts_get(&errors->notes, "bits")->text, "0x20");
    measures_fini(&measures);
}

/* 64 MiB of a region that take 1.3 times as long make the region 7 % slower. */
static void weak_regions(void **state)
{
    (void)state;
    static const struct {
        double share, slow;
    } rows[] = {{0.3, 1}, {0.02, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sim_fault fault = {
            .kind = SIM_WEAK_REGION, .bytes = 5 * (256 << 20) + 1000, .share = rows[i].share};
        struct measures measures = run(&fault, PROFILE_STANDARD);
        assert_true(probed_value(&measures, "main.whole.slow_regions") == rows[i].slow);
        if (rows[i].slow > 0)
            assert_true(probed_value(&measures, "main.whole.slowest_region") == 5 * REGION);
        measures_fini(&measures);
    }
}

/* Loads of a quarter of the region take longer, streams do not: 100 of 500 cycles more make the
 * region's loads 5 % later, which is the bound. */
static void late_regions(void **state)
{
    (void)state;
    static const struct {
        double ns, late;
    } rows[] = {{130, 1}, {80, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sim_fault fault = {
            .kind = SIM_WEAK_REGION, .bytes = 7 * (256 << 20) + 1000, .ns = rows[i].ns};
        struct measures measures = run(&fault, PROFILE_STANDARD);
        assert_true(probed_value(&measures, "main.whole.slow_regions") == 0);
        assert_true(probed_value(&measures, "main.whole.late_regions") == rows[i].late);
        if (rows[i].late > 0)
            assert_true(probed_value(&measures, "main.whole.latency_worst_region") == 7 * REGION);
        measures_fini(&measures);
    }
}

/* The maps of two rounds of loads: region 3 is late in `late` of them. */
static size_t late_rounds;

static int test_with_late(struct device *device, const void *request, void *answer,
                          struct err *err);
static const struct device_ops *sim_ops;

static void set_late(struct device *device)
{
    static struct device_ops ops;
    sim_ops = device->ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_MEMORY] = test_with_late;
    device->ops = &ops;
}

static int test_with_late(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_memory_test *test = request;
    struct device_memory_map *out_map = answer;
    int rc = sim_ops->calls[DEVICE_CALL_MEMORY](device, test, out_map, err);
    for (size_t i = 0; i < out_map->region_count; i++)
        for (size_t k = 0; k < DEVICE_CHASES; k++) {
            if (i == 3 && k < late_rounds)
                out_map->regions[i].cycles[k] *= 2;
            if (late_rounds == 0 && k > 0)
                out_map->regions[i].cycles[k] = 0;
        }
    return rc;
}

/* One round proves nothing: a region must be late in both. A record of one round has no count. */
static void late_once_is_chance(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "memory.whole", .prepare = set_late};
    for (late_rounds = 0; late_rounds <= DEVICE_CHASES; late_rounds++) {
        struct measures measures = probed_run(&probed);
        if (late_rounds)
            assert_true(probed_value(&measures, "main.whole.late_regions") ==
                        (late_rounds == DEVICE_CHASES ? 1 : 0));
        else
            assert_null(measures_get(&measures, "main.whole.late_regions"));
        assert_true(probed_value(&measures, "main.whole.latency") > 0);
        measures_fini(&measures);
    }
}

/* A region is as large as was asked for, as long as there are at least 16 and at most 1024. */
static void region_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t asked, used;
    } rows[] = {{0, 256 << 20}, {1 << 30, 256 << 20}, {128 << 20, 128 << 20}, {2 << 20, 4 << 20}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct probed probed = {
            .model = MODEL, .list = "memory.whole", .region_bytes = rows[i].asked};
        struct measures measures = probed_run(&probed);
        const struct measure *slow = measures_get(&measures, "main.whole.slow_regions");
        assert_int_equal(facts_get(&slow->notes, "region_bytes")->integer, rows[i].used);
        assert_true(probed_value(&measures, "main.whole.slow_regions") == 0);
        measures_fini(&measures);
    }
}

static void check_ecc(const struct measures *measures, double corrected, int64_t before)
{
    const struct measure *m = measures_get(measures, "main.whole.ecc_corrected");
    assert_true(probed_value(measures, "main.whole.ecc_corrected") == corrected);
    assert_true(probed_value(measures, "main.whole.ecc_uncorrected") == 0);
    assert_int_equal(facts_get(&m->notes, "before")->integer, before);
    assert_int_equal(facts_get(&m->notes, "after")->integer, before + (int64_t)corrected);
}

/* Only errors that come during the test count: three in each of two patterns; those that were there
 * before do not. */
static void ecc_counters(void **state)
{
    (void)state;
    struct sim_fault weak = {.kind = SIM_WEAK_REGION, .bytes = 1 << 30, .corrected = 3};
    struct sim_fault old = {.kind = SIM_HEALTH};
    old.health[HEALTH_ECC_CORRECTED_VOLATILE] = (struct sim_health_value){true, 1000};
    struct measures measures = run(&weak, PROFILE_QUICK);
    check_ecc(&measures, 6, 0);
    measures_fini(&measures);
    measures = run(&old, PROFILE_QUICK);
    check_ecc(&measures, 0, 1000);
    measures_fini(&measures);
}

static int test_without_ecc(struct device *device, const void *request, void *answer,
                            struct err *err);
static const struct device_ops *usual_ops;

static void forget_ecc(struct device *device)
{
    static struct device_ops ops;
    usual_ops = device->ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_MEMORY] = test_without_ecc;
    device->ops = &ops;
}

static int test_without_ecc(struct device *device, const void *request, void *answer,
                            struct err *err)
{
    const struct device_memory_test *test = request;
    struct device_memory_map *out_map = answer;
    int rc = usual_ops->calls[DEVICE_CALL_MEMORY](device, test, out_map, err);
    out_map->ecc_known = false;
    return rc;
}

/* A GPU that does not count errors has no number of them, not even 0. */
static void no_ecc_counters(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "memory.whole", .prepare = forget_ecc};
    struct measures measures = probed_run(&probed);
    assert_null(measures_get(&measures, "main.whole.ecc_corrected"));
    assert_null(measures_get(&measures, "main.whole.ecc_uncorrected"));
    assert_true(probed_value(&measures, "main.whole.errors") == 0);
    measures_fini(&measures);
}

static int identify_nothing(struct device *device, const void *request, void *answer,
                            struct err *err)
{
    (void)device, (void)request, (void)answer, (void)err;
    return 0;
}

static void forget_size(struct device *device)
{
    static struct device_ops ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_IDENTIFY] = identify_nothing;
    device->ops = &ops;
}

/* Without main.size, regions are large: small ones would be thousands. */
static void unknown_size(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "memory.whole", .prepare = forget_size};
    struct measures measures = probed_run(&probed);
    probed_expect(&measures, "main.size", 0, "size");
    const struct measure *slow = measures_get(&measures, "main.whole.slow_regions");
    assert_int_equal(facts_get(&slow->notes, "region_bytes")->integer, 1 << 30);
    measures_fini(&measures);
}

/* Another process may need the memory: it is left alone. */
static void busy(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_BUSY};
    struct measures measures = run(&fault, PROFILE_QUICK);
    const struct measure *errors = measures_get(&measures, "main.whole.errors");
    assert_int_equal(errors->status, MEASURE_FAILED);
    assert_non_null(strstr(errors->reason, "another process"));
    measures_fini(&measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),      cmocka_unit_test(wrong_words),
        cmocka_unit_test(weak_regions), cmocka_unit_test(unknown_size),
        cmocka_unit_test(busy),         cmocka_unit_test(region_sizes),
        cmocka_unit_test(ecc_counters), cmocka_unit_test(no_ecc_counters),
        cmocka_unit_test(late_regions), cmocka_unit_test(late_once_is_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
