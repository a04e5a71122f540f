/* Rank 0's part: hears what ranks announce, assigns GPUs, collects results, notices who is lost. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_ROOT_H
#define GPUMEMTOPO_SURVEY_ROOT_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "survey/comm/comm.h"
#include "survey/root/ranks.h"
#include "survey/root/recording.h"
#include "survey/root/spool_plan.h"

struct root;

/* What has been collected; valid as long as the root. */
struct root_view {
    const struct gpu_result *unmeasured; /* lost GPUs, and ranks (without UUID) of which nothing
                                            else is known */
    size_t unmeasured_count;
    const char *const *bare_nodes; /* without a GPU: each once, sorted */
    size_t bare_count;
    size_t node_count;
    size_t gpu_total; /* distinct GPUs that were assigned */
    size_t gpu_done;
    size_t lost_ranks;
    size_t idle_ranks; /* saw GPUs or none, but have none of their own to measure */
    bool assigned;     /* false while ranks still announce themselves */
    size_t unspooled;  /* results that could not be spooled; 0 also where none should be */
    const char *unspooled_why;
};

/* simulated: nodes without a GPU are the source's to tell, not to be seen from ranks' hosts. now_s,
 * here and below: clock_awake. Freed with root_destroy. */
int root_create(struct comm *comm, bool simulated, double time_limit_s, double now_s,
                struct root **out_root, struct err *err);

/* Has the GPUs' parts of the record kept here; outlives the root. */
void root_record(struct root *root, struct recording *recording);

/* Hands each result on as it comes, and forgets it. */
typedef int root_taker(void *user, size_t gpu_total, struct gpu_result *result, struct err *err);
void root_hand_on(struct root *root, root_taker *taker, void *user);

/* Has the ranks spool their results there, and the survey itself told beside them. All that it
 * names outlives the root. */
void root_spool(struct root *root, const struct spool_plan *spool);

/* Where processes of a job do not speak to each other: each measures what no other has claimed. */
void root_claim(struct root *root, const char *apart_job);

/* Takes what lost ranks have spooled but could not tell. At the end, before the report. */
int root_recover(struct root *root, struct err *err);

/* Takes a message of a rank. -EBADMSG for one that makes no sense. */
int root_take(struct root *root, const struct comm_message *message, struct err *err);

/* Assigns once all have announced, gives up on those past their deadline. -EINVAL: bad input on
 * some rank (exit code 2); -ENODEV: no rank has a GPU or a driver; other: no report possible. */
int root_step(struct root *root, double now_s, struct err *err);

/* The survey is interrupted: tells all ranks, waits only a moment longer. */
void root_stop(struct root *root, double now_s);

/* All ranks are heard or lost. */
bool root_complete(const struct root *root);

struct root_view root_view(const struct root *root);

/* Among the GPUs being measured, the one that takes longest, as its rank last told. False: none. */
struct root_slowest {
    const struct gpu_result *gpu; /* identity only */
    const char *probe;
    double since_s;
};
bool root_slowest(const struct root *root, struct root_slowest *out_slowest);

/* Ranks that are not lost, but were not heard for some beats. */
size_t root_quiet_ranks(const struct root *root);

void root_destroy(struct root *root); /* accepts NULL */

#endif
