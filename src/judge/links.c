/* Reports links between GPUs that are dead, slow, late or give wrong data, and which GPU is the
 * cause. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/link_pairs.h"

/* A GPU that loses more than this, with active NVLinks, does not use them. */
static const double WITHOUT_NVLINK = 0.25; /* of what is expected */

/* One NVLink of any generation carries more than this, in GB/s. A GPU with a fabric behind its
 * links reaches each peer over all of them. */
static const double NVLINK_LEAST = 4;

/* How a fault is reported: of a GPU, whose pairs are counted, and of single pairs. */
static const struct words {
    const char *gpu, *pair;
    const char *gpu_metric, *pair_metric, *unit;
    enum inventory_kind kind;
} words[] = {
    [LINK_LATE] = {"high latency of the links to", "high latency of the link to ", "links.latency",
                   "links.latency", "cycles", KIND_DEGRADED},
    [LINK_SLOW] = {"slow links to", "slow link to ", "links.read", "links.least", "GB/s",
                   KIND_DEGRADED},
    [LINK_DEAD] = {"copies fail to", "no link: copies fail to ", "links.peers", "links.peers", "",
                   KIND_FAILING},
    [LINK_CORRUPT] = {"data is wrong from or to", "data is wrong from or to ", "links.peers",
                      "links.peers", "", KIND_FAILING},
};

struct report {
    struct judge *judge;
    struct link_pairs pairs;
    bool works; /* some link of the survey does; otherwise the survey may be at fault */
};

static void put_gpu(struct strbuf *text, const struct report *r, size_t i)
{
    const struct fleet_gpu *gpu = &r->judge->fleet.gpus[r->pairs.node->gpus[i]];
    if (gpu->index >= 0)
        strbuf_printf(text, "GPU %d", gpu->index);
    else
        strbuf_puts(text, fleet_text(&r->judge->fleet, gpu->uuid));
}

static bool has_nvlinks(const struct report *r, size_t i)
{
    return link_pairs_nvlinks(&r->pairs, i) > 0;
}

static void put_nvlinks(struct strbuf *text, const struct report *r, size_t i)
{
    if (has_nvlinks(r, i))
        strbuf_printf(text, ", although %.0f NVLinks are active", link_pairs_nvlinks(&r->pairs, i));
}

/* What is found by comparing with other pairs accuses where NVLinks make the wiring known. Without
 * them, healthy nodes may be wired in different ways: only one GPU or pair of a node is accused,
 * and only if the same link of other nodes is compared. */
static bool may_accuse(const struct report *r, size_t i, enum link_fault fault)
{
    enum { ALIKE_MIN = 5 };
    if (fault >= LINK_DEAD)
        return r->works;
    return has_nvlinks(r, i) || (r->pairs.entries == 1 && r->pairs.node->nodes >= ALIKE_MIN);
}

/* Takes the text. */
static int add(struct report *r, size_t i, const char *metric, const char *unit, bool accused,
               enum inventory_kind kind, const struct link_pair *pair, struct strbuf *text)
{
    uint32_t gpu = r->pairs.node->gpus[i];
    if (text->failed)
        strbuf_fini(text);
    const struct cell *own = fleet_number(fleet_metric(&r->judge->fleet, metric), gpu, true);
    double value = isnan(pair->value) && own ? own->value : pair->value;
    int rc = findings_add_rule(r->judge, gpu, metric, accused, kind, value, text->data);
    if (rc || isnan(pair->expected))
        return rc;
    struct finding *finding = &r->judge->findings.items[r->judge->findings.count - 1];
    finding->expected = pair->expected;
    finding->deviation = pair->value / pair->expected - 1;
    return symbols_text(&r->judge->fleet.symbols, unit, &finding->unit);
}

/* The bad pairs of one kind of a culprit, or those of another GPU with GPUs that are no culprits:
 * how many, how many are sure, and the one with the highest figure. */
struct summary {
    size_t bad, all;
    size_t sure; /* of the bad ones */
    struct link_pair most;
};

static bool is_sure(const struct summary *sum)
{
    return 2 * sum->sure >= sum->bad;
}

static bool is_counted(const struct report *r, size_t i, size_t j)
{
    return link_pairs_measured(&r->pairs, i, j) && (r->pairs.culprits[i] || !r->pairs.culprits[j]);
}

static struct summary summarise(const struct report *r, size_t i, enum link_fault fault)
{
    struct summary sum = {.most = {.value = NAN, .expected = NAN}};
    for (size_t j = 0; j < r->pairs.node->count; j++) {
        const struct link_pair *pair = link_pairs_at(&r->pairs, i, j);
        if (!is_counted(r, i, j))
            continue;
        sum.all++;
        if (pair->fault != fault)
            continue;
        sum.bad++;
        sum.sure += pair->sure;
        if (isnan(sum.most.value) || pair->value > sum.most.value)
            sum.most = *pair;
    }
    return sum;
}

/* The highest rate of the node's culprits, rounded up: the same text for all of them. */
static double node_limit(const struct report *r)
{
    double limit = 0;
    for (size_t i = 0; i < r->pairs.node->count; i++)
        if (r->pairs.culprits[i])
            limit = fmax(limit, summarise(r, i, LINK_SLOW).most.value);
    double step = pow(10, floor(log10(fmax(limit, 1))) - 1);
    return step * ceil(limit / step);
}

/* Whether a GPU has active NVLinks, but nothing of their rate. */
static bool uses_no_nvlink(const struct report *r, size_t i, const struct summary *sum)
{
    return sum->bad == sum->all && has_nvlinks(r, i) &&
           sum->most.value < WITHOUT_NVLINK * sum->most.expected;
}

static int report_culprit(struct report *r, size_t i, enum link_fault fault)
{
    const struct summary sum = summarise(r, i, fault);
    const struct words *w = &words[fault];
    struct strbuf text = {0};
    if (!sum.bad)
        return 0;
    bool unused = fault == LINK_SLOW && uses_no_nvlink(r, i, &sum);
    if (unused)
        strbuf_printf(&text, "reaches nobody above %g GB/s", node_limit(r));
    else
        strbuf_printf(&text, "%s %zu of %zu GPUs of the node", w->gpu, sum.bad, sum.all);
    if (unused || fault >= LINK_DEAD)
        put_nvlinks(&text, r, i);
    return add(r, i, w->gpu_metric, w->unit, is_sure(&sum) && may_accuse(r, i, fault),
               unused ? KIND_FAILING : w->kind, &sum.most, &text);
}

/* Pairs of a GPU with others, of which none is the cause by itself. */
static int report_pairs(struct report *r, size_t i, enum link_fault fault)
{
    const struct summary sum = summarise(r, i, fault);
    const struct words *w = &words[fault];
    struct strbuf text = {0};
    if (!sum.bad)
        return 0;
    strbuf_puts(&text, w->pair);
    for (size_t j = 0, listed = 0; j < r->pairs.node->count; j++) {
        if (!is_counted(r, i, j) || link_pairs_at(&r->pairs, i, j)->fault != fault)
            continue;
        strbuf_puts(&text, listed++ ? ", " : "");
        put_gpu(&text, r, j);
    }
    if (fault >= LINK_DEAD)
        put_nvlinks(&text, r, i);
    bool accused = r->works && is_sure(&sum) && may_accuse(r, i, fault);
    return add(r, i, w->pair_metric, w->unit, accused, w->kind, &sum.most, &text);
}

/* Without anything to compare with: a GPU that is registered with a fabric reaches each peer over
 * all of its links. Where the driver knows no fabric, its peers may be others than those seen. */
static int report_unused(struct report *r, size_t i)
{
    const struct fleet *fleet = &r->judge->fleet;
    const struct link_node *node = r->pairs.node;
    const char *state =
        fleet_fact_text(fleet, fleet_facts(fleet, SET_HEALTH, "fabric_state"), node->gpus[i]);
    double best = NAN;
    for (size_t j = 0; j < node->count; j++)
        for (int way = LINK_READ; way <= LINK_WRITE; way++)
            best = fmax(best, node->cells[i * node->count + j].figures[way]);
    if (!(best < NVLINK_LEAST * link_pairs_nvlinks(&r->pairs, i)))
        return 0;
    struct strbuf text = {0};
    const struct link_pair pair = {.value = best, .expected = NAN};
    strbuf_printf(&text, "reaches nobody above %.3g GB/s", best);
    put_nvlinks(&text, r, i);
    return add(r, i, "links.read", "GB/s", state && strcmp(state, "completed") == 0, KIND_FAILING,
               &pair, &text);
}

static int report_gpu(struct report *r, size_t i)
{
    size_t before = r->judge->findings.count;
    int rc = 0;
    for (int fault = LINK_CORRUPT; fault > LINK_FINE && !rc; fault--)
        rc = r->pairs.culprits[i] ? report_culprit(r, i, (enum link_fault)fault)
                                  : report_pairs(r, i, (enum link_fault)fault);
    return !rc && r->judge->findings.count == before ? report_unused(r, i) : rc;
}

static bool some_link_works(const struct link_nodes *nodes)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct link_node *node = &nodes->items[n];
        for (size_t i = 0; node->cells && i < node->count * node->count; i++)
            if (node->cells[i].state == LINK_OK || node->cells[i].state == LINK_HOST)
                return true;
    }
    return false;
}

static int judge_node(struct judge *judge, const struct link_node *node, bool works)
{
    struct report report = {.judge = judge, .works = works};
    int rc = link_pairs_find(&judge->fleet, node, &report.pairs);
    for (size_t i = 0; i < node->count && !rc; i++)
        rc = report_gpu(&report, i);
    link_pairs_fini(&report.pairs);
    return rc;
}

int judge_links(struct judge *judge)
{
    struct link_nodes nodes = {0};
    if (!fleet_metric(&judge->fleet, "links.peers"))
        return 0;
    int rc = link_nodes_build(&judge->fleet, &nodes);
    bool works = some_link_works(&nodes);
    for (size_t i = 0; i < nodes.count && !rc; i++)
        if (nodes.items[i].cells)
            rc = judge_node(judge, &nodes.items[i], works);
    link_nodes_fini(&nodes);
    return rc;
}
