/* Clusters on a simulated GPU: which SMs form them, and loads, reads and copies between the shared
 * memories of their blocks, one by one; bulk copies from L2 and memory; and the `clusters` of a
 * model. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/sim/gpu.h"

enum { WARPS = DEVICE_CLUSTER_THREADS / 32 };

/* The SMs that can form a cluster, group by group. */
struct grouping {
    uint16_t sms[SIM_SMS_MAX];      /* ordered by group, then by number */
    uint16_t group_of[SIM_SMS_MAX]; /* by place in `sms` */
    double distance[SIM_SMS_MAX];   /* by SM: cycles */
    uint32_t count;
};

/* GPC by GPC. The single SMs of the first one are a group per TPC. */
static void group_sms(const struct sim_model *model, struct grouping *g)
{
    g->count = 0;
    for (uint32_t gpc = 0; gpc < model->gpc_count; gpc++) {
        uint32_t size = 0, rank = 0;
        for (uint32_t sm = 0; sm < model->sms; sm++)
            size += model->gpc_of[sm] == gpc;
        for (uint32_t sm = 0; sm < model->sms; sm++) {
            if (model->gpc_of[sm] != gpc)
                continue;
            bool single = gpc == 0 && rank + model->clusters.singles >= size;
            g->distance[sm] = size > 1 ? model->clusters.distance_cycles *
                                             (double)(size - 1 - rank) / (double)(size - 1)
                                       : 0;
            rank++;
            g->group_of[g->count] = (uint16_t)(single ? model->gpc_count + model->tpc_of[sm] : gpc);
            g->sms[g->count++] = (uint16_t)sm;
        }
    }
}

/* Each group holds as many clusters as fit: the SMs with the lowest numbers first. */
static uint32_t place_clusters(const struct grouping *g, uint32_t size, uint16_t *out_sms)
{
    uint32_t clusters = 0, begin = 0;
    for (uint32_t i = 1; i <= g->count; i++) {
        if (i < g->count && g->group_of[i] == g->group_of[begin])
            continue;
        for (; begin + size <= i; begin += size, clusters++)
            for (uint32_t k = 0; k < size; k++)
                out_sms[clusters * size + k] = g->sms[begin + k];
        begin = i;
    }
    return clusters;
}

static double cluster_load_cycles(const struct sim_model *model, const struct grouping *g,
                                  uint32_t from, uint32_t to)
{
    if (from == to)
        return model->clusters.own_cycles;
    return model->clusters.other_cycles + g->distance[from] + g->distance[to];
}

/* A cluster that works: its SMs, and when the ports of each are free. */
struct working {
    const struct sim_model *model;
    const struct grouping *grouping;
    const struct device_cluster *asked;
    const uint16_t *sms;
    double gives_free[DEVICE_CLUSTER_MAX], takes_free[DEVICE_CLUSTER_MAX];
    struct rng *rng;
};

static double cluster_chase(const struct working *w, uint32_t from, uint32_t to)
{
    const struct sim_noise *noise = &w->model->noise;
    double each = cluster_load_cycles(w->model, w->grouping, w->sms[from], w->sms[to]), sum = 0;
    for (uint32_t i = 0; i < w->asked->count; i++) {
        sum += each + noise->jitter_cycles * rng_normal(w->rng);
        if (rng_uniform(w->rng) < noise->spike_rate)
            sum += noise->spike_cycles;
    }
    return sum;
}

/* Data from one block to another occupy a port of each. Returns when the last byte is there. */
static double cluster_transfer(struct working *w, uint32_t from, uint32_t to, double ready,
                               double bytes, double rate, double latency)
{
    double start = fmax(ready, fmax(w->gives_free[from], w->takes_free[to]));
    double took = bytes / rate * (1 + fabs(w->model->noise.bandwidth * rng_normal(w->rng)));
    w->gives_free[from] = w->takes_free[to] = start + took;
    return start + took + latency;
}

/* Warps take turns, so that transfers begin about in the order in which they are made. */
static void cluster_read_all(struct working *w, uint64_t *cycles)
{
    const struct sim_clusters *c = &w->model->clusters;
    double ready[DEVICE_CLUSTER_MAX][WARPS] = {{0}};
    uint32_t size = w->asked->size;
    for (uint32_t i = 0; i < w->asked->count * WARPS; i++) {
        uint32_t warp = i % WARPS, round = i / WARPS;
        for (uint32_t b = 0; b < size; b++) {
            uint32_t from = size > 1 ? (b + 1 + round % (size - 1)) % size : b;
            ready[b][warp] = cluster_transfer(
                w, from, b, ready[b][warp], 32 * DEVICE_CLUSTER_ROUND_BYTES,
                size > 1 ? c->read : c->own_read,
                cluster_load_cycles(w->model, w->grouping, w->sms[b], w->sms[from]));
        }
    }
    for (uint32_t b = 0; b < size; b++) {
        double end = 0;
        for (uint32_t k = 0; k < WARPS; k++)
            end = fmax(end, ready[b][k]);
        cycles[b] = (uint64_t)(end + 0.5);
    }
}

/* One copy goes round the cluster. */
static void cluster_copy_round(struct working *w, uint64_t *cycles)
{
    const struct sim_clusters *c = &w->model->clusters;
    uint32_t size = w->asked->size;
    double now = 0;
    for (uint32_t i = 0; i < w->asked->count * size; i++) {
        uint32_t b = i % size, next = (b + 1) % size;
        double way = cluster_load_cycles(w->model, w->grouping, w->sms[b], w->sms[next]);
        now = cluster_transfer(w, b, next, now, w->asked->bytes, size > 1 ? c->copy : c->own_read,
                               way + c->copy_cycles);
        now += w->model->noise.jitter_cycles * rng_normal(w->rng);
    }
    for (uint32_t b = 0; b < size; b++)
        cycles[b] = (uint64_t)(now + 0.5);
}

/* Each block copies to the next one. A copy begins when the one from the block before has come, and
 * when the next block has said that it has the last one. */
static void cluster_copy_all(struct working *w, uint64_t *cycles)
{
    const struct sim_clusters *c = &w->model->clusters;
    double come[DEVICE_CLUSTER_MAX][DEVICE_BULK_FLIGHTS_MAX] = {{0}};
    uint32_t size = w->asked->size, flights = w->asked->in_flight;
    for (uint32_t i = 0; i < w->asked->count / flights * flights; i++) {
        uint32_t k = i % flights;
        double next_come[DEVICE_CLUSTER_MAX];
        for (uint32_t b = 0; b < size; b++) {
            uint32_t next = (b + 1) % size;
            double way = cluster_load_cycles(w->model, w->grouping, w->sms[b], w->sms[next]);
            double ready = come[b][k];
            if (i >= flights)
                ready = fmax(ready, come[next][k] + way / 2);
            next_come[next] =
                cluster_transfer(w, b, next, ready, w->asked->bytes,
                                 size > 1 ? c->copy : c->own_read, way + c->copy_cycles);
        }
        for (uint32_t b = 0; b < size; b++)
            come[b][k] = next_come[b];
    }
    for (uint32_t b = 0; b < size; b++) {
        double end = 0;
        for (uint32_t k = 0; k < flights; k++)
            end = fmax(end, come[b][k]);
        cycles[b] = (uint64_t)(end + 0.5);
    }
}

/* Returns how long the cluster works, in cycles. */
static double work_cluster(struct working *w, uint64_t *cycles)
{
    double sum = 0;
    uint32_t size = w->asked->size;
    if (w->asked->work == DEVICE_CLUSTER_READ)
        cluster_read_all(w, cycles);
    if (w->asked->work == DEVICE_CLUSTER_COPY && !w->asked->in_flight)
        cluster_copy_round(w, cycles);
    else if (w->asked->work == DEVICE_CLUSTER_COPY)
        cluster_copy_all(w, cycles);
    for (uint32_t i = 0; i < size * size && w->asked->work == DEVICE_CLUSTER_LOADS; i++)
        cycles[i] = (uint64_t)(cluster_chase(w, i / size, i % size) + 0.5);
    for (size_t i = 0; i < device_cluster_cycles(w->asked); i++)
        sum += (double)cycles[i];
    return w->asked->work == DEVICE_CLUSTER_LOADS ? sum : sum / size;
}

static int run_clusters(struct gpu *gpu, const struct device_cluster *asked,
                        const struct grouping *grouping, struct device_cluster_answer *answer,
                        struct err *err)
{
    struct rng rng;
    double longest = 0;
    size_t each = device_cluster_cycles(asked);
    answer->sms = mem_array(gpu->model.sms, sizeof *answer->sms);
    answer->clusters = place_clusters(grouping, asked->size, answer->sms);
    if (!answer->clusters)
        return err_set(err, -ENOTSUP, "this GPU has no clusters of %u blocks", asked->size);
    answer->cycle_count = answer->clusters * each;
    answer->cycles = mem_array(answer->cycle_count + 1, sizeof *answer->cycles);
    rng_init(&rng, rng_derive(gpu->noise_seed, "cluster", gpu->stream_number++), "noise");
    for (uint32_t i = 0; i < answer->clusters; i++) {
        struct working w = {.model = &gpu->model,
                            .grouping = grouping,
                            .asked = asked,
                            .sms = answer->sms + (size_t)i * asked->size,
                            .rng = &rng};
        longest = fmax(longest, work_cluster(&w, answer->cycles + i * each));
    }
    gpu->busy_ns += longest * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}

int gpu_run_cluster(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_cluster *asked = request;
    struct device_cluster_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    gpu_update(gpu);
    if (!gpu->model.clusters.size_max)
        return err_set(err, -ENOTSUP, "this GPU has no clusters");
    if (asked->size > gpu->model.clusters.size_max)
        return err_set(err, -ENOTSUP, "this GPU has no clusters of %u blocks", asked->size);
    struct grouping *grouping = mem_array(1, sizeof *grouping);
    group_sms(&gpu->model, grouping);
    int rc = run_clusters(gpu, asked, grouping, out_answer, err);
    free(grouping);
    return rc;
}

enum { RATE_MAX = 10000, CYCLES_MAX = 100000 };

#define FIELD(key, kind, field, least, most)                                                       \
    {                                                                                              \
        key, kind, offsetof(struct sim_clusters, field), true, least, most                         \
    }
static const struct yaml_field fields[] = {
    FIELD("size", YAML_U32, size_max, 1, DEVICE_CLUSTER_MAX),
    {"singles", YAML_U32, offsetof(struct sim_clusters, singles), .max = SIM_SMS_MAX},
    FIELD("own_cycles", YAML_F64, own_cycles, 1, CYCLES_MAX),
    FIELD("other_cycles", YAML_F64, other_cycles, 1, CYCLES_MAX),
    {"distance_cycles", YAML_F64, offsetof(struct sim_clusters, distance_cycles),
     .max = CYCLES_MAX},
    FIELD("own_read", YAML_F64, own_read, 0.1, RATE_MAX),
    FIELD("read", YAML_F64, read, 0.1, RATE_MAX),
    FIELD("copy_cycles", YAML_F64, copy_cycles, -CYCLES_MAX, CYCLES_MAX),
    FIELD("copy", YAML_F64, copy, 0.1, RATE_MAX),
    FIELD("bulk_cycles", YAML_F64, bulk_cycles, 0, CYCLES_MAX),
    FIELD("bulk_interval", YAML_F64, bulk_interval, 0, CYCLES_MAX),
    FIELD("bulk", YAML_F64, bulk, 0.1, RATE_MAX),
};
#undef FIELD

int sim_read_clusters(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &model->clusters, err);
    if (rc)
        err_prefix(err, "clusters");
    return rc;
}

enum { BULK_LOADS = 64, BULK_STRIDE_BYTES = 9 * 128 };

/* The mean latency of a line, as the simulated hierarchy serves it. */
static int load_lines(struct gpu *gpu, const struct device_bulk *asked, double *out_cycles,
                      struct err *err)
{
    const struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                       .size_bytes = (uint64_t)BULK_LOADS * BULK_STRIDE_BYTES,
                                       .stride_bytes = BULK_STRIDE_BYTES};
    bool warm = asked->source == DEVICE_BULK_L2;
    struct device_job job = {
        .agent_count = 1,
        .steps = {{.kind = DEVICE_WARM, .array = array}, {.kind = DEVICE_AVERAGE, .array = array}},
        .step_count = 2,
        .cold_l2 = true};
    if (!warm) {
        job.steps[0] = job.steps[1];
        job.step_count = 1;
    }
    struct device_answer answer = {0};
    const struct device_batch batch = {.jobs = &job, .job_count = 1, .at_once = 1};
    int rc = gpu_run_batch(&gpu->device, &batch, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.samples[0].total_cycles / (double)answer.samples[0].loads;
    device_answers_fini(&answer, 1);
    return 0;
}

/* What the copy unit gets in a cycle: its own limit, or the SM's share of L2 or memory. */
static double bulk_rate(const struct gpu *gpu, const struct device_bulk *asked, double mhz)
{
    const struct sim_model *model = &gpu->model;
    bool l2 = asked->source == DEVICE_BULK_L2;
    double gbs =
        l2 ? model->bandwidth.l2_read * mhz / model->nominal_clock.sm_mhz
           : model->bandwidth.main_read * model->clock.memory_mhz / model->nominal_clock.memory_mhz;
    double share = asked->alone ? model->clusters.bulk : gbs * 1e3 / mhz / model->sms;
    return fmin(model->clusters.bulk, share) / (1 + model->health[HEALTH_PROCESSES]);
}

int gpu_copy_bulk(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_bulk *asked = request;
    struct device_bulk_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_noise *noise = &gpu->model.noise;
    double come[DEVICE_BULK_FLIGHTS_MAX] = {0}, unit_free = 0, end = 0, latency = 0;
    struct rng rng;
    gpu_update(gpu);
    if (!gpu->model.clusters.size_max)
        return err_set(err, -ENOTSUP, "this GPU has no bulk copies");
    int rc = load_lines(gpu, asked, &latency, err);
    if (rc)
        return rc;
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), rate = bulk_rate(gpu, asked, mhz);
    latency += gpu->model.clusters.bulk_cycles;
    rng_init(&rng, rng_derive(gpu->noise_seed, "bulk", gpu->stream_number++), "noise");
    for (uint32_t i = 0; i < asked->copies / asked->in_flight * asked->in_flight; i++) {
        double *slot = &come[i % asked->in_flight];
        double took = fmax(asked->bytes / rate, gpu->model.clusters.bulk_interval) *
                      (1 + fabs(noise->bandwidth * rng_normal(&rng)));
        double there = *slot + latency + noise->jitter_cycles * rng_normal(&rng);
        unit_free = fmax(unit_free, there) + took;
        *slot = unit_free;
        end = fmax(end, unit_free);
    }
    *out_answer = (struct device_bulk_answer){.cycles = (uint64_t)(end + 0.5),
                                              .elapsed_ns = (uint64_t)(end * 1e3 / mhz + 0.5),
                                              .sms = asked->alone ? 1 : gpu->model.sms};
    gpu->busy_ns += end * 1e3 / mhz;
    return 0;
}
