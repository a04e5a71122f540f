/* Small kernels, each for one question about a GPU's caches that its counters answer
 * (docs/VALIDATION.md). predict_controls prints what needs no counter: which SM runs which block.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "twin.cuh"

enum { LINES = 64, LINE_FLOATS = 32 };
static const size_t megabyte = 1 << 20;

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "predict_controls: %s: %s\n", what, cudaGetErrorString(error));
    exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? 77 : EXIT_FAILURE);
}

static __device__ __forceinline__ float load_past_l1(const float *at)
{
    float value;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
    return value;
}

static __device__ __forceinline__ unsigned this_sm()
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

/* Loads LINES lines, stores them, loads them again: does a store leave what L1 has valid? */
static __global__ void control_store_after_load(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i++)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x]);
    for (int i = 0; i < LINES; i++)
        store(&a[i * LINE_FLOATS + threadIdx.x], sum);
    __threadfence_block();
    for (int i = 0; i < LINES; i++)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x]);
    store(&a[threadIdx.x], sum);
}

/* Stores whole lines that L1 does not have, then loads them: does a store allocate? */
static __global__ void control_store_then_load(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i++)
        store(&a[i * LINE_FLOATS + threadIdx.x], sum);
    __threadfence_block();
    for (int i = 0; i < LINES; i++)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x]);
    store(&a[threadIdx.x], sum);
}

/* The same, but only 4 bytes of every sector are stored, and the same ones loaded. */
static __global__ void control_store_part_then_load(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i += 8)
        store(&a[i * LINE_FLOATS + threadIdx.x * 8], sum);
    __threadfence_block();
    for (int i = 0; i < LINES; i += 8)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x * 8]);
    store(&a[threadIdx.x], sum);
}

/* 4 bytes of every sector are stored, others of the same sector loaded. */
static __global__ void control_store_part_then_load_rest(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i += 8)
        store(&a[i * LINE_FLOATS + threadIdx.x * 8], sum);
    __threadfence_block();
    for (int i = 0; i < LINES; i += 8)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x * 8 + 1]);
    store(&a[threadIdx.x], sum);
}

/* Loads 96 KiB, stores 192 KiB of another array, loads the 96 KiB again: do stores evict? */
static __global__ void control_stores_evict(float *a, float *b)
{
    float sum = 0;
    for (size_t i = threadIdx.x; i < 96 * 256; i += blockDim.x)
        sum += load(&a[i]);
    __syncthreads();
    for (size_t i = threadIdx.x; i < 192 * 256; i += blockDim.x)
        store(&b[i], sum);
    __syncthreads();
    for (size_t i = threadIdx.x; i < 96 * 256; i += blockDim.x)
        sum += load(&a[i]);
    store(&b[threadIdx.x], sum);
}

/* 32 warps load the same 64 lines at once: are loads of what is under way hits, and are they sent
 * to L2 again? */
static __global__ void control_same_lines(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i++)
        sum += load(&a[i * LINE_FLOATS + threadIdx.x % 32]);
    store(&a[threadIdx.x], sum);
}

/* An L1 of how many bytes is there? Two sweeps over `bytes` by one block. */
static __global__ void control_l1_sweep(float *a, size_t bytes)
{
    float sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
            sum += load(&a[i]);
        __syncthreads();
    }
    store(&a[threadIdx.x], sum);
}

/* A block that ended at once would leave its SM to another one, so that a chosen SM got none. */
static __device__ void stay_a_while()
{
    for (long long begin = clock64(); clock64() - begin < 50000;)
        ;
}

struct sms {
    unsigned char chosen[256];
    unsigned count;
};

/* The chosen SMs load the same array in the same order, past L1, SM i delayed by i x delay cycles:
 * are their requests merged before L2? */
static __global__ void control_same_array(float *a, size_t bytes, struct sms sms, long long delay,
                                          unsigned *arrived)
{
    unsigned sm = this_sm();
    if (!sms.chosen[sm]) {
        stay_a_while();
        return;
    }
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < sms.count)
            ;
        long long begin = clock64();
        while (clock64() - begin < delay * sm)
            ;
    }
    __syncthreads();
    float sum = 0;
    for (size_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        sum += load_past_l1(&a[i]);
    if (sum != 0)
        store(&a[threadIdx.x], sum);
}

/* Two SMs load the same lines past L1, one after the other at fixed times, the second `offset`
 * cycles after the first: for how long can a request join an earlier one? */
static __global__ void control_merge_window(float *a, struct sms sms, long long offset,
                                            unsigned *arrived)
{
    enum { LOADS = 1000, PERIOD = 3000 };
    unsigned sm = this_sm();
    if (!sms.chosen[sm]) {
        stay_a_while();
        return;
    }
    if (threadIdx.x == 0)
        atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < sms.count)
        ;
    long long begin = clock64() + PERIOD + (sm == 0 ? 0 : offset);
    float sum = 0;
    for (int i = 0; i < LOADS; i++) {
        while (clock64() < begin + (long long)i * PERIOD)
            ;
        sum += load_past_l1(&a[i * LINE_FLOATS + threadIdx.x]);
    }
    if (sum != 0)
        store(&a[threadIdx.x], sum);
}

/* 32 warps load the same 64 lines at once, past L1. */
static __global__ void control_same_lines_past_l1(float *a)
{
    float sum = 0;
    for (int i = 0; i < LINES; i++)
        sum += load_past_l1(&a[i * LINE_FLOATS + threadIdx.x % 32]);
    store(&a[threadIdx.x], sum);
}

/* Each warp of a block stores its own 4 bytes of the same sectors: `lines` lines, one after the
 * other. Are stores of several warps merged before L2? */
static __global__ void control_stores_meet(float *a, int lines, int times)
{
    for (int t = 0; t < times; t++)
        for (int i = 0; i < lines; i++)
            if (threadIdx.x % 32 < 4)
                store(&a[i * LINE_FLOATS + threadIdx.x % 32 * 8 + threadIdx.x / 32 % 8], 1);
}

/* How much shared memory the driver sets aside for a kernel that asks for none by itself. */
static __global__ void control_carveout(float *a)
{
    if (a == nullptr)
        store(a, 1);
}

/* SM s loads the part (s + shift) of an array, past L1: which part of L2 holds it afterwards? */
static __global__ void control_l2_parts(float *a, size_t bytes, unsigned shift)
{
    size_t part = bytes / 4 / gridDim.x, first = (this_sm() + shift) % gridDim.x * part;
    float sum = 0;
    for (size_t i = threadIdx.x; i < part; i += blockDim.x)
        sum += load_past_l1(&a[first + i]);
    if (sum != 0)
        store(&a[threadIdx.x], sum);
}

/* Every SM loads the whole array, each beginning elsewhere. */
static __global__ void control_l2_all(float *a, size_t bytes)
{
    size_t count = bytes / 4, first = count / gridDim.x * this_sm();
    float sum = 0;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
        sum += load_past_l1(&a[(first + i) % count]);
    if (sum != 0)
        store(&a[threadIdx.x], sum);
}

/* Stores 4 of every `stride` bytes: does L2 fetch the rest of a sector, and when does it write? */
static __global__ void control_store_stride(float *a, size_t bytes, size_t stride)
{
    for (size_t i = grid_x(); i < bytes / stride; i += (size_t)gridDim.x * blockDim.x)
        store(&a[i * stride / 4], 1);
}

/* Loads 4 of every `stride` bytes, past L1. */
static __global__ void control_load_stride(float *a, size_t bytes, size_t stride)
{
    float sum = 0;
    for (size_t i = grid_x(); i < bytes / stride; i += (size_t)gridDim.x * blockDim.x)
        sum += load_past_l1(&a[i * stride / 4]);
    if (sum != 0)
        store(a, sum);
}

static __global__ void control_flush(const float4 *from, size_t count, float *out)
{
    float sum = 0;
    for (size_t i = grid_x(); i < count; i += (size_t)gridDim.x * blockDim.x)
        sum += __ldcg(&from[i]).x;
    if (sum != 0)
        *out = sum;
}

static float *big;
static const size_t big_bytes = 512 * megabyte, flush_at = 256 * megabyte;

static void flush()
{
    control_flush<<<1024, 256>>>((float4 *)((char *)big + flush_at), flush_at / 16, big);
}

/* Which SM ran each block, and in which order: work loops of each thread. */
static __global__ void order_blocks(unsigned *sm_of_block, long long *begin_of_block, int work)
{
    long long begin;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    if (threadIdx.x == 0) {
        sm_of_block[blockIdx.x] = this_sm();
        begin_of_block[blockIdx.x] = begin;
    }
    float sum = threadIdx.x;
    for (int i = 0; i < work; i++)
        sum = sum * 1.0001f + 1;
    if (sum == 0)
        sm_of_block[0] = 0;
}

static void print_order(unsigned blocks, unsigned threads, int work)
{
    unsigned *sms;
    long long *begins;
    check(cudaMallocManaged(&sms, blocks * sizeof *sms), "memory");
    check(cudaMallocManaged(&begins, blocks * sizeof *begins), "memory");
    order_blocks<<<blocks, threads>>>(sms, begins, work);
    check(cudaDeviceSynchronize(), "order of blocks");
    printf("order %u blocks of %u threads, work %d:", blocks, threads, work);
    for (unsigned b = 0; b < blocks; b++)
        printf(" %u", sms[b]);
    printf("\n");
    check(cudaFree(sms), "memory");
    check(cudaFree(begins), "memory");
}

/* When each warp of a block ends a loop of loads that hit L1: in step, or one after the other? */
static __global__ void order_warps(float *a, long long *ends)
{
    float sum = 0;
    __syncthreads();
    long long begin = clock64();
    for (int i = 0; i < 2000; i++)
        sum += load(&a[(i * 32 + threadIdx.x) % 4096]);
    if (threadIdx.x % 32 == 0)
        ends[blockIdx.x * 32 + threadIdx.x / 32] = clock64() - begin;
    store(&a[threadIdx.x], sum);
}

static void print_warps()
{
    long long *ends;
    check(cudaMallocManaged(&ends, 64 * sizeof *ends), "memory");
    order_warps<<<1, 1024>>>(big, ends);
    check(cudaDeviceSynchronize(), "order of warps");
    printf("warps end:");
    for (int w = 0; w < 32; w++)
        printf(" %lld", ends[w]);
    printf("\n");
    check(cudaFree(ends), "memory");
}

static struct sms choose(const char *text)
{
    struct sms sms = {};
    for (unsigned first, last; *text; text += strspn(text, " ")) {
        int length = 0;
        if (sscanf(text, "%u-%u%n", &first, &last, &length) != 2)
            break;
        for (unsigned i = first; i <= last && i < sizeof sms.chosen; i++)
            sms.count += !sms.chosen[i], sms.chosen[i] = 1;
        text += length;
    }
    return sms;
}

/* One block per SM, since a block takes most of the shared memory. */
static void run_same_array(int sm_count, const char *which, long long delay)
{
    struct sms sms = choose(which);
    unsigned *arrived;
    check(cudaMalloc(&arrived, sizeof *arrived), "memory");
    check(cudaMemset(arrived, 0, sizeof *arrived), "memory");
    check(cudaFuncSetAttribute(control_same_array, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               200 * 1024),
          "shared memory");
    flush();
    control_same_array<<<sm_count, 256, 200 * 1024>>>(big, megabyte, sms, delay, arrived);
    check(cudaDeviceSynchronize(), "control_same_array");
    printf("same_array SMs %s delay %lld\n", which, delay);
    check(cudaFree(arrived), "memory");
}

static void run_merge_window(int sm_count, const char *which, long long offset)
{
    struct sms sms = choose(which);
    unsigned *arrived;
    check(cudaMalloc(&arrived, sizeof *arrived), "memory");
    check(cudaMemset(arrived, 0, sizeof *arrived), "memory");
    check(cudaFuncSetAttribute(control_merge_window, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               200 * 1024),
          "shared memory");
    control_load_stride<<<1056, 256>>>(big, megabyte, 4);
    control_merge_window<<<sm_count, 32, 200 * 1024>>>(big, sms, offset, arrived);
    check(cudaDeviceSynchronize(), "control_merge_window");
    printf("merge_window SMs %s offset %lld\n", which, offset);
    check(cudaFree(arrived), "memory");
}

static void run_carveout()
{
    check(cudaFuncSetAttribute(control_carveout, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               200 * 1024),
          "shared memory");
    const unsigned shapes[] = {16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    const unsigned sizes[] = {0,    512,  1024,  2048,  3072,  4096,
                              6144, 8192, 12288, 16384, 24576, 49152};
    for (unsigned threads : shapes)
        for (unsigned bytes : sizes) {
            control_carveout<<<4000, threads, bytes>>>(big);
            printf("carveout %u threads %u bytes\n", threads, bytes);
        }
    check(cudaDeviceSynchronize(), "control_carveout");
}

static void run_l2(int sm_count)
{
    check(cudaFuncSetAttribute(control_l2_parts, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               200 * 1024),
          "shared memory");
    check(cudaFuncSetAttribute(control_l2_all, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               200 * 1024),
          "shared memory");
    const size_t sizes[] = {8, 20, 28, 36, 44, 52, 60, 80, 120};
    for (size_t size : sizes) {
        size_t bytes = size * megabyte;
        flush();
        control_l2_parts<<<sm_count, 1024, 200 * 1024>>>(big, bytes, 0);
        control_l2_parts<<<sm_count, 1024, 200 * 1024>>>(big, bytes, 0);
        control_l2_parts<<<sm_count, 1024, 200 * 1024>>>(big, bytes, 2);
        control_l2_parts<<<sm_count, 1024, 200 * 1024>>>(big, bytes, 2);
        if (size <= 36)
            control_l2_all<<<sm_count, 1024, 200 * 1024>>>(big, bytes);
        check(cudaDeviceSynchronize(), "control_l2_parts");
        printf("l2_parts %zu MiB: shift 0 0 2 2%s\n", size, size <= 36 ? ", all" : "");
    }
}

static void run_l1()
{
    control_store_after_load<<<1, 32>>>(big);
    control_store_then_load<<<1, 32>>>(big);
    control_store_part_then_load<<<1, 32>>>(big);
    control_store_part_then_load_rest<<<1, 32>>>(big);
    control_stores_evict<<<1, 1024>>>(big, big + megabyte);
    control_same_lines<<<1, 1024>>>(big);
    control_same_lines_past_l1<<<1, 1024>>>(big);
    for (int lines = 1; lines <= 64; lines *= 2)
        control_stores_meet<<<1, 256>>>(big, lines, 64);
    for (int lines = 1; lines <= 64; lines *= 4)
        control_stores_meet<<<132, 256>>>(big, lines, 64);
    for (size_t bytes = 160; bytes <= 288; bytes += 16)
        control_l1_sweep<<<1, 1024>>>(big, bytes * 1024);
    for (size_t bytes = 160; bytes <= 288; bytes += 32)
        control_l1_sweep<<<1, 32>>>(big, bytes * 1024);
    check(cudaDeviceSynchronize(), "controls of L1");
}

static void run_strides()
{
    const size_t strides[] = {4, 32, 64, 128};
    for (size_t stride : strides) {
        flush();
        control_store_stride<<<1056, 256>>>(big, 128 * megabyte, stride);
        flush();
        control_load_stride<<<1056, 256>>>(big, 128 * megabyte, stride);
    }
    const size_t sizes[] = {8, 20, 40, 56};
    for (size_t size : sizes) {
        flush();
        control_store_stride<<<1056, 256>>>(big, size * megabyte, 4);
        control_load_stride<<<1056, 256>>>(big, size * megabyte, 4);
    }
    check(cudaDeviceSynchronize(), "controls of strides");
    printf("strides 4 32 64 128: store, load of 128 MiB; 8 20 40 56 MiB: store, then load\n");
}

int main()
{
    int sm_count = 0;
    check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0), "the SMs");
    check(cudaMalloc(&big, big_bytes), "memory");
    check(cudaMemset(big, 0, big_bytes), "memory");
    run_l1();
    run_strides();
    const char *sets[] = {"0-0",
                          "0-1",
                          "0-1 16-16",
                          "0-1 16-17",
                          "0-1 16-17 32-32",
                          "0-1 16-17 32-33",
                          "0-1 16-17 32-33 48-49",
                          "0-131"};
    for (const char *set : sets)
        run_same_array(sm_count, set, 0);
    const long long offsets[] = {0, 100, 200, 300, 400, 500, 700, 1000};
    for (long long offset : offsets)
        run_merge_window(sm_count, "0-1", offset);
    for (long long offset : offsets)
        run_merge_window(sm_count, "0-0 16-16", offset);
    run_l2(sm_count);
    run_carveout();
    print_order(1200, 256, 20000);
    print_order(3000, 256, 100);
    print_order(300, 1024, 20000);
    print_order(300, 32, 20000);
    print_warps();
    return EXIT_SUCCESS;
}
