/* The kernels that move as many bytes per second as they can: read, write, copy. There is one
 * kernel per path, access width and number of independent accesses in flight per thread. */
#include "kernels.h"

template <typename T>
static __device__ __forceinline__ uint64_t address(uint64_t base, uint32_t element)
{
    return base + element * (uint64_t)sizeof(T);
}

/* Volatile, so that no pass over the same bytes is optimised away. */
#define DEFINE_LOAD(name, instruction)                                                             \
    struct name {                                                                                  \
        static __device__ __forceinline__ void load(uint64_t base, uint32_t i, uint8_t *to)        \
        {                                                                                          \
            uint32_t value;                                                                        \
            asm volatile(instruction ".u8 %0, [%1];"                                               \
                         : "=r"(value)                                                             \
                         : "l"(address<uint8_t>(base, i)));                                        \
            *to = (uint8_t)value;                                                                  \
        }                                                                                          \
        static __device__ __forceinline__ void load(uint64_t base, uint32_t i, uint16_t *to)       \
        {                                                                                          \
            asm volatile(instruction ".u16 %0, [%1];"                                              \
                         : "=h"(*to)                                                               \
                         : "l"(address<uint16_t>(base, i)));                                       \
        }                                                                                          \
        static __device__ __forceinline__ void load(uint64_t base, uint32_t i, uint32_t *to)       \
        {                                                                                          \
            asm volatile(instruction ".u32 %0, [%1];"                                              \
                         : "=r"(*to)                                                               \
                         : "l"(address<uint32_t>(base, i)));                                       \
        }                                                                                          \
        static __device__ __forceinline__ void load(uint64_t base, uint32_t i, uint2 *to)          \
        {                                                                                          \
            asm volatile(instruction ".v2.u32 {%0, %1}, [%2];"                                     \
                         : "=r"(to->x), "=r"(to->y)                                                \
                         : "l"(address<uint2>(base, i)));                                          \
        }                                                                                          \
        static __device__ __forceinline__ void load(uint64_t base, uint32_t i, uint4 *to)          \
        {                                                                                          \
            asm volatile(instruction ".v4.u32 {%0, %1, %2, %3}, [%4];"                             \
                         : "=r"(to->x), "=r"(to->y), "=r"(to->z), "=r"(to->w)                      \
                         : "l"(address<uint4>(base, i)));                                          \
        }                                                                                          \
    };
DEFINE_LOAD(from_global_cg, "ld.global.cg")
DEFINE_LOAD(from_global_ca, "ld.global.ca")
DEFINE_LOAD(from_read_only, "ld.global.nc")
DEFINE_LOAD(from_shared, "ld.shared")
DEFINE_LOAD(from_constant, "ld.const")

/* The format of the texture decides how many bytes an element has; channels that it does not have
 * are not used. */
struct from_texture {
    static __device__ __forceinline__ uint4 fetch(uint64_t texture, uint32_t i)
    {
        uint4 v;
        asm volatile("tex.1d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(texture), "r"(i));
        return v;
    }
    template <typename T>
    static __device__ __forceinline__ void load(uint64_t texture, uint32_t i, T *to)
    {
        *to = (T)fetch(texture, i).x;
    }
    static __device__ __forceinline__ void load(uint64_t texture, uint32_t i, uint2 *to)
    {
        const uint4 v = fetch(texture, i);
        *to = make_uint2(v.x, v.y);
    }
    static __device__ __forceinline__ void load(uint64_t texture, uint32_t i, uint4 *to)
    {
        *to = fetch(texture, i);
    }
};

/* Past L1. */
struct to_global_cg {
    template <typename T>
    static __device__ __forceinline__ void store(uint64_t base, uint32_t i, T value)
    {
        __stcg((T *)address<T>(base, i), value);
    }
};

#define DEFINE_STORE(name, instruction)                                                            \
    struct name {                                                                                  \
        static __device__ __forceinline__ void store(uint64_t base, uint32_t i, uint8_t v)         \
        {                                                                                          \
            asm volatile(instruction ".u8 [%0], %1;" ::"l"(address<uint8_t>(base, i)),             \
                         "r"((uint32_t)v));                                                        \
        }                                                                                          \
        static __device__ __forceinline__ void store(uint64_t base, uint32_t i, uint16_t v)        \
        {                                                                                          \
            asm volatile(instruction ".u16 [%0], %1;" ::"l"(address<uint16_t>(base, i)), "h"(v));  \
        }                                                                                          \
        static __device__ __forceinline__ void store(uint64_t base, uint32_t i, uint32_t v)        \
        {                                                                                          \
            asm volatile(instruction ".u32 [%0], %1;" ::"l"(address<uint32_t>(base, i)), "r"(v));  \
        }                                                                                          \
        static __device__ __forceinline__ void store(uint64_t base, uint32_t i, uint2 v)           \
        {                                                                                          \
            asm volatile(instruction ".v2.u32 [%0], {%1, %2};" ::"l"(address<uint2>(base, i)),     \
                         "r"(v.x), "r"(v.y));                                                      \
        }                                                                                          \
        static __device__ __forceinline__ void store(uint64_t base, uint32_t i, uint4 v)           \
        {                                                                                          \
            asm volatile(instruction                                                               \
                         ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address<uint4>(base, i)),         \
                         "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));                                  \
        }                                                                                          \
    };
DEFINE_STORE(to_global, "st.global.wb")
DEFINE_STORE(to_shared, "st.shared")

static __device__ __forceinline__ uint32_t mix(uint32_t v)
{
    return v;
}

static __device__ __forceinline__ uint32_t mix(uint2 v)
{
    return v.x ^ v.y;
}

static __device__ __forceinline__ uint32_t mix(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

template <typename T> static __device__ __forceinline__ void pattern(T *v)
{
    *v = (T)KERNEL_WRITTEN_WORD;
}

static __device__ __forceinline__ void pattern(uint2 *v)
{
    v->x = v->y = KERNEL_WRITTEN_WORD;
}

static __device__ __forceinline__ void pattern(uint4 *v)
{
    v->x = v->y = v->z = v->w = KERNEL_WRITTEN_WORD;
}

/* The share of thread `first` of `threads`, in `blocks` blocks, of `count` elements, fewer than
 * 2^31. `draw` is the last random number, the same in all threads. */
struct share {
    uint32_t first, threads, count;
    uint32_t blocks, draw;
};

/* All UNROLL loads are in flight before the first is waited for. The second loop handles a
 * remainder; there is none if the threads share the footprint evenly. */
template <typename L, typename T, int UNROLL>
static __device__ __forceinline__ uint32_t read_pass(uint64_t base, struct share share)
{
    uint32_t sum = 0, i = share.first;
#pragma unroll 1
    for (; i + (UNROLL - 1) * share.threads < share.count; i += UNROLL * share.threads) {
        T v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            L::load(base, i + u * share.threads, &v[u]);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            sum ^= mix(v[u]);
    }
#pragma unroll 1
    for (; i < share.count; i += share.threads) {
        T v;
        L::load(base, i, &v);
        sum ^= mix(v);
    }
    return sum;
}

static __device__ __forceinline__ struct share whole_grid(uint64_t count)
{
    struct share share = {blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x,
                          (uint32_t)count, gridDim.x, 0};
    return share;
}

static __device__ __forceinline__ struct share own_block(uint64_t count)
{
    struct share share = {threadIdx.x, blockDim.x, (uint32_t)count, 1, 0};
    return share;
}

/* In the next pass, each block takes over the share of another block, at a distance that is drawn
 * anew each time. So no SM stays with addresses that happen to be near to it, or far. And no block
 * follows another through the same addresses some passes later: such loads would be merged on the
 * way to L2 (seen on Hopper at 8 MiB: 16.5 TB/s if the next block takes over, 9.5 TB/s at a drawn
 * distance). With one block, the share stays. */
static __device__ __forceinline__ void turn(struct share *share)
{
    share->draw = share->draw * 1664525 + 1013904223;
    share->first += __umulhi(share->draw, share->blocks) * blockDim.x;
    if (share->first >= share->threads)
        share->first -= share->threads;
}

/* Never true for a value stored in memory; it keeps the compiler from removing the loads. */
static __device__ __forceinline__ void keep(uint32_t sum, uint64_t sink)
{
    if (sum == 0xffffffff)
        *(uint32_t *)sink = sum;
}

template <typename L, typename T, int UNROLL>
static __device__ __forceinline__ void read_all(uint64_t base, struct share share, uint32_t passes,
                                                uint64_t sink)
{
    uint32_t sum = 0;
    for (uint32_t p = 0; p < passes; p++, turn(&share))
        sum ^= read_pass<L, T, UNROLL>(base, share);
    keep(sum, sink);
}

template <typename S, typename T, int UNROLL>
static __device__ __forceinline__ void write_pass(uint64_t base, struct share share)
{
    T value;
    pattern(&value);
    uint32_t i = share.first;
#pragma unroll 1
    for (; i + (UNROLL - 1) * share.threads < share.count; i += UNROLL * share.threads) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            S::store(base, i + u * share.threads, value);
    }
#pragma unroll 1
    for (; i < share.count; i += share.threads)
        S::store(base, i, value);
}

template <typename S, typename T, int UNROLL>
static __device__ __forceinline__ void write_all(uint64_t base, struct share share, uint32_t passes)
{
    for (uint32_t p = 0; p < passes; p++, turn(&share))
        write_pass<S, T, UNROLL>(base, share);
}

template <typename T, int UNROLL>
static __device__ __forceinline__ void copy_pass(uint64_t base, uint64_t to, struct share share)
{
    uint32_t i = share.first;
#pragma unroll 1
    for (; i + (UNROLL - 1) * share.threads < share.count; i += UNROLL * share.threads) {
        T v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            from_global_cg::load(base, i + u * share.threads, &v[u]);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            __stcg((T *)address<T>(to, i + u * share.threads), v[u]);
    }
#pragma unroll 1
    for (; i < share.count; i += share.threads) {
        T v;
        from_global_cg::load(base, i, &v);
        __stcg((T *)address<T>(to, i), v);
    }
}

/* Copies from the first half of the footprint to the second. */
template <typename T, int UNROLL>
static __device__ __forceinline__ void copy_all(uint64_t base, struct share share, uint32_t passes)
{
    const uint64_t to = address<T>(base, share.count);
    for (uint32_t p = 0; p < passes; p++, turn(&share))
        copy_pass<T, UNROLL>(base, to, share);
}

enum combination { COMBINE_MUL, COMBINE_ADD, COMBINE_TRIAD };
static const double combine_factor = 3;

template <enum combination C> static __device__ __forceinline__ double combine(double a, double b)
{
    return C == COMBINE_MUL   ? combine_factor * a
           : C == COMBINE_ADD ? a + b
                              : a + combine_factor * b;
}

/* Arrays of count elements follow each other: one or two are read, the last one is written. */
template <enum combination C, int UNROLL>
static __device__ __forceinline__ void combine_all(uint64_t base, struct share share,
                                                   uint32_t passes)
{
    const uint64_t second = address<double2>(base, share.count);
    const uint64_t to = C == COMBINE_MUL ? second : address<double2>(second, share.count);
    for (uint32_t p = 0; p < passes; p++, turn(&share)) {
        uint32_t i = share.first;
#pragma unroll 1
        for (; i < share.count; i += UNROLL * share.threads) {
            double2 a[UNROLL], b[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                uint32_t at = i + u * share.threads;
                if (at >= share.count)
                    continue;
                a[u] = __ldcg((const double2 *)address<double2>(base, at));
                b[u] =
                    C == COMBINE_MUL ? a[u] : __ldcg((const double2 *)address<double2>(second, at));
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                uint32_t at = i + u * share.threads;
                if (at < share.count)
                    __stcg((double2 *)address<double2>(to, at),
                           make_double2(combine<C>(a[u].x, b[u].x), combine<C>(a[u].y, b[u].y)));
            }
        }
    }
}

extern __shared__ uint32_t stream_buffer[];

template <typename T, int UNROLL>
static __device__ __forceinline__ void read_shared(uint64_t bytes, uint32_t passes, uint64_t sink)
{
    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        stream_buffer[i] = i;
    __syncthreads();
    read_all<from_shared, T, UNROLL>(__cvta_generic_to_shared(stream_buffer),
                                     own_block(bytes / sizeof(T)), passes, sink);
}

/* Blocks of 1024 threads that must fit into an SM, which limits the registers. With up to four
 * accesses of 16 bytes in flight, all threads that an SM can hold fit (2048 up to sm_72 and from
 * sm_80 to sm_100); with eight, half of them do. Without a limit the assembler of sm_90 uses only
 * 32 registers: it waits for the first loads before it issues the last, so that of eight loads only
 * five are in flight. */
#if __CUDA_ARCH__ < 750 || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1100)
#define FULL_BLOCKS 2
#else
#define FULL_BLOCKS 1
#endif
#define RESIDENT(unroll) __launch_bounds__(1024, (unroll) > 4 ? 1 : FULL_BLOCKS)

#define DEFINE_STREAM(type, width, unroll)                                                         \
    extern "C" __global__ void RESIDENT(unroll) stream_read_cg_##width##_##unroll(                 \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        read_all<from_global_cg, type, unroll>(base, whole_grid(bytes / width), passes, sink);     \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll) stream_read_ca_##width##_##unroll(                 \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        read_all<from_global_ca, type, unroll>(base, own_block(bytes / width), passes, sink);      \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll) stream_read_shared_##width##_##unroll(             \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        read_shared<type, unroll>(bytes, passes, sink);                                            \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll) stream_write_##width##_##unroll(                   \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        write_all<to_global_cg, type, unroll>(base, whole_grid(bytes / width), passes);            \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll) stream_copy_##width##_##unroll(                    \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        copy_all<type, unroll>(base, whole_grid(bytes / 2 / width), passes);                       \
    }

DEFINE_STREAM(uint32_t, 4, 1)
DEFINE_STREAM(uint32_t, 4, 2)
DEFINE_STREAM(uint32_t, 4, 4)
DEFINE_STREAM(uint32_t, 4, 8)
DEFINE_STREAM(uint2, 8, 1)
DEFINE_STREAM(uint2, 8, 2)
DEFINE_STREAM(uint2, 8, 4)
DEFINE_STREAM(uint2, 8, 8)
DEFINE_STREAM(uint4, 16, 1)
DEFINE_STREAM(uint4, 16, 2)
DEFINE_STREAM(uint4, 16, 4)
DEFINE_STREAM(uint4, 16, 8)

/* The memories and paths of an SM, with accesses of any width. Each block writes memory of its own,
 * which is in its L1: it was read before. All lanes of a warp load the same constants; that the
 * compiler does not know it keeps it from loading them once for the warp. */
enum { PATH_UNROLL = 4 };

extern "C" {
__constant__ uint32_t stream_constants[KERNEL_STREAM_CONSTANT_BYTES / 4];
}

static __device__ __forceinline__ struct share same_for_all(uint64_t count)
{
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    struct share share = {lane >> 5, 1, (uint32_t)count, 1, 0};
    return share;
}

template <typename T>
static __device__ __forceinline__ void write_l1(uint64_t base, uint64_t bytes, uint32_t passes,
                                                uint64_t sink)
{
    const struct share share = own_block(bytes / sizeof(T));
    base += blockIdx.x * bytes;
    read_all<from_global_ca, T, PATH_UNROLL>(base, share, 1, sink);
    write_all<to_global, T, PATH_UNROLL>(base, share, passes);
}

#define DEFINE_READ_PATH(name, loads, type, width, share)                                          \
    extern "C" __global__ void RESIDENT(PATH_UNROLL) stream_read_##name##_##width##_4(             \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        read_all<loads, type, PATH_UNROLL>(base, share(bytes / width), passes, sink);              \
    }

#define DEFINE_PATHS(type, width)                                                                  \
    DEFINE_READ_PATH(nc, from_read_only, type, width, own_block)                                   \
    DEFINE_READ_PATH(texture, from_texture, type, width, own_block)                                \
    DEFINE_READ_PATH(constant, from_constant, type, width, same_for_all)                           \
    extern "C" __global__ void RESIDENT(PATH_UNROLL)                                               \
        stream_write_ca_##width##_4(uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink) \
    {                                                                                              \
        write_l1<type>(base, bytes, passes, sink);                                                 \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(PATH_UNROLL) stream_write_shared_##width##_4(              \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        write_all<to_shared, type, PATH_UNROLL>(__cvta_generic_to_shared(stream_buffer),           \
                                                own_block(bytes / width), passes);                 \
    }
DEFINE_PATHS(uint8_t, 1)
DEFINE_PATHS(uint16_t, 2)
DEFINE_PATHS(uint32_t, 4)
DEFINE_PATHS(uint2, 8)
DEFINE_PATHS(uint4, 16)
DEFINE_READ_PATH(ca, from_global_ca, uint8_t, 1, own_block)
DEFINE_READ_PATH(ca, from_global_ca, uint16_t, 2, own_block)

#define DEFINE_READ_SHARED(type, width)                                                            \
    extern "C" __global__ void RESIDENT(PATH_UNROLL) stream_read_shared_##width##_4(               \
        uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink)                             \
    {                                                                                              \
        read_shared<type, PATH_UNROLL>(bytes, passes, sink);                                       \
    }
DEFINE_READ_SHARED(uint8_t, 1)
DEFINE_READ_SHARED(uint16_t, 2)

#define DEFINE_COMBINED(name, kind, arrays, unroll)                                                \
    extern "C" __global__ void RESIDENT(unroll)                                                    \
        stream_##name##_16_##unroll(uint64_t base, uint64_t bytes, uint32_t passes, uint64_t sink) \
    {                                                                                              \
        combine_all<kind, unroll>(base, whole_grid(bytes / arrays / 16), passes);                  \
    }
DEFINE_COMBINED(mul, COMBINE_MUL, 2, 1)
DEFINE_COMBINED(mul, COMBINE_MUL, 2, 2)
DEFINE_COMBINED(add, COMBINE_ADD, 3, 1)
DEFINE_COMBINED(add, COMBINE_ADD, 3, 2)
DEFINE_COMBINED(triad, COMBINE_TRIAD, 3, 1)
DEFINE_COMBINED(triad, COMBINE_TRIAD, 3, 2)

/* Streams by ticket. Blocks that share the work equally end when the unluckiest one does: on an
 * H200 the first SM ends 28 % before the last. Here each block takes a chunk when it is done with
 * the one before, so that all end together. */
enum ticket_kind { TICKET_READ, TICKET_WRITE, TICKET_COPY };

template <enum ticket_kind K, int UNROLL>
static __device__ __forceinline__ uint32_t ticket_pass(uint64_t from, uint64_t to,
                                                       struct share share)
{
    if (K == TICKET_READ)
        return read_pass<from_global_cg, uint4, UNROLL>(from, share);
    if (K == TICKET_WRITE)
        write_pass<to_global_cg, uint4, UNROLL>(from, share);
    else
        copy_pass<uint4, UNROLL>(from, to, share);
    return 0;
}

static __device__ __forceinline__ uint64_t nanoseconds(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* The next ticket is taken while the chunk of this one is streamed: it has come when it is needed.
 */
template <enum ticket_kind K, int UNROLL>
static __device__ __forceinline__ void stream_tickets(const struct kernel_tickets work)
{
    __shared__ uint32_t next[2];
    struct kernel_block_times *times = (struct kernel_block_times *)work.times + blockIdx.x;
    uint32_t *counter = (uint32_t *)work.counter;
    const uint64_t to = work.base + (uint64_t)work.chunks * work.chunk_bytes;
    struct share all = whole_grid((uint64_t)work.chunks * (work.chunk_bytes / sizeof(uint4)));
    const struct share chunk = own_block(work.chunk_bytes / sizeof(uint4));
    uint32_t sum = 0, slot = 0;
    if (threadIdx.x == 0)
        times->begin_ns = nanoseconds();
    for (uint32_t p = 0; p < work.equal_passes; p++, turn(&all))
        sum ^= ticket_pass<K, UNROLL>(work.base, to, all);
    if (threadIdx.x == 0)
        next[0] = atomicAdd(counter, 1);
    __syncthreads();
    for (uint32_t ticket = next[0]; ticket < work.tickets; ticket = next[slot]) {
        const uint64_t offset = (uint64_t)(ticket % work.chunks) * work.chunk_bytes;
        slot ^= 1;
        if (threadIdx.x == 0)
            next[slot] = atomicAdd(counter, 1);
        sum ^= ticket_pass<K, UNROLL>(work.base + offset, to + offset, chunk);
        __syncthreads();
    }
    keep(sum, work.sink);
    if (threadIdx.x == 0) {
        asm volatile("mov.u32 %0, %%smid;" : "=r"(times->sm_id));
        times->end_ns = nanoseconds();
    }
}

#define DEFINE_TICKETS(unroll)                                                                     \
    extern "C" __global__ void RESIDENT(unroll)                                                    \
        stream_ticket_read_##unroll(const struct kernel_tickets work)                              \
    {                                                                                              \
        stream_tickets<TICKET_READ, unroll>(work);                                                 \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll)                                                    \
        stream_ticket_write_##unroll(const struct kernel_tickets work)                             \
    {                                                                                              \
        stream_tickets<TICKET_WRITE, unroll>(work);                                                \
    }                                                                                              \
    extern "C" __global__ void RESIDENT(unroll)                                                    \
        stream_ticket_copy_##unroll(const struct kernel_tickets work)                              \
    {                                                                                              \
        stream_tickets<TICKET_COPY, unroll>(work);                                                 \
    }

DEFINE_TICKETS(1)
DEFINE_TICKETS(2)
DEFINE_TICKETS(4)
DEFINE_TICKETS(8)
