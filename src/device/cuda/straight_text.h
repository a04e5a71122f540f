/* PTX of the kernel that executes straight code. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_STRAIGHT_TEXT_H
#define GPUMEMTOPO_DEVICE_CUDA_STRAIGHT_TEXT_H

#include "base/str.h"
#include "device/straight.h"

/* By the hardware's id of the SM. */
struct straight_place {
    uint32_t entry;   /* straight_text_entry */
    uint32_t repeats; /* 0: nothing to do. The first block on the SM takes it and leaves 0. */
};

/* Blocks with a job begin together: each adds 1 to `arrived` and waits for the others. */
struct straight_meeting {
    uint32_t arrived, expected;
};

/* What a block writes. */
struct straight_result {
    uint64_t cycles;
    uint32_t sm_id, repeats; /* 0: it had no job, or the others did not come */
};

/* The kernel is called "straight"; a block has one warp. Parameters: results (struct
 * straight_result of each block), places (struct straight_place), meeting (struct
 * straight_meeting), data (CODE_LANE_WORDS of each lane). */
void straight_text_write(uint32_t capability, struct strbuf *out_text);

/* The number of the label where the last `length` instructions of a copy begin. */
uint32_t straight_text_entry(uint32_t copy, uint32_t length);

#endif
