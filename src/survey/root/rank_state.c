/* The life of a rank as rank 0 sees it. */
#include "survey/root/rank_state.h"

static const enum rank_state transitions[RANK_STATES][RANK_EVENTS] = {
    [RANK_UNHEARD] =
        {
            [RANK_EVENT_HEARD] = RANK_STARTING,
            [RANK_EVENT_GIVEN_NONE] = RANK_MISSED,
            [RANK_EVENT_FELL_SILENT] = RANK_ABSENT,
        },
    [RANK_ABSENT] =
        {
            [RANK_EVENT_HEARD] = RANK_STARTING,
            [RANK_EVENT_GIVEN_NONE] = RANK_MISSED,
        },
    [RANK_STARTING] =
        {
            [RANK_EVENT_HEARD] = RANK_STARTING,
            [RANK_EVENT_ANNOUNCED] = RANK_ANNOUNCED,
            [RANK_EVENT_GIVEN_NONE] = RANK_MISSED,
            [RANK_EVENT_FELL_SILENT] = RANK_SILENT,
        },
    [RANK_SILENT] =
        {
            [RANK_EVENT_HEARD] = RANK_STARTING,
            [RANK_EVENT_GIVEN_NONE] = RANK_MISSED,
        },
    [RANK_ANNOUNCED] =
        {
            [RANK_EVENT_HEARD] = RANK_ANNOUNCED,
            [RANK_EVENT_GIVEN_GPUS] = RANK_MEASURING,
            [RANK_EVENT_GIVEN_NONE] = RANK_IDLE,
        },
    /* Its GPUs are not known, so a message of it changes nothing. */
    [RANK_MISSED] = {[RANK_EVENT_HEARD] = RANK_MISSED},
    [RANK_IDLE] =
        {
            [RANK_EVENT_HEARD] = RANK_IDLE,
            [RANK_EVENT_FELL_SILENT] = RANK_IDLE_LOST,
        },
    [RANK_IDLE_LOST] = {[RANK_EVENT_HEARD] = RANK_IDLE},
    [RANK_MEASURING] =
        {
            [RANK_EVENT_HEARD] = RANK_MEASURING,
            [RANK_EVENT_FELL_SILENT] = RANK_LOST,
            [RANK_EVENT_OVERDUE] = RANK_LOST,
            [RANK_EVENT_GOT_ALL] = RANK_FINISHED,
        },
    [RANK_LOST] =
        {
            [RANK_EVENT_HEARD] = RANK_MEASURING,
            [RANK_EVENT_GOT_ALL] = RANK_FINISHED,
        },
    [RANK_FINISHED] =
        {
            [RANK_EVENT_HEARD] = RANK_FINISHED,
            [RANK_EVENT_ASKED_AGAIN] = RANK_REPEATING,
        },
    /* Without the second values the first results stand. */
    [RANK_REPEATING] =
        {
            [RANK_EVENT_HEARD] = RANK_REPEATING,
            [RANK_EVENT_FELL_SILENT] = RANK_FINISHED,
            [RANK_EVENT_OVERDUE] = RANK_FINISHED,
            [RANK_EVENT_GOT_ALL] = RANK_FINISHED,
            [RANK_EVENT_ASKED_AGAIN] = RANK_REPEATING,
        },
};

static const struct {
    bool announced, assigned, lost;
} facts[RANK_STATES] = {
    [RANK_ABSENT] = {.lost = true},
    [RANK_SILENT] = {.lost = true},
    [RANK_ANNOUNCED] = {.announced = true},
    [RANK_MISSED] = {.assigned = true, .lost = true},
    [RANK_IDLE] = {.announced = true, .assigned = true},
    [RANK_IDLE_LOST] = {.announced = true, .assigned = true, .lost = true},
    [RANK_MEASURING] = {.announced = true, .assigned = true},
    [RANK_LOST] = {.announced = true, .assigned = true, .lost = true},
    [RANK_FINISHED] = {.announced = true, .assigned = true},
    [RANK_REPEATING] = {.announced = true, .assigned = true},
};

bool rank_state_takes(enum rank_state state, enum rank_event event)
{
    return transitions[state][event] != RANK_NO_STATE;
}

bool rank_state_apply(enum rank_state *state, enum rank_event event)
{
    if (!rank_state_takes(*state, event))
        return false;
    *state = transitions[*state][event];
    return true;
}

bool rank_state_is_announced(enum rank_state state)
{
    return facts[state].announced;
}

bool rank_state_is_assigned(enum rank_state state)
{
    return facts[state].assigned;
}

bool rank_state_is_lost(enum rank_state state)
{
    return facts[state].lost;
}
