/* Which processes compute on a GPU, by NVML's two lists. */
#include "device/cuda/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { TRIES = 4, ROOM = 8, UNTOUCHED = 0xaa };

struct pids {
    unsigned *items;
    size_t count, capacity;
};

static int add(struct pids *pids, unsigned pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i] == pid)
            return 0;
    unsigned *grown = mem_grow(pids->items, &pids->capacity, pids->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    pids->items = grown;
    pids->items[pids->count++] = pid;
    return 0;
}

/* The driver does not say how large its entries are: it shows in how far it wrote. */
static size_t entry_bytes(const unsigned char *buffer, unsigned count)
{
    for (size_t i = count * sizeof(struct nvml_process); i < count * NVML_PROCESS_R535_BYTES; i++)
        if (buffer[i] != UNTOUCHED)
            return NVML_PROCESS_R535_BYTES;
    return sizeof(struct nvml_process);
}

/* Fills a buffer, which grows until all entries fit; processes may start between two tries. */
static int fill(nvml_get_processes *get, nvml_device device, unsigned char **out_buffer,
                unsigned *out_count)
{
    unsigned room = 0;
    for (int i = 0; i < TRIES; i++) {
        size_t bytes = (size_t)room * NVML_PROCESS_R535_BYTES;
        unsigned char *buffer = room ? malloc(bytes) : NULL;
        if (room && !buffer)
            return -ENOMEM;
        if (buffer)
            memset(buffer, UNTOUCHED, bytes);
        unsigned count = room;
        int result = get(device, &count, (struct nvml_process *)buffer);
        if (result == NVML_OK && count <= room) {
            *out_buffer = buffer;
            *out_count = count;
            return NVML_OK;
        }
        free(buffer);
        if (result != NVML_TOO_SMALL)
            return result == NVML_OK ? NVML_INVALID_ARGUMENT : result;
        room = count + ROOM;
    }
    return NVML_TOO_SMALL;
}

static int list(nvml_get_processes *get, nvml_device device, struct pids *pids)
{
    unsigned char *buffer = NULL;
    unsigned count = 0;
    int result = get ? fill(get, device, &buffer, &count) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return result;
    size_t step = entry_bytes(buffer, count);
    for (unsigned i = 0; i < count && result == NVML_OK; i++) {
        unsigned pid;
        memcpy(&pid, buffer + i * step, sizeof pid);
        if (add(pids, pid))
            result = -ENOMEM;
    }
    free(buffer);
    return result;
}

struct processes processes_count(const struct nvml_gpu *gpu)
{
    struct pids pids = {0};
    struct processes processes = {.result = NVML_NOT_SUPPORTED};
    if (!gpu->handle)
        return processes;
    processes.result = list(gpu->nvml->processes, gpu->instance, &pids);
    if (processes.result == NVML_OK &&
        list(gpu->nvml->mps_processes, gpu->instance, &pids) == -ENOMEM)
        processes.result = -ENOMEM; /* other failures are ignored: many systems run no MPS */
    processes.count = (uint32_t)pids.count;
    for (size_t i = 0; i < pids.count; i++)
        processes.own |= pids.items[i] == (unsigned)getpid();
    free(pids.items);
    return processes;
}
