/* Sorting with one result on every machine. */
#ifndef GPUMEMTOPO_BASE_SORT_H
#define GPUMEMTOPO_BASE_SORT_H

#include <stddef.h>

/* As qsort and qsort_r, but items that are equal by `order` keep their order: C leaves theirs open,
 * and what is printed or measured next must not depend on the C library. Needs memory for half of
 * the items. */
void sort_stable(void *items, size_t count, size_t size, int (*order)(const void *, const void *));
void sort_stable_with(void *items, size_t count, size_t size,
                      int (*order)(const void *, const void *, void *user), void *user);

/* The order of uint64_t. */
int sort_by_u64(const void *a, const void *b);

#endif
