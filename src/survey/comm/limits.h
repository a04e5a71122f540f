/* How long the parts of a survey wait for each other. All limits count the seconds in which the
 * waiting process ran (clock_awake), except those of MPI_Finalize, which are real seconds. The
 * limit for the start of the ranks is a setting: survey_config. */
#ifndef GPUMEMTOPO_SURVEY_COMM_LIMITS_H
#define GPUMEMTOPO_SURVEY_COMM_LIMITS_H

/* Listing the GPUs. A driver that initialises sixteen GPUs takes half a minute or more. */
enum { LIMIT_LISTING_S = 120 };

/* The workers of a GPU: if the first one crashes, hangs or fails, a second one tries again. Each of
 * them has the whole time limit, so that a healthy GPU that needs all of it is measured. */
enum { LIMIT_TRIES = 2 };

/* A rank sends rank 0 a heartbeat every limit_beat_s, and rank 0 answers it. The interval grows
 * with the number of ranks, so that rank 0 handles at most 2000 per second. After limit_silence_s
 * without a message, either side considers the other dead. That is longer than two intervals,
 * because a file system may block a rank for a while. */
static inline double limit_beat_s(int ranks)
{
    return ranks > 2000 ? ranks / 2000.0 : 1;
}
static inline double limit_silence_s(int ranks)
{
    return 5 + 2 * limit_beat_s(ranks);
}

/* Without MPI, in a folder on a file system of one node: how long to wait for the first task of
 * another node before the folder counts as not shared. In other folders start_timeout_s. */
enum { LIMIT_UNSHARED_S = 30 };

/* Extra time, beyond the limits, to end a hanging worker, to judge and to write. */
enum { LIMIT_GRACE_S = 30 };

/* After a signal: results that arrive within this time are still in the report. */
enum { LIMIT_INTERRUPTED_S = 3 };

/* MPI_Finalize, if all ranks are there and if some are lost. All results are reported by then. */
enum { LIMIT_FINALIZE_S = 20, LIMIT_FINALIZE_LOST_S = 2 };

#endif
