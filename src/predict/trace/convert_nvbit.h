/* Lines and opcodes of what the tool mem_trace of NVBit prints. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_CONVERT_NVBIT_H
#define GPUMEMTOPO_PREDICT_TRACE_CONVERT_NVBIT_H

#include <stdbool.h>
#include <stdint.h>

#include "predict/trace/head.h"
#include "predict/warp.h"

enum nvbit_kind {
    NVBIT_OTHER, /* the program's own output, the tool's banner */
    NVBIT_LAUNCH,
    NVBIT_ACCESS,
};

enum { NVBIT_OPCODE_MAX = 64 };

struct nvbit_line {
    enum nvbit_kind kind;
    bool has_id, has_pc;
    uint64_t id; /* of the launch */
    /* of a launch: */
    struct trace_head head;
    /* of an access: */
    uint32_t cta[3], warp;
    uint64_t pc;
    char opcode[NVBIT_OPCODE_MAX];
    uint64_t addresses[WARP_LANES]; /* as printed; 0: the lane is not active */
};

/* 0, or -EINVAL: it begins like a line of the tool and goes on otherwise; then where in the line,
 * and what was expected. */
int nvbit_line_read(const char *line, struct nvbit_line *out_line, const char **out_at,
                    const char **out_expected);

#endif
