/* Seeded random numbers: xoshiro256** (Blackman, Vigna 2018), one stream per purpose. */
#ifndef GPUMEMTOPO_BASE_RNG_H
#define GPUMEMTOPO_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state[4];
};

/* The same seed and purpose give the same stream; different purposes are independent. */
void rng_init(struct rng *rng, uint64_t seed, const char *purpose);

/* Derives a seed from a seed, a word and a number, for one stream per GPU, job, ... */
uint64_t rng_derive(uint64_t seed, const char *purpose, uint64_t number);

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t x = s[1] * 5;
    uint64_t result = ((x << 7) | (x >> 57)) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform in [0, 1). */
static inline double rng_uniform(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* Uniform in [0, bound); bound > 0. For bounds below 2^32 the bias of the multiply-shift is below
 * 2^-32, negligible here. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)rng_next(rng) * bound) >> 64);
}

/* Standard normal. */
double rng_normal(struct rng *rng);

#endif
