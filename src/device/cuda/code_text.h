/* PTX of a kernel that executes one instruction of the table again and again. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CODE_TEXT_H
#define GPUMEMTOPO_DEVICE_CUDA_CODE_TEXT_H

#include "base/str.h"
#include "device/device.h"
#include "device/instruction.h"

enum {
    CODE_LANE_WORDS =
        16, /* of 8 bytes that each lane reads: operands, then the chains' first values */
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
                     uint32_t capability, uint32_t blocks, struct strbuf *out_text);

/* Bytes of `words` for so many blocks. */
size_t code_text_words(const struct device_code *code, const struct instruction *instruction,
                       uint32_t blocks);

#endif
