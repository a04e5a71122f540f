/* Allocation whose size arithmetic cannot overflow. NULL means out of memory, never abort. */
#ifndef GPUMEMTOPO_BASE_MEM_H
#define GPUMEMTOPO_BASE_MEM_H

#include <stddef.h>

/* Elements of an array that is no pointer. */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* count elements of size bytes, zeroed; never NULL for count 0 unless memory is out. Freed with
 * free(). */
void *mem_array(size_t count, size_t size);

/* Makes room for at least `needed` elements in a growing array: doubles *capacity when it must.
 * Returns the (possibly moved) array, or NULL with the old one still valid. New room is zeroed. */
void *mem_grow(void *array, size_t *capacity, size_t needed, size_t size);

#endif
