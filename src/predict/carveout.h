/* How much shared memory the driver sets aside for a kernel; L1 has the rest. */
#ifndef GPUMEMTOPO_PREDICT_CARVEOUT_H
#define GPUMEMTOPO_PREDICT_CARVEOUT_H

#include "predict/sm.h"

/* For a GPU of compute capability 9.0, by the warps and the shared memory of a block. */
uint64_t carveout_of_hopper(const struct sm_limits *limits, uint32_t warps, uint64_t shared_bytes);

#endif
