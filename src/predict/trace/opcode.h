/* What an instruction of an NVIDIA GPU does to memory, by its name as the disassembler prints it.
 */
#ifndef GPUMEMTOPO_PREDICT_TRACE_OPCODE_H
#define GPUMEMTOPO_PREDICT_TRACE_OPCODE_H

#include <stdint.h>

enum opcode_space {
    OPCODE_GLOBAL, /* through the caches */
    OPCODE_COPY,   /* global to shared memory: two addresses per lane, printed apart */
    OPCODE_SHARED,
    OPCODE_LOCAL,
    OPCODE_OTHER,
    OPCODE_SPACES
};

struct opcode {
    enum opcode_space space;
    uint32_t store; /* an atomic counts as one */
    uint32_t bytes; /* of a lane */
};

/* "LDG.E.128", "ATOMG.E.ADD.F64.RN.STRONG.GPU", ... */
struct opcode opcode_read(const char *name);

const char *opcode_space_name(enum opcode_space space);

#endif
