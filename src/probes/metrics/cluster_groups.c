/* The probe of clusters: how large they can be, how many run at once, and which SMs form them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "probes/method/repeats.h"
#include "probes/method/sm_group_map.h"

enum { UNKNOWN = 0xffff };

struct groups {
    struct probe_context *context;
    size_t sms;
    uint32_t at_once[DEVICE_CLUSTER_MAX + 1]; /* clusters, by size; 0: the GPU has none of it */
    uint32_t size_max;
    uint16_t *group;   /* by SM: the lowest SM that it is connected with by clusters */
    uint16_t *largest; /* by SM: the largest cluster that it was seen in */
};

static void join(struct groups *g, uint16_t a, uint16_t b)
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
            join(g, answer.sms[i - i % size], answer.sms[i]);
    }
    device_cluster_answer_fini(&answer);
    return 0;
}

/* -ENOTSUP or -ENOSYS only if there are no clusters at all. */
static int ask_all(struct groups *g, struct err *err)
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

static uint32_t size_of(const struct groups *g, size_t group)
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
            fit += g->group[i] == i ? size_of(g, i) / size : 0;
        if (fit != g->at_once[size])
            return size;
    }
    return 0;
}

/* Whether the number of clusters shows that two groups are not one: together they would hold more
 * clusters of some size. */
static bool are_apart(const struct groups *g, uint32_t a, uint32_t b)
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
            if (g->group[k] == k && !are_apart(g, size_of(g, i), size_of(g, k)))
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

static int note_sizes(const struct groups *g, struct measure *m)
{
    struct strbuf text = {0};
    for (uint32_t size = 2; size <= g->size_max; size++)
        strbuf_printf(&text, "%s%u:%u", size > 2 ? " " : "", size, g->at_once[size]);
    int rc = text.failed ? -ENOMEM : facts_set_text(&m->notes, "at_once", text.data);
    strbuf_fini(&text);
    return rc;
}

/* Groups are numbered by their lowest SM. */
static int note_map(const struct groups *g, struct measure *m)
{
    struct strbuf sizes = {0}, map = {0};
    uint32_t single = 0;
    for (size_t i = 0; i < g->sms; i++) {
        uint32_t number = 0;
        for (size_t k = 0; k < g->group[i]; k++)
            number += g->group[k] == k;
        strbuf_printf(&map, "%s%u", i ? " " : "", number);
        if (g->group[i] == i)
            strbuf_printf(&sizes, "%s%u", i ? " " : "", size_of(g, i));
        single += g->largest[i] <= 2;
    }
    int rc = sizes.failed || map.failed || facts_set_text(&m->notes, "sizes", sizes.data) ||
                     facts_set_text(&m->notes, "map", map.data) ||
                     facts_set_int(&m->notes, "single_sms", single)
                 ? -ENOMEM
                 : 0;
    strbuf_fini(&sizes);
    strbuf_fini(&map);
    return rc;
}

static int settle(const struct groups *g, struct measure *m)
{
    char reason[128];
    uint16_t *sm_groups = mem_array(g->sms, sizeof *sm_groups);
    if (!sm_groups)
        return -ENOMEM;
    uint32_t apart = count_apart(g, sm_groups), wrong = find_contradiction(g);
    free(sm_groups);
    if (apart != UNKNOWN && facts_set_text(&m->notes, "within_sm_groups", apart ? "no" : "yes"))
        return -ENOMEM;
    bool unclear = may_be_one(g);
    m->confidence = wrong || unclear ? 0.5 : 1;
    if (unclear)
        return measure_set_status(m, MEASURE_NOISY, "some groups may be one: clusters are small");
    if (wrong) {
        snprintf(reason, sizeof reason,
                 "the GPU holds %u clusters of %u blocks, which does not follow from the groups",
                 g->at_once[wrong], wrong);
        return measure_set_status(m, MEASURE_NOISY, reason);
    }
    if (!apart || apart == UNKNOWN)
        return 0;
    snprintf(reason, sizeof reason, "%u SMs share no constant L1.5 with SMs of their clusters",
             apart);
    return measure_set_status(m, MEASURE_NOISY, reason);
}

static int report(const struct groups *g, struct err *err)
{
    uint32_t count = 0;
    for (size_t i = 0; i < g->sms; i++)
        count += g->group[i] == i;
    struct measure *m = measures_add(g->context->measures, "cluster.size_max", g->size_max, "",
                                     "launched, one block per SM");
    if (!m || note_sizes(g, m))
        return err_no_memory(err);
    m->confidence = 1;
    m = measures_add(g->context->measures, "cluster.count", g->at_once[g->size_max], "",
                     "clusters of the largest size that run at once");
    if (!m)
        return err_no_memory(err);
    m->confidence = 1;
    m = measures_add(g->context->measures, "cluster.groups", count, "",
                     "SMs that were in a cluster together, of all sizes");
    return m && !note_map(g, m) && !settle(g, m) ? 0 : err_no_memory(err);
}

static int run(struct probe_context *context, struct err *err)
{
    struct groups g = {.context = context, .sms = device_limits(context->device)->sm_count};
    struct err own = {0};
    g.group = mem_array(g.sms + 1, sizeof *g.group);
    g.largest = mem_array(g.sms + 1, sizeof *g.largest);
    int rc = g.group && g.largest ? 0 : err_no_memory(err);
    for (size_t i = 0; i < g.sms && !rc; i++)
        g.group[i] = (uint16_t)i;
    if (!rc) {
        rc = ask_all(&g, &own);
        rc = rc ? repeats_end(context, "cluster.size_max", rc == -ENOSYS ? -ENOTSUP : rc, &own, err)
                : report(&g, err);
    }
    free(g.group);
    free(g.largest);
    return rc;
}

const struct probe probe_cluster_groups = {
    .description = {"cluster.groups", "how large clusters can be and which SMs form them",
                    PROFILE_FULL},
    .depends = {"sm.groups"},
    .metrics = {"cluster.size_max", "cluster.count", "cluster.groups"},
    .run = run,
};
