/* Programs that the driver compiles at run time, and the numbers that they compute with. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CODE_PROGRAM_H
#define GPUMEMTOPO_DEVICE_CUDA_CODE_PROGRAM_H

#include "base/str.h"
#include "device/cuda/gpu.h"
#include "device/cuda/machine_code.h"

struct code_program {
    CUmodule module; /* the caller unloads it */
    CUfunction kernel;
    struct machine_code machine; /* of the kernel; count 0: not known */
};

/* Compiles a text for GPUs of a compute capability such as 90, and finds its kernel. `fast` is for
 * long programs: less is optimised. -ENOTSUP if the driver does not compile it. */
int code_program_compile(struct cuda_gpu *gpu, const struct strbuf *text, const char *kernel,
                         uint32_t capability, bool fast, struct code_program *out_program,
                         struct err *err);

/* Writes CODE_LANE_WORDS numbers of each lane to the staging `jobs`. */
int code_program_upload_data(struct cuda_gpu *gpu, uint32_t bits, struct err *err);

#endif
