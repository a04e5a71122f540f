/* The life of a rank as rank 0 sees it: states, events, and the table of transitions. The same
 * table is in docs/ARCHITECTURE.md; tests/survey/test_rank_state.c compares the two. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_RANK_STATE_H
#define GPUMEMTOPO_SURVEY_ROOT_RANK_STATE_H

#include <stdbool.h>

enum rank_state {
    RANK_NO_STATE, /* an entry of the table: the event is refused */
    /* Before the GPUs are assigned: */
    RANK_UNHEARD,   /* no message yet; it may still be starting MPI */
    RANK_ABSENT,    /* no message within the start timeout; counted as lost */
    RANK_STARTING,  /* it lives and lists its GPUs */
    RANK_SILENT,    /* it was heard, then fell silent before it announced; counted as lost */
    RANK_ANNOUNCED, /* rank 0 knows its GPUs */
    /* After the GPUs are assigned: */
    RANK_MISSED,    /* it did not announce in time: lost for good */
    RANK_IDLE,      /* it has no GPU to measure */
    RANK_IDLE_LOST, /* idle, and fell silent */
    RANK_MEASURING, /* rank 0 waits for at least one result */
    RANK_LOST,      /* at least one of its results is missing, and it fell silent or is overdue */
    RANK_FINISHED,  /* all its results are here */
    RANK_REPEATING, /* it was asked to measure some GPUs again; the first results are here */
    RANK_STATES
};

enum rank_event {
    RANK_EVENT_HEARD,       /* any message came; always before what the message says */
    RANK_EVENT_ANNOUNCED,   /* the message lists its GPUs */
    RANK_EVENT_GIVEN_GPUS,  /* the assignment is made, it has GPUs to measure */
    RANK_EVENT_GIVEN_NONE,  /* the assignment is made, it has none */
    RANK_EVENT_FELL_SILENT, /* no message for too long */
    RANK_EVENT_OVERDUE,     /* its results are not complete at its deadline */
    RANK_EVENT_GOT_ALL,     /* its last result is here, by message or from the spool */
    RANK_EVENT_ASKED_AGAIN, /* rank 0 asks it to measure a GPU again */
    RANK_EVENTS
};

/* False: the event is refused in that state. */
bool rank_state_takes(enum rank_state state, enum rank_event event);

/* Moves *state along the table. False: the event is refused and *state is as it was. */
bool rank_state_apply(enum rank_state *state, enum rank_event event);

bool rank_state_is_announced(enum rank_state state); /* rank 0 knows its GPUs */
bool rank_state_is_assigned(enum rank_state state);  /* the assignment is made */
bool rank_state_is_lost(enum rank_state state);      /* counted as lost */

#endif
