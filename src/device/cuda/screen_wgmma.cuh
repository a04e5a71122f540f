/* The kernels that screen the tensor units by wgmma: in each period other operands. Each warp has
 * the same 16 rows of A, so that all warps have the same result. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_WGMMA_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_WGMMA_CUH

#include "screen_block.cuh"
#include "wgmma.cuh"

enum { WGMMA_ROUNDS = 8, WGMMA_SETS = 4 }; /* of operands, one a period */

#define FILL_TILE(form, set, tile, rows, distinct_rows, words)                                     \
    for (uint32_t i = threadIdx.x; i < (rows) * (ROW_BYTES / 4); i += blockDim.x) {                \
        uint32_t row = i / (ROW_BYTES / 4), word = i % (ROW_BYTES / 4);                            \
        uint32_t number = row % (distinct_rows) * (ROW_BYTES / 4) + word;                          \
        (words)[byte_at(row, 4 * word) / 4] = form(                                                \
            screen_operand((set)*64 + (tile)*32 + number / 512, number % 32, number / 32 % 16));   \
    }

#define DEFINE_WGMMA_SCREEN(name, form, instruction, flags)                                        \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        screen_wgmma_##name(const struct kernel_screen s)                                          \
    {                                                                                              \
        __shared__ __align__(128) uint32_t tile_a[GROUP_ROWS * ROW_BYTES / 4];                     \
        __shared__ __align__(128) uint32_t tile_b[CHECK_WGMMA_COLUMNS * ROW_BYTES / 4];            \
        float d[ACCUMULATORS];                                                                     \
        uint64_t sum = 0;                                                                          \
        const uint64_t a = descriptor_of(tile_a), b = descriptor_of(tile_b);                       \
        for (uint32_t i = 0; i < ACCUMULATORS; i++)                                                \
            d[i] = 0;                                                                              \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (uint32_t p = 0; p < s.periods; p++)                               \
        {                                                                                          \
            FILL_TILE(form, p % WGMMA_SETS, 0, GROUP_ROWS, CHECK_ROWS, tile_a)                     \
            FILL_TILE(form, p % WGMMA_SETS, 1, CHECK_WGMMA_COLUMNS, CHECK_WGMMA_COLUMNS, tile_b)   \
            asm volatile("fence.proxy.async;" ::: "memory");                                       \
            __syncthreads();                                                                       \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                \
            WGMMA(instruction, "1", flags, 0);                                                     \
            _Pragma("unroll") for (uint32_t r = 0; r < WGMMA_ROUNDS; r++)                          \
            {                                                                                      \
                WGMMA(instruction, "-1", flags, 1);                                                \
                WGMMA(instruction, "1", flags, 1);                                                 \
                WGMMA(instruction, "1", flags, 1);                                                 \
            }                                                                                      \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                         \
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                         \
            _Pragma("unroll") for (uint32_t i = 0; i < ACCUMULATORS; i++)                          \
            {                                                                                      \
                asm volatile("" : "+f"(d[i])::"memory");                                           \
                sum = screen_take(&s, p, i, screen_float_word(d[i]), sum);                         \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
        check_store(s.results, begin, sum);                                                        \
    }

DEFINE_WGMMA_SCREEN(f16, screen_f16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
                    ", 0, 0")
DEFINE_WGMMA_SCREEN(bf16, screen_bf16, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
                    ", 0, 0")
DEFINE_WGMMA_SCREEN(fp8, screen_fp8, "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3", "")

#endif
