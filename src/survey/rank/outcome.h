/* What a worker has sent so far, and the result of its GPU when the worker ends, however it
 * ends. */
#ifndef GPUMEMTOPO_SURVEY_RANK_OUTCOME_H
#define GPUMEMTOPO_SURVEY_RANK_OUTCOME_H

#include <stdbool.h>

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "inventory/wire/frame.h"
#include "survey/comm/message.h"
#include "survey/rank/child.h"

/* Zero-initialised: nothing received yet. */
struct outcome {
    char *probe;              /* the probe that it began last */
    bool done;                /* DONE came: the answer is complete */
    bool failed;              /* FAIL came */
    struct err err;           /* of FAIL */
    char *remark;             /* for people; NULL: none */
    struct gpu_result result; /* measure: the last PARTIAL, or DONE */
    struct announce listing;  /* list: GPUs and bare nodes */
};
void outcome_fini(struct outcome *outcome);

/* Takes one frame of a listing or of a measuring worker. -EBADMSG for a frame that does not belong
 * there. */
int outcome_take_listing(struct outcome *outcome, const struct frame *frame, struct err *err);
int outcome_take_measuring(struct outcome *outcome, const struct frame *frame, struct err *err);

/* How the process ended. */
struct ending {
    enum child_end end;
    bool reaped;
    int wait_status; /* as from waitpid; valid if reaped */
    double limit_s;
    bool half_record;    /* bytes were left over on the pipe */
    const char *garbage; /* CHILD_GARBAGE: what was wrong */
    const char *tail;    /* of its stderr */
};

/* Returns GPU_OK if the answer is complete. Otherwise returns the status, and a reason that names
 * the last probe begun, the signal or exit code, and the end of stderr. out_reason is NULL for
 * GPU_OK; freed with free(). */
enum gpu_status outcome_judge(const struct outcome *outcome, const struct ending *ending,
                              char **out_reason);

/* Makes the GPU's result: keeps what the worker had finished, with the announced identity. */
void outcome_result(struct outcome *outcome, const struct ending *ending,
                    const struct gpu_result *identity, int32_t rank, struct gpu_result *out_result);

#endif
