/* The ranks as rank 0 sees them: who has announced itself, what it measures, who is lost. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_RANKS_H
#define GPUMEMTOPO_SURVEY_ROOT_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "survey/comm/message.h"
#include "survey/root/assign.h"
#include "survey/root/rank_state.h"
#include "survey/root/unmeasured.h"

struct known_rank {
    enum rank_state state;
    struct announce announce;
    struct assign_share share;
    bool *heard;    /* per GPU of the announced list: its result is here; from the assignment on */
    size_t missing; /* assigned but not heard */
    double deadline_s;
    double heard_s; /* its last sign of life */
    struct doing doing;
};

/* Made with ranks_init. */
struct ranks {
    struct known_rank *items; /* one per rank */
    size_t count;
    struct unmeasured *unmeasured; /* is told what becomes of GPUs of lost ranks */
    int32_t first;                 /* number of the first one, for people */
    double patience_s;             /* for the first word of a rank */
    double now_s;
    double time_limit_s;
    double next_check_s; /* of the deadlines */
    bool stopped;
    size_t in_state[RANK_STATES]; /* how many ranks are in each state */
    size_t unlisted;              /* idle because they could not list their GPUs */
    size_t gpu_total, gpu_done;
};

/* unmeasured outlives them. -ENOMEM. */
int ranks_init(struct ranks *ranks, size_t count, double time_limit_s,
               struct unmeasured *unmeasured, struct err *err);
void ranks_fini(struct ranks *ranks);

/* A message came: the rank lives; one that was taken for lost is waited for again. */
void ranks_hear(struct ranks *ranks, size_t rank);

/* -EBADMSG: makes no sense, or now. */
int ranks_announce(struct ranks *ranks, size_t rank, const struct frame *frame, struct err *err);

/* No rank is left that may still announce itself in time. */
bool ranks_all_announced(const struct ranks *ranks);

/* Who measures what. apart_job: only what no other process of this job has claimed; NULL: all GPUs
 * are its ranks' own. -ENOMEM. */
int ranks_assign(struct ranks *ranks, const char *apart_job, struct err *err);

/* Those that have announced themselves are waited for from now on, the others are lost. */
int ranks_open(struct ranks *ranks, double now_s, struct err *err);

bool ranks_assigned(const struct ranks *ranks); /* ranks_open was called */
bool ranks_complete(const struct ranks *ranks); /* and no result is waited for any more */
size_t ranks_lost(const struct ranks *ranks);
size_t ranks_idle(const struct ranks *ranks); /* have no GPU of their own; also those lost since */

/* Whether this is a result that is waited for from that rank: of a GPU that it was assigned. */
bool ranks_expect(const struct ranks *ranks, size_t rank, uint32_t position, const char *uuid);

/* The result at that position is here. */
void ranks_done(struct ranks *ranks, size_t rank, uint32_t position);

/* The result of this lost GPU is here; a rank that thus told all is not lost. */
void ranks_recovered(struct ranks *ranks, const struct gpu_result *lost);

/* Tells the time; finds those that are silent or over their time, now and then. */
int ranks_check(struct ranks *ranks, double now_s, struct err *err);

/* Those that have missed beats, too few to be lost: they may be gone all the same. */
size_t ranks_quiet(const struct ranks *ranks);

/* The survey is interrupted: they are waited for only a moment longer. */
void ranks_stop(struct ranks *ranks, double now_s);

#endif
