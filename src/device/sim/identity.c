/* What the driver of a simulated GPU reports: its identity, its settings, its health. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/sim/gpu.h"
#include "inventory/throttle.h"

void sim_unit_uuid(const struct sim_unit *unit, char out_uuid[SIM_UUID_MAX])
{
    uint64_t a = rng_derive(unit->identity_seed, "uuid", 0);
    uint64_t b = rng_derive(unit->identity_seed, "uuid", 1);
    snprintf(out_uuid, SIM_UUID_MAX, "%s-%08x-%04x-%04x-%04x-%012llx",
             unit->is_instance ? "MIG" : "GPU", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
             (unsigned)(a & 0xffff), (unsigned)(b >> 48),
             (unsigned long long)(b & 0xffffffffffffu));
}

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
    if (h->l2_persisting)
        facts_set_int(facts, "l2_persisting_max_bytes", (int64_t)h->l2_persisting);
    facts_set_text(facts, "architecture", h->architecture);
    facts_set_text(facts, "compute_capability", h->compute_capability);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        facts_set_int(facts, numbers[i].key, (int64_t)numbers[i].value);
}

static void set_settings(const struct sim_model *model, struct facts *facts)
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

static bool is_virtual(const struct sim_model *model)
{
    return gpu_kind_is(GPU_KIND_VIRTUAL, model->config.virtualization);
}

/* What kind of GPU it is. An instance is the next one of its node's GPUs, with seven each. */
static void set_kind(const struct gpu *gpu, struct device_identity *identity)
{
    enum { INSTANCES = 7, FIRST_ID = 7 };
    const struct sim_config *c = &gpu->model.config;
    struct facts *config = &identity->config;
    static const char *const not_on_virtual[] = {"power_limit_w", "power_limit_default_w",
                                                 "sm_clock_application_mhz",
                                                 "memory_clock_application_mhz"};
    if (c->virtualization[0])
        facts_set_text(config, "virtualization", c->virtualization);
    if (c->confidential[0])
        facts_set_text(config, "confidential_computing", c->confidential);
    for (size_t i = 0; i < COUNT_OF(not_on_virtual) && is_virtual(&gpu->model); i++)
        facts_set_unknown(config, not_on_virtual[i], "not supported");
    if (!c->mig_profile[0])
        return;
    const struct sim_unit parent = {
        .identity_seed = rng_derive(gpu->unit.node, "parent", gpu->unit.index / INSTANCES)};
    char uuid[SIM_UUID_MAX];
    sim_unit_uuid(&parent, uuid);
    facts_set_text(&identity->board, "mig_parent", uuid);
    facts_set_text(config, "mig_profile", c->mig_profile);
    facts_set_int(config, "mig_gpu_instance", FIRST_ID + gpu->unit.index % INSTANCES);
    facts_set_int(config, "mig_compute_instance", 0);
    facts_set_text(config, "health_of", "whole GPU");
}

int gpu_identify(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct gpu *gpu = (const struct gpu *)device;
    struct device_identity *identity = answer;
    char serial[32];
    (void)request, (void)err;
    set_hardware(&gpu->model, &identity->hardware);
    snprintf(
        serial, sizeof serial, "%013llu",
        (unsigned long long)(rng_derive(gpu->unit.identity_seed, "serial", 0) % 10000000000000u));
    facts_set_text(&identity->board, "serial", serial);
    facts_set_text(&identity->board, "part", gpu->model.board.part);
    facts_set_text(&identity->board, "vbios", gpu->model.board.vbios);
    facts_set_text(&identity->board, "driver", gpu->model.board.driver);
    set_settings(&gpu->model, &identity->config);
    set_kind(gpu, identity);
    facts_set_int(&identity->config, "memory_free_bytes", (int64_t)gpu->device.limits.global_bytes);
    return 0;
}

static const double count_max = 0x1p53;

/* The time for which the counters of a GPU are watched, in seconds. */
static const double OPEN_S = 10;

const char *const sim_fabric_words[] = {
    [SIM_FABRIC_NONE] = "none",
    [SIM_FABRIC_NOT_STARTED] = "not_started",
    [SIM_FABRIC_IN_PROGRESS] = "in_progress",
    [SIM_FABRIC_COMPLETED] = "completed",
    [SIM_FABRIC_FAILED] = "failed",
    [SIM_FABRIC_FAULTS] = "degraded_bandwidth",
    "route_recovery",
    "route_unhealthy",
    "access_timeout_recovery",
    "incorrect_sysguid",
    "incorrect_chassis_serial",
    "no_partition",
    "insufficient_nvlinks",
    "incompatible_firmware",
    "invalid_location",
    NULL,
};

void sim_health_defaults(double health[HEALTH_NUMBERS])
{
    for (size_t i = 0; i < HEALTH_NUMBERS; i++)
        health[i] = catalogue_health[i].sim.healthy;
}

void sim_health_apply(const struct sim_health_value values[HEALTH_NUMBERS],
                      double health[HEALTH_NUMBERS])
{
    for (size_t i = 0; i < HEALTH_NUMBERS; i++)
        if (values[i].set)
            health[i] = values[i].value;
}

/* Errors come at this rate while the GPU is open. `counter` is that since the driver was loaded;
 * the two facts after it are of the survey alone. */
static void let_errors_come(double per_s, enum health_fact counter, enum health_fact counter_new,
                            enum health_fact counter_per_s, double health[HEALTH_NUMBERS])
{
    health[counter] += ceil(per_s * OPEN_S);
    health[counter_new] += ceil(per_s * OPEN_S);
    health[counter_per_s] += round(per_s);
}

int sim_health_fault(const struct sim_fault *fault, struct sim_model *model, struct err *err)
{
    double *health = model->health;
    switch (fault->kind) {
    case SIM_ECC_GROWTH:
        let_errors_come(fault->per_s, HEALTH_ECC_CORRECTED_VOLATILE, HEALTH_ECC_CORRECTED_NEW,
                        HEALTH_ECC_CORRECTED_PER_S, health);
        health[HEALTH_ECC_CORRECTED_DRAM] += ceil(fault->per_s * OPEN_S);
        break;
    case SIM_REPLAYS:
        let_errors_come(fault->per_s, HEALTH_PCIE_REPLAYS, HEALTH_PCIE_REPLAYS_NEW,
                        HEALTH_PCIE_REPLAYS_PER_S, health);
        break;
    case SIM_LINK_ERRORS:
        let_errors_come(fault->per_s, HEALTH_NVLINK_ERRORS, HEALTH_NVLINK_ERRORS_NEW,
                        HEALTH_NVLINK_ERRORS_PER_S, health);
        break;
    case SIM_FABRIC:
        model->fabric_set = true;
        model->fabric_state = fault->state;
        break;
    case SIM_HOT:
        health[HEALTH_TEMPERATURE] += round(fault->degrees);
        health[HEALTH_TEMPERATURE_MEMORY] += round(fault->degrees);
        health[HEALTH_TEMPERATURE_MARGIN] -= round(fault->degrees);
        break;
    default:
        if (model->xid_count == XID_LIST_MAX)
            return err_set(err, -EINVAL, "more than %d Xid events", XID_LIST_MAX);
        model->xids[model->xid_count++] = fault->number;
        break;
    }
    return 0;
}

static int read_health_value(const struct health_row *row, const struct yaml_node *node,
                             struct sim_health_value *out_value, struct err *err)
{
    bool flag = false;
    double value = 0;
    int rc = row->is_flag ? yaml_as_bool(node, &flag, err)
                          : yaml_as_f64(node, row->sim.min,
                                        row->sim.max > 0 ? row->sim.max : count_max, &value, err);
    if (!rc && value != floor(value))
        rc = yaml_error(node, err, "expected a whole number");
    if (rc) {
        err_prefix(err, "%s", row->key);
        return rc;
    }
    *out_value = (struct sim_health_value){true, row->is_flag ? flag : value};
    return 0;
}

int sim_health_read(const struct yaml_node *node, struct sim_health_value health[HEALTH_NUMBERS],
                    struct err *err)
{
    const struct yaml_node *nodes[HEALTH_NUMBERS] = {0};
    struct yaml_field fields[HEALTH_NUMBERS];
    for (size_t i = 0; i < HEALTH_NUMBERS; i++)
        fields[i] = (struct yaml_field){catalogue_health[i].key, YAML_NODE, i * sizeof *nodes};
    int rc = yaml_read_fields(node, fields, HEALTH_NUMBERS, nodes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < HEALTH_NUMBERS; i++) {
        if (nodes[i])
            rc = read_health_value(&catalogue_health[i], nodes[i], &health[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static void set_health(const struct sim_model *model, struct facts *facts)
{
    double draw = fmin(model->config.power_draw_w, model->config.power_limit_w);
    struct strbuf throttle = {0}, xids = {0};
    facts_set_int(facts, health_key(HEALTH_POWER_DRAW), llround(draw));
    throttle_put_text(model->throttle_bits, &throttle);
    facts_set_text(facts, health_key(HEALTH_THROTTLE), throttle.data);
    xid_put_list(&xids, model->xids, model->xid_count);
    facts_set_text(facts, health_key(HEALTH_XID), xids.data);
    bool has_links = model->health[HEALTH_NVLINKS_ACTIVE] > 0;
    int usual = has_links ? SIM_FABRIC_COMPLETED : SIM_FABRIC_NONE;
    int state = model->fabric_set ? model->fabric_state : usual;
    if (state == SIM_FABRIC_NONE)
        facts_set_unknown(facts, health_key(HEALTH_FABRIC_STATE), "not supported");
    else
        facts_set_text(facts, health_key(HEALTH_FABRIC_STATE), sim_fabric_words[state]);
    if (is_virtual(model))
        facts_set_unknown(facts, health_key(HEALTH_POWER_DRAW), "not supported");
    for (size_t i = 0; i < HEALTH_NUMBERS; i++) {
        if (is_virtual(model) && i != HEALTH_PROCESSES)
            facts_set_unknown(facts, catalogue_health[i].key, "not supported");
        else if (catalogue_health[i].is_flag)
            facts_set_bool(facts, catalogue_health[i].key, model->health[i] > 0);
        else
            facts_set_int(facts, catalogue_health[i].key, llround(model->health[i]));
    }
    strbuf_fini(&throttle);
    strbuf_fini(&xids);
}

void gpu_report_health(const struct gpu *gpu, struct device_health *answer)
{
    const struct sim_config *config = &gpu->model.config;
    facts_set_int(&answer->config, "pcie_gen", config->pcie_gen);
    facts_set_int(&answer->config, "pcie_width", config->pcie_width);
    facts_set_bool(&answer->config, "pcie_under_load", true);
    set_health(&gpu->model, &answer->health);
}
