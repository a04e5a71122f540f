/* The kernels that screen the tensor units by wgmma: in each period other operands. Each warp has
 * the same 16 rows of A, so that all warps have the same result. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_WGMMA_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_WGMMA_CUH

#include "screen_block.cuh"
#include "wgmma.cuh"

/* So many rounds that the tensor units are busy for most of the time. Longer loops are not
 * unrolled: the assembler took 20 s. */
enum { WGMMA_ROUNDS = 80, TILE_STEPS = 32 }; /* steps whose operands a tile may have */

#define FILL_TILE(form, at, tile, rows, distinct_rows, words)                                      \
    for (uint32_t i = threadIdx.x; i < (rows) * (ROW_BYTES / 4); i += blockDim.x) {                \
        uint32_t row = i / (ROW_BYTES / 4), word = i % (ROW_BYTES / 4);                            \
        uint32_t number = row % (distinct_rows) * (ROW_BYTES / 4) + word;                          \
        (words)[byte_at(row, 4 * word) / 4] = SCREEN_FORMED(                                       \
            form, screen_exponent(at, tile, SCREEN_BF16_EXPONENT),                                 \
            (2 * (at) + (tile)) * TILE_STEPS + number / 512, number % 32, number / 32 % 16);       \
    }

/* plus, minus: D = D + A B and D = D - A B; integers have no minus. */
#define DEFINE_WGMMA_SCREEN(name, number, form, plus, minus, word)                                 \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        screen_wgmma_##name(const struct kernel_screen s)                                          \
    {                                                                                              \
        __shared__ __align__(128) uint32_t tile_a[GROUP_ROWS * ROW_BYTES / 4];                     \
        __shared__ __align__(128) uint32_t tile_b[CHECK_WGMMA_COLUMNS * ROW_BYTES / 4];            \
        struct taker taker = taker_begin(&s, 1);                                                   \
        number d[ACCUMULATORS];                                                                    \
        uint64_t sum = 0;                                                                          \
        const uint64_t a = descriptor_of(tile_a), b = descriptor_of(tile_b);                       \
        for (uint32_t i = 0; i < ACCUMULATORS; i++)                                                \
            d[i] = 0;                                                                              \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (; taker.period < s.periods; taker.period++)                       \
        {                                                                                          \
            uint32_t at = taker.at + taker.period;                                                 \
            FILL_TILE(form, at, 0, GROUP_ROWS, CHECK_ROWS, tile_a)                                 \
            FILL_TILE(form, at, 1, CHECK_WGMMA_COLUMNS, CHECK_WGMMA_COLUMNS, tile_b)               \
            asm volatile("fence.proxy.async;" ::: "memory");                                       \
            __syncthreads();                                                                       \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                \
            plus(0);                                                                               \
            _Pragma("unroll 4") for (uint32_t r = 0; r < WGMMA_ROUNDS; r++)                        \
            {                                                                                      \
                minus(1);                                                                          \
                plus(1);                                                                           \
                plus(1);                                                                           \
            }                                                                                      \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                         \
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                         \
            _Pragma("unroll") for (uint32_t i = 0; i < ACCUMULATORS; i++)                          \
            {                                                                                      \
                asm volatile("" : KEEP_##number(d[i])::"memory");                                  \
                sum = screen_take(&taker, i, word(d[i]), sum);                                     \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
        check_store(s.results, begin, sum);                                                        \
    }
#define KEEP_float "+f"
#define KEEP_uint32_t "+r"

#define F16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
#define F16_PLUS(keep) WGMMA(F16, "1", ", 0, 0", keep)
#define F16_MINUS(keep) WGMMA(F16, "-1", ", 0, 0", keep)
#define BF16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
#define BF16_PLUS(keep) WGMMA(BF16, "1", ", 0, 0", keep)
#define BF16_MINUS(keep) WGMMA(BF16, "-1", ", 0, 0", keep)
#define TF32 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32"
#define TF32_PLUS(keep) WGMMA(TF32, "1", "", keep)
#define TF32_MINUS(keep) WGMMA(TF32, "-1", "", keep)
#define FP8 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"
#define FP8_PLUS(keep) WGMMA(FP8, "1", "", keep)
#define FP8_MINUS(keep) WGMMA(FP8, "-1", "", keep)
#define INT_WORD(x) (x)
#define INT8_PLUS(keep)                                                                            \
    WGMMA_OF("+r", "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8", "", keep)

DEFINE_WGMMA_SCREEN(f16, float, screen_f16, F16_PLUS, F16_MINUS, screen_float_word)
DEFINE_WGMMA_SCREEN(bf16, float, screen_bf16, BF16_PLUS, BF16_MINUS, screen_float_word)
DEFINE_WGMMA_SCREEN(tf32, float, screen_tf32, TF32_PLUS, TF32_MINUS, screen_float_word)
DEFINE_WGMMA_SCREEN(fp8, float, screen_fp8, FP8_PLUS, FP8_MINUS, screen_float_word)
DEFINE_WGMMA_SCREEN(int8, uint32_t, screen_int8, INT8_PLUS, INT8_PLUS, INT_WORD)

#endif
