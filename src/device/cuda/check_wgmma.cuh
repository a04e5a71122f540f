/* The kernels that check the tensor units by wgmma, which only compute capability 9.0 has. A warp
 * group of four warps multiplies: each warp has 16 rows of A, the same in all four, so that all
 * warps have the same result. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CHECK_WGMMA_CUH
#define GPUMEMTOPO_DEVICE_CUDA_CHECK_WGMMA_CUH

#include "check_block.cuh"

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

static __device__ void fill_tile(const struct check_format format, uint32_t seed, uint32_t tile,
                                 uint32_t rows, uint32_t distinct_rows, unsigned char *bytes)
{
    uint32_t columns = ROW_BYTES / format.bytes;
    for (uint32_t i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        uint32_t row = i / columns, column = i % columns;
        int32_t value = check_element(seed, tile, row % distinct_rows, column, format.limit);
        uint32_t number = check_number(value, format.exponent, format.mantissa);
        for (uint32_t b = 0; b < format.bytes; b++)
            bytes[byte_at(row, column * format.bytes + b)] = (unsigned char)(number >> (8 * b));
    }
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
#define OUTPUTS4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OUTPUTS16(i) OUTPUTS4(i), OUTPUTS4((i) + 4), OUTPUTS4((i) + 8), OUTPUTS4((i) + 12)

/* d = d * keep + sign * A B. Loops of it are not unrolled completely: the assembler took 20 s. */
#define WGMMA(instruction, sign, flags, keep)                                                      \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; " instruction " {" REGISTERS              \
                 "}, %64, %65, p, 1, " sign flags "; }"                                            \
                 : OUTPUTS16(0), OUTPUTS16(16), OUTPUTS16(32), OUTPUTS16(48)                       \
                 : "l"(a), "l"(b), "r"(keep))

#define DEFINE_WGMMA_CHECK(name, format, instruction, flags)                                       \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        check_wgmma_##name(const struct kernel_check c)                                            \
    {                                                                                              \
        __shared__ __align__(128) unsigned char tile_a[GROUP_ROWS * ROW_BYTES];                    \
        __shared__ __align__(128) unsigned char tile_b[CHECK_WGMMA_COLUMNS * ROW_BYTES];           \
        float d[ACCUMULATORS];                                                                     \
        uint64_t sum = 0;                                                                          \
        fill_tile(format, c.seed, 0, GROUP_ROWS, CHECK_ROWS, tile_a);                              \
        fill_tile(format, c.seed, 1, CHECK_WGMMA_COLUMNS, CHECK_WGMMA_COLUMNS, tile_b);            \
        asm volatile("fence.proxy.async;" ::: "memory");                                           \
        __syncthreads();                                                                           \
        const uint64_t a = descriptor_of(tile_a), b = descriptor_of(tile_b);                       \
        for (uint32_t i = 0; i < ACCUMULATORS; i++)                                                \
            d[i] = 0;                                                                              \
        long long begin = clock64();                                                               \
        for (uint32_t p = 0; p < c.periods; p++) {                                                 \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                \
            WGMMA(instruction, "1", flags, 0);                                                     \
            _Pragma("unroll 4") for (uint32_t s = 0; s < CHECK_TENSOR_STEPS / 2; s++)              \
            {                                                                                      \
                WGMMA(instruction, "-1", flags, 1);                                                \
                WGMMA(instruction, "1", flags, 1);                                                 \
            }                                                                                      \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                         \
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                         \
            _Pragma("unroll") for (uint32_t i = 0; i < ACCUMULATORS; i++)                          \
            {                                                                                      \
                asm volatile("" : "+f"(d[i])::"memory");                                           \
                sum = check_fold(sum, (uint32_t)(int32_t)d[i]);                                    \
            }                                                                                      \
        }                                                                                          \
        check_store(&c, begin, sum);                                                               \
    }

DEFINE_WGMMA_CHECK(f16, CHECK_F16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", ", 0, 0")
DEFINE_WGMMA_CHECK(bf16, CHECK_BF16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
                   ", 0, 0")
DEFINE_WGMMA_CHECK(fp8, CHECK_FP8, "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3", "")

#endif
