/* Seeded random numbers: seeding and the normal distribution. */
#include "base/rng.h"

#include <math.h>

#include "base/portable_math.h"
#include "base/str.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_derive(uint64_t seed, const char *purpose, uint64_t number)
{
    uint64_t state = seed ^ str_hash(purpose);
    uint64_t mixed = splitmix(&state);
    state = mixed ^ number;
    return splitmix(&state);
}

void rng_init(struct rng *rng, uint64_t seed, const char *purpose)
{
    uint64_t state = rng_derive(seed, purpose, 0);
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix(&state);
}

double rng_normal(struct rng *rng)
{
    double u = 1.0 - rng_uniform(rng); /* (0, 1]: the logarithm stays finite */
    double v = rng_uniform(rng);
    return sqrt(-2.0 * portable_log(u)) * portable_cos(6.283185307179586 * v);
}
