/* The screen for wrong results on a GPU: a path is launched again and again, and every warp's hash
 * compared with what it must be. */
#include <stdlib.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

/* With the same operands. Of two, the second has its data inverted. */
enum { LAUNCHES_OF_SET = 2 };

/* One launch, until its results are there. */
static int screen_launch(const struct screening *screening, uint32_t number, uint64_t *out_ns,
                         struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    const struct screening_launch launch = {
        .periods = SCREEN_PERIODS, .number = number, .set = number / LAUNCHES_OF_SET};
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (!rc)
        rc = screening_launch(screening, &launch, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results,
                              gpu->base.limits.sm_count * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    return rc ? rc : cuda_elapsed(gpu, gpu->events[0], gpu->events[1], out_ns, err);
}

/* hashes: those of a set have what most warps had in its first launch. */
static int screen_take_launch(const struct screening *screening, struct cuda_hashes *hashes,
                              struct device_screen_answer *answer, struct err *err)
{
    uint64_t *cycles = mem_array(answer->place_count, sizeof *cycles);
    uint64_t before = cuda_wrong_hashes(answer->places, answer->place_count);
    hashes->set = answer->launches / LAUNCHES_OF_SET;
    if (answer->launches % LAUNCHES_OF_SET == 0)
        hashes->expected = screening_most_frequent(screening, hashes->results);
    if (!answer->launches++)
        answer->digest = hashes->expected;
    int rc = cuda_add_hashes(screening->gpu, hashes, answer->places, cycles, err);
    if (!rc)
        cuda_keep_fastest(answer->places, cycles, answer->place_count);
    answer->wrong_launches += cuda_wrong_hashes(answer->places, answer->place_count) > before;
    free(cycles);
    return rc;
}

static int screen_run(const struct screening *screening, const struct device_screen *asked,
                      struct device_screen_answer *answer, struct err *err)
{
    struct cuda_hashes hashes = {.results = screening->gpu->results.host,
                                 .warps = screening->warps};
    uint64_t target_ns = (uint64_t)asked->target_ms * 1000000, ns = 0, host;
    int rc;
    do {
        rc = screen_launch(screening, answer->launches, &ns, err);
        if (!rc)
            rc = screen_take_launch(screening, &hashes, answer, err);
        answer->elapsed_ns += ns;
    } while (!rc && ns &&
             (answer->launches < LAUNCHES_OF_SET || answer->elapsed_ns + ns / 2 < target_ns));
    answer->not_as_host =
        screen_host_hash(screening->path, 0, &host) && !rc && host != answer->digest;
    if (!rc)
        screening_look_again(screening, answer);
    return rc;
}

int cuda_screen_path(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_screen *asked = request;
    struct device_screen_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct screening screening;
    uint32_t sms = gpu->base.limits.sm_count;
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = screening_begin(&screening, gpu, asked->path, err);
    if (rc)
        return rc;
    out_answer->code = screening.code;
    out_answer->place_count = (size_t)sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    rc = screen_run(&screening, asked, out_answer, err);
    screening_end(&screening);
    return rc;
}
