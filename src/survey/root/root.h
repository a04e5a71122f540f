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
#include "survey/rank/spooling.h"
#include "survey/root/recording.h"

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

/* Takes a result as it arrives. The root does not keep it. session: see device_source. */
typedef int root_taker(void *user, size_t gpu_total, uint32_t session, struct gpu_result *result,
                       struct err *err);

/* Everything that it points to outlives the root. */
struct root_settings {
    bool simulated; /* the source says which nodes have no GPU; the ranks' hosts say nothing about
                       it */
    double time_limit_s; /* for one GPU */
    double stagger_s;    /* loads of different nodes begin within this time, so that the power of a
                            cluster rises slowly */
    uint64_t region_bytes;       /* of the memory test */
    const char *standalone_job;  /* without MPI: measure the GPUs that no other process of this job
                                    has claimed; NULL: all */
    root_taker *take_result;     /* NULL: none */
    void *user;                  /* of take_result */
    struct recording *recording; /* gets each GPU's part of the record; NULL: none */
    struct spooling
        *spooling; /* where the ranks spool their results, and rank 0 its plan; NULL: nowhere */
    const char *config_name, *config_text; /* of the plan */
    char *const *command;                  /* likewise */
    size_t command_count;
};

/* now_s, here and below: clock_awake. Freed with root_destroy. */
struct root *root_create(struct comm *comm, const struct root_settings *settings, double now_s);

/* Reads results from the spool that lost ranks could not send. Call it at the end, before the
 * report. */
int root_recover(struct root *root, struct err *err);

/* A GPU that looks bad, and the probes that are to be run again. */
struct root_suspect {
    const char *uuid;
    const char *probes; /* comma-separated */
};

/* Asks the ranks of these GPUs, sorted by UUID, to measure them again. root_complete is true again
 * when their results are here, or do not come. To be called when root_complete is true. */
void root_measure_again(struct root *root, const struct root_suspect *suspects, size_t count);

/* Order of suspects, for sort_stable. */
int root_suspect_order(const void *left, const void *right);

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
