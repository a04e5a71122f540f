/* The test of the whole memory: as much as can be allocated is written, read back and compared. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"

extern const unsigned char cuda_memory_fatbin[];

_Static_assert((int)KERNEL_PATTERN_ADDRESS == (int)DEVICE_PATTERN_ADDRESS &&
                   (int)KERNEL_PATTERN_INVERSE == (int)DEVICE_PATTERN_INVERSE &&
                   (int)KERNEL_PATTERN_WALKING == (int)DEVICE_PATTERN_WALKING &&
                   (int)KERNEL_PATTERN_RANDOM == (int)DEVICE_PATTERN_RANDOM &&
                   (int)KERNEL_PATTERN_COUNT == (int)DEVICE_PATTERN_COUNT,
               "the kernels' patterns");

enum { THREADS = 1024, ELEMENT_BYTES = 16, LEAD_REGIONS = 2 };

struct test {
    struct cuda_gpu *gpu;
    const struct device_memory_test *asked;
    struct device_memory_map *map;
    CUdeviceptr base;
    uint64_t bytes;
    CUfunction write[DEVICE_PATTERN_COUNT], check[DEVICE_PATTERN_COUNT], chase;
    CUevent *events; /* one before each region, and one behind the last */
    uint32_t blocks;
};

static int find_kernels(struct test *test, struct err *err)
{
    static const char *const names[][2] = {{"memory_write_address", "memory_check_address"},
                                           {"memory_write_inverse", "memory_check_inverse"},
                                           {"memory_write_walking", "memory_check_walking"},
                                           {"memory_write_random", "memory_check_random"}};
    struct cuda_gpu *gpu = test->gpu;
    const struct driver *driver = gpu->driver;
    int rc = 0;
    if (!gpu->memory_module)
        rc = cuda_check(gpu, driver->cuModuleLoadData(&gpu->memory_module, cuda_memory_fatbin),
                        "loading the memory kernels", err);
    for (size_t p = 0; p < DEVICE_PATTERN_COUNT && !rc; p++) {
        rc = cuda_check(
            gpu, driver->cuModuleGetFunction(&test->write[p], gpu->memory_module, names[p][0]),
            names[p][0], err);
        if (!rc)
            rc = cuda_check(
                gpu, driver->cuModuleGetFunction(&test->check[p], gpu->memory_module, names[p][1]),
                names[p][1], err);
    }
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuModuleGetFunction(&test->chase, gpu->memory_module, "memory_chase"),
                      "memory_chase", err);
}

static int prepare(struct test *test, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    struct device_memory_map *map = test->map;
    uint64_t unit = test->asked->region_bytes;
    size_t count = (size_t)((test->bytes + unit - 1) / unit);
    map->regions = mem_array(count, sizeof *map->regions);
    test->events = mem_array(count + 1, sizeof *test->events);
    if (!map->regions || !test->events)
        return err_no_memory(err);
    map->region_count = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t left = test->bytes - i * unit;
        map->regions[i].bytes = left < unit ? left : unit;
    }
    int rc = 0;
    for (size_t i = 0; i <= count && !rc; i++)
        rc = cuda_check(gpu, gpu->driver->cuEventCreate(&test->events[i], CU_EVENT_DEFAULT),
                        "cuEventCreate", err);
    if (rc)
        return rc;
    test->blocks = gpu->base.limits.sm_count * (gpu->base.limits.threads_per_sm / THREADS);
    /* One result more: of launches that do not count. */
    return staging_grow(gpu, &gpu->results, (count + 1) * sizeof(struct kernel_region_result), err);
}

/* Runs the kernel on region i. slot: where its result goes. */
static int launch(struct test *test, CUfunction kernel, size_t i, size_t slot, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    struct kernel_region region = {
        .base = test->base + i * test->asked->region_bytes,
        .offset = i * test->asked->region_bytes,
        .count = test->map->regions[i].bytes / ELEMENT_BYTES,
        .seed = test->asked->seed,
        .result = gpu->results.device + slot * sizeof(struct kernel_region_result),
    };
    void *parameters[] = {&region};
    return cuda_launch(gpu, kernel, test->blocks, THREADS, 0, parameters, err);
}

static int record(struct test *test, size_t event, struct err *err)
{
    const struct cuda_gpu *gpu = test->gpu;
    return cuda_check(gpu, gpu->driver->cuEventRecord(test->events[event], gpu->streams[0]),
                      "cuEventRecord", err);
}

/* Queues the kernel on every region, from region `start` on. After a pause, the first launches are
 * slower (on an H200 the first two regions of 1 GiB by up to 8 %). So two regions come before them,
 * untimed, and their results are not used. */
static int queue(struct test *test, CUfunction kernel, size_t start, struct err *err)
{
    size_t count = test->map->region_count;
    int rc = 0;
    for (size_t k = 0; k < LEAD_REGIONS && !rc; k++)
        rc = launch(test, kernel, (start + count - 1 - k % count) % count, count, err);
    if (rc)
        return rc;
    rc = record(test, 0, err);
    for (size_t k = 0; k < count && !rc; k++) {
        rc = launch(test, kernel, (start + k) % count, (start + k) % count, err);
        if (!rc)
            rc = record(test, k + 1, err);
    }
    return rc;
}

/* Writes or reads all regions and sets the times. Each pattern begins at another region: what is
 * slow only because it came first is not slow in every pass. */
static int pass(struct test *test, uint32_t pattern, bool reads, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    struct device_memory_map *map = test->map;
    size_t start = pattern * map->region_count / test->asked->patterns;
    int rc = queue(test, reads ? test->check[pattern] : test->write[pattern], start, err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    for (size_t k = 0; k < map->region_count && !rc; k++) {
        struct device_region *region = &map->regions[(start + k) % map->region_count];
        float ms = 0;
        rc = cuda_check(gpu,
                        gpu->driver->cuEventElapsedTime(&ms, test->events[k], test->events[k + 1]),
                        "cuEventElapsedTime", err);
        *(reads ? &region->read_ns[pattern] : &region->write_ns[pattern]) =
            (uint64_t)((double)ms * 1e6 + 0.5);
    }
    return rc;
}

/* After DEVICE_PATTERN_ADDRESS. The last region is left out if it is smaller than the others. In
 * the second round a region is chased from another SM, since SMs differ in their distance from
 * memory.
 */
static int chase(struct test *test, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    uint64_t region_bytes = test->asked->region_bytes, results = gpu->results.device;
    uint32_t loads = test->asked->loads, whole = (uint32_t)(test->bytes / region_bytes);
    uint32_t sms = gpu->base.limits.sm_count, shift = (whole < sms ? whole : sms) / 2;
    int rc = 0;
    if (!loads || !whole)
        return 0;
    for (uint32_t round = 0; round < DEVICE_CHASES && !rc; round++) {
        uint32_t first = round * shift;
        void *parameters[] = {&test->base, &region_bytes, &loads, &round, &first, &results};
        rc = cuda_launch(gpu, test->chase, whole, 1, 0, parameters, err);
    }
    return rc ? rc : cuda_wait(gpu, err);
}

static int run_passes(struct test *test, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    struct device_memory_map *map = test->map;
    struct kernel_region_result *results = gpu->results.host;
    size_t bytes = (map->region_count + 1) * sizeof *results;
    for (size_t i = 0; i <= map->region_count; i++)
        results[i] = (struct kernel_region_result){.wrong_offset = UINT64_MAX};
    int rc = staging_upload(gpu, &gpu->results, bytes, err);
    for (uint32_t p = 0; p < test->asked->patterns && !rc; p++) {
        rc = pass(test, p, false, err);
        if (!rc)
            rc = pass(test, p, true, err);
        if (!rc && p == DEVICE_PATTERN_ADDRESS)
            rc = chase(test, err);
    }
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, bytes, err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    for (size_t i = 0; i < map->region_count && !rc; i++) {
        map->regions[i].wrong_words = results[i].wrong_words;
        map->regions[i].wrong_offset = results[i].wrong_words ? results[i].wrong_offset : 0;
        map->regions[i].wrong_bits = results[i].wrong_bits;
        memcpy(map->regions[i].cycles, results[i].cycles, sizeof map->regions[i].cycles);
    }
    return rc;
}

static void test_fini(struct test *test)
{
    const struct driver *driver = test->gpu->driver;
    for (size_t i = 0; test->events && i <= test->map->region_count; i++)
        if (test->events[i])
            driver->cuEventDestroy(test->events[i]);
    free(test->events);
}

int cuda_test_memory(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_memory_test *asked = request;
    struct device_memory_map *out_map = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct test test = {.gpu = gpu, .asked = asked, .map = out_map};
    int rc = cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (rc)
        return rc;
    if (watch_others(&gpu->watch, &gpu->told))
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    rc = find_kernels(&test, err);
    if (rc)
        return rc;
    bool counts = health_read_ecc(&gpu->told, &out_map->ecc_before);
    rc = cuda_whole_take(gpu, err);
    test.base = gpu->whole;
    test.bytes = gpu->whole_bytes;
    out_map->free_bytes = gpu->whole_free_bytes;
    if (!rc)
        rc = prepare(&test, err);
    if (!rc)
        rc = run_passes(&test, err);
    test_fini(&test);
    out_map->ecc_known = counts && health_read_ecc(&gpu->told, &out_map->ecc_after);
    return rc;
}
