/* Allocation that does not fail, and the handler for the end of memory. */
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

static void (*handle_exhausted)(size_t bytes) = mem_say_exhausted;

void mem_on_exhausted(void (*handler)(size_t bytes))
{
    handle_exhausted = handler;
}

/* Neither stdio nor anything else that allocates. */
void mem_say_exhausted(size_t bytes)
{
    char line[160], wanted[48] = "";
    if (bytes)
        snprintf(wanted, sizeof wanted, ": %zu bytes were wanted", bytes);
    int length = snprintf(line, sizeof line, "%.80s: error: out of memory%s\n",
                          program_invocation_short_name, wanted);
    int rc = io_write_all(STDERR_FILENO, line, (size_t)length);
    (void)rc; /* stderr failed: there is nowhere else to report it */
}

_Noreturn void mem_exhausted(size_t bytes)
{
    handle_exhausted(bytes);
    _exit(1);
}

void *mem_array(size_t count, size_t size)
{
    void *array = calloc(count ? count : 1, size ? size : 1);
    if (!array)
        mem_exhausted(size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
    return array;
}

void *mem_bytes(size_t count)
{
    void *bytes = malloc(count ? count : 1);
    if (!bytes)
        mem_exhausted(count);
    return bytes;
}

void *mem_resize(void *array, size_t old, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        mem_exhausted(SIZE_MAX);
    char *resized = realloc(array, count && size ? count * size : 1);
    if (!resized)
        mem_exhausted(count * size);
    if (count > old)
        memset(resized + old * size, 0, (count - old) * size);
    return resized;
}

void *mem_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
    if (array && needed <= *capacity)
        return array;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2)
            mem_exhausted(SIZE_MAX);
        wanted *= 2;
    }
    array = mem_resize(array, array ? *capacity : 0, wanted, size);
    *capacity = wanted;
    return array;
}
