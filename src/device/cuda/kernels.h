/* What host and kernels have in common: the layout of jobs and results in GPU memory. Plain C that
 * nvcc reads too. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_KERNELS_H
#define GPUMEMTOPO_DEVICE_CUDA_KERNELS_H

#include <stdint.h>

#ifdef __CUDACC__
#define KERNEL_INLINE __host__ __device__ static inline
#else
#define KERNEL_INLINE static inline
#endif

enum {
    KERNEL_STEPS_MAX = 6,
    KERNEL_BIN_COUNT = 256 + 128 * 16,
    KERNEL_HISTOGRAMS = 2, /* kept in shared memory until the job ends */

    /* Job, histograms and kept latencies in shared memory. With the 1 KiB that the system
     * reserves this stays below 32 KiB, the carve-out that a Hopper kernel gets even when it uses
     * no shared memory at all: so buffering does not change the L1 under test. */
    KERNEL_BUFFER_BYTES = 24 * 1024,
    KERNEL_JOB_BYTES = 768,
    KERNEL_WORDS = (KERNEL_BUFFER_BYTES - KERNEL_JOB_BYTES) / 4,

    /* Words of one CHASE step's output: its histogram, then the kept latencies. */
    KERNEL_OUTPUT_WORDS = KERNEL_WORDS,

    KERNEL_CONSTANT_BYTES = 64 * 1024, /* the whole user bank, so that it begins at offset 0 */
    KERNEL_STATIC_BYTES = 256,         /* at least what the chase kernels declare besides */
    KERNEL_WRITTEN_WORD = 0x5a5a5a5a,  /* what streams write: not 0xffffffff, see chase.cu */
};

/* The same values as enum device_step_kind; FILL never reaches the chase kernels. */
enum kernel_kind { KERNEL_WARM, KERNEL_CHASE, KERNEL_AVERAGE };

/* Addresses are in the unit of the path: bytes of the GPU's address space on the global paths and
 * for host memory, bytes from the beginning of the constant bank or of the shared image, elements
 * of 4 bytes in the texture. */
struct kernel_step {
    uint64_t first;       /* address of the first load */
    uint64_t stride;      /* to the next element, where no chain is followed */
    uint64_t span;        /* subtracted after the last element of a pass */
    uint64_t lane_stride; /* between the lanes of the warp */
    uint64_t output;      /* device address of KERNEL_OUTPUT_WORDS words; KERNEL_CHASE only */
    uint32_t kind;
    uint32_t path; /* enum device_path */
    uint32_t chained;
    uint32_t warp;
    uint32_t lanes;
    uint32_t loads;
    uint32_t left;        /* loads to the end of the first pass */
    uint32_t pass;        /* loads of a whole pass */
    uint32_t keep;        /* latencies kept */
    uint32_t keep_at;     /* where, in words of the buffer */
    uint32_t bins_at;     /* where the histogram is, in words of the buffer */
    uint32_t copied_late; /* the buffer is not used again: copied out when the job ends */
    uint32_t index;       /* of the step in its job */
};

struct kernel_job {
    struct kernel_step steps[KERNEL_STEPS_MAX];
    uint64_t image;  /* initial content of the shared arrays; 0: zeros */
    uint64_t result; /* device address of a struct kernel_result */
    uint32_t image_bytes;
    uint32_t step_count;
    uint32_t threads; /* of the block */
    uint32_t reserved;
};

struct kernel_result {
    uint64_t cycles[KERNEL_STEPS_MAX];
    uint64_t elapsed_ns[KERNEL_STEPS_MAX];
    uint32_t sm_id;
    uint32_t done; /* number of steps that ran */
};

/* Where the next element of element i of a cycle stands: order[i + 1], or just i + 1. */
struct kernel_link {
    uint64_t base;   /* address of element 0 */
    uint64_t stride; /* bytes */
    uint64_t order;  /* device address of uint32_t[count]; 0: ascending */
    uint64_t count;
    uint64_t origin; /* subtracted from what is stored: 0 for pointers */
    uint32_t shift;  /* and shifted: 0 for pointers, 2 for texture elements */
    uint32_t wide;   /* 8 bytes are stored, else 4 */
};

/* device_bin_of, for the GPU. */
KERNEL_INLINE uint32_t kernel_bin_of(uint32_t cycles)
{
    if (cycles < 256)
        return cycles;
#ifdef __CUDA_ARCH__
    uint32_t octave = 31 - (uint32_t)__clz((int)cycles);
#else
    uint32_t octave = 31 - (uint32_t)__builtin_clz(cycles);
#endif
    uint32_t bin = 256 + (octave - 8) * 128 + ((cycles >> (octave - 7)) & 127);
    return bin < KERNEL_BIN_COUNT ? bin : KERNEL_BIN_COUNT - 1;
}

#endif
