/* Checks on a simulated GPU: the test of the whole memory, and that of the SMs. Warps that compute
 * right have the hash that the host expects, so only the programs of wrong ones are executed, with
 * a wrong bit. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/check_program.h"
#include "device/sim/gpu.h"

/* The part of the memory that a weak region has. */
static const uint64_t WEAK_BYTES = UINT64_C(64) << 20;

static uint64_t pattern_word(enum device_pattern pattern, uint64_t seed, uint64_t offset)
{
    switch (pattern) {
    case DEVICE_PATTERN_ADDRESS:
        return offset;
    case DEVICE_PATTERN_INVERSE:
        return ~offset;
    case DEVICE_PATTERN_WALKING:
        return UINT64_C(1) << (offset / 8 % 64);
    default:
        return rng_derive(seed, "word", offset / 8);
    }
}

/* How many bytes of a region of `bytes` at `offset` are weak. */
static uint64_t weak_bytes(const struct sim_model *model, uint64_t offset, uint64_t bytes)
{
    uint64_t from = model->weak_offset / WEAK_BYTES * WEAK_BYTES, to = from + WEAK_BYTES;
    from = from > offset ? from : offset;
    to = to < offset + bytes ? to : offset + bytes;
    return (model->weak_share > 0 || model->weak_ns > 0) && to > from ? to - from : 0;
}

/* Disturbances can only cost time. */
static uint64_t region_ns(const struct sim_model *model, double bytes, double rate, struct rng *rng)
{
    double memory = model->clock.memory_mhz / model->nominal_clock.memory_mhz / model->dram_factor;
    double ns = bytes / (rate * memory) * (1 + fabs(model->noise.bandwidth * rng_normal(rng)));
    return ns < 1 ? 1 : (uint64_t)(ns + 0.5);
}

static void compare_region(const struct sim_model *model, const struct device_memory_test *test,
                           uint32_t pattern, uint64_t offset, struct device_region *region)
{
    uint64_t stuck = UINT64_C(1) << model->wrong_bit;
    for (uint64_t i = 0; i < model->wrong_words; i++) {
        uint64_t at = model->wrong_offset + i * model->wrong_stride;
        if (at < offset || at >= offset + region->bytes ||
            pattern_word((enum device_pattern)pattern, test->seed, at) & stuck)
            continue;
        if (!region->wrong_words || at - offset < region->wrong_offset)
            region->wrong_offset = at - offset;
        region->wrong_words++;
        region->wrong_bits |= stuck;
    }
}

/* A load at a random place of the region: half of them go to the far part of L2, some are slow, and
 * all miss the TLBs that do not reach so far. */
static double region_load_cycles(const struct sim_model *model, uint64_t bytes, double dram_share)
{
    const struct sim_path *path = &model->paths[DEVICE_GLOBAL_CG];
    double dram =
        path->main_cycles - path->l2_cycles + model->dram_slow_share * model->dram_slow_cycles / 2;
    double cycles = path->l2_cycles + dram * model->dram_factor * dram_share;
    for (uint32_t i = 0; i < model->l2.part_count; i++)
        cycles += model->l2.far_cycles[i] / model->l2.part_count;
    for (size_t i = 0; i < SIM_TLBS; i++)
        if (model->tlbs[i].present && model->tlbs[i].geometry.size < bytes)
            cycles += model->tlbs[i].miss_cycles;
    return cycles;
}

static void test_region(struct gpu *gpu, const struct device_memory_test *test, uint64_t offset,
                        struct rng *rng, struct device_region *region)
{
    const struct sim_model *model = &gpu->model;
    double weak = (double)weak_bytes(model, offset, region->bytes);
    double bytes = (double)region->bytes + weak * model->weak_share;
    for (uint32_t p = 0; p < test->patterns; p++) {
        region->write_ns[p] = region_ns(model, bytes, model->bandwidth.main_write, rng);
        region->read_ns[p] = region_ns(model, bytes, model->bandwidth.main_read, rng);
        compare_region(model, test, p, offset, region);
        gpu->busy_ns += (double)(region->write_ns[p] + region->read_ns[p]);
    }
    double more = weak / (double)region->bytes * model->weak_ns * model->clock.sm_mhz / 1e3;
    double cycles = region_load_cycles(model, region->bytes, bytes / (double)region->bytes) + more;
    for (size_t i = 0; i < DEVICE_CHASES && test->loads; i++) {
        double jitter = model->noise.jitter_cycles * sqrt((double)test->loads) * rng_normal(rng);
        region->cycles[i] = (uint64_t)fmax(cycles * test->loads + jitter, 1);
    }
}

/* What ECC corrected in the test: errors that come at a rate, and those of the weak region. The
 * counters that the driver reports later have the first ones already. */
static void count_errors(struct gpu *gpu, const struct device_memory_test *test, double ns,
                         struct rng *rng, struct device_memory_map *map)
{
    double *health = gpu->model.health;
    double came = floor(health[HEALTH_ECC_CORRECTED_PER_S] * ns / 1e9 + rng_uniform(rng));
    double weak = (double)gpu->model.weak_corrected * test->patterns;
    double before =
        fmax(health[HEALTH_ECC_CORRECTED_VOLATILE] - health[HEALTH_ECC_CORRECTED_NEW], 0);
    map->ecc_known = true;
    map->ecc_before =
        (struct device_ecc){(uint64_t)before, (uint64_t)health[HEALTH_ECC_UNCORRECTED_VOLATILE]};
    map->ecc_after = map->ecc_before;
    map->ecc_after.corrected += (uint64_t)(came + weak);
    health[HEALTH_ECC_CORRECTED_VOLATILE] += weak;
    health[HEALTH_ECC_CORRECTED_NEW] += weak;
    health[HEALTH_ECC_CORRECTED_DRAM] += weak;
}

int gpu_test_memory(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_memory_test *test = request;
    struct device_memory_map *out_map = answer;
    struct gpu *gpu = (struct gpu *)device;
    uint64_t free_bytes = device->limits.global_bytes;
    uint64_t bytes = (free_bytes - free_bytes / 64) / DEVICE_REGION_MIN * DEVICE_REGION_MIN;
    size_t count = (size_t)((bytes + test->region_bytes - 1) / test->region_bytes);
    struct rng rng;
    gpu_update(gpu);
    if (gpu->model.health[HEALTH_PROCESSES] > 0)
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    rng_init(&rng, rng_derive(gpu->noise_seed, "memory test", gpu->stream_number++), "noise");
    out_map->regions = mem_array(count, sizeof *out_map->regions);
    out_map->free_bytes = free_bytes;
    out_map->region_count = count;
    double begun_ns = gpu->busy_ns;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = i * test->region_bytes, left = bytes - offset;
        struct device_region *region = &out_map->regions[i];
        region->bytes = left < test->region_bytes ? left : test->region_bytes;
        test_region(gpu, test, offset, &rng, region);
    }
    count_errors(gpu, test, gpu->busy_ns - begun_ns, &rng, out_map);
    return 0;
}

static void march_read(const struct sim_model *model, const struct device_march *march,
                       uint32_t read, struct device_march_answer *answer)
{
    uint32_t background = read / DEVICE_MARCH_READS, element = read % DEVICE_MARCH_READS;
    uint64_t inverted = element % 2 ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < model->wrong_words; i++) {
        uint64_t offset = model->wrong_offset + i * model->wrong_stride;
        uint64_t word = background ? device_march_stripes(background)
                                   : pattern_word(DEVICE_PATTERN_RANDOM, march->seed, offset);
        uint64_t expected = word ^ inverted;
        uint64_t found = expected | UINT64_C(1) << model->wrong_bit;
        if (expected == found || offset >= answer->bytes)
            continue;
        answer->first = answer->wrong && answer->first < offset ? answer->first : offset;
        if (answer->wrong++ < DEVICE_WRONG_WORDS_MAX)
            answer->words[answer->word_count++] =
                (struct device_wrong_word){offset, expected, found, read};
    }
}

int gpu_march_memory(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_march *march = request;
    struct device_march_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    uint64_t free_bytes = device->limits.global_bytes;
    gpu_update(gpu);
    if (gpu->model.health[HEALTH_PROCESSES] > 0)
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    out_answer->free_bytes = free_bytes;
    out_answer->bytes = (free_bytes - free_bytes / 64) / DEVICE_REGION_MIN * DEVICE_REGION_MIN;
    out_answer->words = mem_array(DEVICE_WRONG_WORDS_MAX, sizeof *out_answer->words);
    for (uint32_t r = 0; r < march->backgrounds * DEVICE_MARCH_READS; r++)
        march_read(&gpu->model, march, r, out_answer);
    /* Six passes write, or read and write, as a copy does. */
    out_answer->elapsed_ns = (uint64_t)(6.0 * march->backgrounds * (double)out_answer->bytes /
                                        gpu->model.bandwidth.main_copy);
    out_answer->ecc_known = true;
    out_answer->ecc_before.corrected = (uint64_t)gpu->model.health[HEALTH_ECC_CORRECTED_VOLATILE];
    out_answer->ecc_before.uncorrected =
        (uint64_t)gpu->model.health[HEALTH_ECC_UNCORRECTED_VOLATILE];
    out_answer->ecc_after = out_answer->ecc_before;
    gpu->busy_ns += (double)out_answer->elapsed_ns;
    return 0;
}

enum { WARPS = 32, SECTION_WORDS = 1024, WRONG_SUB_CORE = 2, WRONG_BIT = 1 << 9 };

/* The time of a sub-core scatters by this share of what bandwidths do. */
static const double PLACE_NOISE = 0.1;

/* What an SM starts in a cycle: of the arithmetic units additions and multiplications, by the
 * number of its cores (CUDA programming guide, throughput of instructions; the others are guesses
 * that nothing depends on). 0: it has no such unit. */
static double unit_rate(const struct sim_model *model, enum device_unit unit)
{
    double cores = model->hardware.cores_per_sm;
    double capability = strtod(model->hardware.compute_capability, NULL);
    switch (unit) {
    case DEVICE_UNIT_INT:
    case DEVICE_UNIT_FP64:
        return cores;
    case DEVICE_UNIT_FP32:
        return 2 * cores;
    case DEVICE_UNIT_MMA_F16:
    case DEVICE_UNIT_MMA_BF16:
        return capability >= 8 ? 16 * cores : 0;
    case DEVICE_UNIT_MMA_FP8:
        return capability >= 8.9 ? 16 * cores : 0;
    case DEVICE_UNIT_WGMMA_F16:
    case DEVICE_UNIT_WGMMA_BF16:
        return capability == 9 ? 32 * cores : 0;
    case DEVICE_UNIT_WGMMA_FP8:
        return capability == 9 ? 64 * cores : 0;
    default:
        return cores / 32;
    }
}

/* Draws how many of a sub-core's hashes are wrong. */
static uint32_t draw_wrong(const struct sim_model *model, enum device_unit unit, size_t place,
                           uint32_t count, struct rng *rng)
{
    uint32_t wrong = 0;
    if (unit != DEVICE_UNIT_FP32 || model->wrong_path != DEVICE_SCREEN_FP32 ||
        model->wrong_share <= 0 ||
        place != (size_t)model->wrong_sm * DEVICE_SUB_CORES + WRONG_SUB_CORE)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        wrong += rng_uniform(rng) < model->wrong_share;
    return wrong;
}

uint64_t gpu_place_cycles(const struct gpu *gpu, size_t place, double usual, struct rng *rng)
{
    const struct sim_model *model = &gpu->model;
    bool slow = model->slow_sm >= 0 && place / DEVICE_SUB_CORES == (size_t)model->slow_sm;
    double noise = PLACE_NOISE * model->noise.bandwidth * fabs(rng_normal(rng));
    return (uint64_t)(usual * (slow ? 1 + model->slow_share : 1) * (1 + noise) + 0.5);
}

int gpu_check_unit(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_check *check = request;
    struct device_check_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    gpu_update(gpu);
    double rate = unit_rate(model, check->unit);
    if (rate <= 0)
        return err_set(err, -ENOTSUP, "%s: this GPU does not have it",
                       device_unit_name(check->unit));
    struct check_run run = {
        .unit = check->unit, .seed = check->seed, .warps = WARPS, .section_words = SECTION_WORDS};
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), ns = 1e6 * check->target_ms;
    double period_cycles = (double)check_operations(&run) * WARPS / rate;
    run.periods = (uint32_t)fmax(ns * mhz / 1e3 / period_cycles, 1);
    out_answer->place_count = (size_t)model->sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    struct rng rng, times;
    uint64_t number = gpu->stream_number++;
    rng_init(&rng, rng_derive(gpu->noise_seed, "unit check", number), "noise");
    rng_init(&times, rng_derive(gpu->noise_seed, "unit check", number), "times");
    for (size_t i = 0; i < out_answer->place_count; i++) {
        struct device_check_place *place = &out_answer->places[i];
        place->count = WARPS / DEVICE_SUB_CORES;
        place->cycles = gpu_place_cycles(gpu, i, period_cycles * run.periods, &times);
        place->wrong = draw_wrong(model, check->unit, i, place->count, &rng);
        if (!place->wrong)
            continue;
        place->wrong_hash = check_hash(&run, WRONG_BIT);
        if (place->wrong_hash == check_hash(&run, 0))
            place->wrong = 0;
    }
    out_answer->operations = check_operations(&run) * run.periods * WARPS;
    out_answer->cycles = (uint64_t)(period_cycles * run.periods + 0.5);
    out_answer->elapsed_ns = (uint64_t)((double)out_answer->cycles * 1e3 / mhz + 0.5);
    gpu->busy_ns += (double)out_answer->elapsed_ns;
    return 0;
}
