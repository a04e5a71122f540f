/* Puts the rows of the GPUs together to one matrix per node, and finds what each link should reach:
 * what the same link reaches on nodes that are wired alike or, with few of them, what most links of
 * these nodes reach. */
#include "judge/evidence/link_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "inventory/link_row.h"
#include "judge/robust.h"

/* A figure is bad below this merit. */
static const double BAD_MERITS[LINK_FIGURES] = {
    [LINK_READ] = 0.9, [LINK_WRITE] = 0.9, [LINK_CYCLES] = 0.8, [LINK_NS] = 0.8};

enum { ALIKE_MIN = 5, SLOW_MIN = 3 };
static const double MOST_SHARE = 2.0 / 3;

double link_merit(enum link_figure figure, double value, double expected)
{
    return figure >= LINK_CYCLES ? expected / value : value / expected;
}

bool link_is_bad(enum link_figure figure, double value, double expected)
{
    return link_merit(figure, value, expected) < BAD_MERITS[figure];
}

void link_row_list(const struct fleet *fleet, uint32_t gpu, struct facts *out_row)
{
    const struct metric_column *column = fleet_metric(fleet, LINK_ROW_METRIC);
    for (size_t i = 0; i < LINK_ROW_KEYS; i++) {
        const struct note_column *notes = fleet_notes(fleet, column, link_row_keys[i]);
        if (notes)
            fleet_put_note(fleet, notes, &notes->notes[gpu], out_row);
    }
}

static enum link_state link_state_of(const char *word)
{
    static const struct {
        const char *word;
        enum link_state state;
    } words[] = {
        {"ok", LINK_OK}, {"host", LINK_HOST}, {"failed", LINK_FAILED}, {"wrong", LINK_WRONG}};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(words[i].word, word) == 0)
            return words[i].state;
    return LINK_UNKNOWN;
}

static size_t link_find_peer(const struct fleet *fleet, const struct link_node *node,
                             const char *uuid)
{
    for (size_t i = 0; i < node->count; i++)
        if (str_equal(fleet_text(fleet, fleet->gpus[node->gpus[i]].uuid), uuid))
            return i;
    return node->count;
}

/* Reads the row of the node's GPU i. */
static void link_read_row(const struct fleet *fleet, struct link_node *node, size_t i)
{
    static const char *const keys[LINK_FIGURES] = {[LINK_READ] = "read",
                                                   [LINK_WRITE] = "write",
                                                   [LINK_CYCLES] = "latency",
                                                   [LINK_NS] = "latency_ns"};
    struct facts row = {0};
    size_t gpu_count = 0, state_count = 0;
    link_row_list(fleet, node->gpus[i], &row);
    char *const *gpus = facts_texts(&row, "gpus", &gpu_count);
    char *const *states = facts_texts(&row, "state", &state_count);
    for (size_t k = 0; k < gpu_count && k < state_count; k++) {
        size_t peer = link_find_peer(fleet, node, gpus[k]);
        if (peer == node->count || peer == i)
            continue;
        struct link_cell *cell = &node->cells[i * node->count + peer];
        cell->state = link_state_of(states[k]);
        for (size_t f = 0; f < LINK_FIGURES; f++)
            cell->figures[f] = link_row_number(&row, keys[f], k);
    }
    facts_fini(&row);
}

/* GPUs that were not measured, or beside others, have no row, and are nobody's peer. */
static void link_read_node(const struct fleet *fleet, struct link_node *node)
{
    const struct note_column *rows =
        fleet_notes(fleet, fleet_metric(fleet, LINK_ROW_METRIC), "gpus");
    bool any = false;
    for (size_t i = 0; rows && i < node->count && !any; i++)
        any = fleet_judged(&fleet->gpus[node->gpus[i]]) &&
              rows->notes[node->gpus[i]].kind == FACT_TEXTS;
    if (!any || node->count < 2)
        return;
    node->cells = mem_array(node->count * node->count, sizeof *node->cells);
    for (size_t i = 0; i < node->count * node->count * LINK_FIGURES; i++) {
        struct link_cell *cell = &node->cells[i / LINK_FIGURES];
        cell->figures[i % LINK_FIGURES] = cell->expected[i % LINK_FIGURES] = NAN;
    }
    for (size_t i = 0; i < node->count; i++)
        if (fleet_judged(&fleet->gpus[node->gpus[i]]))
            link_read_row(fleet, node, i);
}

int link_models_order(const struct fleet *fleet, const uint32_t *a, size_t a_count,
                      const uint32_t *b, size_t b_count)
{
    if (a_count != b_count)
        return a_count < b_count ? -1 : 1;
    for (size_t i = 0; i < a_count; i++) {
        uint32_t x = fleet->gpus[a[i]].group, y = fleet->gpus[b[i]].group;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int link_nodes_order(const void *left, const void *right, void *user)
{
    const struct link_node *a = left, *b = right;
    if (!a->cells != !b->cells)
        return a->cells ? -1 : 1;
    return link_models_order(user, a->gpus, a->count, b->gpus, b->count);
}

static int link_place_order(const void *left, const void *right)
{
    const struct link_node *a = left, *b = right;
    return (a->gpus > b->gpus) - (a->gpus < b->gpus);
}

/* What one link reaches on each of the nodes; numbers: room for one each. */
static void link_expect_alike(struct link_node *nodes, size_t count, size_t cell,
                              enum link_figure figure, double *numbers)
{
    size_t n = 0, slow = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(nodes[i].cells[cell].figures[figure]))
            numbers[n++] = nodes[i].cells[cell].figures[figure];
    if (n < ALIKE_MIN)
        return;
    double median = robust_median(numbers, n);
    for (size_t i = 0; i < n; i++)
        slow += link_is_bad(figure, numbers[i], median);
    for (size_t i = 0; i < count; i++) {
        nodes[i].cells[cell].expected[figure] = median;
        nodes[i].cells[cell].slow_share[figure] = slow >= SLOW_MIN ? (double)slow / (double)n : 0;
    }
}

/* With few nodes: what most of their links reach in the figures first to last, if two thirds of
 * them agree. numbers: room for all of them. */
static void link_expect_most(struct link_node *nodes, size_t count, enum link_figure first,
                             enum link_figure last, double *numbers)
{
    size_t n = 0, agree = 0, cells = nodes->count * nodes->count;
    for (size_t i = 0; i < count * cells; i++)
        for (size_t f = first; f <= last; f++)
            if (isfinite(nodes[i / cells].cells[i % cells].figures[f]))
                numbers[n++] = nodes[i / cells].cells[i % cells].figures[f];
    double median = robust_median(numbers, n);
    for (size_t i = 0; i < n; i++)
        agree += fabs(numbers[i] - median) <= (1 - BAD_MERITS[first]) * median;
    if (n < 4 || (double)agree < MOST_SHARE * (double)n)
        return;
    for (size_t i = 0; i < count * cells; i++)
        for (size_t f = first; f <= last; f++)
            nodes[i / cells].cells[i % cells].expected[f] = median;
}

/* nodes: all that are wired alike. */
static void link_expect(struct link_node *nodes, size_t count)
{
    size_t cells = nodes->count * nodes->count;
    bool few = count < ALIKE_MIN;
    double *numbers = mem_array(few ? 2 * count * cells : count, sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        nodes[i].nodes = count;
    if (few) {
        link_expect_most(nodes, count, LINK_READ, LINK_WRITE, numbers);
        link_expect_most(nodes, count, LINK_CYCLES, LINK_CYCLES, numbers);
        link_expect_most(nodes, count, LINK_NS, LINK_NS, numbers);
    }
    for (size_t i = 0; i < cells * LINK_FIGURES && !few; i++)
        link_expect_alike(nodes, count, i / LINK_FIGURES, (enum link_figure)(i % LINK_FIGURES),
                          numbers);
    free(numbers);
}

void link_nodes_build(const struct fleet *fleet, struct link_nodes *out_nodes)
{
    struct link_nodes nodes = {.items = mem_array(fleet->count, sizeof *nodes.items)};
    for (size_t i = 0, end; i < fleet->count; i = end) {
        uint32_t name = fleet->gpus[fleet->order[i]].node;
        for (end = i + 1; end < fleet->count && fleet->gpus[fleet->order[end]].node == name;)
            end++;
        struct link_node *node = &nodes.items[nodes.count++];
        *node = (struct link_node){.gpus = &fleet->order[i], .count = end - i};
        if (name)
            link_read_node(fleet, node);
    }
    if (nodes.count)
        sort_stable_with(nodes.items, nodes.count, sizeof *nodes.items, link_nodes_order,
                         (void *)fleet);
    for (size_t i = 0, end; i < nodes.count && nodes.items[i].cells; i = end) {
        for (end = i + 1; end < nodes.count &&
                          link_nodes_order(&nodes.items[i], &nodes.items[end], (void *)fleet) == 0;)
            end++;
        link_expect(&nodes.items[i], end - i);
    }
    if (nodes.count)
        sort_stable(nodes.items, nodes.count, sizeof *nodes.items, link_place_order);
    *out_nodes = nodes;
}

void link_nodes_fini(struct link_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        free(nodes->items[i].cells);
    free(nodes->items);
    *nodes = (struct link_nodes){0};
}
