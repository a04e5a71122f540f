/* Where the screen found something wrong, it looks again: the same kernel, of which one warp stores
 * every word it takes, on the SM that was wrong and on one that was not. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

enum { AGAIN = 16, REFERENCES = 4 }; /* launches at most, of the wrong warp and of a right one */

struct tracing {
    const struct screening *screening;
    struct device_screen_answer *answer;
    CUdeviceptr buffer;
    size_t words;
    uint32_t *right, *seen;
    uint32_t number; /* of the next launch */
};

/* The place with most wrong hashes; false if there is none, or if most places are wrong: then no
 * place is known to be right. */
static bool worst_place(const struct device_screen_answer *answer, size_t *out_place)
{
    size_t wrong = 0, worst = 0;
    for (size_t i = 0; i < answer->place_count; i++) {
        wrong += answer->places[i].wrong > 0;
        worst = answer->places[i].wrong > answer->places[worst].wrong ? i : worst;
    }
    *out_place = worst;
    return wrong && 2 * wrong < answer->place_count;
}

/* A launch of which the warp of a place stores its words, into tracing->seen. */
static int trace_launch(struct tracing *tracing, size_t place, uint64_t *out_hash, struct err *err)
{
    const struct screening *screening = tracing->screening;
    struct cuda_gpu *gpu = screening->gpu;
    uint32_t sms = gpu->base.limits.sm_count;
    const struct screening_launch launch = {.periods = SCREEN_PERIODS,
                                            .number = tracing->number++,
                                            .trace = tracing->buffer,
                                            .trace_sm = gpu->sm_ids[place / DEVICE_SUB_CORES],
                                            .trace_warp = place % DEVICE_SUB_CORES};
    int rc = cuda_check(
        gpu, gpu->driver->cuMemsetD32Async(tracing->buffer, 0, tracing->words, gpu->streams[0]),
        "cuMemsetD32Async", err);
    if (!rc)
        rc = screening_launch(screening, &launch, err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = cuda_check(gpu,
                        gpu->driver->cuMemcpyDtoHAsync(tracing->seen, tracing->buffer,
                                                       4 * tracing->words, gpu->streams[0]),
                        "cuMemcpyDtoHAsync", err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    const struct kernel_check_result *results = gpu->results.host;
    *out_hash = 0;
    for (uint32_t i = 0; i < sms && !rc; i++)
        if (results[i].sm_id == launch.trace_sm)
            *out_hash = results[i].hashes[launch.trace_warp];
    return rc;
}

/* The words that are right: of the first place that was never wrong. */
static int trace_right(struct tracing *tracing, bool *out_known, struct err *err)
{
    const struct device_screen_answer *answer = tracing->answer;
    uint32_t tries = 0;
    uint64_t hash = 0;
    int rc = 0;
    *out_known = false;
    for (size_t i = 0; i < answer->place_count && tries < REFERENCES && !*out_known && !rc; i++) {
        if (answer->places[i].wrong || !answer->places[i].count)
            continue;
        tries++;
        rc = trace_launch(tracing, i, &hash, err);
        *out_known = !rc && hash == tracing->screening->expected;
    }
    if (*out_known)
        memcpy(tracing->right, tracing->seen, 4 * tracing->words);
    return rc;
}

/* Words are stored by period, then by number, then by lane. */
static void trace_compare(const struct tracing *tracing)
{
    struct device_screen_answer *answer = tracing->answer;
    const struct device_screen_row *row = &device_screen_rows[tracing->screening->path];
    uint32_t numbers = row->steps * row->taken;
    answer->trace.words = tracing->words;
    for (size_t i = 0; i < tracing->words; i++) {
        if (tracing->seen[i] == tracing->right[i])
            continue;
        answer->trace.differ++;
        if (answer->take_count == DEVICE_WRONG_TAKES)
            continue;
        answer->takes[answer->take_count++] =
            (struct device_wrong_take){.period = (uint32_t)(i / CHECK_LANES / numbers),
                                       .number = (uint32_t)(i / CHECK_LANES % numbers),
                                       .lane = (uint32_t)(i % CHECK_LANES),
                                       .expected = tracing->right[i],
                                       .found = tracing->seen[i]};
    }
}

static int trace_again(struct tracing *tracing, size_t place, struct err *err)
{
    struct device_screen_trace *trace = &tracing->answer->trace;
    trace->place = (uint32_t)place;
    int rc = 0;
    while (trace->launches < AGAIN && !rc) {
        uint64_t hash;
        rc = trace_launch(tracing, place, &hash, err);
        if (rc)
            break;
        trace->launches++;
        if (hash == tracing->screening->expected)
            continue;
        if (!trace->wrong++)
            trace_compare(tracing);
    }
    return rc;
}

int screening_trace(const struct screening *screening, struct device_screen_answer *answer,
                    struct err *err)
{
    const struct device_screen_row *row = &device_screen_rows[screening->path];
    struct cuda_gpu *gpu = screening->gpu;
    struct tracing tracing = {.screening = screening,
                              .answer = answer,
                              .words =
                                  (size_t)SCREEN_PERIODS * row->steps * row->taken * CHECK_LANES,
                              .number = answer->launches};
    size_t place;
    bool known;
    if (!worst_place(answer, &place))
        return 0;
    int rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&tracing.buffer, 4 * tracing.words),
                        "cuMemAlloc", err);
    if (rc)
        return rc;
    tracing.right = mem_array(tracing.words, sizeof *tracing.right);
    tracing.seen = mem_array(tracing.words, sizeof *tracing.seen);
    answer->takes = mem_array(DEVICE_WRONG_TAKES, sizeof *answer->takes);
    rc = trace_right(&tracing, &known, err);
    if (!rc && known)
        rc = trace_again(&tracing, place, err);
    struct device_load_sample sample = {0};
    cuda_read_sensors(gpu, &sample);
    answer->trace.sm_mhz = sample.sm_mhz;
    answer->trace.power_w = sample.power_w;
    answer->trace.temperature_c = sample.temperature_c;
    free(tracing.right);
    free(tracing.seen);
    if (!gpu->lost)
        gpu->driver->cuMemFree(tracing.buffer);
    return rc;
}
