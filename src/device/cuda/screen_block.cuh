/* What the kernels of screen.cu and screen_wgmma.cuh have in common: taking words, and results. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_BLOCK_CUH

#include "../screen_program.h"
#include "kernels.h"

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
        word = flip->stuck ? word | flip->bits : word ^ flip->bits;
#endif
    return check_fold(sum, word);
}

/* Stores the hash of the warp. */
static __device__ __forceinline__ void screen_store(const struct kernel_screen *s, long long begin,
                                                    uint64_t sum)
{
    struct kernel_check_result *result = (struct kernel_check_result *)s->results + blockIdx.x;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long end = clock64();
    uint64_t hash = check_lane_hash(sum, lane);
    for (int apart = 16; apart > 0; apart /= 2)
        hash += __shfl_down_sync(0xffffffffu, (unsigned long long)hash, apart);
    if (lane)
        return;
    result->hashes[warp] = hash;
    result->cycles[warp] = (uint64_t)(end - begin);
    asm volatile("mov.u32 %0, %%smid;" : "=r"(result->sm_id));
}

#endif
