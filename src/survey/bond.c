/* Rank 0 as another rank sees it. */
#include "survey/bond.h"

/* More than rank 0 needs to judge and write what one rank has sent. */
static const double report_per_rank_s = 0.002;

/* While rank 0 makes its report it hears and answers nobody. */
static double patience_s(const struct bond *bond, bool told_all)
{
    double report_s = told_all ? report_per_rank_s : 0;
    return pulse_silence_s(bond->ranks) + report_s * bond->ranks;
}

/* Also to a rank 0 that is not heard, so that it finds all there. */
bool bond_tick(struct bond *bond, double now_s)
{
    double awake_s = pulse_tick(&bond->clock, now_s);
    if (awake_s < bond->next_beat_s)
        return false;
    bond->next_beat_s = awake_s + pulse_interval_s(bond->ranks);
    return true;
}

void bond_hear(struct bond *bond)
{
    bond->heard_s = bond->clock.awake_s;
}

double bond_unheard_s(const struct bond *bond)
{
    return bond->clock.awake_s - bond->heard_s;
}

bool bond_orphaned(const struct bond *bond, bool told_all)
{
    return !bond->leads && bond_unheard_s(bond) > patience_s(bond, told_all);
}

/* Rank 0 may only be waiting for a file system and speak again, so it is given the same time once
 * more, as long as the limit of one GPU is not over: the job must end soon after that. */
bool bond_given_up(const struct bond *bond, bool told_all, double limit_s)
{
    return bond_orphaned(bond, told_all) &&
           (bond_unheard_s(bond) > 2 * patience_s(bond, told_all) ||
            (limit_s > 0 && bond->clock.awake_s > limit_s));
}
