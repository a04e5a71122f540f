/* The kernels that chase: one per path, and one for jobs that mix paths.
 *
 * A block takes the job that the host assigned to the SM it runs on. Everything a job needs is
 * copied to shared memory first: kernel parameters live in the constant cache, which may be what is
 * measured. Latencies are collected in shared memory and are written out after the last step. */
#include "kernels.h"
#include "timed.cuh"

extern "C" {
__constant__ uint32_t constant_bank[KERNEL_CONSTANT_BYTES / 4];
}

enum path_number { GLOBAL_CA, GLOBAL_CG, READ_ONLY, TEXTURE, CONSTANT, SHARED, HOST, PATH_COUNT };
static_assert((int)GLOBAL_CA == (int)KERNEL_GLOBAL_CA, "paths as the host numbers them");
static_assert((int)GLOBAL_CG == (int)KERNEL_GLOBAL_CG, "paths as the host numbers them");
static_assert((int)READ_ONLY == (int)KERNEL_READ_ONLY, "paths as the host numbers them");
static_assert((int)TEXTURE == (int)KERNEL_TEXTURE, "paths as the host numbers them");
static_assert((int)CONSTANT == (int)KERNEL_CONSTANT, "paths as the host numbers them");
static_assert((int)SHARED == (int)KERNEL_SHARED, "paths as the host numbers them");
static_assert((int)HOST == (int)KERNEL_HOST, "paths as the host numbers them");
static_assert((int)PATH_COUNT == (int)KERNEL_PATH_COUNT, "paths as the host numbers them");

DEFINE_PATH(path_global_ca, uint64_t, "l", "ld.global.ca.u64 %2, [%3];", LOW_OF_64)
DEFINE_PATH(path_read_only, uint64_t, "l", "ld.global.nc.u64 %2, [%3];", LOW_OF_64)
DEFINE_PATH(path_texture, uint32_t, "r", "tex.1d.v4.u32.s32 {%2, a, b, c}, [%4, {%3}];", LOW_OF_32)
DEFINE_PATH(path_constant, uint32_t, "r", "ld.const.u32 %2, [%3];", LOW_OF_32)
DEFINE_PATH(path_shared, uint32_t, "r", "ld.shared.u32 %2, [%3];", LOW_OF_32)
/* Host memory must be read every time: no cache on the GPU may answer. */
DEFINE_PATH(path_host, uint64_t, "l", "ld.volatile.global.u64 %2, [%3];", LOW_OF_64)

/* Reads the clock when the value has arrived. */
static __device__ __forceinline__ uint64_t clock_after(uint32_t value)
{
    uint64_t clock = 0;
    asm volatile("{\n.reg .pred q;\n" WHEN_ARRIVED("%1") "mov.u64 %0, %%clock64;\n}"
                 : "+l"(clock)
                 : "r"(value)
                 : "memory");
    return clock;
}

static __device__ __forceinline__ uint64_t real_time_ns()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* Returns `a` when the value has arrived. */
static __device__ __forceinline__ uint64_t after(uint64_t a, uint32_t value)
{
    uint64_t result = 0;
    asm volatile("{\n.reg .pred q;\nsetp.ne.u32 q, %1, 0xffffffff;\n@q mov.u64 %0, %2;\n}"
                 : "+l"(result)
                 : "r"(value), "l"(a));
    return result;
}

static __device__ __forceinline__ uint32_t after(uint32_t a, uint32_t value)
{
    uint32_t result = 0;
    asm volatile("{\n.reg .pred q;\nsetp.ne.u32 q, %1, 0xffffffff;\n@q mov.u32 %0, %2;\n}"
                 : "+r"(result)
                 : "r"(value), "r"(a));
    return result;
}

/* A closed chain: the address of each load is the value of the load before, with nothing in
 * between. */
template <typename P>
static __device__ __forceinline__ typename P::address follow(typename P::address at,
                                                             uint64_t texture, uint32_t loads)
{
    enum { UNROLL = 16 };
#pragma unroll 1
    for (; loads >= UNROLL; loads -= UNROLL) {
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            at = P::load(at, texture);
    }
#pragma unroll 1
    for (; loads; loads--)
        at = P::load(at, texture);
    return at;
}

/* The addresses of a sequential array, again and again. */
template <typename A> struct course {
    A stride, span;
    uint32_t left, pass;

    __device__ __forceinline__ course(const struct kernel_step *step)
        : stride((A)step->stride), span((A)step->span), left(step->left), pass(step->pass)
    {
    }
    __device__ __forceinline__ A next(A at)
    {
        at += stride;
        if (--left == 0) {
            at -= span;
            left = pass;
        }
        return at;
    }
};

/* The addresses of an array in the order of a permutation. */
template <typename A> struct scatter {
    A base, stride;
    uint32_t count, key, position;

    __device__ __forceinline__ scatter(const struct kernel_step *step, uint64_t offset)
        : base((A)(step->base + offset)), stride((A)step->stride), count(step->pass),
          key(step->key), position(step->position)
    {
    }
    __device__ __forceinline__ A next()
    {
        position = position + 1 < count ? position + 1 : 0;
        return base + (A)(kernel_permute(position, count, key) * stride);
    }
};

/* Without a chain in memory: one load after the other, addresses from registers. */
template <typename P>
static __device__ __forceinline__ typename P::address
walk(typename P::address at, const struct kernel_step *step, uint64_t texture, uint64_t offset)
{
    struct course<typename P::address> course(step);
    struct scatter<typename P::address> scatter(step, offset);
    const bool permuted = step->order == KERNEL_PERMUTED;
#pragma unroll 1
    for (uint32_t n = step->loads; n; n--) {
        uint32_t value = (uint32_t)P::load(at, texture);
        at = after(permuted ? scatter.next() : course.next(at), value);
    }
    return at;
}

/* Every load is timed by itself. Its address is ready before the first clock read (the next one is
 * computed one load ahead), and the bookkeeping follows the second read. */
template <typename P>
static __device__ __forceinline__ void chase(typename P::address at, const struct kernel_step *step,
                                             uint64_t texture, uint64_t offset, uint32_t *words,
                                             bool records)
{
    typedef typename P::address address;
    const uint32_t all_lanes = UINT32_MAX >> (32 - step->lanes);
    struct course<address> course(step);
    struct scatter<address> scatter(step, offset);
    const bool permuted = step->order == KERNEL_PERMUTED;
    const uint32_t loads = step->loads, keep = step->keep;
    const uint32_t last_bin = step->bins - 1, split = step->split;
    uint32_t *const bins = words + step->bins_at;
    uint32_t *kept = words + step->keep_at;
    uint8_t *above = (uint8_t *)kept;
    /* Kept latency i is that of load floor(i * loads / keep), computed without a division in the
     * loop. */
    const uint32_t quotient = keep ? loads / keep : 0, remainder = keep ? loads % keep : 0;
    uint32_t next_kept = keep ? 0 : UINT32_MAX, kept_left = keep, carry = 0;
    address seen = 0, next = permuted ? scatter.next() : course.next(at);
#pragma unroll 1
    for (uint32_t n = 0; n < loads; n++) {
        address value;
        const uint32_t cycles = P::timed(at, texture, &value);
        at = next;
        seen |= value + 1;
        next = permuted ? scatter.next() : course.next(at);
        if (records) {
            bins[min(kernel_bin_of(cycles), last_bin)]++;
            if (n == next_kept) {
                if (split)
                    *above++ = cycles > split;
                else
                    *kept++ = cycles;
                carry += remainder;
                next_kept += quotient + (carry >= keep);
                carry -= carry >= keep ? keep : 0;
                if (--kept_left == 0)
                    next_kept = UINT32_MAX;
            }
        }
        /* Only lane 0 records. The others wait for it: all lanes load together. */
        __syncwarp(all_lanes);
    }
    /* The whole value is used; otherwise the assembler would load only the part that is
     * compared. */
    if (seen == 0)
        bins[0] = 0;
}

template <typename P>
static __device__ __forceinline__ void run_step(const struct kernel_step *step, uint32_t *words,
                                                uint64_t shared_base, uint64_t texture,
                                                uint32_t lane, struct kernel_result *result)
{
    typedef typename P::address address;
    const uint64_t offset = shared_base + lane * step->lane_stride;
    address at = (address)(step->first + offset);
    const uint32_t kind = step->kind, order = step->order, loads = step->loads;
    const uint64_t start_ns = real_time_ns();
    const uint64_t start = clock_after((uint32_t)at ^ kind ^ order ^ loads);
    if (kind == KERNEL_CHASE)
        chase<P>(at, step, texture, offset, words, lane == 0);
    else if (order == KERNEL_CHAINED)
        at = follow<P>(at, texture, loads);
    else
        at = walk<P>(at, step, texture, offset);
    const uint64_t end = clock_after((uint32_t)at);
    const uint64_t end_ns = real_time_ns();
    if (lane == 0) {
        result->cycles[step->index] = end - start;
        result->elapsed_ns[step->index] = end_ns - start_ns;
    }
}

template <unsigned PATHS>
static __device__ __forceinline__ void choose_step(const struct kernel_step *step, uint32_t *words,
                                                   uint32_t shared_base, uint64_t texture,
                                                   uint32_t lane, struct kernel_result *result)
{
    const uint32_t path = step->path;
    if ((PATHS & 1u << GLOBAL_CA) && path == GLOBAL_CA)
        run_step<path_global_ca>(step, words, 0, texture, lane, result);
    if ((PATHS & 1u << GLOBAL_CG) && path == GLOBAL_CG)
        run_step<path_global_cg>(step, words, 0, texture, lane, result);
    if ((PATHS & 1u << READ_ONLY) && path == READ_ONLY)
        run_step<path_read_only>(step, words, 0, texture, lane, result);
    if ((PATHS & 1u << TEXTURE) && path == TEXTURE)
        run_step<path_texture>(step, words, 0, texture, lane, result);
    if ((PATHS & 1u << CONSTANT) && path == CONSTANT)
        run_step<path_constant>(step, words, 0, texture, lane, result);
    if ((PATHS & 1u << SHARED) && path == SHARED)
        run_step<path_shared>(step, words, shared_base, texture, lane, result);
    if ((PATHS & 1u << HOST) && path == HOST)
        run_step<path_host>(step, words, 0, texture, lane, result);
}

static __device__ __forceinline__ void clear_bins(const struct kernel_step *step, uint32_t *words,
                                                  uint32_t threads)
{
    for (uint32_t i = threadIdx.x; i < step->bins; i += threads)
        words[step->bins_at + i] = 0;
}

static __device__ __forceinline__ void copy_out(const struct kernel_step *step,
                                                const uint32_t *words, uint32_t threads)
{
    uint32_t *to = (uint32_t *)step->output;
    const uint32_t *kept = words + step->keep_at;
    const uint8_t *above = (const uint8_t *)kept;
    for (uint32_t i = threadIdx.x; i < step->bins; i += threads)
        to[i] = words[step->bins_at + i];
    for (uint32_t i = threadIdx.x; i < step->keep; i += threads)
        to[step->bins + i] = !step->split ? kept[i] : above[i] ? UINT32_MAX : 0;
}

static __device__ __forceinline__ void fetch_image(const struct kernel_job *job, uint32_t *image,
                                                   uint32_t image_base)
{
    const uint32_t *from = (const uint32_t *)job->image;
    for (uint32_t i = threadIdx.x; i < job->image_bytes / 4; i += job->threads)
        image[i] = from ? image_base + __ldcg(from + i) : 0;
}

static __device__ __forceinline__ uint32_t sm_id()
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

/* The number of the job assigned to this block's SM; -1 when there is none or another block has
 * it. */
static __device__ __forceinline__ int claim_job(int *claims, uint32_t claim_count)
{
    __shared__ int claimed;
    if (threadIdx.x == 0)
        claimed = sm_id() < claim_count ? atomicExch(claims + sm_id(), -1) : -1;
    __syncthreads();
    return claimed;
}

static __device__ __forceinline__ uint32_t look_at(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void rest()
{
#if __CUDA_ARCH__ >= 700
    __nanosleep(200);
#endif
}

/* Waits for the block on the job's other SM. False when it does not come: an SM that took no block
 * must not block this one for ever. A block that comes later finds the turn closed. */
static __device__ __forceinline__ bool meet(struct kernel_turn *turn)
{
    const uint64_t patience_cycles = 1 << 26;
    __shared__ bool met;
    if (threadIdx.x == 0) {
        const uint32_t before = atomicAdd(&turn->came, 1);
        const uint64_t start = clock64();
        while (before == 0 && look_at(&turn->came) < 2 && clock64() - start < patience_cycles)
            rest();
        met = before == 1 || (before == 0 && atomicCAS(&turn->came, 1, KERNEL_TURN_CLOSED) == 2);
    }
    __syncthreads();
    return met;
}

/* Both blocks are running, so the other one's turn will end. */
static __device__ __forceinline__ void take_turn(const struct kernel_turn *turn, uint32_t step)
{
    if (threadIdx.x == 0)
        while (look_at(&turn->step) != step)
            rest();
    __syncthreads();
}

static __device__ __forceinline__ void give_turn(struct kernel_turn *turn, uint32_t step)
{
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(&turn->step, step + 1);
    }
}

/* All threads of the block load the array once, past L1, with several loads per thread in
 * flight. */
static __device__ __forceinline__ void fill(const struct kernel_step *step, uint32_t threads)
{
    enum { UNROLL = 8 };
    const uint64_t base = step->base, stride = step->stride;
    const uint32_t count = step->pass;
    uint32_t waits = 0;
    for (uint32_t i = threadIdx.x; i < count; i += UNROLL * threads) {
        uint32_t values[UNROLL];
#pragma unroll
        for (uint32_t k = 0; k < UNROLL; k++) {
            const uint32_t element = i + k * threads < count ? i + k * threads : i;
            asm volatile("ld.global.cg.u32 %0, [%1];"
                         : "=r"(values[k])
                         : "l"(base + element * stride)
                         : "memory");
        }
#pragma unroll
        for (uint32_t k = 0; k < UNROLL; k++)
            waits += values[k] == UINT32_MAX;
    }
    /* No word is 0xffffffff, but the compiler does not know that: it must wait for the loads. */
    if (waits)
        __trap();
}

template <unsigned PATHS>
static __device__ __forceinline__ void run_steps(const struct kernel_job *job, uint32_t *words,
                                                 uint32_t image_base, uint64_t texture,
                                                 struct kernel_result *result)
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, threads = job->threads;
    struct kernel_turn *turn = (struct kernel_turn *)job->turn;
#pragma unroll 1
    for (uint32_t s = 0; s < job->step_count; s++) {
        const struct kernel_step *step = &job->steps[s];
        if (turn)
            take_turn(turn, step->index);
        if ((PATHS & 1u << GLOBAL_CG) && step->kind == KERNEL_FILL)
            fill(step, threads);
        else if (warp == step->warp && lane < step->lanes)
            choose_step<PATHS>(step, words, image_base, texture, lane, result);
        __syncthreads();
        if (turn)
            give_turn(turn, step->index);
        if (step->kind == KERNEL_CHASE && !step->copied_late) {
            copy_out(step, words, threads);
            __syncthreads();
            clear_bins(step, words, threads);
            __syncthreads();
        }
    }
#pragma unroll 1
    for (uint32_t s = 0; s < job->step_count; s++)
        if (job->steps[s].kind == KERNEL_CHASE && job->steps[s].copied_late)
            copy_out(&job->steps[s], words, threads);
}

template <unsigned PATHS>
static __device__ __forceinline__ void run_job(const struct kernel_job *jobs, int *claims,
                                               uint32_t claim_count, uint64_t texture)
{
    extern __shared__ uint32_t buffer[];
    __shared__ struct kernel_result result;
    const int number = claim_job(claims, claim_count);
    if (number < 0)
        return;
    static_assert(sizeof *jobs <= KERNEL_JOB_BYTES, "the job fits into its part of the buffer");
    struct kernel_job *job = (struct kernel_job *)buffer;
    uint32_t *words = buffer + KERNEL_JOB_BYTES / 4;
    uint32_t *image = buffer + KERNEL_BUFFER_BYTES / 4;
    for (uint32_t i = threadIdx.x; i < sizeof *job / 4; i += blockDim.x)
        buffer[i] = __ldcg((const uint32_t *)(jobs + number) + i);
    __syncthreads();

    const uint32_t image_base = (uint32_t)__cvta_generic_to_shared(image);
    fetch_image(job, image, image_base);
#pragma unroll 1
    for (uint32_t s = 0; s < job->step_count; s++)
        if (job->steps[s].kind == KERNEL_CHASE)
            clear_bins(&job->steps[s], words, job->threads);
    __syncthreads();
    if (job->turn && !meet((struct kernel_turn *)job->turn))
        return;
    run_steps<PATHS>(job, words, image_base, texture, &result);
    if (threadIdx.x == 0) {
        result.sm_id = sm_id();
        result.done = job->step_count;
        *(struct kernel_result *)job->result = result;
    }
}

#define DEFINE_KERNEL(name, paths)                                                                 \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                          \
        name(const struct kernel_job *jobs, int *claims, uint32_t claim_count, uint64_t texture)   \
    {                                                                                              \
        run_job<paths>(jobs, claims, claim_count, texture);                                        \
    }

DEFINE_KERNEL(chase_global_ca, 1u << GLOBAL_CA)
DEFINE_KERNEL(chase_global_cg, 1u << GLOBAL_CG)
DEFINE_KERNEL(chase_read_only, 1u << READ_ONLY)
DEFINE_KERNEL(chase_texture, 1u << TEXTURE)
DEFINE_KERNEL(chase_constant, 1u << CONSTANT)
DEFINE_KERNEL(chase_shared, 1u << SHARED)
DEFINE_KERNEL(chase_host, 1u << HOST)
DEFINE_KERNEL(chase_mixed, (1u << PATH_COUNT) - 1)

/* Marks the SMs that exist: their ids need not be contiguous. */
extern "C" __global__ void find_sms(uint32_t *seen, uint32_t count)
{
    if (threadIdx.x == 0 && sm_id() < count)
        seen[sm_id()] = 1;
}

extern "C" __global__ void count_sm_ids(uint32_t *out_count)
{
    uint32_t count;
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    *out_count = count;
}

static __device__ __forceinline__ uint64_t link_element(const struct kernel_link &link, uint32_t i)
{
    const uint32_t element = link.permuted ? kernel_permute(i, link.count, link.key) : i;
    return link.base + element * link.stride;
}

extern "C" __global__ void link_chain(struct kernel_link link)
{
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < link.count;
         i += threads) {
        const uint64_t at = link_element(link, (uint32_t)i);
        const uint64_t to = link_element(link, i + 1 < link.count ? (uint32_t)i + 1 : 0);
        if (link.wide)
            *(uint64_t *)at = to;
        else
            *(uint32_t *)at = (uint32_t)((to - link.origin) >> link.shift);
    }
}

/* Loads what lies `stride` apart, each thread some of it. A value that nobody uses is not loaded:
 * the assembler drops the load, volatile or not. Memory is never all ones. */
#define LOAD_ALL(instruction, first, threads)                                                      \
    for (uint64_t i = first; i < count; i += threads) {                                            \
        uint32_t value;                                                                            \
        asm volatile(instruction " %0, [%1];" : "=r"(value) : "l"(base + i * stride) : "memory");  \
        if (value == UINT32_MAX)                                                                   \
            __trap();                                                                              \
    }

/* Loads so much memory through L2 that nothing else stays in it. */
extern "C" __global__ void flush_l2(uint64_t base, uint64_t stride, uint64_t count)
{
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    LOAD_ALL("ld.global.cg.u32", blockIdx.x * (uint64_t)blockDim.x + threadIdx.x, threads)
}

/* Loads so much memory through the L1 of every SM that nothing else stays in it. */
extern "C" __global__ void scrub_l1(uint64_t base, uint64_t stride, uint64_t count)
{
    LOAD_ALL("ld.global.ca.u32", threadIdx.x, blockDim.x)
}
