/* What the kernels of the screen have in common: taking words. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH

#include "screen_armed.cuh"

#include "../screen_program.h"
#include "check_block.cuh"

/* A thread that takes words. */
struct taker {
    const struct kernel_screen *screen;
    uint32_t *trace; /* where it stores them, for the lane; NULL: it does not */
    uint32_t lane, warp, sm, period;
    uint32_t at; /* the step whose operands it has */
};

static __device__ __forceinline__ struct taker taker_begin(const struct kernel_screen *screen,
                                                           uint32_t steps)
{
    struct taker taker = {.screen = screen,
                          .trace = NULL,
                          .lane = threadIdx.x % 32,
                          .warp = threadIdx.x / 32,
                          .at = screen_first_step(screen->set, steps)};
    asm volatile("mov.u32 %0, %%smid;" : "=r"(taker.sm));
    if (screen->trace && taker.sm == screen->trace_sm && taker.warp == screen->trace_warp)
        taker.trace = (uint32_t *)screen->trace + taker.lane;
    return taker;
}

/* A word that the hardware gave. In the armed build, which only tests have (SCREEN_ARMED), those
 * that the flip names are changed. */
static __device__ __forceinline__ uint32_t screen_see(const struct taker *taker, uint32_t number,
                                                      uint32_t word)
{
    const struct kernel_screen *screen = taker->screen;
#ifdef SCREEN_ARMED
    const struct kernel_screen_flip *flip = &screen->flip;
    if (screen_armed_here(flip, number) &&
        check_mix(screen->launch * 0x9e3779b1u + taker->period * 0x85ebca6bu + number) <=
            flip->chance)
        word = screen_armed_word(flip, word);
#endif
    if (taker->trace)
        taker->trace[(taker->period * screen->period_words + number) * CHECK_LANES] = word;
    return word;
}

static __device__ __forceinline__ uint64_t screen_take(const struct taker *taker, uint32_t number,
                                                       uint32_t word, uint64_t sum)
{
    return check_fold(sum, screen_see(taker, number, word));
}

#endif
