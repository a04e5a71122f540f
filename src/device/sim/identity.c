/* What the driver of a simulated GPU reports about its identity. */
#include <stdio.h>

#include "base/mem.h"
#include "device/sim/gpu.h"

static void set_hardware(const struct sim_model *model, struct facts *facts)
{
    const struct sim_hardware *h = &model->hardware;
    const struct sim_carveout *c = &model->carveout;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"sms", model->sms + model->hidden_sms},
        {"cores", (uint64_t)(model->sms + model->hidden_sms) * h->cores_per_sm},
        {"memory_bytes", model->memory_bytes},
        {"memory_bus_bits", h->memory_bus_bits},
        {"l2_bytes", model->l2.reported},
        {"constant_bytes", model->constant_bytes},
        {"shared_per_block_bytes", model->shared_bytes_max},
        {"shared_per_sm_bytes", c->present ? c->steps[c->step_count - 1] : model->shared_bytes_max},
        {"registers_per_sm", h->registers_per_sm},
        {"threads_per_block", h->threads_per_block},
        {"threads_per_sm", h->threads_per_sm},
        {"warp_size", h->warp_size},
        {"sm_clock_max_mhz", (uint64_t)(h->sm_clock_max_mhz + 0.5)},
        {"memory_clock_max_mhz", (uint64_t)(h->memory_clock_max_mhz + 0.5)},
        {"pcie_gen_max", h->pcie_gen_max},
        {"pcie_width_max", h->pcie_width_max},
    };
    facts_set_text(facts, "architecture", h->architecture);
    facts_set_text(facts, "compute_capability", h->compute_capability);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        facts_set_int(facts, numbers[i].key, (int64_t)numbers[i].value);
}

static void set_board(const struct gpu *gpu, struct facts *facts)
{
    char serial[32];
    snprintf(
        serial, sizeof serial, "%013llu",
        (unsigned long long)(rng_derive(gpu->unit.identity_seed, "serial", 0) % 10000000000000u));
    facts_set_text(facts, "serial", serial);
    facts_set_text(facts, "part", gpu->model.board.part);
    facts_set_text(facts, "vbios", gpu->model.board.vbios);
    facts_set_text(facts, "driver", gpu->model.board.driver);
}

static void set_config(const struct sim_model *model, struct facts *facts)
{
    const struct sim_config *c = &model->config;
    const struct {
        const char *key;
        bool value;
    } flags[] = {
        {"persistence", c->persistence}, {"ecc", c->ecc},
        {"ecc_pending", c->ecc_pending}, {"mig", c->mig},
        {"mig_pending", c->mig_pending},
    };
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"power_limit_w", c->power_limit_w},
        {"power_limit_default_w", c->power_limit_default_w},
        {"sm_clock_limit_mhz", model->hardware.sm_clock_max_mhz},
        {"memory_clock_limit_mhz", model->hardware.memory_clock_max_mhz},
        {"sm_clock_application_mhz", c->sm_clock_application_mhz > 0
                                         ? c->sm_clock_application_mhz
                                         : model->hardware.sm_clock_max_mhz},
        {"sm_clock_application_default_mhz", model->hardware.sm_clock_max_mhz},
        {"memory_clock_application_mhz", model->clock.memory_mhz},
    };
    facts_set_text(facts, "compute_mode", c->compute_mode);
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        facts_set_bool(facts, flags[i].key, flags[i].value);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        facts_set_int(facts, numbers[i].key, (int64_t)(numbers[i].value + 0.5));
}

int gpu_identify(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct gpu *gpu = (const struct gpu *)device;
    struct device_identity *identity = answer;
    (void)request, (void)err;
    set_hardware(&gpu->model, &identity->hardware);
    set_board(gpu, &identity->board);
    set_config(&gpu->model, &identity->config);
    facts_set_int(&identity->config, "memory_free_bytes", (int64_t)gpu->device.limits.global_bytes);
    return 0;
}
