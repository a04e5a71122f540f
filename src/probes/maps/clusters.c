/* The probes of clusters: how large they can be, which SMs form them, and how far and how fast the
 * shared memory of other SMs is. */
#include "probes/maps/clusters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/maps/sm_groups.h"
#include "probes/method/repeats.h"

enum { FIT_ROUNDS = 50, REPEATS = 3 };

const uint32_t clusters_sizes[CLUSTERS_SIZES] = {2, 4, 8, 16};

uint32_t clusters_size_max(const struct probe_context *context)
{
    const struct measure *m = measures_get(context->measures, "cluster.size_max");
    return m && measure_status_valued(m->status) ? (uint32_t)m->value : 0;
}

/* Bytes per cycle, mean of the SMs. */
static int measure_rate(struct probe_context *context, const struct device_cluster *asked,
                        double bytes, double *out_rate, struct err *err)
{
    struct device_cluster_answer answer;
    int rc = device_run_cluster(context->device, asked, &answer, err);
    if (rc)
        return rc;
    double cycles = 0;
    for (size_t i = 0; i < answer.cycle_count; i++)
        cycles += (double)answer.cycles[i];
    *out_rate = cycles > 0 ? bytes * (double)answer.cycle_count / cycles : 0;
    device_cluster_answer_fini(&answer);
    return *out_rate > 0 ? 0 : err_set(err, -ENODATA, "the clocks of the SMs did not advance");
}

int clusters_measure_rates(struct probe_context *context, const char *metric,
                           const struct device_cluster *asked, double bytes, const char *method,
                           struct err *err)
{
    double rates[REPEATS];
    struct err own = {0};
    for (int i = 0; i < REPEATS; i++) {
        int rc = measure_rate(context, asked, bytes, &rates[i], &own);
        if (rc)
            return repeats_end(context, metric, rc, &own, err);
    }
    struct measure *m = repeats_add(context, metric, rates, REPEATS, "B/cycle", method);
    repeats_settle(m);
    return 0;
}

void cluster_ways_init(struct cluster_ways *ways, size_t sms)
{
    *ways = (struct cluster_ways){.sms = sms,
                                  .cycles = mem_array(sms * sms + 1, sizeof *ways->cycles),
                                  .way = mem_array(sms + 1, sizeof *ways->way)};
}

void cluster_ways_fini(struct cluster_ways *ways)
{
    free(ways->cycles);
    free(ways->way);
    *ways = (struct cluster_ways){0};
}

void cluster_ways_add(struct cluster_ways *ways, size_t x, size_t y, double cycles)
{
    double *cell = &ways->cycles[x * ways->sms + y];
    *cell = *cell > 0 ? fmin(*cell, cycles) : cycles;
}

/* Mean of what the pairs of an SM leave to it; NAN if it has none. */
static double way_of(const struct cluster_ways *ways, size_t x)
{
    double sum = 0;
    size_t count = 0;
    for (size_t y = 0; y < ways->sms; y++) {
        const double pair[] = {ways->cycles[x * ways->sms + y], ways->cycles[y * ways->sms + x]};
        for (int i = 0; i < 2 && y != x; i++)
            if (pair[i] > 0) {
                sum += pair[i] - ways->base - ways->way[y];
                count++;
            }
    }
    return count ? sum / (double)count : NAN;
}

/* The mean of the ways goes into the base. */
static void centre(struct cluster_ways *ways)
{
    double sum = 0;
    size_t count = 0;
    for (size_t x = 0; x < ways->sms; x++)
        if (isfinite(ways->way[x])) {
            sum += ways->way[x];
            count++;
        }
    for (size_t x = 0; x < ways->sms && count; x++)
        ways->way[x] -= sum / (double)count;
    ways->base += count ? 2 * sum / (double)count : 0;
}

static void sum_pairs(struct cluster_ways *ways, double *out_mean, double *out_squares)
{
    double sum = 0, squares = 0;
    ways->pairs = 0;
    ways->least = INFINITY;
    ways->most = -INFINITY;
    for (size_t i = 0; i < ways->sms * ways->sms; i++) {
        size_t x = i / ways->sms, y = i % ways->sms;
        if (x == y || ways->cycles[i] <= 0)
            continue;
        double rest = ways->cycles[i] - ways->base - ways->way[x] - ways->way[y];
        sum += ways->cycles[i];
        squares += rest * rest;
        ways->least = fmin(ways->least, ways->cycles[i]);
        ways->most = fmax(ways->most, ways->cycles[i]);
        ways->pairs++;
    }
    *out_mean = ways->pairs ? sum / (double)ways->pairs : 0;
    *out_squares = squares;
}

void cluster_ways_fit(struct cluster_ways *ways)
{
    double squares;
    ways->base = 0;
    sum_pairs(ways, &ways->base, &squares);
    for (int round = 0; round < FIT_ROUNDS; round++)
        for (size_t x = 0; x < ways->sms; x++) {
            /* Half of the step: two SMs that have only each other would overshoot in turn. */
            double way = way_of(ways, x);
            ways->way[x] = isfinite(way) ? (ways->way[x] + way) / 2 : NAN;
        }
    centre(ways);
    double mean;
    sum_pairs(ways, &mean, &squares);
    ways->residual = ways->pairs ? sqrt(squares / (double)ways->pairs) : 0;
}

/* The probe of clusters: how large they can be, how many run at once, and which SMs form them. */

enum { UNKNOWN = 0xffff };

struct groups {
    struct probe_context *context;
    size_t sms;
    uint32_t at_once[DEVICE_CLUSTER_MAX + 1]; /* clusters, by size; 0: the GPU has none of it */
    uint32_t size_max;
    uint16_t *group;   /* by SM: the lowest SM that it is connected with by clusters */
    uint16_t *largest; /* by SM: the largest cluster that it was seen in */
};

static void cluster_groups_join(struct groups *g, uint16_t a, uint16_t b)
{
    uint16_t low = g->group[a] < g->group[b] ? g->group[a] : g->group[b];
    uint16_t high = g->group[a] < g->group[b] ? g->group[b] : g->group[a];
    for (size_t i = 0; i < g->sms; i++)
        if (g->group[i] == high)
            g->group[i] = low;
}

/* All sizes: clusters of three connect what clusters of two, four, eight and sixteen leave apart.
 */
static int ask_size(struct groups *g, uint32_t size, struct err *err)
{
    const struct device_cluster asked = {.work = DEVICE_CLUSTER_PLACES, .size = size};
    struct device_cluster_answer answer;
    int rc = device_run_cluster(g->context->device, &asked, &answer, err);
    if (rc)
        return rc;
    g->at_once[size] = answer.clusters;
    g->size_max = size;
    for (size_t i = 0; i < (size_t)answer.clusters * size; i++) {
        if (answer.sms[i] < g->sms)
            g->largest[answer.sms[i]] = (uint16_t)size;
        if (answer.sms[i] < g->sms && answer.sms[i - i % size] < g->sms)
            cluster_groups_join(g, answer.sms[i - i % size], answer.sms[i]);
    }
    device_cluster_answer_fini(&answer);
    return 0;
}

/* -ENOTSUP or -ENOSYS only if there are no clusters at all. */
static int cluster_groups_ask_all(struct groups *g, struct err *err)
{
    struct err own = {0};
    int first = 0;
    for (uint32_t size = 2; size <= DEVICE_CLUSTER_MAX; size++) {
        int rc = ask_size(g, size, &own);
        if (rc && rc != -ENOTSUP)
            return err_set(err, rc, "%s", own.text);
        first = size == 2 ? rc : first;
        if (first)
            return err_set(err, first, "%s", own.text);
    }
    return 0;
}

static uint32_t cluster_groups_size(const struct groups *g, size_t group)
{
    uint32_t size = 0;
    for (size_t i = 0; i < g->sms; i++)
        size += g->group[i] == group;
    return size;
}

/* Every group holds as many clusters as fit into it; the driver tells how many the GPU holds. The
 * size for which both differ, or 0. */
static uint32_t find_contradiction(const struct groups *g)
{
    for (uint32_t size = 2; size <= g->size_max; size++) {
        uint32_t fit = 0;
        for (size_t i = 0; i < g->sms; i++)
            fit += g->group[i] == i ? cluster_groups_size(g, i) / size : 0;
        if (fit != g->at_once[size])
            return size;
    }
    return 0;
}

/* Whether the number of clusters shows that two groups are not one: together they would hold more
 * clusters of some size. */
static bool cluster_groups_are_apart(const struct groups *g, uint32_t a, uint32_t b)
{
    for (uint32_t size = 2; size <= g->size_max; size++)
        if ((a + b) / size > a / size + b / size)
            return true;
    return false;
}

/* Clusters are filled in the order of the SMs; SMs that could form one may never be seen together
 * if clusters are small. */
static bool may_be_one(const struct groups *g)
{
    for (size_t i = 0; i < g->sms; i++)
        for (size_t k = 0; k < i && g->group[i] == i; k++)
            if (g->group[k] == k &&
                !cluster_groups_are_apart(g, cluster_groups_size(g, i), cluster_groups_size(g, k)))
                return true;
    return false;
}

/* Whether SMs of one group share a constant L1.5: two ways to see a GPC. UNKNOWN if sm.groups does
 * not know. */
static uint32_t count_apart(const struct groups *g, uint16_t *sm_groups)
{
    uint32_t apart = 0;
    if (!sm_group_map_read(g->context, g->sms, sm_groups))
        return UNKNOWN;
    for (size_t i = 0; i < g->sms; i++)
        apart += sm_groups[i] != sm_groups[g->group[i]];
    return apart;
}

static void cluster_groups_note_sizes(const struct groups *g, struct measure *m)
{
    double *sizes = mem_array(g->size_max + 1, sizeof *sizes);
    double *at_once = mem_array(g->size_max + 1, sizeof *at_once);
    size_t count = 0;
    for (uint32_t size = 2; size <= g->size_max; size++) {
        sizes[count] = size;
        at_once[count++] = g->at_once[size];
    }
    measure_note_pairs(m, "at_once", sizes, at_once, count);
    free(sizes);
    free(at_once);
}

/* Groups are numbered by their lowest SM. */
static void cluster_groups_note_map(const struct groups *g, struct measure *m)
{
    double *sizes = mem_array(g->sms, sizeof *sizes), *map = mem_array(g->sms, sizeof *map);
    size_t size_count = 0;
    uint32_t single = 0;
    for (size_t i = 0; i < g->sms; i++) {
        for (size_t k = 0; k < g->group[i]; k++)
            map[i] += g->group[k] == k;
        if (g->group[i] == i)
            sizes[size_count++] = cluster_groups_size(g, i);
        single += g->largest[i] <= 2;
    }
    facts_set_numbers(&m->notes, "sizes", sizes, size_count);
    facts_set_numbers(&m->notes, "map", map, g->sms);
    facts_set_int(&m->notes, "single_sms", single);
    free(sizes);
    free(map);
}

static void cluster_groups_settle(const struct groups *g, struct measure *m)
{
    char reason[128];
    uint16_t *sm_groups = mem_array(g->sms, sizeof *sm_groups);
    uint32_t apart = count_apart(g, sm_groups), wrong = find_contradiction(g);
    free(sm_groups);
    if (apart != UNKNOWN)
        facts_set_text(&m->notes, "within_sm_groups", apart ? "no" : "yes");
    bool unclear = may_be_one(g);
    m->confidence = wrong || unclear ? 0.5 : 1;
    if (unclear) {
        measure_set_status(m, MEASURE_NOISY, "some groups may be one: clusters are small");
        return;
    }
    if (wrong) {
        snprintf(reason, sizeof reason,
                 "the GPU holds %u clusters of %u blocks, which does not follow from the groups",
                 g->at_once[wrong], wrong);
        measure_set_status(m, MEASURE_NOISY, reason);
        return;
    }
    if (!apart || apart == UNKNOWN)
        return;
    snprintf(reason, sizeof reason, "%u SMs share no constant L1.5 with SMs of their clusters",
             apart);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static void cluster_groups_report(const struct groups *g)
{
    uint32_t count = 0;
    for (size_t i = 0; i < g->sms; i++)
        count += g->group[i] == i;
    struct measure *m = measures_add(g->context->measures, "cluster.size_max", g->size_max, "",
                                     "launched, one block per SM");
    cluster_groups_note_sizes(g, m);
    m->confidence = 1;
    m = measures_add(g->context->measures, "cluster.count", g->at_once[g->size_max], "",
                     "clusters of the largest size that run at once");
    m->confidence = 1;
    m = measures_add(g->context->measures, "cluster.groups", count, "",
                     "SMs that were in a cluster together, of all sizes");
    cluster_groups_note_map(g, m);
    cluster_groups_settle(g, m);
}

static int cluster_groups_run(struct probe_context *context, struct err *err)
{
    struct groups g = {.context = context, .sms = device_limits(context->device)->sm_count};
    struct err own = {0};
    g.group = mem_array(g.sms + 1, sizeof *g.group);
    g.largest = mem_array(g.sms + 1, sizeof *g.largest);
    for (size_t i = 0; i < g.sms; i++)
        g.group[i] = (uint16_t)i;
    int rc = cluster_groups_ask_all(&g, &own);
    if (rc)
        rc = repeats_end(context, "cluster.size_max", rc == -ENOSYS ? -ENOTSUP : rc, &own, err);
    else
        cluster_groups_report(&g);
    free(g.group);
    free(g.largest);
    return rc;
}

const struct probe probe_cluster_groups = {
    .description = {"cluster.groups", "how large clusters can be and which SMs form them",
                    PROFILE_FULL},
    .depends = {"sm.groups"},
    .metrics = {"cluster.size_max", "cluster.count", "cluster.groups"},
    .run = cluster_groups_run,
};

/* The probe of loads of the shared memory of other SMs: how long they take from each SM to each. */

enum { LOADS = 256, PASSES = 2 };

/* Pairs that differ by less than this share of the latency do not differ; a sum explains them if
 * it leaves less than this share of their range. */
static const double SAME_SHARE = 0.01, EXPLAINED_SHARE = 0.15;

static int cluster_latency_measure_size(struct probe_context *context, uint32_t size,
                                        struct cluster_ways *ways, struct err *err)
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
static void cluster_latency_note_map(const struct cluster_ways *ways, struct measure *m)
{
    double *map = mem_array(ways->sms, sizeof *map);
    size_t known = 0;
    for (; known < ways->sms && isfinite(ways->way[known]); known++)
        map[known] = facts_decimals(ways->base + ways->way[known], 1);
    if (known == ways->sms)
        facts_set_numbers(&m->notes, "map", map, known);
    free(map);
}

static const char *cluster_latency_distance_of(const struct cluster_ways *ways)
{
    double range = ways->most - ways->least;
    if (range < SAME_SHARE * ways->base)
        return "none";
    return ways->residual < EXPLAINED_SHARE * range ? "sum" : "by pair";
}

static int cluster_latency_report(struct probe_context *context, struct cluster_ways *ways,
                                  struct err *err)
{
    double *values = mem_array(ways->sms * ways->sms + 1, sizeof *values);
    size_t count = list_values(ways, false, values);
    if (!count) {
        free(values);
        return err_set(err, -ENODATA, "no SM was in a cluster with another one");
    }
    struct measure *m =
        measures_add(context->measures, "cluster.latency", cpd_median(values, count), "cycles",
                     "dependent loads between all SMs of a cluster");
    m->n = (uint32_t)count;
    m->spread = CPD_MAD_SIGMA * cpd_mad(values, count);
    facts_set_real(&m->notes, "least", ways->least);
    facts_set_real(&m->notes, "most", ways->most);
    facts_set_text(&m->notes, "distance", cluster_latency_distance_of(ways));
    facts_set_real(&m->notes, "residual_cycles", ways->residual);
    cluster_latency_note_map(ways, m);
    count = list_values(ways, true, values);
    if (count)
        repeats_add(context, "cluster.own_latency", values, count, "cycles",
                    "the same loads of the own shared memory");
    free(values);
    return 0;
}

static int cluster_latency_run(struct probe_context *context, struct err *err)
{
    struct cluster_ways ways;
    struct err own = {0};
    uint32_t most = clusters_size_max(context);
    if (!most) {
        repeats_unsupported(context, "cluster.latency", "no clusters");
        return 0;
    }
    int rc = 0;
    cluster_ways_init(&ways, device_limits(context->device)->sm_count);
    for (int i = 0; i < PASSES * CLUSTERS_SIZES && !rc; i++)
        if (clusters_sizes[i % CLUSTERS_SIZES] <= most)
            rc = cluster_latency_measure_size(context, clusters_sizes[i % CLUSTERS_SIZES], &ways,
                                              &own);
    if (rc)
        rc = repeats_end(context, "cluster.latency", rc, &own, err);
    else {
        cluster_ways_fit(&ways);
        rc = cluster_latency_report(context, &ways, err);
    }
    cluster_ways_fini(&ways);
    return rc;
}

const struct probe probe_cluster_latency = {
    .description = {"cluster.latency", "latency of the shared memory of other SMs", PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"cluster.latency", "cluster.own_latency"},
    .run = cluster_latency_run,
};

/* The probe of what SMs of clusters read of each other's shared memory, by the size of clusters. */

enum { ROUNDS = 400, ROUNDS_FEW = 40 };

static int cluster_bandwidth_run(struct probe_context *context, struct err *err)
{
    uint32_t most = clusters_size_max(context);
    bool slow = device_limits(context->device)->loads_max;
    struct device_cluster asked = {
        .work = DEVICE_CLUSTER_READ, .size = 1, .count = slow ? ROUNDS_FEW : ROUNDS};
    double bytes = (double)asked.count * DEVICE_CLUSTER_ROUND_BYTES * DEVICE_CLUSTER_THREADS;
    if (!most) {
        repeats_unsupported(context, "cluster.bandwidth.own", "no clusters");
        return 0;
    }
    int rc = clusters_measure_rates(context, "cluster.bandwidth.own", &asked, bytes,
                                    "all threads load the own shared memory", err);
    for (int i = 0; i < CLUSTERS_SIZES && !rc && clusters_sizes[i] <= most; i++) {
        char metric[64];
        asked.size = clusters_sizes[i];
        snprintf(metric, sizeof metric, "cluster.bandwidth.size_%u", asked.size);
        rc = clusters_measure_rates(context, metric, &asked, bytes,
                                    "all threads load the shared memory of the others", err);
    }
    return rc;
}

const struct probe probe_cluster_bandwidth = {
    .description = {"cluster.bandwidth", "bandwidth of the shared memory of other SMs",
                    PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"cluster.bandwidth.own", "cluster.bandwidth.*"},
    .run = cluster_bandwidth_run,
};
