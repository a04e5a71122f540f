/* Links between GPUs that are dead, slow, late or give wrong data. Compares the figures of both
 * GPUs of each pair with what is expected, and finds the GPUs that most of the bad pairs have in
 * common.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "judge/evidence/link_matrix.h"
#include "judge/evidence/stages.h"

/* From harmless to severe: a pair has its most severe fault. */
enum link_fault { LINK_FINE, LINK_LATE, LINK_SLOW, LINK_DEAD, LINK_CORRUPT };

struct link_pair {
    enum link_fault fault;
    bool sure;              /* both GPUs saw it */
    double value, expected; /* LINK_SLOW: the better figure of the slower way, in GB/s; LINK_LATE:
                               the lower latency of both, in cycles; otherwise NaN */
};

struct link_pairs {
    struct judge *judge;
    const struct link_node *node;
    struct link_pair *pairs; /* count * count, symmetric */
    bool *culprits;          /* the links of these GPUs are bad, all or most of them */
    size_t entries;          /* GPUs and pairs that are to be reported */
    bool works; /* some link of the survey does; otherwise the survey may be at fault */
};

/* If the same link is slow on more nodes than this share, these nodes may be wired in another way.
 */
static const double COMMON = 0.1, COMMON_NVLINK = 1.0 / 3;

static const struct link_cell *link_cell_at(const struct link_pairs *s, size_t i, size_t j)
{
    return &s->node->cells[i * s->node->count + j];
}

static const struct link_pair *link_pair_at(const struct link_pairs *s, size_t i, size_t j)
{
    return &s->pairs[i * s->node->count + j];
}

static bool link_is_measured(const struct link_pairs *s, size_t i, size_t j)
{
    return i != j && (link_cell_at(s, i, j)->state || link_cell_at(s, j, i)->state);
}

/* The number of active NVLinks of the node's GPU i; NaN: not known. */
static double link_nvlinks(const struct link_pairs *s, size_t i)
{
    const struct fleet *fleet = &s->judge->fleet;
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_HEALTH, "nvlinks_active"),
                             s->node->gpus[i]);
}

/* One thing that both GPUs of a pair measured: a way, or the latency. */
struct link_look {
    size_t seen, bad;
    bool usual;             /* on so many nodes that it may be their wiring */
    double best;            /* merit */
    double value, expected; /* of the best */
};

static void link_look_at(struct link_look *look, const struct link_cell *cell,
                         enum link_figure figure, double common)
{
    double value = cell->figures[figure], expected = cell->expected[figure];
    double merit = link_merit(figure, value, expected);
    if (isnan(merit))
        return;
    look->bad += link_is_bad(figure, value, expected);
    look->usual |= cell->slow_share[figure] > common;
    if (!look->seen++ || merit > look->best) {
        look->best = merit;
        look->value = value;
        look->expected = expected;
    }
}

static double link_common_share(const struct link_pairs *s, size_t i, size_t j)
{
    return link_nvlinks(s, i) > 0 && link_nvlinks(s, j) > 0 ? COMMON_NVLINK : COMMON;
}

/* The way from i to j: written by i, read by j. Slow if both agree, or if there is only one. */
static void link_look_at_way(const struct link_pairs *s, size_t i, size_t j, struct link_pair *pair)
{
    struct link_look look = {0};
    double common = link_common_share(s, i, j);
    link_look_at(&look, link_cell_at(s, i, j), LINK_WRITE, common);
    link_look_at(&look, link_cell_at(s, j, i), LINK_READ, common);
    if (!look.seen || look.bad < look.seen)
        return;
    if (pair->fault == LINK_SLOW && pair->value / pair->expected <= look.best)
        return;
    *pair = (struct link_pair){LINK_SLOW, !look.usual && look.seen == 2, look.value, look.expected};
}

/* Late if both GPUs agree, or if there is only one. In cycles and in ns: one of them alone is
 * higher if the clock of the GPU is another one. */
static void link_look_at_latency(const struct link_pairs *s, size_t i, size_t j,
                                 struct link_pair *pair)
{
    struct link_look cycles = {0}, ns = {0};
    double common = link_common_share(s, i, j);
    for (int k = 0; k < 2; k++) {
        const struct link_cell *cell = k ? link_cell_at(s, j, i) : link_cell_at(s, i, j);
        link_look_at(&cycles, cell, LINK_CYCLES, common);
        link_look_at(&ns, cell, LINK_NS, common);
    }
    if (!ns.seen || ns.bad < ns.seen || !cycles.seen || cycles.bad < cycles.seen)
        return;
    bool sure = ns.seen == 2 && cycles.seen == 2 && !ns.usual && !cycles.usual;
    *pair = (struct link_pair){LINK_LATE, sure, cycles.value, cycles.expected};
}

static void link_look_at_pair(const struct link_pairs *s, size_t i, size_t j,
                              struct link_pair *pair)
{
    enum link_state a = link_cell_at(s, i, j)->state, b = link_cell_at(s, j, i)->state;
    *pair = (struct link_pair){.value = NAN, .expected = NAN};
    if (a == LINK_WRONG || b == LINK_WRONG)
        *pair = (struct link_pair){LINK_CORRUPT, true, NAN, NAN};
    else if (a == LINK_FAILED || b == LINK_FAILED)
        *pair = (struct link_pair){LINK_DEAD, a == LINK_FAILED && b == LINK_FAILED, NAN, NAN};
    if (pair->fault)
        return;
    link_look_at_latency(s, i, j, pair);
    link_look_at_way(s, i, j, pair);
    link_look_at_way(s, j, i, pair);
}

/* Bad and all pairs of a GPU with those that are not culprits. If no pair is worse than late, only
 * those count that have a latency: copies through the host have none. */
static void links_count_bad(const struct link_pairs *s, size_t i, size_t *out_bad, size_t *out_all)
{
    bool only_late = true;
    *out_bad = *out_all = 0;
    for (size_t j = 0; j < s->node->count; j++)
        only_late = only_late && (s->culprits[j] || link_pair_at(s, i, j)->fault <= LINK_LATE);
    for (size_t j = 0; j < s->node->count; j++) {
        if (s->culprits[j] || !link_is_measured(s, i, j) ||
            (only_late && !(isfinite(link_cell_at(s, i, j)->figures[LINK_NS]) ||
                            isfinite(link_cell_at(s, j, i)->figures[LINK_NS]))))
            continue;
        ++*out_all;
        *out_bad += link_pair_at(s, i, j)->fault != LINK_FINE;
    }
}

/* If all pairs of the node are bad, all of its GPUs are culprits. Otherwise the GPU with the most
 * bad pairs is one, if these are at least two and two thirds of its pairs; then the next one. */
static void links_find_culprits(struct link_pairs *s)
{
    size_t count = s->node->count, bad, all, sum_bad = 0, sum_all = 0;
    for (size_t i = 0; i < count; i++) {
        links_count_bad(s, i, &bad, &all);
        sum_bad += bad;
        sum_all += all;
    }
    for (size_t i = 0; i < count && sum_all > 2 && sum_bad == sum_all; i++)
        s->culprits[i] = true;
    for (size_t found = 0; sum_bad < sum_all && found < count; found++) {
        size_t most = 0, worst = count;
        for (size_t i = 0; i < count; i++) {
            if (s->culprits[i])
                continue;
            links_count_bad(s, i, &bad, &all);
            if (bad >= 2 && 3 * bad >= 2 * all && bad > most) {
                most = bad;
                worst = i;
            }
        }
        if (worst == count)
            return;
        s->culprits[worst] = true;
    }
}

/* A GPU that loses more than this, with active NVLinks, does not use them. */
static const double WITHOUT_NVLINK = 0.25; /* of what is expected */

/* One NVLink of any generation carries more than this, in GB/s. A GPU with a fabric behind its
 * links reaches each peer over all of them. */
static const double NVLINK_LEAST = 4;

/* How a fault is reported: of a GPU, whose pairs are counted, and of single pairs. */
static const struct link_words {
    const char *gpu, *pair;
    const char *gpu_metric, *pair_metric, *unit;
    enum verdict verdict;
} link_words[] = {
    [LINK_LATE] = {"high latency of the links to", "high latency of the link to ", "links.latency",
                   "links.latency", "cycles", VERDICT_DEGRADED},
    [LINK_SLOW] = {"slow links to", "slow link to ", "links.read", "links.least", "GB/s",
                   VERDICT_DEGRADED},
    [LINK_DEAD] = {"copies fail to", "no link: copies fail to ", "links.peers", "links.peers", "",
                   VERDICT_FAILING},
    [LINK_CORRUPT] = {"data is wrong from or to", "data is wrong from or to ", "links.peers",
                      "links.peers", "", VERDICT_FAILING},
};

static bool has_nvlinks(const struct link_pairs *s, size_t i)
{
    return link_nvlinks(s, i) > 0;
}

static void link_put_nvlinks(struct strbuf *text, const struct link_pairs *s, size_t i)
{
    if (has_nvlinks(s, i))
        strbuf_printf(text, ", although %.0f NVLinks are active", link_nvlinks(s, i));
}

/* What is found by comparing with other pairs accuses where NVLinks make the wiring known. Without
 * them, healthy nodes may be wired in different ways: only one GPU or pair of a node is accused,
 * and only if the same link of other nodes is compared. */
static bool link_may_accuse(const struct link_pairs *s, size_t i, enum link_fault fault)
{
    enum { ALIKE_MIN = 5 };
    if (fault >= LINK_DEAD)
        return s->works;
    return has_nvlinks(s, i) || (s->entries == 1 && s->node->nodes >= ALIKE_MIN);
}

/* Takes over the text. */
static void links_add(struct link_pairs *s, size_t i, const char *metric, const char *unit,
                      bool fault, enum verdict verdict, const struct link_pair *pair, char *text)
{
    uint32_t gpu = s->node->gpus[i];
    struct finding finding =
        finding_new(s->judge, gpu, metric, BASIS_RULE, fault ? EVIDENCE_FAULT : EVIDENCE_HINT);
    finding.verdict = verdict;
    finding.value =
        isnan(pair->value) ? fleet_value(&s->judge->fleet, metric, gpu, true) : pair->value;
    if (!isnan(pair->expected)) {
        finding.expected = pair->expected;
        finding.deviation = pair->value / pair->expected - 1;
        finding.unit = judge_symbol(s->judge, unit);
    }
    findings_add(s->judge, finding, text);
}

/* The bad pairs of one kind of a culprit, or those of another GPU with GPUs that are no culprits:
 * how many, how many are sure, and the one with the highest figure. */
struct link_summary {
    size_t bad, all;
    size_t sure; /* of the bad ones */
    struct link_pair most;
};

static bool link_is_sure(const struct link_summary *sum)
{
    return 2 * sum->sure >= sum->bad;
}

static bool link_is_counted(const struct link_pairs *s, size_t i, size_t j)
{
    return link_is_measured(s, i, j) && (s->culprits[i] || !s->culprits[j]);
}

static struct link_summary links_summarise(const struct link_pairs *s, size_t i,
                                           enum link_fault fault)
{
    struct link_summary sum = {.most = {.value = NAN, .expected = NAN}};
    for (size_t j = 0; j < s->node->count; j++) {
        const struct link_pair *pair = link_pair_at(s, i, j);
        if (!link_is_counted(s, i, j))
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
static double links_limit(const struct link_pairs *s)
{
    double limit = 0;
    for (size_t i = 0; i < s->node->count; i++)
        if (s->culprits[i])
            limit = fmax(limit, links_summarise(s, i, LINK_SLOW).most.value);
    double step = portable_pow(10, floor(portable_log10(fmax(limit, 1))) - 1);
    return step * ceil(limit / step);
}

/* Whether a GPU has active NVLinks, but nothing of their rate. */
static bool link_uses_no_nvlink(const struct link_pairs *s, size_t i,
                                const struct link_summary *sum)
{
    return sum->bad == sum->all && has_nvlinks(s, i) &&
           sum->most.value < WITHOUT_NVLINK * sum->most.expected;
}

static void links_report_culprit(struct link_pairs *s, size_t i, enum link_fault fault)
{
    const struct link_summary sum = links_summarise(s, i, fault);
    const struct link_words *w = &link_words[fault];
    struct strbuf text = {0};
    if (!sum.bad)
        return;
    bool unused = fault == LINK_SLOW && link_uses_no_nvlink(s, i, &sum);
    if (unused)
        strbuf_printf(&text, "reaches nobody above %g GB/s", links_limit(s));
    else
        strbuf_printf(&text, "%s %zu of %zu GPUs of the node", w->gpu, sum.bad, sum.all);
    if (unused || fault >= LINK_DEAD)
        link_put_nvlinks(&text, s, i);
    links_add(s, i, w->gpu_metric, w->unit, link_is_sure(&sum) && link_may_accuse(s, i, fault),
              unused ? VERDICT_FAILING : w->verdict, &sum.most, text.data);
}

/* Pairs of a GPU with others, of which none is the cause by itself. */
static void links_report_pairs(struct link_pairs *s, size_t i, enum link_fault fault)
{
    const struct link_summary sum = links_summarise(s, i, fault);
    const struct link_words *w = &link_words[fault];
    struct strbuf text = {0};
    if (!sum.bad)
        return;
    strbuf_puts(&text, w->pair);
    for (size_t j = 0, listed = 0; j < s->node->count; j++) {
        if (!link_is_counted(s, i, j) || link_pair_at(s, i, j)->fault != fault)
            continue;
        strbuf_puts(&text, listed++ ? ", " : "");
        const struct fleet_gpu *gpu = &s->judge->fleet.gpus[s->node->gpus[j]];
        if (gpu->index >= 0)
            strbuf_printf(&text, "GPU %d", gpu->index);
        else
            strbuf_puts(&text, fleet_text(&s->judge->fleet, gpu->uuid));
    }
    if (fault >= LINK_DEAD)
        link_put_nvlinks(&text, s, i);
    bool accuses = s->works && link_is_sure(&sum) && link_may_accuse(s, i, fault);
    links_add(s, i, w->pair_metric, w->unit, accuses, w->verdict, &sum.most, text.data);
}

/* Without anything to compare with: a GPU that is registered with a fabric reaches each peer over
 * all of its links. Where the driver knows no fabric, its peers may be others than those seen. */
static void links_report_unused(struct link_pairs *s, size_t i)
{
    const struct fleet *fleet = &s->judge->fleet;
    const struct link_node *node = s->node;
    const char *state =
        fleet_fact_text(fleet, fleet_facts(fleet, SET_HEALTH, "fabric_state"), node->gpus[i]);
    double best = NAN;
    for (size_t j = 0; j < node->count; j++)
        for (int way = LINK_READ; way <= LINK_WRITE; way++)
            best = fmax(best, node->cells[i * node->count + j].figures[way]);
    if (!(best < NVLINK_LEAST * link_nvlinks(s, i)))
        return;
    struct strbuf text = {0};
    const struct link_pair pair = {.value = best, .expected = NAN};
    strbuf_printf(&text, "reaches nobody above %.3g GB/s", best);
    link_put_nvlinks(&text, s, i);
    links_add(s, i, "links.read", "GB/s", state && strcmp(state, "completed") == 0, VERDICT_FAILING,
              &pair, text.data);
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

static void links_judge_node(struct judge *judge, const struct link_node *node, bool works)
{
    size_t count = node->count;
    struct link_pairs s = {.judge = judge,
                           .node = node,
                           .works = works,
                           .pairs = mem_array(count * count, sizeof *s.pairs),
                           .culprits = mem_array(count, sizeof *s.culprits)};
    for (size_t i = 0; i < count * count; i++)
        link_look_at_pair(&s, i / count, i % count, &s.pairs[i]);
    links_find_culprits(&s);
    for (size_t i = 0; i < s.node->count; i++) {
        s.entries += s.culprits[i];
        for (size_t j = i + 1; j < s.node->count; j++)
            s.entries += !s.culprits[i] && !s.culprits[j] && link_pair_at(&s, i, j)->fault;
    }
    for (size_t i = 0; i < count; i++) {
        size_t before = judge->findings.count;
        for (int fault = LINK_CORRUPT; fault > LINK_FINE; fault--) {
            if (s.culprits[i])
                links_report_culprit(&s, i, (enum link_fault)fault);
            else
                links_report_pairs(&s, i, (enum link_fault)fault);
        }
        if (judge->findings.count == before)
            links_report_unused(&s, i);
    }
    free(s.pairs);
    free(s.culprits);
}

void stage_links(struct judge *judge)
{
    struct link_nodes nodes = {0};
    if (!fleet_metric(&judge->fleet, "links.peers"))
        return;
    link_nodes_build(&judge->fleet, &nodes);
    bool works = some_link_works(&nodes);
    for (size_t i = 0; i < nodes.count; i++)
        if (nodes.items[i].cells)
            links_judge_node(judge, &nodes.items[i], works);
    link_nodes_fini(&nodes);
}
