/* The instruction wgmma, which only compute capability 9.0 has. A warp group of four warps
 * multiplies: each warp has 16 rows of A. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_WGMMA_CUH
#define GPUMEMTOPO_DEVICE_CUDA_WGMMA_CUH

#include <stdint.h>

enum {
    GROUP_ROWS = 64,
    ROW_BYTES = 32,
    BLOCK_ROWS = 8, /* of a core matrix: 8 rows of 16 bytes */
    NEXT_COLUMNS = 128,
    NEXT_ROWS = 256,   /* bytes from a core matrix to its neighbours */
    ACCUMULATORS = 64, /* of a thread: 64 x 128 / 128 threads */
};

/* Shared memory without swizzle: core matrices of 8 rows of 16 bytes. */
static __device__ uint32_t byte_at(uint32_t row, uint32_t byte)
{
    return row / BLOCK_ROWS * NEXT_ROWS + byte / 16 * NEXT_COLUMNS + row % BLOCK_ROWS * 16 +
           byte % 16;
}

/* The descriptor of a tile: its address and the distances between core matrices, in 16 bytes. */
static __device__ uint64_t descriptor_of(const void *tile)
{
    uint64_t address = (uint64_t)__cvta_generic_to_shared(tile);
    return (address & 0x3ffff) >> 4 | (uint64_t)(NEXT_COLUMNS >> 4) << 16 |
           (uint64_t)(NEXT_ROWS >> 4) << 32;
}

#define REGISTERS                                                                                  \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                                             \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                                     \
    "%24, %25, %26, %27, %28, %29, %30, %31, "                                                     \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                                                     \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                                                     \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                                                     \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define OUTPUTS4(of, i) of(d[i]), of(d[(i) + 1]), of(d[(i) + 2]), of(d[(i) + 3])
#define OUTPUTS16(of, i)                                                                           \
    OUTPUTS4(of, i), OUTPUTS4(of, (i) + 4), OUTPUTS4(of, (i) + 8), OUTPUTS4(of, (i) + 12)

/* d = d * keep + A B, whose elements are of: "+f" or "+r". Long loops of it are not unrolled
 * completely: the assembler took 20 s. */
#define WGMMA_OF(of, instruction, rest, keep)                                                      \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; " instruction " {" REGISTERS              \
                 "}, %64, %65, p" rest "; }"                                                       \
                 : OUTPUTS16(of, 0), OUTPUTS16(of, 16), OUTPUTS16(of, 32), OUTPUTS16(of, 48)       \
                 : "l"(a), "l"(b), "r"(keep))
/* d = d * keep + sign * A B */
#define WGMMA(instruction, sign, flags, keep) WGMMA_OF("+f", instruction, ", 1, " sign flags, keep)

#endif
