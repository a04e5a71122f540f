/* What is left of a GPU's host link while all GPUs of its node copy, compared with the same place
 * of other nodes. GPUs that share a switch get less, on every node that is built like this: only a
 * node that differs from the others is reported, and it is watched. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/link_matrix.h"
#include "judge/robust.h"

/* Nodes that are compared; a share below BAD of the usual one is low; if more nodes than COMMON,
 * and at least LOW_MIN, have it, they may be wired in another way. */
enum { ALIKE_MIN = 5, LOW_MIN = 3 };
static const double BAD = 0.8, COMMON = 0.1;

enum { TO_GPU, FROM_GPU, WAYS };
static const char *const metrics[WAYS] = {"host.together.h2d", "host.together.d2h"};
static const char *const alone[WAYS] = {"host.bandwidth.h2d", "host.bandwidth.d2h"};

struct node {
    const uint32_t *gpus;
    size_t count;
};

/* The nodes that are compared, and the shares of the GPUs at one place of them. */
struct place {
    struct judge *judge;
    const struct node *nodes;
    size_t count, at;
    double *shares[WAYS]; /* of each node; NaN: not measured */
    double *numbers;      /* room for all nodes */
    double usual[WAYS];   /* NaN: too few */
};

static double value_of(const struct fleet *fleet, const char *metric, uint32_t gpu)
{
    const struct cell *cell = fleet_number(fleet_metric(fleet, metric), gpu, true);
    return cell ? cell->value : NAN;
}

/* Counts only if all GPUs of the node took part. */
static double share_of(const struct fleet *fleet, const struct node *node, size_t at, int way)
{
    uint32_t gpu = node->gpus[at];
    if (!fleet_judged(&fleet->gpus[gpu]) ||
        value_of(fleet, "host.together.gpus", gpu) != (double)node->count)
        return NAN;
    return value_of(fleet, metrics[way], gpu) / value_of(fleet, alone[way], gpu);
}

static void read_place(struct place *place)
{
    for (int way = 0; way < WAYS; way++) {
        size_t n = 0;
        for (size_t i = 0; i < place->count; i++) {
            double share = share_of(&place->judge->fleet, &place->nodes[i], place->at, way);
            place->shares[way][i] = share;
            if (isfinite(share))
                place->numbers[n++] = share;
        }
        place->usual[way] = n < ALIKE_MIN ? NAN : robust_median(place->numbers, n);
    }
}

/* Low in both directions; the host's other work may disturb one. */
static bool is_low(const struct place *place, size_t i)
{
    return place->shares[TO_GPU][i] < BAD * place->usual[TO_GPU] &&
           place->shares[FROM_GPU][i] < BAD * place->usual[FROM_GPU];
}

static int watch(const struct place *place, size_t i)
{
    const struct fleet *fleet = &place->judge->fleet;
    const struct node *node = &place->nodes[i];
    uint32_t gpu = node->gpus[place->at];
    double rate = value_of(fleet, metrics[TO_GPU], gpu);
    char *text =
        str_format("while all %zu GPUs of the node copy, %.0f %% of its host link is "
                   "left, %.0f %% on other nodes: it shares the link with others, or a "
                   "switch above it is slow",
                   node->count, 100 * place->shares[TO_GPU][i], 100 * place->usual[TO_GPU]);
    int rc =
        findings_add_rule(place->judge, gpu, metrics[TO_GPU], false, KIND_DEGRADED, rate, text);
    if (rc)
        return rc;
    struct finding *finding = &place->judge->findings.items[place->judge->findings.count - 1];
    finding->expected = rate / place->shares[TO_GPU][i] * place->usual[TO_GPU];
    finding->deviation = rate / finding->expected - 1;
    return symbols_text(&place->judge->fleet.symbols, "GB/s", &finding->unit);
}

static int judge_place(struct place *place)
{
    size_t low = 0;
    int rc = 0;
    read_place(place);
    for (size_t i = 0; i < place->count; i++)
        low += is_low(place, i);
    if (low >= LOW_MIN && (double)low > COMMON * (double)place->count)
        return 0;
    for (size_t i = 0; i < place->count && !rc; i++)
        rc = is_low(place, i) ? watch(place, i) : 0;
    return rc;
}

/* nodes: all that are built alike. */
static int judge_alike(struct judge *judge, const struct node *nodes, size_t count)
{
    struct place place = {
        .judge = judge,
        .nodes = nodes,
        .count = count,
        .shares = {mem_array(count, sizeof(double)), mem_array(count, sizeof(double))},
        .numbers = mem_array(count, sizeof(double))};
    int rc = place.shares[TO_GPU] && place.shares[FROM_GPU] && place.numbers ? 0 : -ENOMEM;
    for (; place.at < nodes->count && !rc; place.at++)
        rc = judge_place(&place);
    free(place.shares[TO_GPU]);
    free(place.shares[FROM_GPU]);
    free(place.numbers);
    return rc;
}

static int by_models(const void *left, const void *right, void *user)
{
    const struct node *a = left, *b = right;
    return link_models_order(user, a->gpus, a->count, b->gpus, b->count);
}

static size_t list_nodes(const struct fleet *fleet, struct node *nodes)
{
    size_t count = 0;
    for (size_t i = 0, end; i < fleet->count; i = end) {
        uint32_t name = fleet->gpus[fleet->order[i]].node;
        for (end = i + 1; end < fleet->count && fleet->gpus[fleet->order[end]].node == name;)
            end++;
        if (name && end - i > 1)
            nodes[count++] = (struct node){&fleet->order[i], end - i};
    }
    if (count)
        qsort_r(nodes, count, sizeof *nodes, by_models, (void *)fleet);
    return count;
}

int judge_host_shares(struct judge *judge)
{
    struct fleet *fleet = &judge->fleet;
    if (!fleet_metric(fleet, metrics[TO_GPU]) || !fleet_metric(fleet, metrics[FROM_GPU]))
        return 0;
    struct node *nodes = mem_array(fleet->count, sizeof *nodes);
    size_t count = nodes ? list_nodes(fleet, nodes) : 0;
    int rc = nodes ? 0 : -ENOMEM;
    for (size_t i = 0, end; i < count && !rc; i = end) {
        for (end = i + 1; end < count && by_models(&nodes[i], &nodes[end], fleet) == 0;)
            end++;
        rc = end - i < ALIKE_MIN ? 0 : judge_alike(judge, &nodes[i], end - i);
    }
    free(nodes);
    return rc;
}
