/* What the kernels of screen.cu and screen_wgmma.cuh have in common: taking words. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH

#include "screen_armed.cuh"

#include "../screen_program.h"
#include "check_block.cuh"

/* Folds a word into a lane's sum. In the armed build, which only tests have (SCREEN_ARMED), the
 * word that s->flip names is changed: what to change is data, so clean and faulty runs have the
 * same machine code. */
static __device__ __forceinline__ uint64_t screen_take(const struct kernel_screen *s,
                                                       uint32_t period, uint32_t word_number,
                                                       uint32_t word, uint64_t sum)
{
#ifdef SCREEN_ARMED
    const struct kernel_screen_flip *flip = &s->flip;
    bool here = flip->bits && blockIdx.x == flip->block && threadIdx.x == flip->thread &&
                (word_number == flip->word || flip->word == KERNEL_SCREEN_EVERY_WORD);
    if (here &&
        check_mix(s->launch * 0x9e3779b1u + period * 0x85ebca6bu + word_number) <= flip->chance)
        word ^= flip->bits;
#endif
    return check_fold(sum, word);
}

#endif
