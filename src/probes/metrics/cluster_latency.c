/* The probe of loads of the shared memory of other SMs: how long they take from each SM to each. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/method/clusters.h"
#include "probes/method/repeats.h"

enum { LOADS = 256, PASSES = 2 };

/* Pairs that differ by less than this share of the latency do not differ; a sum explains them if
 * it leaves less than this share of their range. */
static const double SAME_SHARE = 0.01, EXPLAINED_SHARE = 0.15;

static int measure_size(struct probe_context *context, uint32_t size, struct cluster_ways *ways,
                        struct err *err)
{
    const struct device_cluster asked = {
        .work = DEVICE_CLUSTER_LOADS, .size = size, .count = LOADS};
    struct device_cluster_answer answer;
    int rc = device_run_cluster(context->device, &asked, &answer, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < answer.cycle_count; i++) {
        size_t cluster = i / (size * size), from = i / size % size, to = i % size;
        const uint16_t *sms = answer.sms + cluster * size;
        if (sms[from] < ways->sms && sms[to] < ways->sms)
            cluster_ways_add(ways, sms[from], sms[to], (double)answer.cycles[i] / LOADS);
    }
    device_cluster_answer_fini(&answer);
    return 0;
}

/* The pairs, or the SMs with themselves. Returns how many; out_values has room for all pairs. */
static size_t list_values(const struct cluster_ways *ways, bool own, double *out_values)
{
    size_t count = 0;
    for (size_t i = 0; i < ways->sms * ways->sms; i++)
        if (ways->cycles[i] > 0 && (i / ways->sms == i % ways->sms) == own)
            out_values[count++] = ways->cycles[i];
    return count;
}

/* From each SM to one of the usual distance. Without a figure of every SM there is no map. */
static int note_map(const struct cluster_ways *ways, struct measure *m)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < ways->sms; i++) {
        if (!isfinite(ways->way[i])) {
            strbuf_fini(&text);
            return 0;
        }
        strbuf_printf(&text, "%s%.1f", i ? " " : "", ways->base + ways->way[i]);
    }
    int rc = text.failed ? -ENOMEM : facts_set_text(&m->notes, "map", text.data);
    strbuf_fini(&text);
    return rc;
}

static const char *distance_of(const struct cluster_ways *ways)
{
    double range = ways->most - ways->least;
    if (range < SAME_SHARE * ways->base)
        return "none";
    return ways->residual < EXPLAINED_SHARE * range ? "sum" : "by pair";
}

static int note_distance(const struct cluster_ways *ways, struct measure *m)
{
    return facts_set_real(&m->notes, "least", ways->least) ||
                   facts_set_real(&m->notes, "most", ways->most) ||
                   facts_set_text(&m->notes, "distance", distance_of(ways)) ||
                   facts_set_real(&m->notes, "residual_cycles", ways->residual) || note_map(ways, m)
               ? -ENOMEM
               : 0;
}

static int report(struct probe_context *context, struct cluster_ways *ways, struct err *err)
{
    double *values = mem_array(ways->sms * ways->sms + 1, sizeof *values);
    if (!values)
        return err_no_memory(err);
    size_t count = list_values(ways, false, values);
    struct measure *m =
        count ? measures_add(context->measures, "cluster.latency", cpd_median(values, count),
                             "cycles", "dependent loads between all SMs of a cluster")
              : NULL;
    if (m) {
        m->n = (uint32_t)count;
        m->spread = CPD_MAD_SIGMA * cpd_mad(values, count);
        m->confidence = NAN;
    }
    int rc = m && !note_distance(ways, m) ? 0 : -ENOMEM;
    count = rc ? 0 : list_values(ways, true, values);
    m = count ? repeats_add(context, "cluster.own_latency", values, count, "cycles",
                            "the same loads of the own shared memory")
              : NULL;
    free(values);
    return m ? 0 : err_no_memory(err);
}

static int run(struct probe_context *context, struct err *err)
{
    struct cluster_ways ways;
    struct err own = {0};
    uint32_t most = clusters_size_max(context);
    if (!most)
        return repeats_unsupported(context, "cluster.latency", "no clusters", err);
    int rc = cluster_ways_init(&ways, device_limits(context->device)->sm_count, err);
    if (rc)
        return rc;
    for (int i = 0; i < PASSES * CLUSTERS_SIZES && !rc; i++)
        if (clusters_sizes[i % CLUSTERS_SIZES] <= most)
            rc = measure_size(context, clusters_sizes[i % CLUSTERS_SIZES], &ways, &own);
    if (rc)
        rc = repeats_end(context, "cluster.latency", rc, &own, err);
    else {
        cluster_ways_fit(&ways);
        rc = report(context, &ways, err);
    }
    cluster_ways_fini(&ways);
    return rc;
}

const struct probe probe_cluster_latency = {
    .description = {"cluster.latency", "latency of the shared memory of other SMs", PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"cluster.latency", "cluster.own_latency"},
    .run = run,
};
