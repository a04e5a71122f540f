/* A shim around the CUDA driver, for LD_PRELOAD: while a program measures a GPU, a small kernel
 * beside it takes a share of one of the GPU's memories. So a loss of known size can be had on a
 * healthy card without changing a setting.
 *
 * PARASITE="main 138 140" takes 138 GB/s of main memory by reading while the program reads, and
 * 140 GB/s by writing while it writes; "l2 285 0" of L2, while it reads only; "host 1.6 1.6" of the
 * link to the host, towards the GPU and back; "none 0 0" nothing.
 * PARASITE_TRUTH=FILE: when the program opens the GPU and when it ends, streams of the shim's own
 * measure what the parasite leaves. Lines are added to FILE: phase (0: opened, 1: ended), figure,
 * GB/s without the parasite, GB/s with it.
 *
 * The parasite is started before an event is recorded, which programs do before they time a stream
 * or a copy, and ends when the program has waited for its stream. So latencies, which are timed on
 * the GPU, are measured without it, and no call that waits for the whole GPU waits for the parasite
 * for long. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "parasite.h"

#define TEXT_OF(name) #name
#define SYMBOL_OF(name) TEXT_OF(name)

#define NEEDED(X)                                                                                  \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuEventRecord)                                                                               \
    X(cuLaunchKernel)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuCtxSetCurrent)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuEventCreate)                                                                               \
    X(cuEventElapsedTime)                                                                          \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemsetD32Async)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleLoadData)                                                                            \
    X(cuStreamCreate)

static struct {
#define FIELD(name) __typeof__(&name) name;
    NEEDED(FIELD)
#undef FIELD
} cu;

extern const char parasite_fatbin[];

enum { ORDERS_AT = 0, ARRIVED_AT = 128, COUNTER_AT = 256, WORDS_BYTES = 512 };
enum {
    LIMIT_MS = 20,
    RENEW_MS = 12,
    PATIENCE_MS = 5,
    HOST_BLOCKS = 8,
    WRITERS_MAX = 64,
    TRUTH_TRIES = 2
};

static const uint64_t MAIN_BYTES = UINT64_C(256) << 20, L2_BYTES = 2 << 20, HOST_BYTES = 8 << 20;

static struct {
    char kind[8]; /* "": no GPU is open any more, or yet */
    bool broken, running;
    double started_ms;
    uint32_t blocks;
    struct parasite_work work;
    CUfunction take;
    CUmodule module;
    CUstream stream, stop_stream, truth_stream;
    CUevent begin, end;
    CUdeviceptr words, memory;
    void *host; /* of the parasite, for the link */
    enum parasite_mode mode;
    volatile uint32_t *resident;
    uint32_t sms, late;
} parasite;

static bool parasite_check(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return true;
    if (!parasite.broken)
        fprintf(stderr, "parasite: %s: error %d\n", what, (int)result);
    parasite.broken = true;
    return false;
}
#define CHECK(call) parasite_check(cu.call, #call)

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void parasite_stop(void)
{
    if (parasite.running)
        CHECK(cuMemsetD32Async(parasite.words + ORDERS_AT + offsetof(struct parasite_orders, stop),
                               parasite.work.epoch, 1, parasite.stop_stream));
    parasite.running = false;
}

static void parasite_change(enum parasite_mode mode)
{
    if (!parasite.take || mode == parasite.mode)
        return;
    CHECK(cuMemsetD32Async(parasite.words + ORDERS_AT + offsetof(struct parasite_orders, mode),
                           mode, 1, parasite.stop_stream));
    parasite.mode = mode;
}

/* Returns when all its blocks run. */
static void parasite_start(void)
{
    if (!parasite.take || parasite.broken)
        return;
    if (parasite.running && now_ms() - parasite.started_ms < RENEW_MS)
        return;
    parasite_stop();
    parasite.work.epoch++;
    void *parameters[] = {&parasite.work};
    parasite.running = CHECK(cuLaunchKernel(parasite.take, parasite.blocks, 1, 1, PARASITE_THREADS,
                                            1, 1, 0, parasite.stream, parameters, NULL));
    parasite.started_ms = now_ms();
    while (*parasite.resident != parasite.work.epoch) {
        if (now_ms() - parasite.started_ms > PATIENCE_MS) {
            parasite.late++;
            break;
        }
    }
}

/* What the truth measures. */
static const struct figure {
    const char *name, *kernel; /* NULL: copies */
    uint64_t footprint_bytes, bytes;
    const char *only; /* kind of parasite; NULL: all */
} figures[] = {
    {"main.read", "truth_read", UINT64_C(1) << 30, UINT64_C(12) << 30, NULL},
    {"main.write", "truth_write", UINT64_C(1) << 30, UINT64_C(12) << 30, NULL},
    {"l2.read", "truth_read", 24 << 20, UINT64_C(24) << 30, NULL},
    {"l2.write", "truth_write", 24 << 20, UINT64_C(12) << 30, NULL},
    {"host.h2d", NULL, 32 << 20, 128 << 20, "host"},
    {"host.d2h", NULL, 32 << 20, 128 << 20, "host"},
};
enum { FIGURES = sizeof figures / sizeof *figures };

static enum parasite_mode truth_mode(const struct figure *figure)
{
    bool reads = strstr(figure->name, ".read") || strstr(figure->name, ".h2d");
    return reads ? PARASITE_READS : PARASITE_WRITES;
}

static void truth_launch(const struct figure *figure, CUdeviceptr memory, void *host,
                         uint64_t bytes)
{
    if (!figure->kernel) {
        bool up = truth_mode(figure) == PARASITE_READS;
        for (uint64_t at = 0; at < bytes; at += figure->footprint_bytes) {
            if (up)
                CHECK(cuMemcpyHtoDAsync(memory, host, figure->footprint_bytes,
                                        parasite.truth_stream));
            else
                CHECK(cuMemcpyDtoHAsync(host, memory, figure->footprint_bytes,
                                        parasite.truth_stream));
        }
        return;
    }
    CUfunction function = NULL;
    uint32_t chunks = (uint32_t)(figure->footprint_bytes / TRUTH_CHUNK_BYTES);
    uint32_t tickets = (uint32_t)(bytes / TRUTH_CHUNK_BYTES);
    CUdeviceptr counter = parasite.words + COUNTER_AT;
    void *parameters[] = {&memory, &chunks, &tickets, &counter};
    if (CHECK(cuModuleGetFunction(&function, parasite.module, figure->kernel)) &&
        CHECK(cuMemsetD32Async(counter, 0, 1, parasite.truth_stream)))
        CHECK(cuLaunchKernel(function, parasite.sms * TRUTH_BLOCKS_PER_SM, 1, 1, TRUTH_THREADS, 1,
                             1, 0, parasite.truth_stream, parameters, NULL));
}

static double truth_gbs(const struct figure *figure, CUdeviceptr memory, void *host, bool on)
{
    float ms = 0;
    parasite_change(truth_mode(figure));
    CHECK(cuStreamSynchronize(parasite.stop_stream));
    if (on)
        parasite_start();
    truth_launch(figure, memory, host, figure->bytes / 8); /* fills TLBs and L2 */
    CHECK(cuEventRecord(parasite.begin, parasite.truth_stream));
    truth_launch(figure, memory, host, figure->bytes);
    CHECK(cuEventRecord(parasite.end, parasite.truth_stream));
    CHECK(cuStreamSynchronize(parasite.truth_stream));
    parasite_stop();
    CHECK(cuStreamSynchronize(parasite.stream));
    CHECK(cuEventElapsedTime(&ms, parasite.begin, parasite.end));
    return ms > 0 ? (double)figure->bytes / 1e6 / ms : 0;
}

static void truth_measure(int phase)
{
    const char *path = getenv("PARASITE_TRUTH");
    CUdeviceptr memory = 0;
    void *host = NULL;
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    bool link = strcmp(parasite.kind, "host") == 0;
    if (CHECK(cuMemAlloc(&memory, UINT64_C(1) << 30)) &&
        CHECK(
            cuMemsetD32Async(memory, TRUTH_WORD, (UINT64_C(1) << 30) / 4, parasite.truth_stream)) &&
        (!link || CHECK(cuMemHostAlloc(&host, 32 << 20, 0)))) {
        for (int f = 0; f < FIGURES && !parasite.broken; f++) {
            if (figures[f].only && strcmp(figures[f].only, parasite.kind) != 0)
                continue;
            /* In turn, the faster one counts: nothing makes a stream faster than it can be. */
            double gbs[2] = {0, 0};
            for (int i = 0; i < 2 * TRUTH_TRIES; i++) {
                bool on = (i + phase) % 2;
                double seen = truth_gbs(&figures[f], memory, host, on);
                gbs[on] = seen > gbs[on] ? seen : gbs[on];
            }
            fprintf(file, "%d,%s,%.2f,%.2f\n", phase, figures[f].name, gbs[0], gbs[1]);
        }
    }
    if (parasite.broken || parasite.late)
        fprintf(file, "%d,failed,%d,%u\n", phase, parasite.broken, parasite.late);
    fclose(file);
    if (memory)
        cu.cuMemFree(memory);
    if (host)
        cu.cuMemFreeHost(host);
}

/* Memory for the parasite to take from. */
static void parasite_take_memory(const double *gbs, double hz)
{
    uint64_t bytes = MAIN_BYTES;
    if (strcmp(parasite.kind, "host") == 0) {
        bytes = HOST_BYTES;
        if (CHECK(cuMemHostAlloc(&parasite.host, bytes, CU_MEMHOSTALLOC_DEVICEMAP)))
            CHECK(cuMemHostGetDevicePointer(&parasite.memory, parasite.host, 0));
        parasite.blocks = HOST_BLOCKS;
    } else {
        bytes = strcmp(parasite.kind, "l2") == 0 ? L2_BYTES : MAIN_BYTES;
        parasite.work.keep = bytes == L2_BYTES;
        if (CHECK(cuMemAlloc(&parasite.memory, bytes)))
            CHECK(cuMemsetD32Async(parasite.memory, TRUTH_WORD, bytes / 4, parasite.stream));
    }
    parasite.work.base = parasite.memory;
    parasite.work.pieces = bytes / PARASITE_PIECE_BYTES;
    for (int mode = 0; mode < PARASITE_MODES; mode++)
        if (gbs[mode] > 0)
            parasite.work.interval_cycles[mode] =
                (uint32_t)(parasite.blocks * (PARASITE_THREADS / 32) *
                           (double)PARASITE_PIECE_BYTES * hz / (gbs[mode] * 1e9));
}

static void parasite_prepare(CUdevice device, const double *gbs)
{
    int sms = 0, khz = 0;
    void *word = NULL;
    CUdeviceptr resident = 0;
    if (!CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)) ||
        !CHECK(cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device)) ||
        !CHECK(cuModuleLoadData(&parasite.module, parasite_fatbin)) ||
        !CHECK(cuStreamCreate(&parasite.stream, CU_STREAM_NON_BLOCKING)) ||
        !CHECK(cuStreamCreate(&parasite.stop_stream, CU_STREAM_NON_BLOCKING)) ||
        !CHECK(cuStreamCreate(&parasite.truth_stream, CU_STREAM_NON_BLOCKING)) ||
        !CHECK(cuEventCreate(&parasite.begin, CU_EVENT_DEFAULT)) ||
        !CHECK(cuEventCreate(&parasite.end, CU_EVENT_DEFAULT)) ||
        !CHECK(cuMemAlloc(&parasite.words, WORDS_BYTES)) ||
        !CHECK(cuMemsetD32Async(parasite.words, 0, WORDS_BYTES / 4, parasite.stream)) ||
        !CHECK(cuMemHostAlloc(&word, 64, CU_MEMHOSTALLOC_DEVICEMAP)) ||
        !CHECK(cuMemHostGetDevicePointer(&resident, word, 0)))
        return;
    parasite.sms = parasite.blocks = (uint32_t)sms;
    parasite.resident = word;
    *parasite.resident = 0;
    parasite.work = (struct parasite_work){.limit_cycles = (uint32_t)(khz * (double)LIMIT_MS),
                                           .orders = parasite.words + ORDERS_AT,
                                           .arrived = parasite.words + ARRIVED_AT,
                                           .resident = resident};
    if (gbs[PARASITE_READS] > 0 || gbs[PARASITE_WRITES] > 0)
        parasite_take_memory(gbs, khz * 1e3);
    CHECK(cuStreamSynchronize(parasite.stream));
    if (parasite.memory)
        CHECK(cuModuleGetFunction(&parasite.take, parasite.module, "parasite_take"));
}

static CUresult hook_retain(CUcontext *context, CUdevice device)
{
    CUresult result = cu.cuDevicePrimaryCtxRetain(context, device);
    double gbs[PARASITE_MODES];
    if (result != CUDA_SUCCESS || parasite.module ||
        sscanf(getenv("PARASITE"), "%7s %lf %lf", parasite.kind, &gbs[0], &gbs[1]) != 3)
        return result;
    if (CHECK(cuCtxSetCurrent(*context))) {
        parasite_prepare(device, gbs);
        truth_measure(0);
    }
    return result;
}

/* The context is still current. The memory goes with the process. */
static void parasite_close(void)
{
    if (!parasite.kind[0])
        return;
    parasite_stop();
    truth_measure(1);
    parasite.kind[0] = 0;
}

static CUresult hook_release(CUdevice device)
{
    parasite_close();
    return cu.cuDevicePrimaryCtxRelease(device);
}

/* A survey's worker ends so, without closing the GPU. */
__attribute__((visibility("default"), noreturn)) void _exit(int code)
{
    parasite_close();
    syscall(SYS_exit_group, code);
    abort();
}

static CUresult hook_record(CUevent event, CUstream stream)
{
    parasite_start();
    return cu.cuEventRecord(event, stream);
}

/* The kernels of the program that write. */
static CUfunction writers[WRITERS_MAX];
static int writer_count;

static CUresult hook_function(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = cu.cuModuleGetFunction(function, module, name);
    bool known = result != CUDA_SUCCESS || !strstr(name, "write");
    for (int i = 0; i < writer_count && !known; i++)
        known = writers[i] == *function;
    if (!known && writer_count < WRITERS_MAX)
        writers[writer_count++] = *function;
    return result;
}

static CUresult hook_launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void **parameters, void **extra)
{
    enum parasite_mode mode = PARASITE_READS;
    for (int i = 0; i < writer_count; i++)
        if (writers[i] == function)
            mode = PARASITE_WRITES;
    parasite_change(mode);
    return cu.cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, parameters, extra);
}

static CUresult hook_upload(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    if (parasite.host)
        parasite_change(PARASITE_READS);
    return cu.cuMemcpyHtoDAsync(to, from, bytes, stream);
}

static CUresult hook_download(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (parasite.host)
        parasite_change(PARASITE_WRITES);
    return cu.cuMemcpyDtoHAsync(to, from, bytes, stream);
}

static CUresult hook_wait(CUstream stream)
{
    CUresult result = cu.cuStreamSynchronize(stream);
    parasite_stop();
    return result;
}

/* The program asks for the driver's functions by dlsym(). */
__attribute__((visibility("default"))) void *dlsym(void *restrict library,
                                                   const char *restrict name)
{
    static void *(*real)(void *, const char *);
    static const struct {
        const char *name;
        void *hook;
    } hooks[] = {
        {SYMBOL_OF(cuDevicePrimaryCtxRetain), (void *)hook_retain},
        {SYMBOL_OF(cuDevicePrimaryCtxRelease), (void *)hook_release},
        {SYMBOL_OF(cuEventRecord), (void *)hook_record},
        {SYMBOL_OF(cuLaunchKernel), (void *)hook_launch},
        {SYMBOL_OF(cuModuleGetFunction), (void *)hook_function},
        {SYMBOL_OF(cuMemcpyHtoDAsync), (void *)hook_upload},
        {SYMBOL_OF(cuMemcpyDtoHAsync), (void *)hook_download},
        {SYMBOL_OF(cuStreamSynchronize), (void *)hook_wait},
    };
    if (!real)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!real)
        real =
            (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17"); /* aarch64 */
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks && getenv("PARASITE"); i++) {
        if (strcmp(name, hooks[i].name) != 0 || !real(library, name))
            continue;
#define FIND(name) cu.name = (__typeof__(cu.name))real(library, SYMBOL_OF(name));
        if (!cu.cuStreamCreate) {
            NEEDED(FIND)
        }
        return hooks[i].hook;
    }
    return real(library, name);
}
