/* Checks of a GPU. The whole memory: as much as can be allocated is written, read back and
 * compared. The SMs: one block per SM, and every warp's hash compared with the host's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "device/check_program.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

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

static int find_memory_kernels(struct test *test, struct err *err)
{
    static const char *const names[][2] = {{"memory_write_address", "memory_check_address"},
                                           {"memory_write_inverse", "memory_check_inverse"},
                                           {"memory_write_walking", "memory_check_walking"},
                                           {"memory_write_random", "memory_check_random"}};
    struct cuda_gpu *gpu = test->gpu;
    int rc = 0;
    for (size_t p = 0; p < DEVICE_PATTERN_COUNT && !rc; p++) {
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_MEMORY, names[p][0], &test->write[p], err);
        if (!rc)
            rc = cuda_find_kernel(gpu, CUDA_KERNELS_MEMORY, names[p][1], &test->check[p], err);
    }
    if (rc)
        return rc;
    return cuda_find_kernel(gpu, CUDA_KERNELS_MEMORY, "memory_chase", &test->chase, err);
}

static int prepare_memory_test(struct test *test, struct err *err)
{
    struct cuda_gpu *gpu = test->gpu;
    struct device_memory_map *map = test->map;
    uint64_t unit = test->asked->region_bytes;
    size_t count = (size_t)((test->bytes + unit - 1) / unit);
    map->regions = mem_array(count, sizeof *map->regions);
    test->events = mem_array(count + 1, sizeof *test->events);
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
static int launch_region(struct test *test, CUfunction kernel, size_t i, size_t slot,
                         struct err *err)
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

/* Queues the kernel on every region, from region `start` on. After a pause, the first launches are
 * slower (on an H200 the first two regions of 1 GiB by up to 8 %). So two regions come before them,
 * untimed, and their results are not used. */
static int queue(struct test *test, CUfunction kernel, size_t start, struct err *err)
{
    size_t count = test->map->region_count;
    CUstream stream = test->gpu->streams[0];
    int rc = 0;
    for (size_t k = 0; k < LEAD_REGIONS && !rc; k++)
        rc = launch_region(test, kernel, (start + count - 1 - k % count) % count, count, err);
    if (rc)
        return rc;
    rc = cuda_record(test->gpu, test->events[0], stream, err);
    for (size_t k = 0; k < count && !rc; k++) {
        rc = launch_region(test, kernel, (start + k) % count, (start + k) % count, err);
        if (!rc)
            rc = cuda_record(test->gpu, test->events[k + 1], stream, err);
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
        rc = cuda_elapsed(gpu, test->events[k], test->events[k + 1],
                          reads ? &region->read_ns[pattern] : &region->write_ns[pattern], err);
    }
    return rc;
}

/* After DEVICE_PATTERN_ADDRESS. The last region is left out if it is smaller than the others. In
 * the second round a region is chased from another SM, since SMs differ in their distance from
 * memory.
 */
static int chase_memory(struct test *test, struct err *err)
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
            rc = chase_memory(test, err);
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
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    if (watch_others(&gpu->watch, &gpu->nvml_gpu))
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    rc = find_memory_kernels(&test, err);
    if (rc)
        return rc;
    bool counts = health_read_ecc(&gpu->nvml_gpu, &out_map->ecc_before);
    rc = cuda_whole_take(gpu, err);
    test.base = gpu->whole;
    test.bytes = gpu->whole_bytes;
    out_map->free_bytes = gpu->whole_free_bytes;
    if (!rc)
        rc = prepare_memory_test(&test, err);
    if (!rc)
        rc = run_passes(&test, err);
    test_fini(&test);
    out_map->ecc_known = counts && health_read_ecc(&gpu->nvml_gpu, &out_map->ecc_after);
    return rc;
}

enum {
    FIRST_PERIODS = 16,
    LAUNCH_MS = 10,          /* about: so a check ends soon after it was asked to */
    STATIC_BYTES_MAX = 8192, /* of shared memory that the kernels declare */
    MMA_F16_CAPABILITY = 80,
    MMA_FP8_CAPABILITY = 89,
    WGMMA_CAPABILITY = 90, /* and no other */
};

struct unit_check {
    struct cuda_gpu *gpu;
    const struct device_check *asked;
    struct device_check_answer *answer;
    CUfunction kernel;
    struct check_run run;
    uint32_t shared_bytes;
    uint64_t expected;
    uint64_t *cycles; /* of each place, in the last launch; then room for all SMs */
};

static uint32_t warps_of(enum device_unit unit)
{
    if (unit >= DEVICE_UNIT_MMA_F16 && unit <= DEVICE_UNIT_MMA_FP8)
        return 16;
    if ((unit >= DEVICE_UNIT_WGMMA_F16 && unit <= DEVICE_UNIT_WGMMA_FP8) ||
        unit == DEVICE_UNIT_REGISTERS)
        return 8;
    return KERNEL_CHECK_WARPS;
}

static int check_capability(const struct cuda_gpu *gpu, enum device_unit unit, struct err *err)
{
    int major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    int capability = 10 * major + minor;
    bool wgmma = unit >= DEVICE_UNIT_WGMMA_F16 && unit <= DEVICE_UNIT_WGMMA_FP8;
    int least = unit == DEVICE_UNIT_MMA_FP8                                   ? MMA_FP8_CAPABILITY
                : unit == DEVICE_UNIT_MMA_F16 || unit == DEVICE_UNIT_MMA_BF16 ? MMA_F16_CAPABILITY
                                                                              : 0;
    if (capability < least || (wgmma && capability != WGMMA_CAPABILITY))
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       device_unit_name(unit), major, minor);
    return 0;
}

static int find_check_kernel(struct unit_check *check, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    const struct driver *driver = gpu->driver;
    enum device_unit unit = check->asked->unit;
    char name[32];
    int rc = check_capability(gpu, unit, err);
    if (rc)
        return rc;
    snprintf(name, sizeof name, "check_%s", device_unit_name(unit));
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHECK, name, &check->kernel, err);
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(check->kernel,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 (int)check->shared_bytes),
                      "cuFuncSetAttribute", err);
}

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static int prepare_check(struct unit_check *check, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    uint32_t sms = gpu->base.limits.sm_count;
    check->run = (struct check_run){.unit = check->asked->unit,
                                    .seed = check->asked->seed,
                                    .warps = warps_of(check->asked->unit)};
    check->shared_bytes = (uint32_t)gpu->base.limits.shared_bytes_max - STATIC_BYTES_MAX;
    check->run.section_words =
        check->shared_bytes / (4 * CHECK_LANES * KERNEL_CHECK_WARPS) * CHECK_LANES;
    int rc = find_check_kernel(check, err);
    if (rc)
        return rc;
    check->answer->place_count = (size_t)sms * DEVICE_SUB_CORES;
    check->answer->places = mem_array(check->answer->place_count, sizeof *check->answer->places);
    check->cycles = mem_array(check->answer->place_count + sms, sizeof *check->cycles);
    rc = staging_grow(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (rc)
        return rc;
    return staging_grow(gpu, &gpu->outputs, sms * CHECK_ATOMIC_WORDS * sizeof(uint32_t), err);
}

static int launch_check(struct unit_check *check, uint64_t *out_ns, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    struct kernel_check parameters = {.results = gpu->results.device,
                                      .words = gpu->outputs.device,
                                      .seed = check->run.seed,
                                      .periods = check->run.periods,
                                      .section_words = check->run.section_words,
                                      .warp_mask = UINT32_MAX};
    void *pointers[] = {&parameters};
    uint32_t sms = gpu->base.limits.sm_count;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, check->kernel, sms, check->run.warps * CHECK_LANES, check->shared_bytes,
                     pointers, err);
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

/* The time of the median SM that had a block; its slowest warp counts. scratch: room for all SMs.
 */
static uint64_t median_cycles(const uint64_t *by_place, size_t sms, uint64_t *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < sms; i++) {
        uint64_t most = 0;
        for (size_t k = i * DEVICE_SUB_CORES; k < (i + 1) * DEVICE_SUB_CORES; k++)
            most = by_place[k] > most ? by_place[k] : most;
        if (most)
            scratch[count++] = most;
    }
    sort_stable(scratch, count, sizeof *scratch, sort_by_u64);
    return count ? scratch[count / 2] : 0;
}

static int run_periods(struct unit_check *check, uint32_t periods, uint64_t *out_ns,
                       struct err *err)
{
    if (periods != check->run.periods) {
        check->run.periods = periods;
        check->expected = check_hash(&check->run, 0);
    }
    int rc = launch_check(check, out_ns, err);
    const struct cuda_hashes hashes = {.results = check->gpu->results.host,
                                       .warps = check->run.warps,
                                       .expected = check->expected};
    return rc ? rc
              : cuda_add_hashes(check->gpu, &hashes, check->answer->places, check->cycles, err);
}

/* A short launch shows how long a period takes. Its hashes count, its time does not. */
static int run_unit_check(struct unit_check *check, struct err *err)
{
    uint64_t target_ns = (uint64_t)check->asked->target_ms * 1000000, ns = 0;
    struct device_check_answer *answer = check->answer;
    int rc = run_periods(check, FIRST_PERIODS, &ns, err);
    if (rc)
        return rc;
    uint64_t launch_ns = target_ns < LAUNCH_MS * 1000000 ? target_ns : LAUNCH_MS * 1000000;
    uint64_t periods = launch_ns * FIRST_PERIODS / (ns ? ns : 1);
    periods = periods < 1 ? 1 : periods > UINT16_MAX ? UINT16_MAX : periods;
    do {
        rc = run_periods(check, (uint32_t)periods, &ns, err);
        if (rc)
            return rc;
        answer->elapsed_ns += ns;
        answer->cycles += median_cycles(check->cycles, check->gpu->base.limits.sm_count,
                                        check->cycles + answer->place_count);
        cuda_keep_fastest(answer->places, check->cycles, answer->place_count);
        answer->operations += check_operations(&check->run) * periods * check->run.warps;
    } while (ns && answer->elapsed_ns + ns / 2 < target_ns);
    return 0;
}

int cuda_check_unit(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_check *asked = request;
    struct device_check_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct unit_check check = {.gpu = gpu, .asked = asked, .answer = out_answer};
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = prepare_check(&check, err);
    if (!rc)
        rc = run_unit_check(&check, err);
    free(check.cycles);
    return rc;
}
