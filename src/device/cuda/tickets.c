/* Streams by ticket: blocks that stay on their SMs take chunks of the footprint one after the
 * other.
 */
#include <stdio.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

enum { NAME_MAX_BYTES = 32 };

/* What the results hold: the counter, the word that nobody writes, and the times of the blocks. */
enum { COUNTER_AT = 0, SINK_AT = 64, TIMES_AT = 128 };

static int tickets_launch(struct cuda_gpu *gpu, CUfunction function, uint32_t blocks,
                          uint32_t threads, const struct kernel_tickets *work, struct err *err)
{
    struct kernel_tickets copy = *work;
    void *parameters[] = {&copy};
    int rc = cuda_check(gpu, gpu->driver->cuMemsetD32Async(work->counter, 0, 1, gpu->streams[0]),
                        "cuMemsetD32Async", err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, function, blocks, threads, 0, parameters, err);
    return rc ? rc : cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
}

/* An SM ends with its last block; 0 for one that had none. */
static void tickets_read_ends(const struct cuda_gpu *gpu, const struct kernel_block_times *times,
                              uint32_t blocks, struct device_tickets_answer *answer)
{
    uint64_t begin = UINT64_MAX;
    for (uint32_t i = 0; i < blocks; i++)
        begin = times[i].begin_ns < begin ? times[i].begin_ns : begin;
    answer->end_count = gpu->base.limits.sm_count;
    answer->end_ns = mem_array(answer->end_count, sizeof *answer->end_ns);
    for (uint32_t sm = 0; sm < answer->end_count; sm++)
        for (uint32_t i = 0; i < blocks; i++)
            if (times[i].sm_id == gpu->sm_ids[sm] && times[i].end_ns - begin > answer->end_ns[sm])
                answer->end_ns[sm] = times[i].end_ns - begin;
}

static int tickets_prepare(struct cuda_gpu *gpu, const struct device_tickets *asked,
                           uint32_t blocks, struct kernel_tickets *out_work,
                           CUfunction *out_function, struct err *err)
{
    static const char *const kinds[] = {"read", "write", "copy"};
    uint32_t arrays = device_stream_arrays(asked->kind);
    uint32_t chunks = (uint32_t)(asked->footprint_bytes / arrays / asked->chunk_bytes);
    uint64_t pass = (uint64_t)arrays * chunks * asked->chunk_bytes;
    uint32_t passes = asked->total_bytes > pass ? (uint32_t)(asked->total_bytes / pass) : 1;
    uint32_t equal = (uint32_t)((uint64_t)passes * asked->equal_percent / 100);
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "stream_ticket_%s_%u", kinds[asked->kind], asked->unroll);
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_STREAM, name, out_function, err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, pass, err);
    if (rc)
        return rc;
    if (asked->kind != DEVICE_STREAM_READ)
        memory_pool_forget(&gpu->global);
    rc = staging_grow(gpu, &gpu->results, TIMES_AT + blocks * sizeof(struct kernel_block_times),
                      err);
    if (rc)
        return rc;
    *out_work = (struct kernel_tickets){.base = gpu->global.base,
                                        .counter = gpu->results.device + COUNTER_AT,
                                        .sink = gpu->results.device + SINK_AT,
                                        .times = gpu->results.device + TIMES_AT,
                                        .chunks = chunks,
                                        .chunk_bytes = asked->chunk_bytes,
                                        .equal_passes = equal,
                                        .tickets = (passes - equal) * chunks};
    return 0;
}

int cuda_stream_tickets(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_tickets *asked = request;
    struct device_tickets_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    uint32_t blocks = asked->blocks_per_sm * gpu->base.limits.sm_count;
    struct kernel_tickets work;
    CUfunction function = NULL;
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = tickets_prepare(gpu, asked, blocks, &work, &function, err);
    if (rc)
        return rc;
    /* One untimed pass fills TLBs and L2. */
    struct kernel_tickets once = work;
    once.equal_passes = 0;
    once.tickets = work.chunks;
    rc = tickets_launch(gpu, function, blocks, asked->threads, &once, err);
    if (rc)
        return rc;
    rc = tickets_launch(gpu, function, blocks, asked->threads, &work, err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, TIMES_AT + blocks * sizeof(struct kernel_block_times),
                          err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    if (rc)
        return rc;
    rc = cuda_elapsed(gpu, gpu->events[0], gpu->events[1], &out_answer->elapsed_ns, err);
    if (rc)
        return rc;
    uint64_t passes = work.equal_passes + work.tickets / work.chunks;
    out_answer->bytes = passes * device_stream_arrays(asked->kind) * work.chunks * work.chunk_bytes;
    if (asked->ends)
        tickets_read_ends(
            gpu, (const struct kernel_block_times *)((const char *)gpu->results.host + TIMES_AT),
            blocks, out_answer);
    return 0;
}
