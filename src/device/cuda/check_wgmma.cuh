/* The kernels that check the tensor units by wgmma: each warp has 16 rows of A, the same in all
 * four, so that all warps have the same result. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CHECK_WGMMA_CUH
#define GPUMEMTOPO_DEVICE_CUDA_CHECK_WGMMA_CUH

#include "check_block.cuh"
#include "wgmma.cuh"

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
        check_store(c.results, begin, sum);                                                        \
    }

DEFINE_WGMMA_CHECK(f16, CHECK_F16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", ", 0, 0")
DEFINE_WGMMA_CHECK(bf16, CHECK_BF16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
                   ", 0, 0")
DEFINE_WGMMA_CHECK(fp8, CHECK_FP8, "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3", "")

#endif
