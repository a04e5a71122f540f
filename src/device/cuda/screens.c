/* The screen for wrong results on a GPU: one block per SM, the same program in all warps, launched
 * again and again; every warp's hash compared with what it must be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"
#include "device/screen_program.h"

enum { SHARED_BYTES_LEFT = 8192 }; /* for what a kernel declares itself */

struct screening {
    struct cuda_gpu *gpu;
    const struct device_screen *asked;
    struct device_screen_answer *answer;
    uint32_t warps;
    CUfunction kernel;
    uint32_t shared_bytes;
    uint64_t expected;
};

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static int screen_prepare(struct screening *screening, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    struct device_screen_answer *answer = screening->answer;
    enum device_screen_path path = screening->asked->path;
    char name[32];
    int major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    int capability = 10 * major + minor;
    if (!device_screen_exists(path, capability))
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       device_screen_names[path], major, minor);
    snprintf(name, sizeof name, "screen_%s", device_screen_names[path]);
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_SCREEN, name, &screening->kernel, err);
    if (rc)
        return rc;
    screening->shared_bytes = (uint32_t)gpu->base.limits.shared_bytes_max - SHARED_BYTES_LEFT;
    answer->code = flavour_code(gpu->flavour, CUDA_KERNELS_SCREEN, capability);
    answer->place_count = (size_t)gpu->base.limits.sm_count * DEVICE_SUB_CORES;
    answer->places = mem_array(answer->place_count, sizeof *answer->places);
    rc = cuda_check(gpu,
                    gpu->driver->cuFuncSetAttribute(screening->kernel,
                                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    (int)screening->shared_bytes),
                    "cuFuncSetAttribute", err);
    if (rc)
        return rc;
    return staging_grow(gpu, &gpu->results,
                        gpu->base.limits.sm_count * sizeof(struct kernel_check_result), err);
}

static int screen_launch(struct screening *screening, uint64_t *out_ns, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    struct kernel_screen parameters = {.results = gpu->results.device,
                                       .periods = SCREEN_PERIODS,
                                       .launch = screening->answer->launches};
    void *pointers[] = {&parameters};
    uint32_t sms = gpu->base.limits.sm_count;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, screening->kernel, sms, screening->warps * CHECK_LANES,
                     screening->shared_bytes, pointers, err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    return rc ? rc : cuda_elapsed(gpu, gpu->events[0], gpu->events[1], out_ns, err);
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The hash of most warps. */
static uint64_t most_frequent(const struct screening *screening)
{
    const struct cuda_gpu *gpu = screening->gpu;
    const struct kernel_check_result *results = gpu->results.host;
    size_t count = 0, most = 0, warps = screening->warps;
    uint64_t *hashes = mem_array(gpu->base.limits.sm_count * warps, sizeof *hashes), found = 0;
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++)
        for (size_t w = 0; w < warps; w++)
            hashes[count++] = results[i].hashes[w];
    sort_stable(hashes, count, sizeof *hashes, by_hash);
    for (size_t i = 0, same = 0; i < count; i++) {
        same = i && hashes[i] == hashes[i - 1] ? same + 1 : 1;
        found = same > most ? hashes[i] : found;
        most = same > most ? same : most;
    }
    free(hashes);
    return found;
}

static void screen_find_expected(struct screening *screening)
{
    struct device_screen_answer *answer = screening->answer;
    uint64_t host = 0;
    bool known = screen_host_hash(screening->asked->path, &host);
    answer->digest = most_frequent(screening);
    screening->expected = known ? host : answer->digest;
}

static int screen_take_launch(struct screening *screening, struct err *err)
{
    struct device_screen_answer *answer = screening->answer;
    uint64_t *cycles = mem_array(answer->place_count, sizeof *cycles);
    if (!answer->launches++)
        screen_find_expected(screening);
    int rc = cuda_add_hashes(screening->gpu, screening->warps, screening->expected, answer->places,
                             cycles, err);
    if (!rc)
        cuda_keep_fastest(answer->places, cycles, answer->place_count);
    free(cycles);
    return rc;
}

static int screen_run(struct screening *screening, struct err *err)
{
    struct device_screen_answer *answer = screening->answer;
    uint64_t target_ns = (uint64_t)screening->asked->target_ms * 1000000, ns = 0;
    do {
        int rc = screen_launch(screening, &ns, err);
        if (rc)
            return rc;
        rc = screen_take_launch(screening, err);
        if (rc)
            return rc;
        answer->elapsed_ns += ns;
    } while (ns && answer->elapsed_ns + ns / 2 < target_ns);
    return 0;
}

int cuda_screen_path(struct device *device, const void *request, void *answer, struct err *err)
{
    struct screening screening = {.gpu = cuda_of(device), .asked = request, .answer = answer};
    screening.warps = device_screen_rows[screening.asked->path].warps;
    int rc = cuda_set_current(screening.gpu, err);
    if (rc)
        return rc;
    rc = screen_prepare(&screening, err);
    return rc ? rc : screen_run(&screening, err);
}
