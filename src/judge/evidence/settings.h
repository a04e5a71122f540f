/* Settings: a locked clock, and what is said of whole models. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_SETTINGS_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_SETTINGS_H

#include "judge/state.h"

/* The SM clock stays below the clock that the settings allow, is steady, and the driver
 * names no reason: it is locked. The text is a cause, freed by the caller. */
bool settings_clock_is_locked(const struct fleet *fleet, uint32_t gpu);
char *settings_locked_clock_text(const struct fleet *fleet, uint32_t gpu);

/* Add entries to the inventory's nodes: for each setting below the card's default that two thirds
 * of a population have (nobody is accused: the site may want it), and for each setting and version
 * in which the model is divided. */
void settings_report_defaults(const struct judge *judge, const struct group *population,
                              struct inventory *inventory);
void settings_report_divided(struct judge *judge, const struct group *model,
                             struct inventory *inventory);

#endif
