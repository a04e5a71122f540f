/* The caches of the CPU, by instructions that need no privilege. */
#include "base/cpu_cache.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* clflushopt does not wait for the line before, so that it takes a tenth of the time. */
static bool has_clflushopt(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLFLUSHOPT);
}

__attribute__((target("clflushopt"))) static void evict_at_once(const char *bytes, size_t count,
                                                                size_t stride)
{
    for (size_t i = 0; i < count; i += stride)
        __builtin_ia32_clflushopt(bytes + i);
}

void cpu_cache_evict(const void *bytes, size_t count, size_t stride)
{
    const char *from = bytes;
    if (has_clflushopt())
        evict_at_once(from, count, stride);
    else
        for (size_t i = 0; i < count; i += stride)
            __builtin_ia32_clflush(from + i);
    __builtin_ia32_mfence();
}
#elif defined(__aarch64__)
void cpu_cache_evict(const void *bytes, size_t count, size_t stride)
{
    const char *from = bytes;
    for (size_t i = 0; i < count; i += stride)
        __asm__ volatile("dc civac, %0" : : "r"(from + i) : "memory");
    __asm__ volatile("dsb sy" : : : "memory");
}
#else
void cpu_cache_evict(const void *bytes, size_t count, size_t stride)
{
    (void)bytes;
    (void)count;
    (void)stride;
}
#endif
