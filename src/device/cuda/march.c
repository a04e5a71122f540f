/* The March test of the whole memory on a GPU. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

_Static_assert((int)KERNEL_WRONG_WORDS == (int)DEVICE_WRONG_WORDS_MAX, "words that are kept");

enum { THREADS = 1024, ELEMENT_BYTES = 16 };

/* The test turns round behind the second pass upwards. This much of the other end is read then, so
 * that L2 does not hold what the next pass reads first. */
static const uint64_t TURN_BYTES = UINT64_C(256) << 20;

enum march_kernel { MARCH_WRITE, MARCH_UP, MARCH_DOWN, MARCH_READ, MARCH_KERNELS };

/* The elements, for each background. The inverse of what is expected is written. */
static const struct element {
    enum march_kernel kernel;
    bool inverted; /* the inverse of the background is expected */
    bool turns;    /* only the beginning of the memory is read, and what is wrong does not count */
} elements[] = {
    {MARCH_WRITE, true, false}, /* write 0 */
    {MARCH_UP, false, false},   /* read 0, write 1 */
    {MARCH_UP, true, false},    /* read 1, write 0 */
    {MARCH_READ, false, true},  /* read 0 */
    {MARCH_DOWN, false, false}, /* read 0, write 1 */
    {MARCH_DOWN, true, false},  /* read 1, write 0 */
    {MARCH_READ, false, false}, /* read 0 */
};

struct marching {
    struct cuda_gpu *gpu;
    const struct device_march *asked;
    CUfunction kernels[MARCH_KERNELS];
};

static int march_find_kernels(struct marching *marching, struct err *err)
{
    static const char *const names[MARCH_KERNELS] = {"march_write", "march_up", "march_down",
                                                     "march_read"};
    int rc = 0;
    for (size_t i = 0; i < MARCH_KERNELS && !rc; i++)
        rc = cuda_find_kernel(marching->gpu, CUDA_KERNELS_MEMORY, names[i], &marching->kernels[i],
                              err);
    return rc;
}

static int march_element(const struct marching *marching, uint32_t background,
                         const struct element *element, uint32_t read, struct err *err)
{
    struct cuda_gpu *gpu = marching->gpu;
    uint64_t bytes =
        element->turns && gpu->whole_bytes > TURN_BYTES ? TURN_BYTES : gpu->whole_bytes;
    struct kernel_march march = {
        .base = gpu->whole,
        .count = bytes / ELEMENT_BYTES,
        .seed = marching->asked->seed,
        .stripes = device_march_stripes(background),
        .inverted = element->inverted ? UINT64_MAX : 0,
        .log = element->turns ? 0 : gpu->results.device,
        .drawn = background == 0,
        .read = read,
    };
    void *parameters[] = {&march};
    uint32_t blocks = gpu->base.limits.sm_count * (gpu->base.limits.threads_per_sm / THREADS);
    return cuda_launch(gpu, marching->kernels[element->kernel], blocks, THREADS, 0, parameters,
                       err);
}

/* After each background the launches are waited for, so that a survey that is ended leaves little
 * work behind. */
static int march_backgrounds(const struct marching *marching, struct err *err)
{
    uint32_t read = 0;
    int rc = 0;
    for (uint32_t b = 0; b < marching->asked->backgrounds && !rc; b++) {
        for (size_t i = 0; i < COUNT_OF(elements) && !rc; i++) {
            rc = march_element(marching, b, &elements[i], read, err);
            read += elements[i].kernel != MARCH_WRITE && !elements[i].turns;
        }
        if (!rc)
            rc = cuda_wait(marching->gpu, err);
    }
    return rc;
}

static int march_run(const struct marching *marching, struct device_march_answer *answer,
                     struct err *err)
{
    struct cuda_gpu *gpu = marching->gpu;
    struct kernel_march_log *log;
    int rc = staging_grow(gpu, &gpu->results, sizeof *log, err);
    if (rc)
        return rc;
    log = gpu->results.host;
    memset(log, 0, sizeof *log);
    log->first = UINT64_MAX;
    rc = staging_upload(gpu, &gpu->results, sizeof *log, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (!rc)
        rc = march_backgrounds(marching, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, sizeof *log, err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    if (!rc)
        rc = cuda_elapsed(gpu, gpu->events[0], gpu->events[1], &answer->elapsed_ns, err);
    if (rc)
        return rc;
    answer->wrong = log->wrong;
    answer->first = log->wrong ? log->first : 0;
    answer->word_count = log->wrong < KERNEL_WRONG_WORDS ? log->wrong : KERNEL_WRONG_WORDS;
    answer->words = mem_array(answer->word_count, sizeof *answer->words);
    for (size_t i = 0; i < answer->word_count; i++)
        answer->words[i] =
            (struct device_wrong_word){log->words[i].offset, log->words[i].expected,
                                       log->words[i].found, (uint32_t)log->words[i].read};
    return 0;
}

int cuda_march_memory(struct device *device, const void *request, void *answer, struct err *err)
{
    struct device_march_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct marching marching = {.gpu = gpu, .asked = request};
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    if (watch_others(&gpu->watch, &gpu->nvml_gpu))
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    rc = march_find_kernels(&marching, err);
    if (rc)
        return rc;
    bool counts = health_read_ecc(&gpu->nvml_gpu, &out_answer->ecc_before);
    rc = cuda_whole_take(gpu, err);
    if (rc)
        return rc;
    out_answer->bytes = gpu->whole_bytes;
    out_answer->free_bytes = gpu->whole_free_bytes;
    rc = march_run(&marching, out_answer, err);
    out_answer->ecc_known = counts && health_read_ecc(&gpu->nvml_gpu, &out_answer->ecc_after);
    return rc;
}
