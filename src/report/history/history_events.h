/* Cards that moved, were swapped, appeared or went away between the surveys of a history. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_EVENTS_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_EVENTS_H

#include "report/history/history.h"

enum history_event_type {
    HISTORY_MOVED,   /* a GPU is in another slot or node */
    HISTORY_SWAPPED, /* another GPU is in the slot */
    HISTORY_NEW,     /* a GPU appeared on a node that was surveyed before */
    HISTORY_GONE,    /* a GPU was not seen again, although its node was surveyed */
    HISTORY_SERIAL,  /* a GPU reports another serial number */
    HISTORY_BOARD,   /* a board (serial number) has a GPU with another UUID */
    HISTORY_NODE,    /* a node was surveyed for the first time */
    HISTORY_DIE,     /* a GPU has another fingerprint: another die under its UUID */
    HISTORY_EVENT_TYPES
};

/* Names are symbols; 0: does not apply, or unknown. */
struct history_event {
    enum history_event_type type;
    uint32_t survey; /* the first one that shows it */
    uint32_t uuid, serial, node, pci;
    uint32_t old_uuid, old_serial, old_node, old_pci;
};

/* The first survey after number `after` that saw the node; HISTORY_NEVER if there is none. -1: from
 * the first one on. history->visits must be sorted. */
#define HISTORY_NEVER UINT32_MAX
uint32_t history_next_visit(const struct history *history, uint32_t node, int64_t after);

/* "moved", "swapped", ... */
const char *history_event_name(enum history_event_type type);

/* Fills history->events. */
void history_events_find(struct history *history);

#endif
