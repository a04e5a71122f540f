/* The probes of bulk copies into shared memory: from L2, from main memory, and between the SMs of a
 * cluster, by their size. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "probes/maps/clusters.h"
#include "probes/method/repeats.h"

enum {
    SMALLEST = 16,
    REPEATS = 5,
    ALONE_COPIES = 1024,
    ROUNDS = 256,            /* of a copy between two blocks */
    ALL_SM_BYTES = 16 << 20, /* that each SM copies, at least, in one request */
    CLUSTER_BYTES = 16384,   /* of a copy between blocks while all copy */
    CLUSTER_FLIGHTS = 4,
    CLUSTER_COPIES = 128,
};

/* Copies that reach this share of the best rate are large enough. */
static const double LARGE_ENOUGH = 0.9;

static const uint32_t all_bytes[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

/* Where copies come from, and the metrics. */
static const struct way {
    const char *latency, *bandwidth;
    enum device_bulk_source source;
} ways[] = {{"bulk_copy.latency.l2", "bulk_copy.bandwidth.l2", DEVICE_BULK_L2},
            {"bulk_copy.latency.memory", "bulk_copy.bandwidth.memory", DEVICE_BULK_MEMORY}};

/* Cycles of one copy while nothing else runs. */
static int copy_alone(struct probe_context *context, enum device_bulk_source source, uint32_t bytes,
                      double *out_cycles, struct err *err)
{
    const struct device_bulk asked = {
        .source = source, .alone = true, .bytes = bytes, .in_flight = 1, .copies = ALONE_COPIES};
    struct device_bulk_answer answer;
    int rc = device_copy_bulk(context->device, &asked, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.cycles / ALONE_COPIES;
    return 0;
}

/* Cycles of a copy from one block to another, which passes it back. */
static int copy_across(struct probe_context *context, uint32_t bytes, double *out_cycles,
                       struct err *err)
{
    const struct device_cluster asked = {
        .work = DEVICE_CLUSTER_COPY, .size = 2, .count = ROUNDS, .bytes = bytes};
    struct device_cluster_answer answer;
    double cycles = 0;
    int rc = device_run_cluster(context->device, &asked, &answer, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < answer.cycle_count; i++)
        cycles += (double)answer.cycles[i];
    *out_cycles = cycles / (double)answer.cycle_count / ROUNDS / asked.size;
    device_cluster_answer_fini(&answer);
    return 0;
}

static int copy_once(struct probe_context *context, const struct way *way, uint32_t bytes,
                     double *out_cycles, struct err *err)
{
    return way ? copy_alone(context, way->source, bytes, out_cycles, err)
               : copy_across(context, bytes, out_cycles, err);
}

static void bulk_note_by_bytes(struct measure *m, const double *values)
{
    double at[COUNT_OF(all_bytes)], rounded[COUNT_OF(all_bytes)];
    for (size_t i = 0; i < COUNT_OF(all_bytes); i++) {
        at[i] = all_bytes[i];
        rounded[i] = facts_decimals(values[i], 0);
    }
    measure_note_pairs(m, "by_bytes", at, rounded, COUNT_OF(all_bytes));
}

/* The smallest copies give the figure; larger ones its note. way: NULL for copies in a cluster. */
static int bulk_report_latency(struct probe_context *context, const struct way *way,
                               struct err *err)
{
    const char *metric = way ? way->latency : "bulk_copy.latency.cluster";
    double values[REPEATS], by_bytes[COUNT_OF(all_bytes)], cycles;
    struct err own = {0};
    int rc = 0;
    for (int i = 0; i < REPEATS && !rc; i++)
        rc = copy_once(context, way, SMALLEST, &values[i], &own);
    for (size_t i = 0; i < COUNT_OF(all_bytes) && !rc; i++) {
        rc = copy_once(context, way, all_bytes[i], &cycles, &own);
        by_bytes[i] = rc ? 0 : cycles;
    }
    if (rc)
        return repeats_end(context, metric, rc == -ENOSYS ? -ENOTSUP : rc, &own, err);
    struct measure *m = repeats_add(context, metric, values, REPEATS, "cycles",
                                    way ? "copies of 16 bytes, one after the other"
                                        : "copies of 16 bytes, back and forth");
    bulk_note_by_bytes(m, by_bytes);
    repeats_settle(m);
    return 0;
}

static int bulk_run_latency(struct probe_context *context, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(ways) && !rc; i++)
        rc = bulk_report_latency(context, &ways[i], err);
    if (rc)
        return rc;
    if (clusters_size_max(context))
        return bulk_report_latency(context, NULL, err);
    repeats_unsupported(context, "bulk_copy.latency.cluster", "no clusters");
    return 0;
}

const struct probe probe_bulk_copy_latency = {
    .description = {"bulk_copy.latency", "latency of bulk copies from L2, memory and other SMs",
                    PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"bulk_copy.latency.l2", "bulk_copy.latency.memory", "bulk_copy.latency.cluster"},
    .run = bulk_run_latency,
};

static uint32_t flights_of(uint32_t bytes)
{
    uint32_t fit = DEVICE_BULK_ROOM_BYTES / bytes;
    return fit < DEVICE_BULK_FLIGHTS_MAX ? fit : DEVICE_BULK_FLIGHTS_MAX;
}

/* GB/s of all SMs. */
static int bulk_copy_all(struct probe_context *context, enum device_bulk_source source,
                         uint32_t bytes, double *out_gbs, struct err *err)
{
    uint32_t flights = flights_of(bytes), copies = ALL_SM_BYTES / bytes;
    const struct device_bulk asked = {
        .source = source, .bytes = bytes, .in_flight = flights, .copies = copies};
    struct device_bulk_answer answer;
    int rc = device_copy_bulk(context->device, &asked, &answer, err);
    if (rc)
        return rc;
    double moved = (double)(copies / flights * flights) * bytes * answer.sms;
    *out_gbs = moved / fmax((double)answer.elapsed_ns, 1);
    return 0;
}

static void bulk_note_sizes(struct measure *m, const double *gbs, double best)
{
    uint32_t least = 0;
    for (size_t i = 0; i < COUNT_OF(all_bytes) && !least; i++)
        if (gbs[i] >= LARGE_ENOUGH * best)
            least = all_bytes[i];
    bulk_note_by_bytes(m, gbs);
    facts_set_int(&m->notes, "enough_bytes", least);
}

/* The best size is measured again. */
static int report_bandwidth(struct probe_context *context, const struct way *way, struct err *err)
{
    double gbs[COUNT_OF(all_bytes)], values[REPEATS];
    size_t best = 0;
    struct err own = {0};
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(all_bytes) && !rc; i++) {
        rc = bulk_copy_all(context, way->source, all_bytes[i], &gbs[i], &own);
        best = !rc && gbs[i] > gbs[best] ? i : best;
    }
    for (int i = 0; i < REPEATS && !rc; i++)
        rc = bulk_copy_all(context, way->source, all_bytes[best], &values[i], &own);
    if (rc)
        return repeats_end(context, way->bandwidth, rc == -ENOSYS ? -ENOTSUP : rc, &own, err);
    struct measure *m = repeats_add(context, way->bandwidth, values, REPEATS, "GB/s",
                                    "all SMs copy at once, the best size");
    facts_set_int(&m->notes, "bytes", all_bytes[best]);
    bulk_note_sizes(m, gbs, fmax(m->value, gbs[best]));
    repeats_settle(m);
    return 0;
}

static int report_clusters(struct probe_context *context, struct err *err)
{
    uint32_t most = clusters_size_max(context);
    struct device_cluster asked = {.work = DEVICE_CLUSTER_COPY,
                                   .count = CLUSTER_COPIES,
                                   .bytes = CLUSTER_BYTES,
                                   .in_flight = CLUSTER_FLIGHTS};
    int rc = 0;
    for (int i = 0; i < CLUSTERS_SIZES && !rc && clusters_sizes[i] <= most; i++) {
        char metric[64];
        asked.size = clusters_sizes[i];
        snprintf(metric, sizeof metric, "bulk_copy.cluster.size_%u", asked.size);
        rc = clusters_measure_rates(context, metric, &asked, CLUSTER_COPIES * (double)CLUSTER_BYTES,
                                    "each SM copies to the next one of its cluster", err);
    }
    return rc;
}

static int run_bandwidth(struct probe_context *context, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(ways) && !rc; i++)
        rc = report_bandwidth(context, &ways[i], err);
    return rc ? rc : report_clusters(context, err);
}

const struct probe probe_bulk_copy_bandwidth = {
    .description = {"bulk_copy.bandwidth", "bandwidth of bulk copies by their size", PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"bulk_copy.bandwidth.l2", "bulk_copy.bandwidth.memory", "bulk_copy.cluster.*"},
    .run = run_bandwidth,
};
