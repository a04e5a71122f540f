/* Cards that moved, were swapped, appeared or went away. */
#include "report/history/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "inventory/fingerprint.h"

uint32_t history_next_visit(const struct history *history, uint32_t node, int64_t after)
{
    size_t low = 0, high = history->visit_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct history_visit *visit = &history->visits[middle];
        if (visit->node < node || (visit->node == node && (int64_t)visit->survey <= after))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = node && low < history->visit_count && history->visits[low].node == node;
    return found ? history->visits[low].survey : HISTORY_NEVER;
}

enum { SWAPPED_OUT = 1, SWAPPED_IN = 2 };

/* The search for events. */
struct event_search {
    struct history *history;
    const struct history_sighting **order; /* all sightings, sorted by slot or by serial */
    unsigned char *swapped; /* by sighting: SWAPPED_OUT, SWAPPED_IN or both; reported as a swap */
    size_t room;            /* of history->events */
};

const char *history_event_name(enum history_event_type type)
{
    static const char *const names[HISTORY_EVENT_TYPES] = {
        "moved", "swapped", "new", "gone", "other_serial", "other_uuid", "new_node", "other_die"};
    return names[type];
}

static void events_add(struct event_search *search, const struct history_event *event)
{
    struct history *history = search->history;
    history->events =
        mem_grow(history->events, &search->room, history->event_count + 1, sizeof *history->events);
    history->events[history->event_count++] = *event;
}

/* The change from one sighting to a later one. old NULL: there is none. */
static void events_add_change(struct event_search *search, enum history_event_type type,
                              const struct history_sighting *old,
                              const struct history_sighting *now)
{
    struct history_event event = {.type = type,
                                  .survey = now->survey,
                                  .uuid = now->uuid,
                                  .serial = now->serial,
                                  .node = now->node,
                                  .pci = now->pci};
    if (old) {
        event.old_uuid = old->uuid;
        event.old_serial = old->serial;
        event.old_node = old->node;
        event.old_pci = old->pci;
    }
    events_add(search, &event);
}

static int slot_order(const void *left, const void *right)
{
    const struct history_sighting *a = *(const struct history_sighting *const *)left;
    const struct history_sighting *b = *(const struct history_sighting *const *)right;
    const uint32_t keys[][2] = {
        {a->node, b->node}, {a->pci, b->pci}, {a->survey, b->survey}, {a->uuid, b->uuid}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static int serial_order(const void *left, const void *right)
{
    const struct history_sighting *a = *(const struct history_sighting *const *)left;
    const struct history_sighting *b = *(const struct history_sighting *const *)right;
    const uint32_t keys[][2] = {{a->serial, b->serial}, {a->survey, b->survey}, {a->uuid, b->uuid}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* Sorts the sightings of whole GPUs; returns their number. */
static size_t events_sort_sightings(struct event_search *search,
                                    int (*order)(const void *, const void *))
{
    size_t count = 0;
    for (size_t i = 0; i < search->history->sighting_count; i++)
        /* MIG instances share slot and serial with each other, and get another UUID when they are
         * made again. */
        if (strncmp(symbols_data(&search->history->symbols, search->history->sightings[i].uuid),
                    "MIG-", 4) != 0)
            search->order[count++] = &search->history->sightings[i];
    if (count)
        sort_stable(search->order, count, sizeof *search->order, order);
    return count;
}

static void events_find_swaps(struct event_search *search)
{
    size_t count = events_sort_sightings(search, slot_order);
    for (size_t i = 1; i < count; i++) {
        const struct history_sighting *old = search->order[i - 1], *now = search->order[i];
        if (!now->node || !now->pci || old->node != now->node || old->pci != now->pci ||
            old->survey == now->survey || old->uuid == now->uuid)
            continue;
        search->swapped[old - search->history->sightings] |= SWAPPED_OUT;
        search->swapped[now - search->history->sightings] |= SWAPPED_IN;
        events_add_change(search, HISTORY_SWAPPED, old, now);
    }
}

/* Boards with several GPUs have one serial number for all of them: nothing can be said then. */
static bool board_has_several_gpus(const struct history_sighting *const *board, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (board[i - 1]->survey == board[i]->survey)
            return true;
    return false;
}

static void events_find_boards(struct event_search *search)
{
    size_t count = events_sort_sightings(search, serial_order);
    for (size_t i = 0, end; i < count; i = end) {
        const struct history_sighting *const *board = search->order + i;
        for (end = i + 1; end < count && search->order[end]->serial == board[0]->serial;)
            end++;
        if (!board[0]->serial || board_has_several_gpus(board, end - i))
            continue;
        for (size_t k = 1; k < end - i; k++)
            if (board[k - 1]->uuid != board[k]->uuid)
                events_add_change(search, HISTORY_BOARD, board[k - 1], board[k]);
    }
}

/* Whether two fingerprints are of different dies; false if that is not certain. */
static bool is_other_die(const struct event_search *search, const struct history_sighting *old,
                         const struct history_sighting *now)
{
    const struct symbols *symbols = &search->history->symbols;
    struct fingerprint was, is;
    fingerprint_unpack(symbols_data(symbols, old->fingerprint), &was);
    fingerprint_unpack(symbols_data(symbols, now->fingerprint), &is);
    return fingerprint_compare(&was, &is).match == FINGERPRINT_OTHER;
}

static void events_follow_die(struct event_search *search, const struct history_gpu *gpu)
{
    const struct history_sighting *known = NULL;
    for (size_t i = 0; i < gpu->count; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (!now->fingerprint)
            continue;
        if (known && is_other_die(search, known, now))
            events_add_change(search, HISTORY_DIE, known, now);
        known = now;
    }
}

static void events_follow_gpu(struct event_search *search, const struct history_gpu *gpu)
{
    const struct history *history = search->history;
    const struct history_sighting *first = gpu->sightings, *last = &first[gpu->count - 1];
    const struct history_sighting *known = first->serial ? first : NULL; /* with a serial */
    for (const struct history_sighting *now = first + 1; now <= last; now++) {
        if (now[-1].node != now->node || now[-1].pci != now->pci)
            events_add_change(search, HISTORY_MOVED, &now[-1], now);
        if (known && now->serial && known->serial != now->serial)
            events_add_change(search, HISTORY_SERIAL, known, now);
        known = now->serial ? now : known;
    }
    events_follow_die(search, gpu);
    if (!(search->swapped[first - history->sightings] & SWAPPED_IN) &&
        history_next_visit(history, first->node, -1) < first->survey)
        events_add_change(search, HISTORY_NEW, NULL, first);
    const uint32_t next = history_next_visit(history, last->node, last->survey);
    if (next != HISTORY_NEVER && !(search->swapped[last - history->sightings] & SWAPPED_OUT))
        events_add(search, &(struct history_event){.type = HISTORY_GONE,
                                                   .survey = next,
                                                   .uuid = last->uuid,
                                                   .serial = last->serial,
                                                   .node = last->node,
                                                   .pci = last->pci});
}

/* Nodes that are new since the first survey. Those of a stranger are reported with it. */
static void events_find_nodes(struct event_search *search)
{
    const struct history *history = search->history;
    for (size_t i = 0; i < history->visit_count; i++) {
        const struct history_visit *visit = &history->visits[i];
        bool first = !i || history->visits[i - 1].node != visit->node;
        if (!first || !visit->survey || history->surveys[visit->survey].stranger)
            continue;
        events_add(search, &(struct history_event){
                               .type = HISTORY_NODE, .survey = visit->survey, .node = visit->node});
    }
}

static int event_order(const void *left, const void *right, void *user)
{
    const struct history_event *a = left, *b = right;
    const struct symbols *symbols = user;
    if (a->survey != b->survey)
        return a->survey < b->survey ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    int order = str_order(symbols_data(symbols, a->node), symbols_data(symbols, b->node));
    if (!order)
        order = str_order(symbols_data(symbols, a->pci), symbols_data(symbols, b->pci));
    return order ? order
                 : str_order(symbols_data(symbols, a->uuid), symbols_data(symbols, b->uuid));
}

void history_events_find(struct history *history)
{
    struct event_search search = {.history = history,
                                  .order = mem_array(history->sighting_count, sizeof *search.order),
                                  .swapped =
                                      mem_array(history->sighting_count, sizeof *search.swapped)};
    events_find_swaps(&search);
    events_find_boards(&search);
    for (size_t i = 0; i < history->gpu_count; i++)
        events_follow_gpu(&search, &history->gpus[i]);
    events_find_nodes(&search);
    if (history->event_count)
        sort_stable_with(history->events, history->event_count, sizeof *history->events,
                         event_order, &history->symbols);
    free(search.order);
    free(search.swapped);
}
