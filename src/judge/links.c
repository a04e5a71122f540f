/* Links between GPUs that are dead, slow or give wrong data, and which GPU is the cause. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/link_matrix.h"

/* A GPU that loses more than this, with active NVLinks, does not use them. */
static const double WITHOUT_NVLINK = 0.25; /* of what is expected */

/* One NVLink of any generation carries more than this, in GB/s. A GPU with a fabric behind its
 * links reaches each peer over all of them. */
static const double NVLINK_LEAST = 4;

/* If the same link is slow on more nodes than this share, these nodes may be wired in another way.
 */
static const double COMMON = 0.1, COMMON_NVLINK = 1.0 / 3;

enum fault { NONE, SLOW, DEAD, WRONG, FAULTS };

/* What is wrong between two GPUs. */
struct pair {
    enum fault fault;
    bool sure;             /* both GPUs saw it */
    double rate, expected; /* SLOW: the larger rate of the slower way */
};

struct suspects {
    struct judge *judge;
    const struct link_node *node;
    struct pair *pairs; /* count * count, symmetric */
    bool *culprits;     /* the links of these GPUs are bad, all or most of them */
    size_t entries;     /* GPUs and pairs that are to be reported */
    bool works;         /* some link of the survey does; otherwise the survey may be at fault */
};

static const struct link_cell *cell_of(const struct suspects *s, size_t i, size_t j)
{
    return &s->node->cells[i * s->node->count + j];
}

static struct pair *pair_of(const struct suspects *s, size_t i, size_t j)
{
    return &s->pairs[i * s->node->count + j];
}

static bool is_measured(const struct suspects *s, size_t i, size_t j)
{
    return i != j && (cell_of(s, i, j)->state || cell_of(s, j, i)->state);
}

static double health_number(const struct suspects *s, size_t i, const char *key)
{
    const struct fleet *fleet = &s->judge->fleet;
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_HEALTH, key), s->node->gpus[i]);
}

static bool has_nvlinks(const struct suspects *s, size_t i)
{
    return health_number(s, i, "nvlinks_active") > 0;
}

/* The way from i to j: written by i, read by j. Slow if both agree, or if there is only one. */
static void look_at_way(const struct suspects *s, size_t i, size_t j, struct pair *pair)
{
    const struct link_cell *writer = cell_of(s, i, j), *reader = cell_of(s, j, i);
    const double rates[] = {writer->rates[LINK_WRITE], reader->rates[LINK_READ]};
    const double expected[] = {writer->expected[LINK_WRITE], reader->expected[LINK_READ]};
    const double shares[] = {writer->slow_share[LINK_WRITE], reader->slow_share[LINK_READ]};
    double common = has_nvlinks(s, i) && has_nvlinks(s, j) ? COMMON_NVLINK : COMMON;
    size_t seen = 0, slow = 0, worst = 0;
    bool sure = true;
    for (size_t k = 0; k < 2; k++) {
        if (isnan(rates[k]) || isnan(expected[k]))
            continue;
        seen++;
        slow += rates[k] < link_slow * expected[k];
        sure = sure && shares[k] <= common;
        if (seen == 1 || rates[k] / expected[k] > rates[worst] / expected[worst])
            worst = k;
    }
    if (!seen || slow < seen)
        return;
    if (pair->fault == SLOW && pair->rate / pair->expected <= rates[worst] / expected[worst])
        return;
    *pair = (struct pair){SLOW, sure && seen == 2, rates[worst], expected[worst]};
}

static void look_at_pair(const struct suspects *s, size_t i, size_t j, struct pair *pair)
{
    enum link_state a = cell_of(s, i, j)->state, b = cell_of(s, j, i)->state;
    *pair = (struct pair){.rate = NAN, .expected = NAN};
    if (a == LINK_WRONG || b == LINK_WRONG)
        *pair = (struct pair){WRONG, true, NAN, NAN};
    else if (a == LINK_FAILED || b == LINK_FAILED)
        *pair = (struct pair){DEAD, a == LINK_FAILED && b == LINK_FAILED, NAN, NAN};
    if (pair->fault)
        return;
    look_at_way(s, i, j, pair);
    look_at_way(s, j, i, pair);
}

/* Bad and all pairs of a GPU with those that are not culprits. */
static void count_pairs(const struct suspects *s, size_t i, size_t *out_bad, size_t *out_all)
{
    *out_bad = *out_all = 0;
    for (size_t j = 0; j < s->node->count; j++) {
        if (s->culprits[j] || !is_measured(s, i, j))
            continue;
        ++*out_all;
        *out_bad += pair_of(s, i, j)->fault != NONE;
    }
}

/* If all pairs of the node are bad, all of its GPUs are culprits. Otherwise the GPU with the most
 * bad pairs is one, if these are at least two and two thirds of its pairs; then the next one. */
static void find_culprits(struct suspects *s)
{
    size_t count = s->node->count, bad, all, sum_bad = 0, sum_all = 0;
    for (size_t i = 0; i < count; i++) {
        count_pairs(s, i, &bad, &all);
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
            count_pairs(s, i, &bad, &all);
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

static void put_gpu(struct strbuf *text, const struct suspects *s, size_t i)
{
    const struct fleet_gpu *gpu = &s->judge->fleet.gpus[s->node->gpus[i]];
    if (gpu->index >= 0)
        strbuf_printf(text, "GPU %d", gpu->index);
    else
        strbuf_puts(text, fleet_text(&s->judge->fleet, gpu->uuid));
}

static void put_nvlinks(struct strbuf *text, const struct suspects *s, size_t i)
{
    if (has_nvlinks(s, i))
        strbuf_printf(text, ", although %.0f NVLinks are active",
                      health_number(s, i, "nvlinks_active"));
}

/* What is found by comparing with other pairs accuses where NVLinks make the wiring known. Without
 * them, healthy nodes may be wired in different ways: only one GPU or pair of a node is accused,
 * and only if the same link of other nodes is compared. */
static bool may_accuse(const struct suspects *s, size_t i)
{
    enum { ALIKE_MIN = 5 };
    return has_nvlinks(s, i) || (s->entries == 1 && s->node->nodes >= ALIKE_MIN);
}

/* Takes the text. */
static int add(struct suspects *s, size_t i, const char *metric, bool accused,
               enum inventory_kind kind, const struct pair *pair, struct strbuf *text)
{
    if (text->failed)
        strbuf_fini(text);
    const struct cell *own =
        fleet_number(fleet_metric(&s->judge->fleet, metric), s->node->gpus[i], true);
    double value = isnan(pair->rate) && own ? own->value : pair->rate;
    int rc =
        findings_add_rule(s->judge, s->node->gpus[i], metric, accused, kind, value, text->data);
    if (rc || isnan(pair->expected))
        return rc;
    struct finding *finding = &s->judge->findings.items[s->judge->findings.count - 1];
    finding->expected = pair->expected;
    finding->deviation = pair->rate / pair->expected - 1;
    return symbols_text(&s->judge->fleet.symbols, "GB/s", &finding->unit);
}

/* The bad pairs of one kind of a culprit, or those of another GPU with GPUs that are no culprits:
 * how many, how many are sure, and the one with the highest rate. */
struct summary {
    size_t bad, all;
    size_t sure; /* of the bad ones */
    struct pair best;
};

static bool is_sure(const struct summary *sum)
{
    return 2 * sum->sure >= sum->bad;
}

static struct summary summarise(const struct suspects *s, size_t i, enum fault fault)
{
    struct summary sum = {.best = {.rate = NAN, .expected = NAN}};
    for (size_t j = 0; j < s->node->count; j++) {
        const struct pair *pair = pair_of(s, i, j);
        if (!is_measured(s, i, j) || (s->culprits[j] && !s->culprits[i]))
            continue;
        sum.all++;
        if (pair->fault != fault)
            continue;
        sum.bad++;
        sum.sure += pair->sure;
        if (isnan(sum.best.rate) || pair->rate > sum.best.rate)
            sum.best = *pair;
    }
    return sum;
}

/* The highest rate of the node's culprits, rounded up: the same text for all of them. */
static double node_limit(const struct suspects *s)
{
    double limit = 0;
    for (size_t i = 0; i < s->node->count; i++)
        if (s->culprits[i])
            limit = fmax(limit, summarise(s, i, SLOW).best.rate);
    double step = pow(10, floor(log10(fmax(limit, 1))) - 1);
    return step * ceil(limit / step);
}

static int report_slow_gpu(struct suspects *s, size_t i, const struct summary *sum)
{
    struct strbuf text = {0};
    bool unused = sum->bad == sum->all && has_nvlinks(s, i) &&
                  sum->best.rate < WITHOUT_NVLINK * sum->best.expected;
    if (unused) {
        strbuf_printf(&text, "reaches nobody above %g GB/s", node_limit(s));
        put_nvlinks(&text, s, i);
    } else {
        strbuf_printf(&text, "slow links to %zu of %zu GPUs of the node", sum->bad, sum->all);
    }
    return add(s, i, "links.read", is_sure(sum) && may_accuse(s, i),
               unused ? KIND_FAILING : KIND_DEGRADED, &sum->best, &text);
}

static int report_culprit(struct suspects *s, size_t i)
{
    static const char *const words[] = {
        [DEAD] = "copies fail to", [WRONG] = "data is wrong from or to"};
    const struct summary slow = summarise(s, i, SLOW);
    int rc = slow.bad ? report_slow_gpu(s, i, &slow) : 0;
    for (int fault = WRONG; fault >= DEAD && !rc; fault--) {
        const struct summary sum = summarise(s, i, (enum fault)fault);
        struct strbuf text = {0};
        if (!sum.bad)
            continue;
        strbuf_printf(&text, "%s %zu of %zu GPUs of the node", words[fault], sum.bad, sum.all);
        put_nvlinks(&text, s, i);
        rc = add(s, i, "links.peers", s->works && is_sure(&sum), KIND_FAILING, &sum.best, &text);
    }
    return rc;
}

/* Pairs of a GPU with others, of which none is the cause by itself. */
static int report_pairs(struct suspects *s, size_t i, enum fault fault)
{
    static const char *const words[] = {[SLOW] = "slow link to ",
                                        [DEAD] = "no link: copies fail to ",
                                        [WRONG] = "data is wrong from or to "};
    const struct summary sum = summarise(s, i, fault);
    struct strbuf text = {0};
    if (!sum.bad)
        return 0;
    strbuf_puts(&text, words[fault]);
    for (size_t j = 0, listed = 0; j < s->node->count; j++) {
        if (!is_measured(s, i, j) || s->culprits[j] || pair_of(s, i, j)->fault != fault)
            continue;
        strbuf_puts(&text, listed++ ? ", " : "");
        put_gpu(&text, s, j);
    }
    if (fault != SLOW)
        put_nvlinks(&text, s, i);
    bool accused = s->works && is_sure(&sum) && (fault != SLOW || may_accuse(s, i));
    return add(s, i, fault == SLOW ? "links.least" : "links.peers", accused,
               fault == SLOW ? KIND_DEGRADED : KIND_FAILING, &sum.best, &text);
}

/* Without anything to compare with: a GPU that is registered with a fabric reaches each peer over
 * all of its links. Where the driver knows no fabric, its peers may be others than those seen. */
static int report_unused(struct suspects *s, size_t i)
{
    const struct fleet *fleet = &s->judge->fleet;
    const char *state =
        fleet_fact_text(fleet, fleet_facts(fleet, SET_HEALTH, "fabric_state"), s->node->gpus[i]);
    double active = health_number(s, i, "nvlinks_active"), best = NAN;
    for (size_t j = 0; j < s->node->count; j++)
        for (int way = 0; way < LINK_WAYS; way++)
            if (isfinite(cell_of(s, i, j)->rates[way]))
                best = fmax(isnan(best) ? 0 : best, cell_of(s, i, j)->rates[way]);
    if (!(best < NVLINK_LEAST * active))
        return 0;
    struct strbuf text = {0};
    const struct pair pair = {.rate = best, .expected = NAN};
    strbuf_printf(&text, "reaches nobody above %.3g GB/s", best);
    put_nvlinks(&text, s, i);
    return add(s, i, "links.read", state && strcmp(state, "completed") == 0, KIND_FAILING, &pair,
               &text);
}

static int report(struct suspects *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->node->count && !rc; i++) {
        size_t before = s->judge->findings.count;
        if (s->culprits[i])
            rc = report_culprit(s, i);
        for (int fault = WRONG; fault > NONE && !rc && !s->culprits[i]; fault--)
            rc = report_pairs(s, i, (enum fault)fault);
        if (!rc && s->judge->findings.count == before)
            rc = report_unused(s, i);
    }
    return rc;
}

static void count_entries(struct suspects *s)
{
    for (size_t i = 0; i < s->node->count; i++) {
        s->entries += s->culprits[i];
        for (size_t j = i + 1; j < s->node->count; j++)
            s->entries += !s->culprits[i] && !s->culprits[j] && pair_of(s, i, j)->fault != NONE;
    }
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
    size_t count = node->count;
    struct suspects s = {.judge = judge,
                         .node = node,
                         .works = works,
                         .pairs = mem_array(count * count, sizeof *s.pairs),
                         .culprits = mem_array(count, sizeof *s.culprits)};
    int rc = s.pairs && s.culprits ? 0 : -ENOMEM;
    for (size_t i = 0; i < count * count && !rc; i++)
        look_at_pair(&s, i / count, i % count, &s.pairs[i]);
    if (!rc) {
        find_culprits(&s);
        count_entries(&s);
        rc = report(&s);
    }
    free(s.pairs);
    free(s.culprits);
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
