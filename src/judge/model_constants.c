/* The constants of the model of a healthy figure. */
#include "judge/model.h"

double model_constants[MODEL_CONSTANTS] = {
    [LEVELS_APART] = 0.025, [SITES_APART] = 0.0025,  [PRIOR_PART] = 1.0 / 24,
    [PRIOR_DOF] = 3,        [WORLD_SURE] = 0.7,      [KIND_DOF] = 4,
    [SPREAD_PART] = 0.25,   [RESOLUTION] = 0.001,    [OWN_PART] = 0.5,
    [SHARE_FOUND] = 0.03,   [SHARE_STATED] = 0.15,   [TAIL_DOF] = 8,
    [CONTRADICTION] = 3,    [SHARP_SCORE] = 6,       [NEAR_END] = 0.75,
    [BEYOND_MAX] = 0.05,    [BUILT_APART] = 0.045,   [FEW_LOSS] = 0.1,
    [FULL_SURVEY] = 128,    [WATCHED_SHARE] = 0.005, [CORRELATION] = 0.5,
    [WATCH_OWN] = 1.5,      [JOIN_SCORE] = 2,        [SECOND_SCORE] = 3,
    [PLACES_APART] = 0.02,
};
