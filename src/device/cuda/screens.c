/* The screen for wrong results on a GPU: one block per SM, the same program in all warps, launched
 * again and again; every warp's hash compared with what it must be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

enum { SHARED_BYTES_LEFT = 8192 }; /* for what a kernel declares itself */

int screening_begin(struct screening *screening, struct cuda_gpu *gpu, enum device_screen_path path,
                    struct err *err)
{
    char name[32];
    int major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    int capability = 10 * major + minor;
    if (!device_screen_exists(path, capability))
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       device_screen_names[path], major, minor);
    *screening =
        (struct screening){.gpu = gpu,
                           .path = path,
                           .warps = device_screen_rows[path].warps,
                           .code = flavour_code(gpu->flavour, CUDA_KERNELS_SCREEN, capability)};
    snprintf(name, sizeof name, "screen_%s", device_screen_names[path]);
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_SCREEN, name, &screening->kernel, err);
    if (rc)
        return rc;
    /* A block takes most of its SM's shared memory, so that an SM holds only one. */
    screening->shared_bytes = (uint32_t)gpu->base.limits.shared_bytes_max - SHARED_BYTES_LEFT;
    return cuda_check(gpu,
                      gpu->driver->cuFuncSetAttribute(
                          screening->kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          (int)screening->shared_bytes),
                      "cuFuncSetAttribute", err);
}

int screening_launch(const struct screening *screening, uint32_t periods, uint32_t launch,
                     uint32_t slot, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    uint32_t sms = gpu->base.limits.sm_count;
    struct kernel_screen parameters = {
        .results = gpu->results.device + (uint64_t)slot * sms * sizeof(struct kernel_check_result),
        .periods = periods,
        .launch = launch};
    void *pointers[] = {&parameters};
    return cuda_launch(gpu, screening->kernel, sms, screening->warps * CHECK_LANES,
                       screening->shared_bytes, pointers, err);
}

uint64_t screening_most_frequent(const struct screening *screening,
                                 const struct kernel_check_result *results)
{
    const struct cuda_gpu *gpu = screening->gpu;
    size_t count = 0, most = 0, warps = screening->warps;
    uint64_t *hashes = mem_array(gpu->base.limits.sm_count * warps, sizeof *hashes), found = 0;
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++)
        for (size_t w = 0; w < warps; w++)
            hashes[count++] = results[i].hashes[w];
    sort_stable(hashes, count, sizeof *hashes, sort_by_u64);
    for (size_t i = 0, same = 0; i < count; i++) {
        same = i && hashes[i] == hashes[i - 1] ? same + 1 : 1;
        found = same > most ? hashes[i] : found;
        most = same > most ? same : most;
    }
    free(hashes);
    return found;
}

/* One launch, until its results are there. */
static int screen_launch(const struct screening *screening, uint32_t launch, uint64_t *out_ns,
                         struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (!rc)
        rc = screening_launch(screening, SCREEN_PERIODS, launch, 0, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results,
                              gpu->base.limits.sm_count * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    return rc ? rc : cuda_elapsed(gpu, gpu->events[0], gpu->events[1], out_ns, err);
}

static int screen_take_launch(struct screening *screening, struct device_screen_answer *answer,
                              struct err *err)
{
    uint64_t *cycles = mem_array(answer->place_count, sizeof *cycles);
    if (!answer->launches++) {
        answer->digest = screening_most_frequent(screening, screening->gpu->results.host);
        if (!screen_host_hash(screening->path, &screening->expected))
            screening->expected = answer->digest;
    }
    int rc = cuda_add_hashes(screening->gpu, screening->gpu->results.host, screening->warps,
                             screening->expected, answer->places, cycles, err);
    if (!rc)
        cuda_keep_fastest(answer->places, cycles, answer->place_count);
    free(cycles);
    return rc;
}

int cuda_screen_path(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_screen *asked = request;
    struct device_screen_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct screening screening;
    uint64_t target_ns = (uint64_t)asked->target_ms * 1000000, ns = 0;
    uint32_t sms = gpu->base.limits.sm_count;
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = screening_begin(&screening, gpu, asked->path, err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (rc)
        return rc;
    out_answer->code = screening.code;
    out_answer->place_count = (size_t)sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    do {
        rc = screen_launch(&screening, out_answer->launches, &ns, err);
        if (!rc)
            rc = screen_take_launch(&screening, out_answer, err);
        out_answer->elapsed_ns += ns;
    } while (!rc && ns && out_answer->elapsed_ns + ns / 2 < target_ns);
    return rc;
}
