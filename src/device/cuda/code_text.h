/* Programs in PTX that the driver compiles at run time. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CODE_TEXT_H
#define GPUMEMTOPO_DEVICE_CUDA_CODE_TEXT_H

#include "base/str.h"
#include "device/device.h"
#include "device/instruction.h"
#include "device/straight.h"

enum {
    CODE_LANE_WORDS =
        16, /* of 8 bytes that each lane reads: operands, then the chains' first values, then 0 */
    CODE_BLOCK_BYTES = 128, /* of jumping code */
};

/* What compiles a program: the compute capability of the GPU, such as 90, and the version of CUDA
 * that the driver supports, such as 13000. */
struct code_target {
    uint32_t capability;
    int driver;
};

/* What a block writes. */
struct code_result {
    uint32_t sm_id, unused;
    uint64_t begin[INSTRUCTION_WARPS_MAX], end[INSTRUCTION_WARPS_MAX]; /* by the clock of the SM */
};

/* The kernel is called "code". Parameters: results (struct code_result of each block), data
 * (CODE_LANE_WORDS of each lane), words (for atomic operations on global memory: see
 * code_text_words), 32-bit repeats. */
void code_text_write(const struct device_code *code, const struct instruction *instruction,
                     const struct code_target *target, uint32_t blocks, struct strbuf *out_text);

/* Bytes of `words` for so many blocks. */
size_t code_text_words(const struct device_code *code, const struct instruction *instruction,
                       uint32_t blocks);

/* By the hardware's id of the SM. */
struct straight_place {
    uint32_t entry;   /* code_text_straight_entry; of jumping code: blocks */
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
    uint64_t constant_cycles;
};

/* The kernel is called "straight"; a block has one warp. Parameters: results (struct
 * straight_result of each block), places (struct straight_place), meeting (struct
 * straight_meeting), data (CODE_LANE_WORDS of each lane). */
void code_text_write_straight(const struct code_target *target, struct strbuf *out_text);

/* The number of the label where the last `length` instructions of a copy begin. */
uint32_t code_text_straight_entry(uint32_t copy, uint32_t length);

/* Jumping code: so many blocks, and instructions before them. */
struct walk_text {
    uint32_t stride, blocks, padding;
};

/* The kernel is called "walk". Parameters as those of "straight", and 32-bit loads of constants.
 * The module has 64 KiB of constants called "chain". */
void code_text_write_walk(const struct code_target *target, const struct walk_text *walk,
                          struct strbuf *out_text);

#endif
