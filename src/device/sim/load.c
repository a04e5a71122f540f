/* Sustained load on a simulated GPU, in simulated time: power, heat and clock follow from each
 * other.
 */
#include <errno.h>
#include <math.h>

#include "base/portable_math.h"
#include "device/sim/gpu.h"
#include "inventory/throttle.h"

/* At its limit of 700 W, 5/3 of what the rest of the survey draws, an H200 keeps this share of its
 * clock (4 cards: 0.56 to 0.60). It follows the limit by this power: 200 W cost a quarter of the
 * clock (reported, not measured). */
static const double USUAL_LIMIT = 5.0 / 3, CLOCK_SHARE = 0.585, EXPONENT = 0.23;
static const double UNIT_DEVIATION = 0.03; /* of the clock, if units vary */

/* Operations of the tensor cores per cycle and SM; the share of the bandwidth of reading that is
 * left beside them. As on those cards. */
static const double OPERATIONS = 4040, READ_SHARE = 0.735;

/* How much warmer the GPU becomes at its power limit, and how fast. */
static const double WARMER_C = 25, WARM_S = 3;

static const double STEP_NS = 20e6, POWER_NOISE = 0.005;

struct load {
    struct gpu *gpu;
    double clock_share; /* at the power limit */
    double warmer_c;
    double ns;
    struct rng rng;
    struct device_load_sample now;
};

static double clock_share(const struct gpu *gpu)
{
    const struct sim_config *config = &gpu->model.config;
    struct rng rng;
    rng_init(&rng, gpu->unit.identity_seed, "load power");
    double varies = gpu->unit.vary.main_bandwidth > 0 ? UNIT_DEVIATION * rng_normal(&rng) : 0;
    double limit = config->power_limit_w / (USUAL_LIMIT * config->power_draw_w);
    return fmin(CLOCK_SHARE * portable_pow(limit, EXPONENT) * (1 + varies), 1);
}

/* The clock under this load, and why it is not higher. */
static double load_clock_mhz(const struct load *load, uint64_t *out_reasons)
{
    const struct sim_model *model = &load->gpu->model;
    double mhz = gpu_clock_mhz(load->gpu, load->gpu->busy_ns);
    double capped = model->nominal_clock.sm_mhz * load->clock_share;
    *out_reasons = model->throttle_bits;
    if (capped < mhz)
        *out_reasons |= sim_throttle_bits(SIM_BY_POWER);
    mhz = fmin(mhz, capped);
    if (model->fall_share > 0 && load->ns >= model->fall_s * 1e9) {
        *out_reasons |= sim_throttle_bits(model->fall_reason);
        mhz *= 1 - model->fall_share;
    }
    return mhz;
}

/* One launch. Disturbances only cost time. */
static void load_step(struct load *load)
{
    const struct sim_model *model = &load->gpu->model;
    struct device_load_sample *now = &load->now;
    gpu_update(load->gpu);
    double mhz = load_clock_mhz(load, &now->throttle_reasons);
    double took = 1 + fabs(model->noise.bandwidth * rng_normal(&load->rng));
    double memory = model->clock.memory_mhz / model->nominal_clock.memory_mhz / model->dram_factor;
    bool fallen = model->fall_share > 0 && load->ns >= model->fall_s * 1e9;
    double power_w = model->config.power_limit_w * (fallen ? 1 - model->fall_share : 1);
    load->ns += STEP_NS;
    load->gpu->busy_ns += STEP_NS;
    load->warmer_c += (WARMER_C * power_w / model->config.power_limit_w - load->warmer_c) *
                      (1 - portable_exp(-STEP_NS / 1e9 / WARM_S));
    now->at_ns = (uint64_t)load->ns;
    now->operations += (uint64_t)(model->sms * OPERATIONS * mhz * 1e-3 * STEP_NS / took);
    now->bytes += (uint64_t)(READ_SHARE * model->bandwidth.main_read * memory * STEP_NS / took);
    now->cycles += (uint64_t)(mhz * 1e-3 * STEP_NS);
    now->cycles_ns += (uint64_t)STEP_NS;
    now->sm_mhz = mhz;
    now->power_w = power_w * (1 + POWER_NOISE * rng_normal(&load->rng));
    now->energy_j += now->power_w * STEP_NS / 1e9;
}

static void load_add_sample(struct load *load, struct device_load_answer *answer)
{
    const struct sim_model *model = &load->gpu->model;
    struct device_load_sample sample = load->now;
    double warmer_c = load->warmer_c;
    /* With a fault by heat, the GPU is at its slowdown temperature. */
    if (sample.throttle_reasons & sim_throttle_bits(SIM_BY_HEAT))
        warmer_c = fmax(warmer_c, model->health[HEALTH_TEMPERATURE_MARGIN]);
    sample.temperature_c = round(model->health[HEALTH_TEMPERATURE] + warmer_c);
    sample.temperature_memory_c = round(model->health[HEALTH_TEMPERATURE_MEMORY] + warmer_c);
    sample.memory_mhz = model->clock.memory_mhz;
    sample.throttle_known = true;
    device_load_answer_add(answer, &sample);
}

static bool load_is_over(const struct load *load, const struct device_load *asked,
                         enum device_load_end *out_end)
{
    double ms = load->ns / 1e6;
    if (ms >= asked->duration_ms || ms >= asked->limit_ms) {
        *out_end = ms >= asked->duration_ms ? DEVICE_LOAD_DONE : DEVICE_LOAD_TIME;
        return true;
    }
    *out_end = DEVICE_LOAD_SLOWDOWN;
    return throttle_by_hardware(load->now.throttle_reasons);
}

int gpu_run_load(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_load *asked = request;
    struct device_load_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    struct load load = {.gpu = gpu, .clock_share = clock_share(gpu)};
    double sampled_ns = 0;
    gpu_update(gpu);
    if (gpu->model.health[HEALTH_PROCESSES] > 0)
        return err_set(err, -EBUSY, "another process uses the GPU");
    rng_init(&load.rng, rng_derive(gpu->noise_seed, "load", gpu->stream_number++), "noise");
    load.now.sm_mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    load.now.power_w = gpu->model.config.power_draw_w / 4;
    load.now.throttle_reasons = gpu->model.throttle_bits;
    out_answer->unit = DEVICE_LOAD_MMA;
    load_add_sample(&load, out_answer);
    while (!load_is_over(&load, asked, &out_answer->end)) {
        load_step(&load);
        if (load.ns - sampled_ns < asked->sample_ms * 1e6)
            continue;
        sampled_ns = load.ns;
        load_add_sample(&load, out_answer);
    }
    load_add_sample(&load, out_answer);
    return 0;
}
