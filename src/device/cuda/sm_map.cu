/* The kernels in which every SM has its role: what it reads of L2 alone, in a group or beside all
 * others, how far it is from regions of main memory, latency while others read, and work on lines
 * of one part of L2. */
#include "gate.cuh"
#include "kernels.h"
#include "timed.cuh"

#if __CUDA_ARCH__ < 750 || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1100)
#define FULL_BLOCKS 2
#else
#define FULL_BLOCKS 1
#endif

static __device__ __forceinline__ struct kernel_sm_place own_place(uint64_t places)
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return ((const struct kernel_sm_place *)places)[id];
}

static __device__ __forceinline__ uint64_t real_time_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* Reads a chunk with all lanes of the warp; all loads are in flight before the first is used. */
static __device__ __forceinline__ uint32_t read_chunk(uint64_t at)
{
    uint4 v[KERNEL_SM_MAP_UNROLL];
    uint32_t sum = 0;
#pragma unroll
    for (int u = 0; u < KERNEL_SM_MAP_UNROLL; u++)
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(at + u * 512));
#pragma unroll
    for (int u = 0; u < KERNEL_SM_MAP_UNROLL; u++)
        sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    return sum;
}

/* Each warp has chunks of its own, and draws from them: loads of one line that meet on their way to
 * L2 are answered together (counted on an H200: of 18 SMs that draw from the same 4 MiB, 19 % of
 * the loads). All warps take others every few microseconds, so that none stays with chunks of busy
 * slices. A chunk counts if it begins inside the window, which is the same number of cycles for
 * all warps. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_read(const struct kernel_sm_read r)
{
    if (!pass_gate(r.gate, r.expected))
        return;
    const struct kernel_sm_place place = own_place(r.places);
    if (place.sm == UINT32_MAX || (r.turn != UINT32_MAX && place.turn != r.turn))
        return;
    __shared__ uint32_t reader;
    if (!threadIdx.x)
        reader = atomicAdd((uint32_t *)r.readers, 1) - r.earlier;
    __syncthreads();
    const uint32_t lane = threadIdx.x % 32, warp = (reader * blockDim.x + threadIdx.x) / 32;
    uint32_t draw = kernel_mixed((blockIdx.x * blockDim.x + threadIdx.x) / 32 ^ r.seed), sum = 0;
    uint32_t chunks = 0, period = UINT32_MAX;
    uint64_t own = 0;
    const uint64_t start_ns = real_time_ns();
    const long long start = clock64();
    const long long skip = r.skip_cycles, end = skip + r.window_cycles;
    long long past = 0;
#pragma unroll 1
    do {
        if (period != (uint32_t)(past / KERNEL_SM_MAP_PERIOD)) {
            period = (uint32_t)(past / KERNEL_SM_MAP_PERIOD);
            const uint32_t share = (warp + period * 5669u) % r.shares;
            own = r.base + (uint64_t)share * r.span * KERNEL_SM_MAP_CHUNK_BYTES;
        }
        draw = draw * 1664525 + 1013904223;
        chunks += past >= skip;
        sum ^= read_chunk(own + __umulhi(draw, r.span) * KERNEL_SM_MAP_CHUNK_BYTES + lane * 16);
        past = __shfl_sync(0xffffffffu, clock64() - start, 0);
    } while (past < end);
    if (lane || r.turn == UINT32_MAX)
        return;
    struct kernel_sm_result *result = (struct kernel_sm_result *)r.results + place.sm;
    const double window_ns = (double)(real_time_ns() - start_ns) * r.window_cycles / (double)past;
    /* The comparison is false for all that is stored; it keeps the loads. */
    const uint64_t bytes = (uint64_t)chunks * KERNEL_SM_MAP_CHUNK_BYTES;
    atomicAdd((unsigned long long *)&result->bytes, bytes + (sum == 0xffffffff));
    atomicMax((unsigned long long *)&result->ns, (unsigned long long)window_ns);
}

static __device__ __forceinline__ uint64_t load_after(uint64_t at, uint64_t before)
{
    uint64_t v;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(v) : "l"(at + before) : "memory");
    return v;
}

/* One thread per SM. The memory has zeros, so adding what was loaded makes loads depend on each
 * other and moves nothing. Each SM has slots of its own, spread over the region, and begins at
 * another region: neither lines nor rows of the memory are in another SM's use. The second half of
 * a slot is never timed: it brings the page into the TLBs. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_memory(const struct kernel_sm_memory m)
{
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    if (threadIdx.x || place.sm == UINT32_MAX || atomicExch((uint32_t *)m.claims + place.sm, 1))
        return;
    uint64_t v = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < m.regions; i++) {
        const uint32_t region = (i + place.sm * m.regions / m.sms) % m.regions;
        const uint64_t from = m.base + region * m.region_bytes;
        const uint32_t pages =
            KERNEL_SM_MAP_SLOTS / (KERNEL_SM_MAP_PAGE_BYTES / KERNEL_SM_MAP_SLOT_BYTES);
        for (uint32_t page = 0; page < pages; page++)
            v = load_after(
                from + KERNEL_SM_MAP_SLOT_BYTES / 2 + page * (uint64_t)KERNEL_SM_MAP_PAGE_BYTES, v);
        const long long start = clock64() + (long long)v;
#pragma unroll 1
        for (uint32_t k = 0; k < m.loads; k++) {
            /* An odd factor: every slot once. */
            const uint32_t slot = (k * m.sms + place.sm) * 5669u % KERNEL_SM_MAP_SLOTS;
            v = load_after(from + (uint64_t)slot * KERNEL_SM_MAP_SLOT_BYTES, v);
        }
        ((uint64_t *)m.results)[place.sm * (uint64_t)m.regions + region] =
            (uint64_t)(clock64() + (long long)v - start);
    }
}

static __device__ __forceinline__ uint32_t add_nothing(uint64_t at)
{
    uint32_t v;
    asm volatile("atom.global.add.u32 %0, [%1], 0;" : "=r"(v) : "l"(at) : "memory");
    return v;
}

/* One thread per SM. Each atomic waits for the one before, since its address depends on that, and
 * each SM begins at another line. The first atomic of a line brings it into L2. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_atomics(const struct kernel_sm_atomics m)
{
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    if (threadIdx.x || place.sm == UINT32_MAX || atomicExch((uint32_t *)m.claims + place.sm, 1))
        return;
    uint32_t v = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < m.lines; i++) {
        const uint32_t line = (i + place.sm * m.lines / m.sms) % m.lines;
        const uint64_t at =
            m.base + (uint64_t)(kernel_mixed(line) & m.slot_mask) * KERNEL_SM_MAP_SLOT_BYTES;
        v = add_nothing(at + (v & m.zero));
        if (v & m.zero) /* never: it has come before the clock is read */
            return;
        const long long start = clock64();
#pragma unroll 1
        for (uint32_t k = 0; k < m.atomics; k++)
            v = add_nothing(at + (v & m.zero));
        if (v & m.zero)
            return;
        ((uint64_t *)m.results)[place.sm * (uint64_t)m.lines + line] =
            (uint64_t)(clock64() - start);
    }
}

/* One block. All its threads load the lines of L2 before, twice; of cold lines only the pages. Then
 * one thread times loads. */
static __device__ __forceinline__ void chase_beside(const struct kernel_loaded &m, uint32_t chaser,
                                                    long long start)
{
    struct kernel_loaded_result *result = (struct kernel_loaded_result *)m.result;
    const uint32_t pages =
        KERNEL_LOADED_SLOTS / (KERNEL_SM_MAP_PAGE_BYTES / KERNEL_SM_MAP_SLOT_BYTES);
    const uint32_t first =
        m.cold ? m.first_slot + chaser * KERNEL_LOADED_LOADS_MAX : chaser * KERNEL_LOADED_LINES;
    uint64_t value, seen = 0, cycles = 0, squares = 0;
    uint32_t loads = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t offset =
            m.cold
                ? KERNEL_SM_MAP_SLOT_BYTES / 2 +
                      threadIdx.x % pages * (uint64_t)KERNEL_SM_MAP_PAGE_BYTES
                : (first + threadIdx.x % KERNEL_LOADED_LINES) * (uint64_t)KERNEL_SM_MAP_SLOT_BYTES;
        path_global_cg::timed(m.slots + offset, 0, &value);
        seen |= value + 1;
        __syncthreads();
    }
    if (threadIdx.x)
        return;
    while (clock64() - start < m.skip_cycles)
        ;
    const uint64_t begin_ns = real_time_ns();
    const long long begin = clock64();
#pragma unroll 1
    while (loads < KERNEL_LOADED_LOADS_MAX &&
           clock64() - start < (long long)m.skip_cycles + m.window_cycles) {
        /* An odd factor: every slot once. */
        const uint32_t slot = m.cold ? (first + loads) * 5669u % KERNEL_LOADED_SLOTS
                                     : first + loads * 181u % KERNEL_LOADED_LINES;
        const uint32_t took =
            path_global_cg::timed(m.slots + slot * (uint64_t)KERNEL_SM_MAP_SLOT_BYTES, 0, &value);
        seen |= value + 1;
        loads++;
        cycles += took;
        squares += (uint64_t)took * took;
    }
    const uint64_t end_ns = real_time_ns();
    const double share = (double)m.window_cycles / (double)(clock64() - begin);
    if (seen == 0) /* never: all loads are used */
        return;
    atomicAdd((unsigned long long *)&result->loads, loads);
    atomicAdd((unsigned long long *)&result->cycles, cycles);
    atomicAdd((unsigned long long *)&result->squares, squares);
    atomicAdd((unsigned long long *)&result->window_ns,
              (unsigned long long)((double)(end_ns - begin_ns) * share + 0.5));
    atomicMax((unsigned long long *)&result->chase_not_begin_ns, ~begin_ns);
    atomicMax((unsigned long long *)&result->chase_end_ns, end_ns);
}

/* Half of the warps, which is enough for the whole rate. The time from one read to the next is
 * drawn from half the gap to one and a half, so that no warps stay in step with each other. L2 is
 * read in lines that no other warp has, main memory from one end to the other.
 * It goes on for a while after the window. */
static __device__ __forceinline__ void read_beside(const struct kernel_loaded &m, long long start)
{
    struct kernel_loaded_result *result = (struct kernel_loaded_result *)m.result;
    if (threadIdx.x / 32 >= KERNEL_LOADED_WARPS)
        return;
    const uint32_t lane = threadIdx.x % 32, warps = gridDim.x * KERNEL_LOADED_WARPS;
    const uint32_t warp = blockIdx.x * KERNEL_LOADED_WARPS + threadIdx.x / 32;
    const long long skip = m.skip_cycles, window_end = skip + m.window_cycles;
    const long long end = window_end + m.skip_cycles / 2;
    const uint64_t begin_ns = real_time_ns();
    uint32_t draw = kernel_mixed(warp ^ m.first_slot), sum = 0, chunks = 0, all = 0;
    const uint32_t own = m.chunks > warps ? m.chunks / warps : 1;
    long long next = __umulhi(draw, m.gap_cycles), past;
#pragma unroll 1
    for (;;) {
        do
            past = __shfl_sync(0xffffffffu, clock64() - start, 0);
        while (past < next && past < end);
        if (past >= end)
            break;
        const uint64_t chunk = m.cold ? (m.first_chunk + all * (uint64_t)warps + warp) % m.chunks
                                      : (warp * own + all % own) % m.chunks;
        chunks += past >= skip && past < window_end;
        all++;
        sum ^= read_chunk(m.base + chunk * KERNEL_SM_MAP_CHUNK_BYTES + lane * 16);
        draw = draw * 1664525 + 1013904223;
        next = past + m.gap_cycles / 2 + __umulhi(draw, m.gap_cycles);
    }
    if (lane)
        return;
    /* The comparison is false for all that is stored; it keeps the loads. */
    atomicAdd((unsigned long long *)&result->chunks, chunks + (sum == 0xffffffff));
    atomicAdd((unsigned long long *)&result->all_chunks, all);
    atomicMax((unsigned long long *)&result->read_begin_ns, begin_ns);
    atomicMax((unsigned long long *)&result->read_not_end_ns, ~real_time_ns());
}

extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_loaded(const struct kernel_loaded m)
{
    __shared__ bool claimed;
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    const long long start = clock64();
    if (place.sm == UINT32_MAX)
        return;
    if (!place.turn) {
        if (!m.quiet)
            read_beside(m, start);
        return;
    }
    if (threadIdx.x == 0)
        claimed = !atomicExch((uint32_t *)m.claims + place.sm, 1);
    __syncthreads();
    if (claimed)
        chase_beside(m, place.turn - 1, start);
}

/* One thread per SM, each for its share of the lines: an atomic is executed at the line's home. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_homes(const struct kernel_way m)
{
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    if (threadIdx.x || place.sm == UINT32_MAX || atomicExch((uint32_t *)m.claims + place.sm, 1))
        return;
    uint32_t v = 0;
#pragma unroll 1
    for (uint32_t line = place.sm; line < m.lines; line += m.sms) {
        const uint64_t at = m.base + line * (uint64_t)KERNEL_WAY_LINE_BYTES;
        uint32_t least = UINT32_MAX;
        v = add_nothing(at + (v & m.zero));
#pragma unroll 1
        for (uint32_t i = 0; i < KERNEL_WAY_TRIES; i++) {
            if (v & m.zero) /* never: it has come before the clock is read */
                return;
            const long long start = clock64();
            v = add_nothing(at + (v & m.zero));
            v = add_nothing(at + (v & m.zero));
            if (v & m.zero)
                return;
            const uint32_t cycles = (uint32_t)(clock64() - start) / 2;
            least = cycles < least ? cycles : least;
        }
        const uint32_t home = (place.turn & 1) ^ (least > m.split_cycles);
        ((uint32_t *)m.lists)[home * m.lines + atomicAdd((uint32_t *)m.found + home, 1)] = line;
    }
}

enum way_work { WAY_READ, WAY_WRITE };

static __device__ __forceinline__ uint32_t take_ticket(const struct kernel_way &m, uint32_t part,
                                                       uint32_t tickets)
{
    struct kernel_way_result *result = (struct kernel_way_result *)m.result;
    const uint32_t ticket = atomicAdd(&result->counter[part], 1);
    if (ticket == kernel_way_mark(tickets, m.blocks[part], 1))
        result->begin_ns[part] = real_time_ns();
    if (ticket == kernel_way_mark(tickets, m.blocks[part], 3))
        result->end_ns[part] = real_time_ns();
    return ticket;
}

/* A ticket is a chunk of the list: eight threads for each line. The line of the next ticket is
 * fetched beside the work on this one. */
template <enum way_work W>
static __device__ __forceinline__ void use_way(const struct kernel_way &m)
{
    __shared__ uint32_t next[KERNEL_WAY_AHEAD];
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    const uint32_t part = place.turn & 1, home = part ^ m.far;
    if (place.sm == UINT32_MAX || place.turn & KERNEL_WAY_IDLE || !(m.parts >> part & 1))
        return;
    const uint32_t *list = (const uint32_t *)m.lists + home * m.lines + threadIdx.x / 8;
    const uint32_t chunks = ((const uint32_t *)m.found)[home] / KERNEL_WAY_CHUNK_LINES;
    const uint32_t tickets = chunks * m.passes;
    uint32_t sum = 0, slot = 0, line = 0;
    if (threadIdx.x == 0)
        for (int i = 0; i < KERNEL_WAY_AHEAD; i++)
            next[i] = take_ticket(m, part, tickets);
    __syncthreads();
    uint32_t ticket = next[0];
    if (ticket < tickets)
        line = list[ticket % chunks * KERNEL_WAY_CHUNK_LINES];
#pragma unroll 1
    while (ticket < tickets) {
        const uint32_t coming = next[slot ^ 1];
        uint32_t coming_line = 0;
        __syncthreads();
        if (threadIdx.x == 0)
            next[slot] = take_ticket(m, part, tickets);
        if (coming < tickets)
            coming_line = list[coming % chunks * KERNEL_WAY_CHUNK_LINES];
        const uint64_t at =
            m.base + line * (uint64_t)KERNEL_WAY_LINE_BYTES + threadIdx.x % 8 * sizeof(uint4);
        if (W == WAY_READ) {
            const uint4 v = __ldcg((const uint4 *)at);
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        } else {
            __stcg((uint4 *)at, make_uint4(KERNEL_WRITTEN_WORD, KERNEL_WRITTEN_WORD,
                                           KERNEL_WRITTEN_WORD, KERNEL_WRITTEN_WORD));
        }
        __syncthreads();
        slot ^= 1;
        ticket = coming;
        line = coming_line;
    }
    if (sum == 0xffffffff) /* never for what is stored; it keeps the loads */
        ((struct kernel_way_result *)m.result)->counter[0] = 0;
}

#define DEFINE_WAY(name, work)                                                                     \
    extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)               \
        sm_map_way_##name(const struct kernel_way m)                                               \
    {                                                                                              \
        use_way<work>(m);                                                                          \
    }
DEFINE_WAY(read, WAY_READ)
DEFINE_WAY(write, WAY_WRITE)
