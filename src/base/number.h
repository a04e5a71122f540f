/* Primes and powers of two. */
#ifndef GPUMEMTOPO_BASE_NUMBER_H
#define GPUMEMTOPO_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

static inline bool number_is_power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

static inline bool number_is_prime(uint64_t n)
{
    for (uint64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

/* The smallest prime that is not below n. */
static inline uint64_t number_prime_from(uint64_t n)
{
    while (!number_is_prime(n))
        n++;
    return n;
}

#endif
