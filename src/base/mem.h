/* Allocation without overflow in the size computation. NULL means out of memory; nothing aborts. */
#ifndef GPUMEMTOPO_BASE_MEM_H
#define GPUMEMTOPO_BASE_MEM_H

#include <stddef.h>

/* Number of elements of an array (not of a pointer). */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* count elements of size bytes, zeroed. Also for count 0, NULL only means out of memory. Freed with
 * free(). */
void *mem_array(size_t count, size_t size);

/* Makes room for at least `needed` elements in a growing array; doubles *capacity if needed.
 * Returns the array, which may have moved, or NULL; then the old one is still valid. New elements
 * are zeroed. */
void *mem_grow(void *array, size_t *capacity, size_t needed, size_t size);

#endif
