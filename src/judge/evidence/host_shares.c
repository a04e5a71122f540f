/* What is left of a GPU's host link while all GPUs of its node copy, compared with the same place
 * of other nodes. GPUs that share a switch get less, on every node that is built like this: only a
 * node that differs from the others is reported, and it is watched. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "judge/evidence/link_matrix.h"
#include "judge/robust.h"

/* Nodes that are compared; a share below BAD of the usual one is low; if more nodes than COMMON,
 * and at least LOW_MIN, have it, they may be wired in another way. */
enum { ALIKE_MIN = 5, LOW_MIN = 3 };
static const double BAD = 0.8, COMMON = 0.1;

enum { TO_GPU, FROM_GPU, WAYS };
static const char *const metrics[WAYS] = {"host.together.h2d", "host.together.d2h"};
static const char *const alone[WAYS] = {"host.bandwidth.h2d", "host.bandwidth.d2h"};

struct host_node {
    const uint32_t *gpus;
    size_t count;
};

/* The nodes that are compared, and the shares of the GPUs at one place of them. */
struct host_place {
    struct judge *judge;
    const struct host_node *nodes;
    size_t count, at;
    double *shares[WAYS]; /* of each node; NaN: not measured */
    double *numbers;      /* room for all nodes */
    double usual[WAYS];   /* NaN: too few */
};

/* Counts only if all GPUs of the node took part. */
static double host_share(const struct fleet *fleet, const struct host_node *node, size_t at,
                         int way)
{
    uint32_t gpu = node->gpus[at];
    if (!fleet_judged(&fleet->gpus[gpu]) ||
        fleet_value(fleet, "host.together.gpus", gpu, true) != (double)node->count)
        return NAN;
    return fleet_value(fleet, metrics[way], gpu, true) / fleet_value(fleet, alone[way], gpu, true);
}

static void host_read_place(struct host_place *place)
{
    for (int way = 0; way < WAYS; way++) {
        size_t n = 0;
        for (size_t i = 0; i < place->count; i++) {
            double share = host_share(&place->judge->fleet, &place->nodes[i], place->at, way);
            place->shares[way][i] = share;
            if (isfinite(share))
                place->numbers[n++] = share;
        }
        place->usual[way] = n < ALIKE_MIN ? NAN : robust_median(place->numbers, n);
    }
}

/* Low in both directions; the host's other work may disturb one. */
static bool host_is_low(const struct host_place *place, size_t i)
{
    return place->shares[TO_GPU][i] < BAD * place->usual[TO_GPU] &&
           place->shares[FROM_GPU][i] < BAD * place->usual[FROM_GPU];
}

static void host_report(const struct host_place *place, size_t i)
{
    struct judge *judge = place->judge;
    const struct host_node *node = &place->nodes[i];
    uint32_t gpu = node->gpus[place->at];
    double rate = fleet_value(&judge->fleet, metrics[TO_GPU], gpu, true);
    struct finding finding = finding_new(judge, gpu, metrics[TO_GPU], BASIS_RULE, EVIDENCE_HINT);
    finding.unit = judge_symbol(judge, "GB/s");
    finding_compare(&finding, rate, rate / place->shares[TO_GPU][i] * place->usual[TO_GPU]);
    findings_add(judge, finding,
                 str_format("while all %zu GPUs of the node copy, %.0f %% of its host link is "
                            "left, %.0f %% on other nodes: it shares the link with others, or a "
                            "switch above it is slow",
                            node->count, 100 * place->shares[TO_GPU][i],
                            100 * place->usual[TO_GPU]));
}

/* nodes: all that are built alike. */
static void host_judge_alike(struct judge *judge, const struct host_node *nodes, size_t count)
{
    struct host_place place = {
        .judge = judge,
        .nodes = nodes,
        .count = count,
        .shares = {mem_array(count, sizeof(double)), mem_array(count, sizeof(double))},
        .numbers = mem_array(count, sizeof(double))};
    for (; place.at < nodes->count; place.at++) {
        size_t low = 0;
        host_read_place(&place);
        for (size_t i = 0; i < count; i++)
            low += host_is_low(&place, i);
        bool common = low >= LOW_MIN && (double)low > COMMON * (double)count;
        for (size_t i = 0; i < count && !common; i++)
            if (host_is_low(&place, i))
                host_report(&place, i);
    }
    free(place.shares[TO_GPU]);
    free(place.shares[FROM_GPU]);
    free(place.numbers);
}

static int host_nodes_order(const void *left, const void *right, void *user)
{
    const struct host_node *a = left, *b = right;
    return link_models_order(user, a->gpus, a->count, b->gpus, b->count);
}

static size_t host_list_nodes(const struct fleet *fleet, struct host_node *nodes)
{
    size_t count = 0;
    for (size_t i = 0, end; i < fleet->count; i = end) {
        uint32_t name = fleet->gpus[fleet->order[i]].node;
        for (end = i + 1; end < fleet->count && fleet->gpus[fleet->order[end]].node == name;)
            end++;
        if (name && end - i > 1)
            nodes[count++] = (struct host_node){&fleet->order[i], end - i};
    }
    if (count)
        sort_stable_with(nodes, count, sizeof *nodes, host_nodes_order, (void *)fleet);
    return count;
}

void stage_host_shares(struct judge *judge)
{
    struct fleet *fleet = &judge->fleet;
    if (!fleet_metric(fleet, metrics[TO_GPU]) || !fleet_metric(fleet, metrics[FROM_GPU]))
        return;
    struct host_node *nodes = mem_array(fleet->count, sizeof *nodes);
    size_t count = host_list_nodes(fleet, nodes);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && host_nodes_order(&nodes[i], &nodes[end], fleet) == 0;)
            end++;
        if (end - i >= ALIKE_MIN)
            host_judge_alike(judge, &nodes[i], end - i);
    }
    free(nodes);
}
