/* Where the screen found something wrong, it looks again: the same kernel, of which one warp stores
 * each of its results, on the SM that was wrong and on one that was not. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

enum { AGAIN = 16, REFERENCES = 4 }; /* launches at most, of the wrong warp and of a right one */

struct second_look {
    const struct screening *screening;
    struct device_screen_answer *answer;
    CUdeviceptr buffer;
    size_t words;
    uint32_t *right, *seen;
    uint32_t number; /* of the next launch */
    uint32_t set;    /* of operands */
};

/* What a launch gave of a place. */
struct seen_place {
    bool there;       /* one block ran on its SM, and no other one */
    bool warp_wrong;  /* the warp that stored its results */
    bool place_wrong; /* any warp of the place */
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

static struct seen_place see_place(const struct second_look *look, size_t place, uint32_t warp)
{
    const struct screening *screening = look->screening;
    const struct cuda_gpu *gpu = screening->gpu;
    const struct kernel_check_result *results = gpu->results.host;
    uint64_t expected = screening_most_frequent(screening, results);
    struct seen_place seen = {0};
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++) {
        if (results[i].sm_id != gpu->sm_ids[place / DEVICE_SUB_CORES])
            continue;
        blocks++;
        seen.warp_wrong = results[i].hashes[warp] != expected;
        for (size_t w = place % DEVICE_SUB_CORES; w < screening->warps; w += DEVICE_SUB_CORES)
            seen.place_wrong = seen.place_wrong || results[i].hashes[w] != expected;
    }
    seen.there = blocks == 1;
    return seen;
}

/* A launch of which a warp stores its results, in look->seen. */
static int look_launch(struct second_look *look, size_t place, uint32_t warp,
                       struct seen_place *out_seen, struct err *err)
{
    const struct screening *screening = look->screening;
    struct cuda_gpu *gpu = screening->gpu;
    const struct screening_launch launch = {.periods = SCREEN_PERIODS,
                                            .number = look->number++,
                                            .set = look->set,
                                            .trace = look->buffer,
                                            .trace_sm = gpu->sm_ids[place / DEVICE_SUB_CORES],
                                            .trace_warp = warp};
    int rc = cuda_check(
        gpu, gpu->driver->cuMemsetD32Async(look->buffer, 0, look->words, gpu->streams[0]),
        "cuMemsetD32Async", err);
    if (!rc)
        rc = screening_launch(screening, &launch, err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results,
                              gpu->base.limits.sm_count * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = cuda_check(gpu,
                        gpu->driver->cuMemcpyDtoHAsync(look->seen, look->buffer, 4 * look->words,
                                                       gpu->streams[0]),
                        "cuMemcpyDtoHAsync", err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    if (!rc)
        *out_seen = see_place(look, place, warp);
    return rc;
}

/* The results that are right: of the first place that was never wrong. */
static int look_right(struct second_look *look, bool *out_known, struct err *err)
{
    const struct device_screen_answer *answer = look->answer;
    uint32_t tries = 0;
    int rc = 0;
    *out_known = false;
    for (size_t i = 0; i < answer->place_count && tries < REFERENCES && !*out_known && !rc; i++) {
        struct seen_place seen = {0};
        if (answer->places[i].wrong || !answer->places[i].count)
            continue;
        tries++;
        rc = look_launch(look, i, i % DEVICE_SUB_CORES, &seen, err);
        *out_known = !rc && seen.there && !seen.warp_wrong;
    }
    if (*out_known)
        memcpy(look->right, look->seen, 4 * look->words);
    return rc;
}

/* Results are stored by period, then by number, then by lane. */
static void look_compare(const struct second_look *look)
{
    struct device_screen_answer *answer = look->answer;
    const struct device_screen_row *row = &device_screen_rows[look->screening->path];
    uint32_t numbers = row->steps * row->taken;
    answer->again.results = look->words;
    for (size_t i = 0; i < look->words; i++) {
        if (look->seen[i] == look->right[i])
            continue;
        answer->again.differ++;
        if (answer->result_count == DEVICE_WRONG_RESULTS)
            continue;
        answer->results[answer->result_count++] =
            (struct device_wrong_result){.period = (uint32_t)(i / CHECK_LANES / numbers),
                                         .number = (uint32_t)(i / CHECK_LANES % numbers),
                                         .lane = (uint32_t)(i % CHECK_LANES),
                                         .expected = look->right[i],
                                         .found = look->seen[i]};
    }
}

static int look_again(struct second_look *look, size_t place, struct err *err)
{
    struct device_second_look *again = &look->answer->again;
    uint32_t warp = look->answer->places[place].wrong_warp;
    int rc = 0;
    again->place = (uint32_t)place;
    again->set = look->set;
    for (uint32_t i = 0; i < AGAIN && !rc; i++) {
        struct seen_place seen = {0};
        rc = look_launch(look, place, warp, &seen, err);
        if (rc || !seen.there)
            continue;
        again->launches++;
        again->wrong += seen.place_wrong;
        if (seen.warp_wrong && !again->results)
            look_compare(look);
    }
    return rc;
}

static int look_all(struct second_look *look, size_t place)
{
    struct device_load_sample sample = {0};
    struct err err = {0};
    bool known = false;
    int rc = look_right(look, &known, &err);
    if (!rc && known)
        rc = look_again(look, place, &err);
    cuda_read_sensors(look->screening->gpu, &sample);
    look->answer->again.sm_mhz = sample.sm_mhz;
    look->answer->again.power_w = sample.power_w;
    look->answer->again.temperature_c = sample.temperature_c;
    return rc;
}

void screening_look_again(const struct screening *screening, struct device_screen_answer *answer)
{
    const struct device_screen_row *row = &device_screen_rows[screening->path];
    struct cuda_gpu *gpu = screening->gpu;
    struct second_look look = {.screening = screening,
                               .answer = answer,
                               .words =
                                   (size_t)SCREEN_PERIODS * row->steps * row->taken * CHECK_LANES,
                               .number = answer->launches};
    size_t place;
    if (!worst_place(answer, &place) || gpu->driver->cuMemAlloc(&look.buffer, 4 * look.words))
        return;
    look.set = answer->places[place].wrong_set;
    look.right = mem_array(look.words, sizeof *look.right);
    look.seen = mem_array(look.words, sizeof *look.seen);
    answer->results = mem_array(DEVICE_WRONG_RESULTS, sizeof *answer->results);
    if (look_all(&look, place)) {
        answer->again = (struct device_second_look){0};
        answer->result_count = 0;
    }
    free(look.right);
    free(look.seen);
    if (!gpu->lost)
        gpu->driver->cuMemFree(look.buffer);
}
