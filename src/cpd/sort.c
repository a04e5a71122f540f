/* Sorts doubles with their positions in linear time: radix sort, or insertion sort for few
 * values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd_internal.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, PASSES = 64 / DIGIT_BITS };

/* Below this many values, insertion sort is faster than counting digits. */
enum { FEW = 48 };

bool cpd__finite(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static size_t digit_of(double value, int pass)
{
    return (size_t)(cpd__key(value) >> (pass * DIGIT_BITS)) & (DIGITS - 1);
}

/* Sorts `from` into `to` by digit `pass`. False if all share the digit; nothing was moved then. */
static bool sort_pass(const struct cpd__item *from, struct cpd__item *to, size_t n,
                      const size_t counts[DIGITS], int pass)
{
    if (counts[digit_of(from[0].value, pass)] == n)
        return false;
    size_t next[DIGITS];
    size_t sum = 0;
    for (size_t d = 0; d < DIGITS; d++) {
        next[d] = sum;
        sum += counts[d];
    }
    for (size_t i = 0; i < n; i++)
        to[next[digit_of(from[i].value, pass)]++] = from[i];
    return true;
}

static struct cpd__item *sort_few(const double *values, size_t n)
{
    struct cpd__item *items = mem_array(n, sizeof *items);
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && cpd__key(items[at - 1].value) > cpd__key(values[i]); at--)
            items[at] = items[at - 1];
        items[at] = (struct cpd__item){values[i], i};
    }
    return items;
}

struct cpd__item *cpd__sort(const double *values, size_t n)
{
    if (n < FEW)
        return sort_few(values, n);
    size_t counts[PASSES][DIGITS] = {{0}};
    struct cpd__item *items = mem_array(n, sizeof *items);
    struct cpd__item *spare = mem_array(n, sizeof *spare);
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct cpd__item){values[i], i};
        for (int pass = 0; pass < PASSES; pass++)
            counts[pass][digit_of(values[i], pass)]++;
    }
    for (int pass = 0; pass < PASSES && n > 1; pass++) {
        if (sort_pass(items, spare, n, counts[pass], pass)) {
            struct cpd__item *swap = items;
            items = spare;
            spare = swap;
        }
    }
    free(spare);
    return items;
}
