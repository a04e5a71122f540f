/* How long the parts of a survey wait for each other, in seconds in which the waiting process ran
 * (clock_awake; those of MPI_Finalize in real ones). How long ranks wait for each other's start is
 * a setting: survey_config. */
#ifndef GPUMEMTOPO_SURVEY_COMM_LIMITS_H
#define GPUMEMTOPO_SURVEY_COMM_LIMITS_H

/* Listing the GPUs: a driver that initialises sixteen of them takes half a minute and more. */
enum { LIMIT_LISTING_S = 120 };

/* Signs of life between a rank and rank 0: seconds from one to the next, so that rank 0 hears, and
 * answers, at most 2000 in a second; and the silence after which the other side is taken for dead,
 * since a rank may be busy with a file system for a while. */
static inline double limit_beat_s(int ranks)
{
    return ranks > 2000 ? ranks / 2000.0 : 1;
}
static inline double limit_silence_s(int ranks)
{
    return 5 + 2 * limit_beat_s(ranks);
}

/* What ending a stubborn worker, judging and writing may take beyond the limits. */
enum { LIMIT_GRACE_S = 30 };

/* After a signal: what comes within this time is still in the report. */
enum { LIMIT_INTERRUPTED_S = 3 };

/* MPI_Finalize, when all ranks are there and when some are lost. By then all results are reported.
 */
enum { LIMIT_FINALIZE_S = 20, LIMIT_FINALIZE_LOST_S = 2 };

#endif
