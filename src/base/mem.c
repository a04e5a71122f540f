/* Checked allocation. */
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *mem_array(size_t count, size_t size)
{
    return calloc(count ? count : 1, size ? size : 1);
}

void *mem_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
    if (array && needed <= *capacity)
        return array;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2)
            return NULL;
        wanted *= 2;
    }
    if (size && wanted > SIZE_MAX / size)
        return NULL;
    char *grown = realloc(array, wanted * size);
    if (!grown)
        return NULL;
    size_t old = array ? *capacity : 0;
    memset(grown + old * size, 0, (wanted - old) * size);
    *capacity = wanted;
    return grown;
}
