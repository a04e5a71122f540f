/* Puts the rows of the GPUs together to one matrix per node, and finds what each link should reach:
 * what the same link reaches on nodes that are wired alike or, with few of them, what most links of
 * these nodes reach. */
#include "judge/link_matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/link_row.h"
#include "judge/robust.h"

const double link_slow = 0.9;

enum { ALIKE_MIN = 5, SLOW_MIN = 3 };
static const double MOST_SHARE = 2.0 / 3;

const char *link_note(const struct fleet *fleet, uint32_t gpu, const char *key)
{
    const struct metric_column *column = fleet_metric(fleet, LINK_ROW_METRIC);
    for (size_t i = 0; column && i < column->note_count; i++)
        if (str_equal(fleet_text(fleet, column->notes[i].head.name), key))
            return column->notes[i].notes[gpu].kind == FACT_TEXT
                       ? fleet_text(fleet, column->notes[i].notes[gpu].text)
                       : NULL;
    return NULL;
}

int link_row_list(const struct fleet *fleet, uint32_t gpu, struct facts *out_row)
{
    for (size_t i = 0; i < LINK_ROW_KEYS; i++) {
        const char *text = link_note(fleet, gpu, link_row_keys[i]);
        if (text && facts_set_text(out_row, link_row_keys[i], text))
            return -ENOMEM;
    }
    return 0;
}

static enum link_state state_of(const char *word, size_t length)
{
    static const struct {
        const char *word;
        enum link_state state;
    } words[] = {
        {"ok", LINK_OK}, {"host", LINK_HOST}, {"failed", LINK_FAILED}, {"wrong", LINK_WRONG}};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0)
            return words[i].state;
    return LINK_UNKNOWN;
}

static size_t find_peer(const struct fleet *fleet, const struct link_node *node, const char *uuid,
                        size_t length)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *other = fleet_text(fleet, fleet->gpus[node->gpus[i]].uuid);
        if (other && strlen(other) == length && strncmp(other, uuid, length) == 0)
            return i;
    }
    return node->count;
}

/* Reads the row of the node's GPU i. */
static void read_row(const struct fleet *fleet, struct link_node *node, size_t i)
{
    const char *keys[] = {"gpus", "state", "read", "write"}, *words[COUNT_OF(keys)];
    size_t lengths[COUNT_OF(keys)];
    for (size_t k = 0; k < COUNT_OF(keys); k++)
        words[k] = link_note(fleet, node->gpus[i], keys[k]);
    if (!words[0] || !words[1] || !words[2] || !words[3])
        return;
    for (;;) {
        for (size_t k = 0; k < COUNT_OF(keys); k++)
            if (!link_row_word(&words[k], &lengths[k]))
                return;
        size_t peer = find_peer(fleet, node, words[0], lengths[0]);
        if (peer < node->count && peer != i) {
            struct link_cell *cell = &node->cells[i * node->count + peer];
            cell->state = state_of(words[1], lengths[1]);
            cell->rates[LINK_READ] = link_row_number(words[2], lengths[2]);
            cell->rates[LINK_WRITE] = link_row_number(words[3], lengths[3]);
        }
        for (size_t k = 0; k < COUNT_OF(keys); k++)
            words[k] += lengths[k];
    }
}

/* GPUs that were not measured, or beside others, have no row, and are nobody's peer. */
static int read_node(const struct fleet *fleet, struct link_node *node)
{
    bool any = false;
    for (size_t i = 0; i < node->count && !any; i++)
        any = fleet_judged(&fleet->gpus[node->gpus[i]]) && link_note(fleet, node->gpus[i], "gpus");
    if (!any || node->count < 2)
        return 0;
    node->cells = mem_array(node->count * node->count, sizeof *node->cells);
    if (!node->cells)
        return -ENOMEM;
    for (size_t i = 0; i < node->count * node->count; i++)
        node->cells[i] = (struct link_cell){.rates = {NAN, NAN}, .expected = {NAN, NAN}};
    for (size_t i = 0; i < node->count; i++)
        if (fleet_judged(&fleet->gpus[node->gpus[i]]))
            read_row(fleet, node, i);
    return 0;
}

/* Nodes are wired alike if they have the same models in the same order. */
static int by_models(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct link_node *a = left, *b = right;
    if (!a->cells != !b->cells)
        return a->cells ? -1 : 1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        uint32_t x = fleet->gpus[a->gpus[i]].group, y = fleet->gpus[b->gpus[i]].group;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int by_place(const void *left, const void *right)
{
    const struct link_node *a = left, *b = right;
    return (a->gpus > b->gpus) - (a->gpus < b->gpus);
}

/* What one link reaches on each of the nodes; numbers: room for one each. */
static void expect_alike(struct link_node *nodes, size_t count, size_t cell, int way,
                         double *numbers)
{
    size_t n = 0, slow = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(nodes[i].cells[cell].rates[way]))
            numbers[n++] = nodes[i].cells[cell].rates[way];
    if (n < ALIKE_MIN)
        return;
    double median = robust_median(numbers, n);
    for (size_t i = 0; i < n; i++)
        slow += numbers[i] < link_slow * median;
    for (size_t i = 0; i < count; i++) {
        nodes[i].cells[cell].expected[way] = median;
        nodes[i].cells[cell].slow_share[way] = slow >= SLOW_MIN ? (double)slow / (double)n : 0;
    }
}

/* With few nodes: what most of their links reach, if two thirds of them agree. numbers: room for
 * all of them. */
static void expect_most(struct link_node *nodes, size_t count, double *numbers)
{
    size_t n = 0, agree = 0, all = LINK_WAYS * nodes->count * nodes->count;
    for (size_t i = 0; i < count * all; i++) {
        double rate = nodes[i / all].cells[i % all / LINK_WAYS].rates[i % LINK_WAYS];
        if (isfinite(rate))
            numbers[n++] = rate;
    }
    double median = robust_median(numbers, n);
    for (size_t i = 0; i < n; i++)
        agree += fabs(numbers[i] - median) <= (1 - link_slow) * median;
    if (n < 4 || (double)agree < MOST_SHARE * (double)n)
        return;
    for (size_t i = 0; i < count * all; i++)
        nodes[i / all].cells[i % all / LINK_WAYS].expected[i % LINK_WAYS] = median;
}

/* nodes: all that are wired alike. */
static int expect(struct link_node *nodes, size_t count)
{
    size_t all = LINK_WAYS * nodes->count * nodes->count;
    bool few = count < ALIKE_MIN;
    double *numbers = mem_array(few ? count * all : count, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        nodes[i].nodes = count;
    if (few)
        expect_most(nodes, count, numbers);
    for (size_t i = 0; i < all && !few; i++)
        expect_alike(nodes, count, i / LINK_WAYS, (int)(i % LINK_WAYS), numbers);
    free(numbers);
    return 0;
}

int link_nodes_build(const struct fleet *fleet, struct link_nodes *out_nodes)
{
    struct link_nodes nodes = {.items = mem_array(fleet->count, sizeof *nodes.items)};
    int rc = nodes.items ? 0 : -ENOMEM;
    for (size_t i = 0, end; i < fleet->count && !rc; i = end) {
        uint32_t name = fleet->gpus[fleet->order[i]].node;
        for (end = i + 1; end < fleet->count && fleet->gpus[fleet->order[end]].node == name;)
            end++;
        struct link_node *node = &nodes.items[nodes.count++];
        *node = (struct link_node){.gpus = &fleet->order[i], .count = end - i};
        rc = name ? read_node(fleet, node) : 0;
    }
    if (!rc && nodes.count)
        qsort_r(nodes.items, nodes.count, sizeof *nodes.items, by_models, (void *)fleet);
    for (size_t i = 0, end; i < nodes.count && nodes.items[i].cells && !rc; i = end) {
        for (end = i + 1; end < nodes.count &&
                          by_models(&nodes.items[i], &nodes.items[end], (void *)fleet) == 0;)
            end++;
        rc = expect(&nodes.items[i], end - i);
    }
    if (rc) {
        link_nodes_fini(&nodes);
        return rc;
    }
    if (nodes.count)
        qsort(nodes.items, nodes.count, sizeof *nodes.items, by_place);
    *out_nodes = nodes;
    return 0;
}

void link_nodes_fini(struct link_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        free(nodes->items[i].cells);
    free(nodes->items);
    *nodes = (struct link_nodes){0};
}
