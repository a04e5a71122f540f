/* Code on the stand-in for the driver. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_CODE_H
#define GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_CODE_H

#include <cuda.h>
#include <stdint.h>

enum { FAKE_CODE_CYCLES = 5 };

/* Executes the program compiled last, as a launch of so many blocks of so many threads. */
void fake_code_run(unsigned grid, unsigned block, void **parameters);

/* The same for straight code; the hardware's ids of the SMs that the blocks come to. */
void fake_straight_run(unsigned grid, const uint32_t *sm_ids, void **parameters);

#endif
