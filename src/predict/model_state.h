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

/* Tells how far it has come, if anybody wants to know. */
void model_tell(const struct model *model);

#endif
