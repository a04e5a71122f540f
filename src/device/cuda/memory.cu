/* The kernels that test the whole memory: write a pattern, read it back and compare, and loads that
 * depend on each other at random places. */
#include "kernels.h"

enum { UNROLL = 4 };

/* A thread's place among those that share the work. */
struct place {
    uint64_t index, threads;
};

/* All threads of the launch. */
static __device__ __forceinline__ struct place place_of_all(void)
{
    return {(uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)gridDim.x * blockDim.x};
}

template <enum kernel_pattern PATTERN>
static __device__ __forceinline__ void write_all(const struct kernel_region region,
                                                 struct place place)
{
    for (uint64_t i = place.index; i < region.count; i += place.threads) {
        uint64_t at = region.offset + 16 * i;
        ulonglong2 v = make_ulonglong2(kernel_pattern_word(PATTERN, at, region.seed),
                                       kernel_pattern_word(PATTERN, at + 8, region.seed));
        __stcs((ulonglong2 *)(region.base + 16 * i), v);
    }
}

static __device__ void add_wrong_word(const struct kernel_region *region, uint64_t at,
                                      uint64_t bits)
{
    struct kernel_region_result *result = (struct kernel_region_result *)region->result;
    atomicAdd((unsigned long long *)&result->wrong_words, 1ull);
    atomicMin((unsigned long long *)&result->wrong_offset, (unsigned long long)at);
    atomicOr((unsigned long long *)&result->wrong_bits, (unsigned long long)bits);
}

template <enum kernel_pattern PATTERN>
static __device__ __forceinline__ void compare(const struct kernel_region *region, uint64_t i,
                                               ulonglong2 v)
{
    uint64_t at = region->offset + 16 * i;
    uint64_t x = v.x ^ kernel_pattern_word(PATTERN, at, region->seed);
    uint64_t y = v.y ^ kernel_pattern_word(PATTERN, at + 8, region->seed);
    if (x)
        add_wrong_word(region, 16 * i, x);
    if (y)
        add_wrong_word(region, 16 * i + 8, y);
}

/* All UNROLL loads are in flight before the first is compared. Each pass writes the whole memory
 * before it is read, so what L2 still holds is a small part of the regions that were written last,
 * and the untimed launches before the first region replace that. */
template <enum kernel_pattern PATTERN>
static __device__ __forceinline__ void check_all(const struct kernel_region region,
                                                 struct place place)
{
    uint64_t threads = place.threads, i = place.index;
    for (; i + (UNROLL - 1) * threads < region.count; i += UNROLL * threads) {
        ulonglong2 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            v[u] = __ldcs((const ulonglong2 *)(region.base + 16 * (i + u * threads)));
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            compare<PATTERN>(&region, i + u * threads, v[u]);
    }
    for (; i < region.count; i += threads)
        compare<PATTERN>(&region, i, __ldcs((const ulonglong2 *)(region.base + 16 * i)));
}

#define DEFINE_PATTERN(name, pattern)                                                              \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        memory_write_##name(const struct kernel_region region)                                     \
    {                                                                                              \
        write_all<pattern>(region, place_of_all());                                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        memory_check_##name(const struct kernel_region region)                                     \
    {                                                                                              \
        check_all<pattern>(region, place_of_all());                                                \
    }

DEFINE_PATTERN(address, KERNEL_PATTERN_ADDRESS)
DEFINE_PATTERN(inverse, KERNEL_PATTERN_INVERSE)
DEFINE_PATTERN(walking, KERNEL_PATTERN_WALKING)
DEFINE_PATTERN(random, KERNEL_PATTERN_RANDOM)

/* Every second block writes the first half of the region, while the others check the second half.
 * Both halves keep the pattern of the whole region. */
extern "C" __global__ void __launch_bounds__(1024) memory_exchange(struct kernel_region region)
{
    uint32_t half_grid = gridDim.x / 2, block = blockIdx.x / 2;
    const struct place place = {(uint64_t)block * blockDim.x + threadIdx.x,
                                (uint64_t)half_grid * blockDim.x};
    if (block >= half_grid)
        return;
    region.count /= 2;
    if (blockIdx.x % 2) {
        region.base += 16 * region.count;
        region.offset += 16 * region.count;
        check_all<KERNEL_PATTERN_ADDRESS>(region, place);
    } else {
        write_all<KERNEL_PATTERN_ADDRESS>(region, place);
    }
}

static __device__ void log_wrong_word(const struct kernel_march *march, uint64_t at,
                                      uint64_t expected, uint64_t found)
{
    struct kernel_march_log *log = (struct kernel_march_log *)march->log;
    if (!log)
        return;
    atomicMin((unsigned long long *)&log->first, (unsigned long long)at);
    unsigned long long number = atomicAdd((unsigned long long *)&log->wrong, 1ull);
    if (number < KERNEL_WRONG_WORDS)
        log->words[number] = {at, expected, found, march->read};
}

/* An element of the March test. Neighbouring threads take neighbouring elements, so "upwards" and
 * "downwards" hold for steps of some MiB. */
template <bool READS, bool WRITES, bool DOWN>
static __device__ __forceinline__ void march_over(const struct kernel_march march)
{
    struct place place = place_of_all();
    for (uint64_t k = place.index; k < march.count; k += place.threads) {
        uint64_t at = 16 * (DOWN ? march.count - 1 - k : k);
        ulonglong2 *element = (ulonglong2 *)(march.base + at);
        uint64_t x = kernel_march_word(&march, at), y = kernel_march_word(&march, at + 8);
        if (READS) {
            ulonglong2 v = __ldcs(element);
            if (v.x != x)
                log_wrong_word(&march, at, x, v.x);
            if (v.y != y)
                log_wrong_word(&march, at + 8, y, v.y);
        }
        if (WRITES)
            __stcs(element, make_ulonglong2(~x, ~y));
    }
}

#define DEFINE_MARCH(name, reads, writes, down)                                                    \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        march_##name(const struct kernel_march march)                                              \
    {                                                                                              \
        march_over<reads, writes, down>(march);                                                    \
    }
DEFINE_MARCH(write, false, true, false)
DEFINE_MARCH(up, true, true, false)
DEFINE_MARCH(down, true, true, true)
DEFINE_MARCH(read, true, false, true)

/* Block b: `loads` loads at random places of region b + first. Each place depends on the word that
 * was loaded before. The memory has KERNEL_PATTERN_ADDRESS, whose upper 8 bits are 0, so the places
 * are the same in every region; round 1 has others than round 0. region_bytes is a power of two. */
extern "C" __global__ void memory_chase(uint64_t base, uint64_t region_bytes, uint32_t loads,
                                        uint32_t round, uint32_t first, uint64_t results)
{
    uint32_t region = (blockIdx.x + first) % gridDim.x;
    struct kernel_region_result *result = (struct kernel_region_result *)results + region;
    uint64_t from = base + region * region_bytes, sum = 0;
    uint64_t mask = region_bytes / 8 - 1;
    long long begin = clock64();
    for (uint32_t i = round * loads; i < (round + 1) * loads; i++) {
        uint64_t at = ((uint64_t)kernel_mixed(2 * i) << 16 ^ kernel_mixed(2 * i + 1)) + sum;
        uint64_t v;
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(v) : "l"(from + 8 * (at & mask)));
        sum = v >> 56;
    }
    result->cycles[round] = (uint64_t)(clock64() - begin) + sum;
}
