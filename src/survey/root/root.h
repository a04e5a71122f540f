/* The part of the survey that only rank 0 does: takes announcements, assigns GPUs, collects
 * results, notices lost ranks. */
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

/* What has been collected. Valid as long as the root. */
struct root_view {
    const struct gpu_result *unmeasured; /* lost GPUs; unknown ranks (uuid NULL) */
    size_t unmeasured_count;
    const char *const *bare_nodes; /* nodes without a GPU: each once, sorted */
    size_t bare_count;
    size_t node_count;
    size_t gpu_total; /* distinct GPUs that were assigned */
    size_t gpu_done;
    size_t lost_ranks;
    size_t idle_ranks; /* have no GPU to measure, whether they see any or not */
    bool assigned;     /* false while ranks still announce themselves */
    size_t unspooled;  /* results that could not be spooled; 0 also without a spool */
    const char *unspooled_why;
};

/* simulated: the source says which nodes have no GPU; the ranks' hosts say nothing about it. now_s,
 * here and below: clock_awake. Freed with root_destroy. */
int root_create(struct comm *comm, bool simulated, double time_limit_s, double now_s,
                struct root **out_root, struct err *err);

/* Adds each GPU's part to this record. The recording outlives the root. */
void root_record(struct root *root, struct recording *recording);

/* Passes each result on as it arrives. The root does not keep it. session: see device_source. */
typedef int root_taker(void *user, size_t gpu_total, uint32_t session, struct gpu_result *result,
                       struct err *err);
void root_hand_on(struct root *root, root_taker *taker, void *user);

/* Lets the ranks spool their results there, and rank 0 its plan. Everything that `spool` points to
 * outlives the root. */
void root_spool(struct root *root, const struct spool_plan *spool);

/* Loads of different nodes begin within this time, so that the power of a cluster rises slowly. */
void root_stagger(struct root *root, double seconds);

/* The size of the regions of the memory test. */
void root_set_region(struct root *root, uint64_t bytes);

/* For processes of a job without MPI: each measures the GPUs that no other has claimed. */
void root_claim(struct root *root, const char *apart_job);

/* Reads results from the spool that lost ranks could not send. Call it at the end, before the
 * report. */
int root_recover(struct root *root, struct err *err);

/* A GPU that looks bad, and the probes that are to be run again. */
struct root_suspect {
    const char *uuid;
    const char *probes; /* comma-separated */
};

/* Asks the ranks of these GPUs, sorted by UUID, to measure them again. root_complete is true again
 * when their results are here, or do not come. To be called when root_complete is true. -ENOMEM. */
int root_measure_again(struct root *root, const struct root_suspect *suspects, size_t count,
                       struct err *err);

/* Takes a message of a rank. -EBADMSG for an invalid message. */
int root_take(struct root *root, const struct comm_message *message, struct err *err);

/* Assigns once all ranks have announced; gives up on ranks past their deadline. -EINVAL: bad input
 * on some rank (exit code 2); -ENODEV: no rank has a GPU or a driver; other: no report is
 * possible. */
int root_step(struct root *root, double now_s, struct err *err);

/* The survey is interrupted: tells all ranks, and waits only LIMIT_INTERRUPTED_S longer. */
void root_stop(struct root *root, double now_s);

/* True when every rank has sent all its results or is lost. */
bool root_complete(const struct root *root);

struct root_view root_view(const struct root *root);

/* Finds the GPU whose measuring has taken longest so far, as its rank last reported. False:
 * none. */
struct root_slowest {
    const struct gpu_result *gpu; /* identity only */
    const char *probe;
    double since_s;
};
bool root_slowest(const struct root *root, struct root_slowest *out_slowest);

/* How many ranks are not lost but have missed some heartbeats. */
size_t root_quiet_ranks(const struct root *root);

void root_destroy(struct root *root); /* accepts NULL */

#endif
