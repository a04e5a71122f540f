/* The links of a simulated GPU to the other GPUs of its node, measured. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "device/sim/gpu.h"

/* What SMs reach of the rate of a copy engine, and a link both ways at once of the rate one way. */
static const double SM_SHARE = 0.97, BOTH_SHARE = 0.95;

int gpu_list_peers(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct gpu *gpu = (const struct gpu *)device;
    struct facts *out_gpus = &((struct device_peers *)answer)->gpus;
    (void)request;
    facts_set_text(out_gpus, "own", gpu->uuid);
    if (gpu->links.count > 1 && !gpu->links.wiring.present)
        return err_set(err, -ENOTSUP, "the simulated node has no links between its GPUs");
    for (uint32_t i = 0; i < gpu->links.count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        facts_set_text(out_gpus, key, gpu->links.gpus[i].uuid);
    }
    return 0;
}

/* Disturbances can only cost time. */
static uint64_t time_of(const struct gpu *gpu, double bytes, double rate, struct rng *rng)
{
    const struct sim_model *model = &gpu->model;
    double ns = bytes / rate * (1 + fabs(model->noise.bandwidth * rng_normal(rng)));
    return ns < 1 ? 1 : (uint64_t)(ns + 0.5);
}

static void use_sms(const struct gpu *gpu, const struct device_peer_test *test,
                    const struct sim_way *in, const struct sim_way *out, struct rng *rng,
                    struct device_peer_answer *answer)
{
    double bytes = (double)test->bytes, mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    double cycles = gpu->model.paths[DEVICE_GLOBAL_CG].l2_cycles + in->latency_ns * mhz / 1e3;
    double jitter = gpu->model.noise.jitter_cycles * sqrt((double)test->loads) * rng_normal(rng);
    double both = BOTH_SHARE * SM_SHARE * fmin(in->gb_per_s, out->gb_per_s);
    answer->read_ns = time_of(gpu, bytes, SM_SHARE * in->gb_per_s, rng);
    answer->write_ns = time_of(gpu, bytes, SM_SHARE * out->gb_per_s, rng);
    answer->both_ns = time_of(gpu, bytes / 2, both, rng);
    answer->cycles = (uint64_t)fmax(cycles * test->loads + jitter, 1);
    answer->chase_ns = (uint64_t)((double)answer->cycles * 1e3 / mhz + 0.5);
}

int gpu_test_peer(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_peer_test *test = request;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_links *links = &gpu->links;
    if (test->peer >= links->count || test->peer == links->own || links->own >= links->count)
        return err_set(err, -EINVAL, "no such peer");
    const struct sim_way in = sim_links_way(links, test->peer, links->own);
    const struct sim_way out = sim_links_way(links, links->own, test->peer);
    struct device_peer_answer got = {.mapped = in.mapped && out.mapped};
    double bytes = (double)test->bytes;
    struct rng rng;
    gpu_update(gpu);
    rng_init(&rng, rng_derive(gpu->noise_seed, "peer", gpu->stream_number++), "noise");
    if (in.dead || out.dead)
        return err_set(err, -EIO, "copy between GPUs: the link does not answer");
    got.copy_read_ns = time_of(gpu, bytes, in.gb_per_s, &rng);
    got.copy_write_ns = time_of(gpu, bytes, out.gb_per_s, &rng);
    got.copy_both_ns = time_of(gpu, bytes, BOTH_SHARE * fmin(in.gb_per_s, out.gb_per_s), &rng);
    if (got.mapped)
        use_sms(gpu, test, &in, &out, &rng, &got);
    gpu->busy_ns += (double)(got.copy_read_ns + got.copy_write_ns + got.copy_both_ns);
    *(struct device_peer_answer *)answer = got;
    return 0;
}
