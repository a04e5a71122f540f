/* What the driver's compiler made of a program. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_MACHINE_CODE_H
#define GPUMEMTOPO_DEVICE_CUDA_MACHINE_CODE_H

#include <stddef.h>
#include <stdint.h>

/* The machine instructions of a kernel in a cubin (an ELF file in memory), without those that only
 * fill up its end; 0 if the file is not of the form that GPUs since Volta have. */
uint64_t machine_code_count(const void *cubin, size_t size, const char *kernel);

#endif
