/* Compares the figures of both GPUs of each pair with what is expected, and finds the GPUs that
 * most of the bad pairs have in common. */
#include "judge/link_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* If the same link is slow on more nodes than this share, these nodes may be wired in another way.
 */
static const double COMMON = 0.1, COMMON_NVLINK = 1.0 / 3;

static const struct link_cell *cell_of(const struct link_pairs *s, size_t i, size_t j)
{
    return &s->node->cells[i * s->node->count + j];
}

const struct link_pair *link_pairs_at(const struct link_pairs *s, size_t i, size_t j)
{
    return &s->pairs[i * s->node->count + j];
}

bool link_pairs_measured(const struct link_pairs *s, size_t i, size_t j)
{
    return i != j && (cell_of(s, i, j)->state || cell_of(s, j, i)->state);
}

double link_pairs_nvlinks(const struct link_pairs *s, size_t i)
{
    return fleet_fact_number(s->fleet, fleet_facts(s->fleet, SET_HEALTH, "nvlinks_active"),
                             s->node->gpus[i]);
}

/* One thing that both GPUs of a pair measured: a way, or the latency. */
struct look {
    size_t seen, bad;
    bool usual;             /* on so many nodes that it may be their wiring */
    double best;            /* merit */
    double value, expected; /* of the best */
};

static void look_at(struct look *look, const struct link_cell *cell, enum link_figure figure,
                    double common)
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

static double common_share(const struct link_pairs *s, size_t i, size_t j)
{
    return link_pairs_nvlinks(s, i) > 0 && link_pairs_nvlinks(s, j) > 0 ? COMMON_NVLINK : COMMON;
}

/* The way from i to j: written by i, read by j. Slow if both agree, or if there is only one. */
static void look_at_way(const struct link_pairs *s, size_t i, size_t j, struct link_pair *pair)
{
    struct look look = {0};
    double common = common_share(s, i, j);
    look_at(&look, cell_of(s, i, j), LINK_WRITE, common);
    look_at(&look, cell_of(s, j, i), LINK_READ, common);
    if (!look.seen || look.bad < look.seen)
        return;
    if (pair->fault == LINK_SLOW && pair->value / pair->expected <= look.best)
        return;
    *pair = (struct link_pair){LINK_SLOW, !look.usual && look.seen == 2, look.value, look.expected};
}

/* Late if both GPUs agree, or if there is only one. In cycles and in ns: one of them alone is
 * higher if the clock of the GPU is another one. */
static void look_at_latency(const struct link_pairs *s, size_t i, size_t j, struct link_pair *pair)
{
    struct look cycles = {0}, ns = {0};
    double common = common_share(s, i, j);
    for (int k = 0; k < 2; k++) {
        const struct link_cell *cell = k ? cell_of(s, j, i) : cell_of(s, i, j);
        look_at(&cycles, cell, LINK_CYCLES, common);
        look_at(&ns, cell, LINK_NS, common);
    }
    if (!ns.seen || ns.bad < ns.seen || !cycles.seen || cycles.bad < cycles.seen)
        return;
    bool sure = ns.seen == 2 && cycles.seen == 2 && !ns.usual && !cycles.usual;
    *pair = (struct link_pair){LINK_LATE, sure, cycles.value, cycles.expected};
}

static void look_at_pair(const struct link_pairs *s, size_t i, size_t j, struct link_pair *pair)
{
    enum link_state a = cell_of(s, i, j)->state, b = cell_of(s, j, i)->state;
    *pair = (struct link_pair){.value = NAN, .expected = NAN};
    if (a == LINK_WRONG || b == LINK_WRONG)
        *pair = (struct link_pair){LINK_CORRUPT, true, NAN, NAN};
    else if (a == LINK_FAILED || b == LINK_FAILED)
        *pair = (struct link_pair){LINK_DEAD, a == LINK_FAILED && b == LINK_FAILED, NAN, NAN};
    if (pair->fault)
        return;
    look_at_latency(s, i, j, pair);
    look_at_way(s, i, j, pair);
    look_at_way(s, j, i, pair);
}

static bool has_latency(const struct link_pairs *s, size_t i, size_t j)
{
    return isfinite(cell_of(s, i, j)->figures[LINK_NS]) ||
           isfinite(cell_of(s, j, i)->figures[LINK_NS]);
}

/* Bad and all pairs of a GPU with those that are not culprits. If no pair is worse than late, only
 * those count that have a latency: copies through the host have none. */
static void count_pairs(const struct link_pairs *s, size_t i, size_t *out_bad, size_t *out_all)
{
    bool only_late = true;
    *out_bad = *out_all = 0;
    for (size_t j = 0; j < s->node->count; j++)
        only_late = only_late && (s->culprits[j] || link_pairs_at(s, i, j)->fault <= LINK_LATE);
    for (size_t j = 0; j < s->node->count; j++) {
        if (s->culprits[j] || !link_pairs_measured(s, i, j) || (only_late && !has_latency(s, i, j)))
            continue;
        ++*out_all;
        *out_bad += link_pairs_at(s, i, j)->fault != LINK_FINE;
    }
}

/* If all pairs of the node are bad, all of its GPUs are culprits. Otherwise the GPU with the most
 * bad pairs is one, if these are at least two and two thirds of its pairs; then the next one. */
static void find_culprits(struct link_pairs *s)
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

static void count_entries(struct link_pairs *s)
{
    for (size_t i = 0; i < s->node->count; i++) {
        s->entries += s->culprits[i];
        for (size_t j = i + 1; j < s->node->count; j++)
            s->entries += !s->culprits[i] && !s->culprits[j] && link_pairs_at(s, i, j)->fault;
    }
}

int link_pairs_find(const struct fleet *fleet, const struct link_node *node,
                    struct link_pairs *out_pairs)
{
    size_t count = node->count;
    struct link_pairs s = {.fleet = fleet,
                           .node = node,
                           .pairs = mem_array(count * count, sizeof *s.pairs),
                           .culprits = mem_array(count, sizeof *s.culprits)};
    if (!s.pairs || !s.culprits) {
        link_pairs_fini(&s);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count * count; i++)
        look_at_pair(&s, i / count, i % count, &s.pairs[i]);
    find_culprits(&s);
    count_entries(&s);
    *out_pairs = s;
    return 0;
}

void link_pairs_fini(struct link_pairs *pairs)
{
    free(pairs->pairs);
    free(pairs->culprits);
    *pairs = (struct link_pairs){0};
}
