/* The model's run if what an SM issues depends on what hit before. */
#ifndef GPUMEMTOPO_PREDICT_IN_STEP_H
#define GPUMEMTOPO_PREDICT_IN_STEP_H

#include "predict/model_state.h"

void in_step_run(struct model *model);

#endif
