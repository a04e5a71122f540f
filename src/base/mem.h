/* Allocation that does not fail: where memory ends, a handler ends the process. */
#ifndef GPUMEMTOPO_BASE_MEM_H
#define GPUMEMTOPO_BASE_MEM_H

#include <stddef.h>

/* Number of elements of an array (not of a pointer). */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* count elements of size bytes, zeroed; never NULL, also for count 0. Freed with free(). A count
 * that comes from input is checked against the length of the input before. */
void *mem_array(size_t count, size_t size);

void *mem_bytes(size_t count); /* not zeroed */

/* Makes room for at least `needed` elements in a growing array; doubles *capacity if needed.
 * Returns the array, which may have moved. New elements are zeroed. */
void *mem_grow(void *array, size_t *capacity, size_t needed, size_t size);

/* Makes room for exactly `count` elements in an array of which the first `old` are used. */
void *mem_resize(void *array, size_t old, size_t count, size_t size);

/* For what allocates by itself (libyaml, realpath): reports that `bytes` bytes (0: unknown) could
 * not be had. Calls the handler, then exits with 1. */
_Noreturn void mem_exhausted(size_t bytes);

/* What happens when memory ends, before the process exits with 1. Any thread may call the handler;
 * it must not allocate. Default: one line on stderr (mem_say_exhausted). */
void mem_on_exhausted(void (*handler)(size_t bytes));
void mem_say_exhausted(size_t bytes);

#endif
