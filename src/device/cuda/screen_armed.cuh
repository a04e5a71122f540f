/* The armed build of the screen, which only tests have: bits of operands, of results and of the
 * sums between can be made wrong. What to change is data, so that clean and faulty runs have the
 * same machine code. Included before screen_program.h. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_ARMED_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_ARMED_CUH

#include "kernels.h"

#ifdef SCREEN_ARMED
extern "C" {
__constant__ struct kernel_screen_flip screen_operand_flip, screen_sum_flip;
}

static __device__ inline bool screen_armed_here(const struct kernel_screen_flip *flip,
                                                uint32_t number)
{
    uint32_t sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return flip->bits && sm == flip->sm && threadIdx.x == flip->thread &&
           number % flip->every == flip->word;
}

static __device__ inline uint32_t screen_armed_word(const struct kernel_screen_flip *flip,
                                                    uint32_t word)
{
    if (flip->force == KERNEL_SCREEN_SETS)
        return word | flip->bits;
    return flip->force == KERNEL_SCREEN_CLEARS ? word & ~flip->bits : word ^ flip->bits;
}

static __host__ __device__ inline uint32_t screen_armed_operand(uint32_t number, uint32_t bits)
{
#ifdef __CUDA_ARCH__
    if (screen_armed_here(&screen_operand_flip, number))
        bits = screen_armed_word(&screen_operand_flip, bits);
#endif
    return bits;
}
#define SCREEN_ARMED_OPERAND(number, bits) screen_armed_operand(number, bits)

/* Four words of a sum of the tensor units, between two instructions. */
static __device__ __forceinline__ void screen_armed_sum(uint32_t number, void *sum)
{
    uint32_t words[4];
    memcpy(words, sum, sizeof words);
    for (uint32_t i = 0; i < 4; i++)
        if (screen_armed_here(&screen_sum_flip, number + i))
            words[i] = screen_armed_word(&screen_sum_flip, words[i]);
    memcpy(sum, words, sizeof words);
}
#define SCREEN_ARMED_SUM(number, sum) screen_armed_sum(number, sum)
#else
#define SCREEN_ARMED_SUM(number, sum) ((void)0)
#endif

#endif
