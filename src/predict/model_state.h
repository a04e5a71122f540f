/* What a run of the model consists of. */
#ifndef GPUMEMTOPO_PREDICT_MODEL_STATE_H
#define GPUMEMTOPO_PREDICT_MODEL_STATE_H

#include "predict/hierarchy.h"

struct model {
    const struct model_config *config;
    const struct kernel_launch *launch;
    struct block_map map;
    struct hierarchy hierarchy;
    struct sm *sms;
};

/* A block of this SM has ended. Where SMs compete for blocks, the place stays vacant to the end of
 * the tick; otherwise the SM's next block begins at once. */
void model_refill(struct model *model, struct sm *sm, uint32_t place);

/* Tells how far it has come, if anybody wants to know. */
void model_tell(const struct model *model);

/* The run if what an SM issues depends on what hit before. */
void model_run_in_step(struct model *model);

/* Whether what the SMs issue does not depend on what hit before: then no SM waits for its loads,
 * and each can run some ticks ahead. That run has the counts of model_run_in_step. */
bool model_may_run_ahead(const struct model_config *config);
void model_run_ahead(struct model *model);

#endif
