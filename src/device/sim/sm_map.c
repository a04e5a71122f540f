/* What each SM of a simulated GPU gets of L2 and of main memory. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/sim/gpu.h"
#include "device/sim/route.h"

enum {
    IN_FLIGHT_BYTES = 128 * 1024, /* of an SM whose threads all read */
    SLOT_BYTES = 512,             /* lines of one SM lie between those of the others */
    PAGE_BYTES = 2 << 20,
    PAGES = 4, /* of a region */
    GPC_SHIFT = 16,
    ALL_SHIFT = 31, /* no GPC has so high a number */
};

/* What an SM reads in a ns if it is alone. */
static double alone_rate(const struct sim_model *model, uint32_t sm, double mhz)
{
    const struct sim_path *path = &model->paths[DEVICE_GLOBAL_CG];
    double latency = path->l2_cycles + model->l2_distance[sm];
    double cycle_bytes = fmin(model->bandwidth.sm, IN_FLIGHT_BYTES / latency);
    bool slow = model->slow_sm >= 0 && (uint32_t)model->slow_sm == sm;
    return cycle_bytes * mhz / 1e3 / (slow ? 1 + model->slow_share : 1);
}

/* How many SMs of a turn are in the same group as this one. */
static double readers_with(const struct sim_model *model, const struct device_sm_map *map,
                           const uint32_t *groups, uint32_t shift, uint32_t sm)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->sms; i++)
        count += map->turns[i] == map->turns[sm] && groups[i] >> shift == groups[sm] >> shift;
    return count;
}

/* What an SM gets of L2 if all of its turn read. Where GPCs have CPCs, L2 serves each CPC alike,
 * however many SMs it has: on an H200 the SMs of a CPC with two TPCs get 1.4 times as much as those
 * of a CPC with three. A stream, in which all SMs read the same amount, ends with the slowest SM.
 */
static double share_of_l2(const struct sim_model *model, const struct device_sm_map *map,
                          const uint32_t *cpcs, uint32_t sm)
{
    uint32_t full = model->sms_per_cpc ? model->sms_per_cpc : model->sms;
    double share = model->bandwidth.l2_read / model->sms;
    if (model->sms_per_cpc)
        share *= full / readers_with(model, map, cpcs, 0, sm);
    double all = readers_with(model, map, cpcs, ALL_SHIFT, sm);
    share *= model->sms / all;
    return share;
}

/* All SMs of a GPC together get no more than its limit. */
static double sm_rate(const struct sim_model *model, const struct device_sm_map *map,
                      const uint32_t *cpcs, uint32_t sm, double mhz)
{
    double clock = mhz / model->nominal_clock.sm_mhz, own = 0, sum = 0;
    for (uint32_t i = 0; i < model->sms; i++) {
        if (map->turns[i] != map->turns[sm] || model->gpc_of[i] != model->gpc_of[sm])
            continue;
        double rate = fmin(alone_rate(model, i, mhz), clock * share_of_l2(model, map, cpcs, i));
        own = i == sm ? rate : own;
        sum += rate;
    }
    double limit = clock * model->bandwidth.gpc;
    return limit > 0 && sum > limit ? own * limit / sum : own;
}

static void read_turn(struct gpu *gpu, const struct device_sm_map *map, uint32_t turn, double mhz,
                      const uint32_t *cpcs, struct rng *rng, uint64_t *values)
{
    const struct sim_model *model = &gpu->model;
    double ns = map->window_cycles * 1e3 / mhz;
    bool any = false;
    for (uint32_t sm = 0; sm < model->sms; sm++) {
        if (map->turns[sm] != turn)
            continue;
        double rate = sm_rate(model, map, cpcs, sm, mhz);
        /* Disturbances can only cost time. */
        rate /= 1 + fabs(model->noise.bandwidth * rng_normal(rng));
        rate /= 1 + model->health[HEALTH_PROCESSES];
        values[2 * sm] = (uint64_t)(rate * ns + 0.5);
        values[2 * sm + 1] = (uint64_t)fmax(ns + 0.5, 1);
        any = true;
    }
    gpu->busy_ns += any ? ns : 0;
}

static void map_l2_reads(struct gpu *gpu, const struct device_sm_map *map,
                         struct device_sm_map_answer *answer)
{
    struct rng rng;
    const struct sim_model *model = &gpu->model;
    uint32_t ranks[SIM_SMS_MAX] = {0};
    uint32_t cpcs[SIM_SMS_MAX]; /* of each SM its CPC, or its GPC if that has no CPCs */
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    for (uint32_t sm = 0; sm < model->sms; sm++) {
        uint32_t gpc = model->gpc_of[sm], rank = ranks[gpc]++;
        cpcs[sm] = gpc << GPC_SHIFT | (model->sms_per_cpc ? rank / model->sms_per_cpc : 0);
    }
    answer->value_count = 2 * (size_t)model->sms;
    answer->values = mem_array(answer->value_count, sizeof *answer->values);
    rng_init(&rng, rng_derive(gpu->noise_seed, "sm map", gpu->stream_number++), "noise");
    for (uint32_t turn = 0; turn < model->sms; turn++)
        read_turn(gpu, map, turn, mhz, cpcs, &rng, answer->values);
}

/* Loads a line of each page first, so that the TLBs have them, then lines of its own. */
static struct device_job job_of(const struct gpu *gpu, const struct device_sm_map *map, uint32_t sm,
                                uint64_t offset)
{
    uint64_t stride = (uint64_t)SLOT_BYTES * gpu->model.sms;
    struct device_job job = {.agents = {{.sm = (int32_t)sm}}, .agent_count = 1, .step_count = 2};
    job.steps[0].array = (struct device_array){.path = DEVICE_GLOBAL_CG,
                                               .offset_bytes = offset + SLOT_BYTES / 2,
                                               .size_bytes = (uint64_t)PAGES * PAGE_BYTES,
                                               .stride_bytes = PAGE_BYTES};
    job.steps[1].kind = DEVICE_AVERAGE;
    job.steps[1].array = (struct device_array){.path = DEVICE_GLOBAL_CG,
                                               .offset_bytes = offset + (uint64_t)SLOT_BYTES * sm,
                                               .size_bytes = stride * map->loads,
                                               .stride_bytes = stride};
    return job;
}

/* As batches of jobs, which execute each load. */
static int map_regions(struct gpu *gpu, const struct device_sm_map *map,
                       struct device_sm_map_answer *answer, struct err *err)
{
    uint32_t sms = gpu->model.sms;
    uint64_t bytes = gpu->device.limits.global_bytes / map->regions / PAGE_BYTES * PAGE_BYTES;
    if (bytes < (uint64_t)SLOT_BYTES * sms * map->loads || bytes < (uint64_t)PAGES * PAGE_BYTES)
        return err_set(err, -ENOTSUP, "there is too little memory for %u regions", map->regions);
    struct device_job *jobs = mem_array(sms, sizeof *jobs);
    struct device_answer *answers = mem_array(sms, sizeof *answers);
    const struct device_batch batch = {.jobs = jobs, .job_count = sms};
    answer->value_count = (size_t)sms * map->regions;
    answer->values = mem_array(answer->value_count, sizeof *answer->values);
    answer->region_bytes = bytes;
    int rc = 0;
    for (uint32_t r = 0; r < map->regions && !rc; r++) {
        for (uint32_t sm = 0; sm < sms; sm++)
            jobs[sm] = job_of(gpu, map, sm, r * bytes);
        jobs[0].cold_l2 = r == 0;
        rc = gpu_run_batch(&gpu->device, &batch, answers, err);
        for (uint32_t sm = 0; sm < sms && !rc; sm++)
            answer->values[(size_t)sm * map->regions + r] = answers[sm].samples[0].total_cycles;
        if (!rc)
            device_answers_fini(answers, sms);
    }
    free(answers);
    free(jobs);
    return rc;
}

/* The same lines for all SMs. */
static int map_homes(struct gpu *gpu, const struct device_sm_map *map,
                     struct device_sm_map_answer *answer, struct err *err)
{
    const struct sim_model *model = &gpu->model;
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "atomics", gpu->stream_number++), "noise");
    answer->value_count = (size_t)model->sms * map->regions;
    answer->values = mem_array(answer->value_count, sizeof *answer->values);
    for (uint32_t sm = 0; sm < model->sms; sm++) {
        struct route route;
        int rc = route_prepare_atomics(gpu, sm, &route, err);
        if (rc)
            return rc;
        for (uint32_t i = 0; i < map->regions; i++) {
            uint64_t line = rng_derive(map->footprint_bytes, "line", i);
            uint64_t at = line % (map->footprint_bytes / SLOT_BYTES) * SLOT_BYTES;
            double cycles = 0;
            for (uint32_t k = 0; k < map->loads; k++) {
                cycles += route_atomic(&route, at) + model->noise.jitter_cycles * rng_normal(&rng);
                if (rng_uniform(&rng) < model->noise.spike_rate)
                    cycles += model->noise.spike_cycles * (0.5 + rng_uniform(&rng));
            }
            answer->values[(size_t)sm * map->regions + i] = cycles > 1 ? (uint64_t)cycles : 1;
        }
    }
    return 0;
}

int gpu_map_sms(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_sm_map *map = request;
    struct device_sm_map_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    gpu_update(gpu);
    if (map->kind == DEVICE_SM_MAP_MEMORY)
        return map_regions(gpu, map, out_answer, err);
    if (map->kind == DEVICE_SM_MAP_ATOMICS)
        return map_homes(gpu, map, out_answer, err);
    map_l2_reads(gpu, map, out_answer);
    return 0;
}
