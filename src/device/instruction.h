/* The instructions that a device can be asked to execute. One row each; a new row is measured,
 * simulated and reported without further code. */
#ifndef GPUMEMTOPO_DEVICE_INSTRUCTION_H
#define GPUMEMTOPO_DEVICE_INSTRUCTION_H

#include <stddef.h>
#include <stdint.h>

/* Where a chain of atomic operations points to. Each word holds its own address, or that of another
 * word of the chain, and the operation leaves it so: the next one needs the result of the last. */
enum instruction_place {
    INSTRUCTION_NOWHERE, /* no memory */
    INSTRUCTION_SHARED_OWN,
    INSTRUCTION_SHARED_WARP, /* all lanes of a warp the same word */
    INSTRUCTION_GLOBAL_OWN,
    INSTRUCTION_GLOBAL_WARP,
    INSTRUCTION_GLOBAL_ALL, /* the whole GPU the same word */
};

/* The text is PTX: $r0 ... are the registers of the chain, read and written; $a0 ... and $b0 ...
 * operands that do not change; $z is 0, which the compiler does not know. $i, $d, $h and $p are
 * scratch: registers of 32, 64 and 16 bits and a predicate. */
struct instruction {
    const char *name; /* "fp32_fma" */
    uint32_t bits;    /* of the registers of chains and operands: 16, 32 or 64 */
    enum instruction_place place;
    uint32_t registers;  /* of a chain */
    uint32_t capability; /* 80: GPUs of compute capability 8.0 and later have it */
    uint32_t operations; /* of one instruction of a warp; a multiply-add is two */
    uint32_t machine;    /* machine instructions, at most; more: the GPU imitates it by others */
    const char *text;
};

enum {
    INSTRUCTIONS_MAX = 64,
    INSTRUCTION_CHAINS_MAX = 8,
    INSTRUCTION_WARPS_MAX = 32,
    INSTRUCTION_LENGTH_MAX = 4096,
};
extern const struct instruction instruction_table[];
extern const size_t instruction_count;

#endif
