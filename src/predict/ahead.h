/* The model's run if no SM waits for its loads: then each SM can run some ticks ahead. */
#ifndef GPUMEMTOPO_PREDICT_AHEAD_H
#define GPUMEMTOPO_PREDICT_AHEAD_H

#include "predict/model_state.h"

/* Whether what the SMs issue does not depend on what hit before. */
bool ahead_is_possible(const struct model_config *config);

/* The counts are those of in_step_run. */
void ahead_run(struct model *model);

#endif
