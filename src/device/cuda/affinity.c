/* CPUs near a GPU, by NVML. */
#include "device/cuda/affinity.h"

#include <limits.h>

enum {
    WORD_BITS = sizeof(unsigned long) * CHAR_BIT,
    WORDS = CPU_SETSIZE / WORD_BITS,
};

bool affinity_near(struct affinity *affinity, const struct nvml_gpu *gpu)
{
    unsigned long near[WORDS] = {0};
    cpu_set_t both;
    if (!gpu->handle || !gpu->nvml->cpu_affinity ||
        gpu->nvml->cpu_affinity(gpu->handle, WORDS, near) != NVML_OK ||
        sched_getaffinity(0, sizeof affinity->before, &affinity->before))
        return false;
    CPU_ZERO(&both);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (near[cpu / WORD_BITS] >> cpu % WORD_BITS & 1 && CPU_ISSET(cpu, &affinity->before))
            CPU_SET(cpu, &both);
    if (!CPU_COUNT(&both) || sched_setaffinity(0, sizeof both, &both))
        return false;
    affinity->changed = true;
    return true;
}

void affinity_restore(struct affinity *affinity)
{
    if (affinity->changed)
        sched_setaffinity(0, sizeof affinity->before, &affinity->before);
    affinity->changed = false;
}
