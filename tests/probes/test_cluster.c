/* Clusters and bulk copies on simulated GPUs: groups, latencies and rates are those of the model,
 * whatever it is; what a GPU does not have is said to be missing. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "device/sim/gpu.h"
#include "probed.h"
#include "probes/maps/clusters.h"

static const char MODEL[] =
    "name: Clusters\nmemory: {size: 1 GiB}\nhardware: {compute_capability: \"9.0\"}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\nnoise: {jitter_cycles: 0.5, bandwidth: 0.002}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "caches: {constant_l1: {size: 2 KiB, line: 64, ways: 4}, "
    "constant_l15: {size: 32 KiB, line: 256, ways: 8, scope: gpc}}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500], "
    "constant: [constant_l1: 28, constant_l15: 100, l2: 220, main: 520]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\nsms_per_tpc: 2\nsm_order: across\n";

struct truth {
    uint32_t sms, gpcs, sizes[8], size_max, singles;
    double own, other, distance, read, copy, copy_cycles, bulk_cycles;
};

static struct truth draw(struct rng *rng)
{
    struct truth t = {.gpcs = 2 + (uint32_t)rng_below(rng, 3),
                      .size_max = 2 + (uint32_t)rng_below(rng, 15),
                      .own = 25 + (double)rng_below(rng, 20),
                      .other = 120 + (double)rng_below(rng, 150),
                      .distance = 5 + (double)rng_below(rng, 40),
                      .read = 8 + (double)rng_below(rng, 60),
                      .copy = 8 + (double)rng_below(rng, 60),
                      .copy_cycles = (double)rng_below(rng, 300),
                      .bulk_cycles = 50 + (double)rng_below(rng, 200)};
    for (uint32_t i = 0; i < t.gpcs; i++) {
        t.sizes[i] = 6 + 2 * (uint32_t)rng_below(rng, 5);
        t.sms += t.sizes[i];
    }
    t.singles = 2 * (uint32_t)rng_below(rng, 3);
    return t;
}

static void describe(const struct truth *t, struct strbuf *model)
{
    strbuf_printf(model, "%ssms: %u\nsms_per_gpc: [", MODEL, t->sms);
    for (uint32_t i = 0; i < t->gpcs; i++)
        strbuf_printf(model, "%s%u", i ? ", " : "", t->sizes[i]);
    strbuf_printf(model,
                  "]\nclusters: {size: %u, singles: %u, own_cycles: %g, other_cycles: %g, "
                  "distance_cycles: %g, own_read: 90, read: %g, copy_cycles: %g, copy: %g, "
                  "bulk_cycles: %g, bulk_interval: 4, bulk: 50}\n",
                  t->size_max, t->singles, t->own, t->other, t->distance, t->read, t->copy_cycles,
                  t->copy, t->bulk_cycles);
}

static const struct measure *valued(const struct measures *measures, const char *metric)
{
    const struct measure *m = measures_get(measures, metric);
    if (!m || m->status != MEASURE_OK)
        fail_msg("%s: %s", metric, m && m->reason ? m->reason : "not measured");
    return m;
}

static double fact(const struct measure *m, const char *key)
{
    return fact_number(facts_get(&m->notes, key));
}

/* The clusters that fit, by the model's groups. */
static uint32_t fit(const struct truth *t, uint32_t size)
{
    uint32_t count = size == 2 ? t->singles / 2 : 0;
    for (uint32_t i = 0; i < t->gpcs; i++)
        count += (t->sizes[i] - (i ? 0 : t->singles)) / size;
    return count;
}

static uint32_t largest(const struct truth *t)
{
    uint32_t size = t->size_max;
    while (!fit(t, size))
        size--;
    return size;
}

/* If clusters are small, one group may look like two: then that is said. */
static void expect_groups(const struct truth *t, const struct measures *measures)
{
    uint32_t size = largest(t);
    const struct measure *groups = measures_get(measures, "cluster.groups");
    assert_true(probed_value(measures, "cluster.size_max") == size);
    assert_true(probed_value(measures, "cluster.count") == fit(t, size));
    assert_string_equal(facts_text(&groups->notes, "within_sm_groups"), "yes");
    if (groups->status != MEASURE_OK)
        assert_true(size < 8 && groups->status == MEASURE_NOISY);
    else if (groups->value != t->gpcs + t->singles / 2)
        fail_msg("%g groups, should be %u; clusters of up to %u", groups->value,
                 t->gpcs + t->singles / 2, size);
}

static void expect_latency(const struct truth *t, const struct measures *measures)
{
    const struct measure *m = valued(measures, "cluster.latency");
    double most = t->other + 2 * t->distance;
    assert_true(fabs(probed_value(measures, "cluster.own_latency") - t->own) < 0.01 * t->own);
    assert_true(fact(m, "least") > t->other - 1 && fact(m, "most") < most + 1);
    assert_true(fact(m, "most") > t->other + t->distance);
    assert_string_equal(facts_text(&m->notes, "distance"), "sum");
    assert_true(fact(m, "residual_cycles") < 0.5);
    probed_expect(measures, "bulk_copy.latency.l2", 200 + t->bulk_cycles, "l2");
    probed_expect(measures, "bulk_copy.latency.memory", 500 + t->bulk_cycles, "memory");
}

static void expect_rates(const struct truth *t, const struct measures *measures)
{
    probed_expect(measures, "cluster.bandwidth.own", 90, "own");
    probed_expect(measures, "bulk_copy.bandwidth.l2", 400, "l2");
    probed_expect(measures, "bulk_copy.bandwidth.memory", 200, "memory");
    for (int i = 0; i < CLUSTERS_SIZES && clusters_sizes[i] <= largest(t); i++) {
        char metric[64];
        snprintf(metric, sizeof metric, "cluster.bandwidth.size_%u", clusters_sizes[i]);
        probed_expect(measures, metric, t->read, "read");
        snprintf(metric, sizeof metric, "bulk_copy.cluster.size_%u", clusters_sizes[i]);
        probed_expect(measures, metric, t->copy, "copy");
    }
}

static int rounds = 10;

static void drawn(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 18, "clusters");
    for (int round = 0; round < rounds; round++) {
        struct truth t = draw(&rng);
        struct strbuf model = {0};
        describe(&t, &model);
        const struct probed probed = {.model = model.data, .list = "cluster,bulk_copy"};
        struct measures measures = probed_run(&probed);
        expect_groups(&t, &measures);
        expect_latency(&t, &measures);
        expect_rates(&t, &measures);
        measures_fini(&measures);
        strbuf_fini(&model);
    }
}

/* Two GPCs of eight SMs each, which form one cluster. */
static struct truth two_gpcs(double distance)
{
    return (struct truth){.sms = 16,
                          .gpcs = 2,
                          .sizes = {8, 8},
                          .size_max = 8,
                          .own = 30,
                          .other = 200,
                          .distance = distance,
                          .read = 16,
                          .copy = 16,
                          .bulk_cycles = 70};
}

/* Where all SMs are equally far from each other, the distance does not matter. */
static void no_distance(void **state)
{
    (void)state;
    const struct truth t = two_gpcs(0);
    struct strbuf model = {0};
    describe(&t, &model);
    const struct probed probed = {.model = model.data, .list = "cluster"};
    struct measures measures = probed_run(&probed);
    const struct measure *m = valued(&measures, "cluster.latency");
    assert_string_equal(facts_text(&m->notes, "distance"), "none");
    assert_true(fabs(m->value - 200) < 1);
    assert_null(measures_get(&measures, "cluster.bandwidth.size_16"));
    measures_fini(&measures);
    strbuf_fini(&model);
}

/* SMs of a TPC are nearer to each other: no sum explains that. */
static int near_pairs(struct device *device, const void *request, void *out, struct err *err)
{
    const struct device_cluster *asked = request;
    struct device_cluster_answer *answer = out;
    int rc = gpu_run_cluster(device, asked, answer, err);
    for (size_t i = 0; i < answer->cycle_count && asked->work == DEVICE_CLUSTER_LOADS; i++) {
        size_t size = asked->size, cluster = i / (size * size);
        const uint16_t *sms = answer->sms + cluster * size;
        uint32_t from = sms[i / size % size], to = sms[i % size];
        if (from != to)
            answer->cycles[i] = asked->count * (from / 2 == to / 2 ? 150u : 200u);
    }
    return rc;
}

/* The GPU holds fewer clusters than its groups could. */
static int fewer_clusters(struct device *device, const void *request, void *out, struct err *err)
{
    const struct device_cluster *asked = request;
    struct device_cluster_answer *answer = out;
    int rc = gpu_run_cluster(device, asked, answer, err);
    if (!rc && asked->size == 4)
        answer->clusters--;
    return rc;
}

static device_function *other_way;

static void use_other_way(struct device *device)
{
    static struct device_ops ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_CLUSTER] = other_way;
    device->ops = &ops;
}

static void other_gpus(void **state)
{
    (void)state;
    const struct truth t = two_gpcs(10);
    struct strbuf model = {0};
    describe(&t, &model);
    const struct probed probed = {
        .model = model.data, .list = "cluster.latency", .prepare = use_other_way};
    other_way = near_pairs;
    struct measures measures = probed_run(&probed);
    const struct measure *m = valued(&measures, "cluster.latency");
    assert_string_equal(facts_text(&m->notes, "distance"), "by pair");
    measures_fini(&measures);
    other_way = fewer_clusters;
    measures = probed_run(&probed);
    assert_int_equal(measures_get(&measures, "cluster.groups")->status, MEASURE_NOISY);
    measures_fini(&measures);
    strbuf_fini(&model);
}

static void no_clusters(void **state)
{
    (void)state;
    static const char *const missing[] = {"cluster.size_max",       "cluster.latency",
                                          "cluster.bandwidth.own",  "bulk_copy.latency.l2",
                                          "bulk_copy.bandwidth.l2", "bulk_copy.latency.cluster"};
    const struct probed probed = {.model = probed_plain, .list = "cluster,bulk_copy"};
    struct measures measures = probed_run(&probed);
    for (size_t i = 0; i < COUNT_OF(missing); i++)
        probed_expect(&measures, missing[i], 0, "no clusters");
    assert_null(measures_get(&measures, "cluster.groups"));
    measures_fini(&measures);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn), cmocka_unit_test(no_distance),
                                       cmocka_unit_test(other_gpus), cmocka_unit_test(no_clusters)};
    if (argc > 1)
        rounds = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
