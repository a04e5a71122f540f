/* Faults of simulated GPUs: reading them, and what each changes in the mechanism. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "device/sim/model.h"

enum { PARAMETERS_MAX = 3 };

/* NVML's bits of the clock event reasons. */
static const uint64_t throttle_power_cap = 0x4, throttle_thermal = 0x20;

static const char *const kind_words[] = {
    [SIM_SLOW_DRAM] = "slow_dram",
    [SIM_MEMORY_CLOCK] = "memory_clock",
    [SIM_SM_CLOCK] = "sm_clock",
    [SIM_L2_SLICE] = "l2_slice",
    [SIM_MISSING_SMS] = "missing_sms",
    [SIM_SLOW_SM] = "slow_sm",
    [SIM_L1_WAYS] = "l1_ways",
    [SIM_PCIE] = "pcie",
    [SIM_ECC_OFF] = "ecc_off",
    [SIM_MIG_ON] = "mig_on",
    [SIM_POWER_LIMIT] = "power_limit",
    [SIM_REMAP] = "remap",
    [SIM_ECC_ERRORS] = "ecc_errors",
    [SIM_VBIOS] = "vbios",
    [SIM_DRIVER] = "driver",
    [SIM_NOISY] = "noisy",
    [SIM_BUSY] = "busy",
    [SIM_HEALTH] = "health",
    [SIM_HANG] = "hang",
    [SIM_CRASH] = "crash",
    [SIM_FAULT_COUNT] = NULL,
};

/* Parameters that a kind takes; those with a '?' may be left out. */
static const char *const kind_parameters[SIM_FAULT_COUNT][PARAMETERS_MAX] = {
    [SIM_SLOW_DRAM] = {"share"},
    [SIM_MEMORY_CLOCK] = {"mhz"},
    [SIM_SM_CLOCK] = {"mhz", "?reason"},
    [SIM_L2_SLICE] = {"share", "?reported"},
    [SIM_MISSING_SMS] = {"count"},
    [SIM_SLOW_SM] = {"sm", "share"},
    [SIM_L1_WAYS] = {"share"},
    [SIM_PCIE] = {"?gen", "?width"},
    [SIM_POWER_LIMIT] = {"w"},
    [SIM_REMAP] = {"?pending", "?failed"},
    [SIM_ECC_ERRORS] = {"count"},
    [SIM_VBIOS] = {"text"},
    [SIM_DRIVER] = {"text"},
    [SIM_NOISY] = {"factor"},
    [SIM_HEALTH] = {"facts"},
    [SIM_HANG] = {"?after"},
    [SIM_CRASH] = {"?after"},
};

static const char *const reason_words[] = {"power", "thermal", NULL};

struct fault_text {
    struct sim_fault fault;
    const struct yaml_node *gpu, *kind, *facts;
    const char *text;
};

static const struct yaml_field parameters[] = {
    {"share", YAML_F64, offsetof(struct fault_text, fault.share), .min = 0, .max = 0.95},
    {"mhz", YAML_F64, offsetof(struct fault_text, fault.mhz), .min = 1, .max = 100000},
    {"w", YAML_F64, offsetof(struct fault_text, fault.w), .min = 1, .max = 10000},
    {"factor", YAML_F64, offsetof(struct fault_text, fault.factor), .min = 1, .max = 1000},
    {"count", YAML_U32, offsetof(struct fault_text, fault.count), .min = 1, .max = 1000000},
    {"sm", YAML_U32, offsetof(struct fault_text, fault.sm)},
    {"gen", YAML_U32, offsetof(struct fault_text, fault.gen), .min = 1, .max = 8},
    {"width", YAML_U32, offsetof(struct fault_text, fault.width), .min = 1, .max = 32},
    {"after", YAML_U64, offsetof(struct fault_text, fault.after)},
    {"reason", YAML_WORD, offsetof(struct fault_text, fault.reason), .words = reason_words},
    {"reported", YAML_BOOL, offsetof(struct fault_text, fault.reported)},
    {"pending", YAML_BOOL, offsetof(struct fault_text, fault.pending)},
    {"failed", YAML_BOOL, offsetof(struct fault_text, fault.failed)},
    {"text", YAML_STRING, offsetof(struct fault_text, text)},
    {"facts", YAML_NODE, offsetof(struct fault_text, facts)},
};

static struct yaml_field parameter_field(const char *name)
{
    bool optional = name[0] == '?';
    size_t i = 0;
    while (!str_equal(parameters[i].key, name + optional))
        i++;
    struct yaml_field field = parameters[i];
    field.required = !optional;
    return field;
}

int sim_fault_read(const struct yaml_node *node, struct sim_fault *out_fault,
                   const struct yaml_node **out_gpu, struct err *err)
{
    struct fault_text text = {{0}};
    const struct yaml_node *kind = yaml_get(node, "kind");
    if (yaml_expect(node, YAML_MAPPING, err))
        return -EINVAL;
    if (!kind)
        return yaml_error(node, err, "key \"kind\" is missing");
    size_t index;
    int rc = yaml_as_word(kind, kind_words, SIM_FAULT_COUNT, &index, err);
    if (rc)
        return rc;
    struct yaml_field fields[PARAMETERS_MAX + 2] = {
        {"gpu", YAML_NODE, offsetof(struct fault_text, gpu), true},
        {"kind", YAML_NODE, offsetof(struct fault_text, kind), true},
    };
    size_t count = 2;
    for (int i = 0; i < PARAMETERS_MAX && kind_parameters[index][i]; i++)
        fields[count++] = parameter_field(kind_parameters[index][i]);
    rc = yaml_read_fields(node, fields, count, &text, err);
    if (!rc && text.text)
        rc = sim_copy_text(node, "text", text.text, text.fault.text, err);
    if (!rc && text.facts)
        rc = sim_health_read(text.facts, text.fault.health, err);
    if (rc)
        return rc;
    text.fault.kind = (int)index;
    *out_fault = text.fault;
    *out_gpu = text.gpu;
    return 0;
}

static uint64_t whole_lines(uint64_t bytes, double share_left, uint64_t unit)
{
    uint64_t left = (uint64_t)((double)bytes * share_left) / unit * unit;
    return left ? left : unit;
}

static void lose_l2(struct sim_model *model, const struct sim_fault *fault)
{
    struct sim_l2 *l2 = &model->l2;
    double left = 1 - fault->share;
    l2->geometry.size = whole_lines(l2->geometry.size, left, 2 * l2->geometry.line);
    uint64_t lines = l2->geometry.size / l2->geometry.line;
    l2->geometry.ways = l2->geometry.ways < lines ? l2->geometry.ways : lines;
    if (fault->reported)
        l2->reported = (uint64_t)((double)l2->reported * left);
    model->bandwidth.l2_read *= left;
    model->bandwidth.l2_write *= left;
}

static int lose_l1(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    const struct sim_path *path = &model->paths[DEVICE_GLOBAL_CA];
    if (!path->cache_count)
        return err_set(err, -EINVAL, "this model has no L1 for global loads");
    struct sim_cache *cache = &model->caches[path->caches[0]];
    if (cache->carveout)
        model->l1_share *= 1 - fault->share;
    else
        cache->geometry.size =
            whole_lines(cache->geometry.size, 1 - fault->share, cache->geometry.line);
    return 0;
}

static int lose_sms(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    if (fault->count >= model->sms)
        return err_set(err, -EINVAL, "the model has only %u SMs", model->sms);
    if (model->slow_sm >= (int32_t)(model->sms - fault->count))
        return err_set(err, -EINVAL, "the slow SM would be among the missing ones");
    model->sms -= fault->count;
    return 0;
}

static int slow_down_sm(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    if (fault->sm >= model->sms)
        return err_set(err, -EINVAL, "the model has only %u SMs", model->sms);
    model->slow_sm = (int32_t)fault->sm;
    model->slow_share = fault->share;
    return 0;
}

static int cap_clock(double *mhz, double nominal, double cap, struct err *err)
{
    if (cap > nominal)
        return err_set(err, -EINVAL, "%g MHz is above the model's %g MHz", cap, nominal);
    *mhz = fmin(*mhz, cap);
    return 0;
}

/* Power goes about with the cube of the clock, as the voltage follows it. */
static void limit_power(struct sim_model *model, double w)
{
    model->config.power_limit_w = w;
    if (w >= model->config.power_draw_w)
        return;
    model->clock.sm_mhz *= cbrt(w / model->config.power_draw_w);
    model->throttle_bits |= throttle_power_cap;
}

static int downtrain(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    const struct sim_hardware *hardware = &model->hardware;
    if (fault->gen > hardware->pcie_gen_max || fault->width > hardware->pcie_width_max)
        return err_set(err, -EINVAL, "above the model's PCIe %u x%u", hardware->pcie_gen_max,
                       hardware->pcie_width_max);
    model->config.pcie_gen = fault->gen ? fault->gen : model->config.pcie_gen;
    model->config.pcie_width = fault->width ? fault->width : model->config.pcie_width;
    return 0;
}

static void disturb(struct sim_model *model, double factor)
{
    struct sim_noise *noise = &model->noise;
    noise->jitter_cycles = factor * (noise->jitter_cycles > 0 ? noise->jitter_cycles : 0.5);
    noise->spike_rate = fmin(0.5, noise->spike_rate * factor);
    noise->bandwidth = fmin(0.5, factor * (noise->bandwidth > 0 ? noise->bandwidth : 0.002));
}

/* Faults that change what is reported, and little or nothing else. */
static void apply_setting(struct sim_model *model, const struct sim_fault *fault)
{
    struct sim_config *config = &model->config;
    switch (fault->kind) {
    case SIM_ECC_OFF:
        config->ecc = config->ecc_pending = false;
        break;
    case SIM_MIG_ON:
        config->mig = config->mig_pending = true;
        break;
    case SIM_REMAP:
        model->health[SIM_REMAP_PENDING] = fault->pending;
        model->health[SIM_REMAP_FAILED] = fault->failed;
        break;
    case SIM_ECC_ERRORS:
        model->health[SIM_ECC_UNCORRECTED_VOLATILE] += fault->count;
        model->health[SIM_ECC_UNCORRECTED_DRAM] += fault->count;
        break;
    case SIM_HEALTH:
        sim_health_apply(fault->health, model->health);
        break;
    case SIM_VBIOS:
        memcpy(model->board.vbios, fault->text, sizeof fault->text);
        break;
    case SIM_DRIVER:
        memcpy(model->board.driver, fault->text, sizeof fault->text);
        break;
    default:
        break;
    }
}

/* Faults of the whole GPU's behaviour that always fit. */
static void apply_behaviour(struct sim_model *model, const struct sim_fault *fault)
{
    switch (fault->kind) {
    case SIM_SLOW_DRAM:
        model->dram_factor *= 1 + fault->share;
        break;
    case SIM_L2_SLICE:
        lose_l2(model, fault);
        break;
    case SIM_POWER_LIMIT:
        limit_power(model, fault->w);
        break;
    case SIM_NOISY:
        disturb(model, fault->factor);
        break;
    case SIM_BUSY:
        /* The other process takes turns and evicts what was cached. */
        model->health[SIM_PROCESSES] = 1;
        disturb(model, 8);
        break;
    case SIM_HANG:
        model->hang_after = (int64_t)fault->after;
        break;
    case SIM_CRASH:
        model->crash_after = (int64_t)fault->after;
        break;
    default:
        apply_setting(model, fault);
        break;
    }
}

int sim_model_apply(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    switch (fault->kind) {
    case SIM_MEMORY_CLOCK:
        return cap_clock(&model->clock.memory_mhz, model->nominal_clock.memory_mhz, fault->mhz,
                         err);
    case SIM_SM_CLOCK:
        model->throttle_bits |= fault->reason ? throttle_thermal : throttle_power_cap;
        return cap_clock(&model->clock.sm_mhz, model->nominal_clock.sm_mhz, fault->mhz, err);
    case SIM_MISSING_SMS:
        return lose_sms(model, fault, err);
    case SIM_SLOW_SM:
        return slow_down_sm(model, fault, err);
    case SIM_L1_WAYS:
        return lose_l1(model, fault, err);
    case SIM_PCIE:
        return downtrain(model, fault, err);
    default:
        apply_behaviour(model, fault);
        return 0;
    }
}
