/* The ranks as rank 0 sees them: the state of each, its GPUs, and which results are missing. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_RANKS_H
#define GPUMEMTOPO_SURVEY_ROOT_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "survey/comm/message.h"
#include "survey/root/rank_state.h"

/* The GPUs that one rank sees. */
struct assign_rank {
    const char *const *uuids;
    size_t count;
};

/* The GPUs that one rank must measure: positions in its own list, ascending. */
struct assign_share {
    uint32_t *positions; /* freed with free() */
    size_t count;
};

/* Gives each UUID to exactly one of the ranks that see it: GPUs with few viewers first, then in
 * rank order, each to its least loaded viewer (the lowest rank among equals). out_shares: one per
 * rank. O(n log n) in the sum of all lists. */
void ranks_assign_gpus(const struct assign_rank *ranks, size_t rank_count,
                       struct assign_share *out_shares);

struct known_rank {
    enum rank_state state;
    struct announce announce;
    struct assign_share share;
    bool *received;  /* one per announced GPU: its result is here; allocated by ranks_open */
    bool *repeating; /* the same: asked for again, and not here */
    size_t missing;  /* results that are assigned, or asked for again, but not here */
    double deadline_s;
    double heard_s;   /* when its last message came */
    bool unreachable; /* a message to it could not be sent; the user was warned */
    struct doing doing;
};

/* GPUs without a result, and ranks whose GPUs are not known. */
struct ranks_unmeasured {
    struct gpu_result *items; /* identity (uuid NULL: a rank), rank, status and reason */
    size_t count, capacity;
};

/* Made with ranks_init. */
struct ranks {
    struct known_rank *items; /* one per rank */
    size_t count;
    struct ranks_unmeasured unmeasured;
    int32_t first;          /* number of the first rank in messages to users */
    double start_timeout_s; /* how long a rank may take until its first message */
    double now_s;
    double time_limit_s;
    double next_check_s; /* when to check the deadlines again */
    bool stopped;
    size_t in_state[RANK_STATES]; /* how many ranks are in each state */
    size_t unlisted;              /* idle because they could not list their GPUs */
    size_t gpu_total, gpu_done;
};

void ranks_init(struct ranks *ranks, size_t count, double time_limit_s);
void ranks_fini(struct ranks *ranks);

/* Call it for each message, before the message is handled. A lost rank that sends again is no
 * longer lost. */
void ranks_hear(struct ranks *ranks, size_t rank);

/* Takes an announcement. -EBADMSG: it is damaged, or not allowed in the rank's state. */
int ranks_announce(struct ranks *ranks, size_t rank, const struct frame *frame, struct err *err);

/* True if rank 0 need not wait for further announcements. */
bool ranks_all_announced(const struct ranks *ranks);

/* Decides which rank measures which GPU. standalone_job: take only GPUs that no other process of
 * this job has claimed; NULL: take all. */
void ranks_assign(struct ranks *ranks, const char *standalone_job);

/* Starts to wait for the results of all ranks that have announced themselves. The others are
 * lost. */
void ranks_open(struct ranks *ranks, double now_s);

bool ranks_assigned(const struct ranks *ranks); /* ranks_open was called */
bool ranks_complete(const struct ranks *ranks); /* and no rank is measuring or repeating */
size_t ranks_lost(const struct ranks *ranks);
size_t ranks_idle(const struct ranks *ranks); /* have no GPU to measure, whether lost or not */

/* True if the rank was assigned the GPU at that position and the UUID is right. */
bool ranks_expects(const struct ranks *ranks, size_t rank, uint32_t position, const char *uuid);

/* The rank's result at that position is here. */
void ranks_done(struct ranks *ranks, size_t rank, uint32_t position);

/* Asks the rank to measure a GPU again. False: the rank has not sent all its first results. If
 * the rank is lost before its second result is here, a warning names it and the GPU. */
bool ranks_ask_again(struct ranks *ranks, size_t rank, uint32_t position);

/* A result of a second measurement is here. False: none was asked for. */
bool ranks_repeated(struct ranks *ranks, size_t rank, uint32_t position);

/* The result of this lost GPU, an index of `unmeasured`, was found in the spool. A rank with no
 * result missing is no longer lost. */
void ranks_recovered(struct ranks *ranks, size_t index);

/* Sets the time. At intervals, finds ranks that are silent or overdue. */
void ranks_check(struct ranks *ranks, double now_s);

/* How many ranks are not lost but have missed some heartbeats: they may be lost too. */
size_t ranks_quiet(const struct ranks *ranks);

/* The survey is interrupted: rank 0 waits only LIMIT_INTERRUPTED_S longer. */
void ranks_stop(struct ranks *ranks, double now_s);

#endif
