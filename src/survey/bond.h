/* Rank 0 as another rank sees it: when it was heard, when it is told that this rank lives, and when
 * it is given up. */
#ifndef GPUMEMTOPO_SURVEY_BOND_H
#define GPUMEMTOPO_SURVEY_BOND_H

#include <stdbool.h>

#include "survey/pulse.h"

struct bond {
    bool leads; /* this rank is the one that others see so */
    int ranks;
    struct pulse_clock clock;
    double heard_s;     /* by that clock */
    double next_beat_s; /* likewise */
};

/* Tells the time, in every round; true: it is time for a sign of life. */
bool bond_tick(struct bond *bond, double now_s);

/* Rank 0 has said something. */
void bond_hear(struct bond *bond);

double bond_unheard_s(const struct bond *bond);

/* Rank 0 fell silent; any word of it ends that. Never on rank 0 itself. told_all: it has all that
 * it waits for from this rank, and may be at its report. */
bool bond_orphaned(const struct bond *bond, bool told_all);

/* Rank 0 was silent for so long that waiting for it has no use. limit_s: of one GPU; 0: not known.
 */
bool bond_given_up(const struct bond *bond, bool told_all, double limit_s);

#endif
