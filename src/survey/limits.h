/* How long the parts of a survey wait for each other, in seconds. */
#ifndef GPUMEMTOPO_SURVEY_LIMITS_H
#define GPUMEMTOPO_SURVEY_LIMITS_H

/* MPI_Init: ranks hang in it when one died before, and then meet without it (meeting.h). So long it
 * has at least, and one second more per so many ranks; where there is time, that is where a GPU has
 * much, as a part of that; and at most. */
enum {
    LIMIT_START_MIN_S = 4,
    LIMIT_START_RANKS_PER_S = 8,
    LIMIT_START_SHARE = 4,
    LIMIT_START_USUAL_S = 30,
    LIMIT_START_MAX_S = 60
};

/* Where ranks leave MPI_Init one by one: so long they send nothing, since a message to a rank that
 * is still inside kills it. */
enum { LIMIT_SETTLE_S = 1 };

/* Until every rank that gives signs of life has announced itself; one that has not is lost (a
 * silent one sooner: pulse.h). Listing, its main part, must end before: a driver that initialises
 * eight GPUs takes ten seconds and more. */
enum { LIMIT_ANNOUNCE_S = 60, LIMIT_LISTING_S = 45 };

/* What a rank that gives signs of life may take beyond its workers' time limits before it is lost.
 */
enum { LIMIT_GRACE_S = 30 };

/* A result that was not acknowledged by then is sent again. */
enum { LIMIT_ACK_S = 5 };

/* After a signal: what comes within this time is still in the report. */
enum { LIMIT_INTERRUPTED_S = 3 };

/* MPI_Finalize, when all ranks are there and when some are lost. One that died idle is not known.
 */
enum { LIMIT_FINALIZE_S = 8, LIMIT_FINALIZE_LOST_S = 2, LIMIT_FINALIZE_RANKS_PER_S = 500 };

#endif
