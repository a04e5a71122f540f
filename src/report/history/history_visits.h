/* Which node was seen in which survey of a history. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_VISITS_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_VISITS_H

#include "report/history/history.h"

/* Sorts history->visits, for the functions that look into them. */
void history_visits_sort(struct history *history);

/* The first survey after number `after` that saw the node; HISTORY_NEVER if there is none. -1: from
 * the first one on. */
#define HISTORY_NEVER UINT32_MAX
uint32_t history_next_visit(const struct history *history, uint32_t node, int64_t after);

#endif
