/* Signs of life between the ranks and rank 0, and when silence means death. */
#include "survey/pulse.h"

/* Each beat is answered. */
static const double beats_per_s = 2000;

/* A rank may be busy for a while with a file system or on a loaded node. A killed one must be known
 * as lost in time for the report to follow within ten seconds. */
static const double patience_s = 5;

/* The longest round of the loop that counts in full. */
static const double round_max_s = 0.5;

double pulse_interval_s(int ranks)
{
    double interval_s = ranks / beats_per_s;
    return interval_s < 1 ? 1 : interval_s;
}

double pulse_silence_s(int ranks)
{
    return patience_s + 2 * pulse_interval_s(ranks);
}

double pulse_tick(struct pulse_clock *clock, double now_s)
{
    double passed_s = now_s - clock->last_s;
    if (clock->last_s > 0 && passed_s > 0)
        clock->awake_s += passed_s < round_max_s ? passed_s : round_max_s;
    clock->last_s = now_s;
    return clock->awake_s;
}
