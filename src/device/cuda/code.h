/* What the driver's compiler made of a program. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CODE_H
#define GPUMEMTOPO_DEVICE_CUDA_CODE_H

#include <stddef.h>
#include <stdint.h>

/* The machine instructions of a kernel, without those that only fill up its end, and how many of
 * them are the most frequent operation. Of jumping code: how often two blocks that follow each
 * other are CODE_BLOCK_BYTES apart, told by the constants that they compare with; and where the
 * second one begins, in bytes. */
struct machine_code {
    uint64_t count, most, blocks, block_at;
};

/* Of a cubin (an ELF file in memory); zeros if it is not of the form that GPUs since Volta have. */
struct machine_code machine_code_of(const void *cubin, size_t size, const char *kernel);

#endif
