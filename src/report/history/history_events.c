/* Cards that moved, were swapped, appeared or went away. */
#include "report/history/history_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/fingerprint.h"
#include "report/history/history_visits.h"

enum { SWAPPED_OUT = 1, SWAPPED_IN = 2 };

/* The search for events. */
struct search {
    struct history *history;
    const struct history_sighting **order; /* all sightings, sorted by slot or by serial */
    unsigned char *swapped; /* by sighting: SWAPPED_OUT, SWAPPED_IN or both; told as a swap */
    size_t room;            /* of history->events */
};

const char *history_event_name(enum history_event_type type)
{
    static const char *const names[HISTORY_EVENT_TYPES] = {
        "moved", "swapped", "new", "gone", "other_serial", "other_uuid", "new_node", "other_die"};
    return names[type];
}

static int add(struct search *search, const struct history_event *event)
{
    struct history *history = search->history;
    struct history_event *grown =
        mem_grow(history->events, &search->room, history->event_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    history->events = grown;
    grown[history->event_count++] = *event;
    return 0;
}

/* The change from one sighting to a later one. old NULL: there is none. */
static int add_change(struct search *search, enum history_event_type type,
                      const struct history_sighting *old, const struct history_sighting *now)
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
    return add(search, &event);
}

/* MIG instances share slot and serial with each other, and get another UUID when they are made
 * again. */
static bool is_mig(const struct search *search, const struct history_sighting *sighting)
{
    return strncmp(symbols_data(&search->history->symbols, sighting->uuid), "MIG-", 4) == 0;
}

static int by_slot(const void *left, const void *right)
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

static int by_serial(const void *left, const void *right)
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
static size_t sort(struct search *search, int (*order)(const void *, const void *))
{
    size_t count = 0;
    for (size_t i = 0; i < search->history->sighting_count; i++)
        if (!is_mig(search, &search->history->sightings[i]))
            search->order[count++] = &search->history->sightings[i];
    if (count)
        qsort(search->order, count, sizeof *search->order, order);
    return count;
}

static int find_swaps(struct search *search)
{
    size_t count = sort(search, by_slot);
    int rc = 0;
    for (size_t i = 1; i < count && !rc; i++) {
        const struct history_sighting *old = search->order[i - 1], *now = search->order[i];
        if (!now->node || !now->pci || old->node != now->node || old->pci != now->pci ||
            old->survey == now->survey || old->uuid == now->uuid)
            continue;
        search->swapped[old - search->history->sightings] |= SWAPPED_OUT;
        search->swapped[now - search->history->sightings] |= SWAPPED_IN;
        rc = add_change(search, HISTORY_SWAPPED, old, now);
    }
    return rc;
}

/* Boards with several GPUs have one serial number for all of them: nothing can be said then. */
static bool has_several_gpus(const struct history_sighting *const *board, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (board[i - 1]->survey == board[i]->survey)
            return true;
    return false;
}

static int find_boards(struct search *search)
{
    size_t count = sort(search, by_serial);
    int rc = 0;
    for (size_t i = 0, end; i < count && !rc; i = end) {
        const struct history_sighting *const *board = search->order + i;
        for (end = i + 1; end < count && search->order[end]->serial == board[0]->serial;)
            end++;
        if (!board[0]->serial || has_several_gpus(board, end - i))
            continue;
        for (size_t k = 1; k < end - i && !rc; k++)
            if (board[k - 1]->uuid != board[k]->uuid)
                rc = add_change(search, HISTORY_BOARD, board[k - 1], board[k]);
    }
    return rc;
}

/* Whether two fingerprints are of different dies; false if that is not certain. */
static bool other_die(const struct search *search, const struct history_sighting *old,
                      const struct history_sighting *now)
{
    const struct symbols *symbols = &search->history->symbols;
    struct fingerprint was, is;
    return !fingerprint_read(symbols_data(symbols, old->fingerprint), &was) &&
           !fingerprint_read(symbols_data(symbols, now->fingerprint), &is) &&
           fingerprint_compare(&was, &is).match == FINGERPRINT_OTHER;
}

static int follow_die(struct search *search, const struct history_gpu *gpu)
{
    const struct history_sighting *known = NULL;
    int rc = 0;
    for (size_t i = 0; i < gpu->count && !rc; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (!now->fingerprint)
            continue;
        if (known && other_die(search, known, now))
            rc = add_change(search, HISTORY_DIE, known, now);
        known = now;
    }
    return rc;
}

static int follow_gpu(struct search *search, const struct history_gpu *gpu)
{
    const struct history *history = search->history;
    const struct history_sighting *first = gpu->sightings, *last = &first[gpu->count - 1];
    const struct history_sighting *known = first->serial ? first : NULL; /* with a serial */
    int rc = 0;
    for (const struct history_sighting *now = first + 1; now <= last && !rc; now++) {
        if (now[-1].node != now->node || now[-1].pci != now->pci)
            rc = add_change(search, HISTORY_MOVED, &now[-1], now);
        if (!rc && known && now->serial && known->serial != now->serial)
            rc = add_change(search, HISTORY_SERIAL, known, now);
        known = now->serial ? now : known;
    }
    if (!rc)
        rc = follow_die(search, gpu);
    if (!rc && !(search->swapped[first - history->sightings] & SWAPPED_IN) &&
        history_next_visit(history, first->node, -1) < first->survey)
        rc = add_change(search, HISTORY_NEW, NULL, first);
    uint32_t next = history_next_visit(history, last->node, last->survey);
    if (!rc && next != HISTORY_NEVER && !(search->swapped[last - history->sightings] & SWAPPED_OUT))
        rc = add(search, &(struct history_event){.type = HISTORY_GONE,
                                                 .survey = next,
                                                 .uuid = last->uuid,
                                                 .serial = last->serial,
                                                 .node = last->node,
                                                 .pci = last->pci});
    return rc;
}

/* Nodes that are new since the first survey. Those of a stranger are told with it. */
static int find_nodes(struct search *search)
{
    const struct history *history = search->history;
    for (size_t i = 0; i < history->visit_count; i++) {
        const struct history_visit *visit = &history->visits[i];
        bool first = !i || history->visits[i - 1].node != visit->node;
        if (!first || !visit->survey || history->surveys[visit->survey].stranger)
            continue;
        if (add(search, &(struct history_event){
                            .type = HISTORY_NODE, .survey = visit->survey, .node = visit->node}))
            return -ENOMEM;
    }
    return 0;
}

static int by_time(const void *left, const void *right, void *user)
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

int history_events_find(struct history *history)
{
    struct search search = {.history = history};
    search.order = mem_array(history->sighting_count, sizeof *search.order);
    search.swapped = mem_array(history->sighting_count, sizeof *search.swapped);
    int rc = search.order && search.swapped ? 0 : -ENOMEM;
    if (!rc)
        rc = find_swaps(&search);
    if (!rc)
        rc = find_boards(&search);
    for (size_t i = 0; i < history->gpu_count && !rc; i++)
        rc = follow_gpu(&search, &history->gpus[i]);
    if (!rc)
        rc = find_nodes(&search);
    if (!rc && history->event_count)
        qsort_r(history->events, history->event_count, sizeof *history->events, by_time,
                &history->symbols);
    free(search.order);
    free(search.swapped);
    return rc;
}
