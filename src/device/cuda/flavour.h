/* The flavours of the kernels: the same sources, compiled by the toolkits that the build had. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_FLAVOUR_H
#define GPUMEMTOPO_DEVICE_CUDA_FLAVOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The files of kernels. X(NAME, file, argument) */
#define CUDA_KERNELS(X, argument)                                                                  \
    X(CHASE, chase, argument)                                                                      \
    X(CHECK, check, argument)                                                                      \
    X(CLUSTER, cluster, argument)                                                                  \
    X(LOAD, load, argument)                                                                        \
    X(MEMORY, memory, argument)                                                                    \
    X(SCREEN, screen, argument)                                                                    \
    X(SHARED_LOAD, shared_load, argument)                                                          \
    X(SM_MAP, sm_map, argument)                                                                    \
    X(STREAM, stream, argument)

enum cuda_kernels {
#define CUDA_KERNELS_NUMBER(name, file, argument) CUDA_KERNELS_##name,
    CUDA_KERNELS(CUDA_KERNELS_NUMBER, )
#undef CUDA_KERNELS_NUMBER
        CUDA_KERNELS_COUNT
};

struct flavour {
    int toolkit; /* 11080: compiled by CUDA 11.8 */
    const int *archs;
    size_t arch_count;
    const unsigned char *fatbins[CUDA_KERNELS_COUNT];
};

/* The oldest driver that runs machine code of some flavour, as 11000: CUDA 11.0. */
int flavour_oldest_driver(void);

/* Machine code runs on GPUs of the same major compute capability and the same or a higher minor
 * one, with drivers of the toolkit's major version or newer. PTX, which the driver compiles (JIT),
 * runs on any newer GPU, with drivers of the toolkit's version or newer. Each architecture of a
 * flavour is there in both forms. Chosen is the newest flavour with machine code, else the newest
 * one with PTX; of those that GPUMEMTOPO_CUDA_TOOLKIT names, such as 11.8, if it is set. capability
 * is 90 for 9.0. -ENOTSUP, with what would serve, if none runs on this GPU with this driver. */
int flavour_choose(int capability, int driver, const struct flavour **out_flavour, struct err *err);

/* Names the machine code of a file of kernels: equal on GPUs that run the same. 0: the driver
 * compiles it for this GPU, and each driver does that in its own way. */
uint64_t flavour_code(const struct flavour *flavour, enum cuda_kernels file, int capability);

bool flavour_is_built(const struct flavour *flavour, int arch);

#endif
