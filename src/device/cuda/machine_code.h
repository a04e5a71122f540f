/* Machine code in memory. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_MACHINE_CODE_H
#define GPUMEMTOPO_DEVICE_CUDA_MACHINE_CODE_H

#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_BYTES = 16 }; /* of every one, since Volta */

/* The machine instructions of a kernel, without those that only fill up its end, and how many of
 * them are the most frequent operation. Of jumping code: how often two blocks that follow each
 * other are CODE_BLOCK_BYTES apart, told by the constants that they compare with; and where the
 * second one begins, in bytes. */
struct machine_code {
    uint64_t count, most, blocks, block_at;
};

/* Of a cubin (an ELF file in memory); zeros if it is not of the form that GPUs since Volta have. */
struct machine_code machine_code_of(const void *cubin, size_t size, const char *kernel);

/* Names the machine code that a GPU takes from a fat binary: equal names, equal instructions, also
 * in other builds by the same toolkit. 0: there is none, or it is compressed. */
uint64_t machine_code_name(const void *fatbin, int capability);

#endif
