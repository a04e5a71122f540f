/* Faults of simulated GPUs: read from a fleet file, and applied to a model. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/sim/model.h"

enum { PARAMETERS_MAX = 4, FIELDS_MAX = PARAMETERS_MAX + 4, WRONG_BIT = 5 };

static const struct fault_kind {
    const char *word;
    const char *parameters[PARAMETERS_MAX]; /* those with a '?' may be left out */
    const char *setting;                    /* `text` is one of its words; NULL: any text */
    bool may_change; /* while the GPU works: it changes nothing that caches or limits are created
                        from */
} fault_kinds[SIM_FAULT_COUNT] = {
    [SIM_SLOW_DRAM] = {"slow_dram", {"share"}, .may_change = true},
    [SIM_HBM_STACK] = {"hbm_stack", {"?count", "?hidden"}},
    [SIM_MEMORY_CLOCK] = {"memory_clock", {"mhz"}, .may_change = true},
    [SIM_SM_CLOCK] = {"sm_clock", {"mhz", "?reason"}, .may_change = true},
    [SIM_L2_SLICE] = {"l2_slice", {"share", "?reported"}},
    [SIM_MISSING_SMS] = {"missing_sms", {"?count", "?hidden"}},
    [SIM_SLOW_SM] = {"slow_sm", {"sm", "share"}, .may_change = true},
    [SIM_L1_WAYS] = {"l1_ways", {"share"}},
    [SIM_PCIE] = {"pcie", {"?gen", "?width"}},
    [SIM_SLOW_HOST] = {"slow_host", {"share"}, .may_change = true},
    [SIM_NVLINK_DOWN] = {"nvlink_down", {"?count"}},
    [SIM_ECC_OFF] = {"ecc_off"},
    [SIM_MIG_ON] = {"mig_on"},
    [SIM_VIRTUALIZATION] = {"virtualization", {"text"}, .setting = "virtualization"},
    [SIM_CONFIDENTIAL] = {"confidential", {"text", "factor"}, .setting = "confidential_computing"},
    [SIM_PERSISTENCE_OFF] = {"persistence_off"},
    [SIM_COMPUTE_MODE] = {"compute_mode", {"text"}, .setting = "compute_mode"},
    [SIM_POWER_LIMIT] = {"power_limit", {"w"}, .may_change = true},
    [SIM_REMAP] = {"remap", {"?pending", "?failed"}},
    [SIM_ECC_ERRORS] = {"ecc_errors", {"?count"}},
    [SIM_ECC_GROWTH] = {"ecc_corrected", {"per_s"}},
    [SIM_REPLAYS] = {"pcie_replays", {"per_s"}},
    [SIM_LINK_ERRORS] = {"nvlink_errors", {"per_s"}},
    [SIM_XID] = {"xid", {"number"}},
    [SIM_FABRIC] = {"fabric", {"state"}},
    [SIM_HOT] = {"hot", {"degrees"}},
    [SIM_VBIOS] = {"vbios", {"text"}},
    [SIM_DRIVER] = {"driver", {"text"}},
    [SIM_NOISY] = {"noisy", {"factor"}, .may_change = true},
    [SIM_BUSY] = {"busy"},
    [SIM_HEALTH] = {"health", {"facts"}},
    [SIM_MEMORY_HELD] = {"memory_held", {"bytes"}},
    [SIM_WAIT] = {"wait", {"seconds"}},
    [SIM_HANG] = {"hang", {"?after", "?tries"}},
    [SIM_CRASH] = {"crash", {"?after", "?tries"}},
    [SIM_MISSING] = {"missing"},
    [SIM_DEAD_DRIVER] = {"dead_driver"},
    [SIM_WEAK_REGION] = {"weak_region", {"bytes", "share", "?ns", "?corrected"}},
    [SIM_BIT_ERROR] = {"bit_error", {"bytes", "?count", "?stride", "?bit"}},
    [SIM_WRONG_SM] = {"wrong_sm", {"sm", "share", "?path"}},
    [SIM_WRONG_CARD] = {"wrong_card", {"path"}},
    [SIM_FALLS_UNDER_LOAD] = {"falls_under_load",
                              {"share", "?seconds", "?reason"},
                              .may_change = true},
    [SIM_DEAD_LINK] = {"dead_link", {"?peer"}},
    [SIM_SLOW_LINK] = {"slow_link", {"share", "?ns", "?peer"}},
    [SIM_FABRIC_DOWN] = {"fabric_down"},
    [SIM_SWAPPED_DIE] = {"swapped_die"},
};

static const char *const reason_words[] = {
    [SIM_BY_POWER] = "power",
    [SIM_BY_HEAT] = "thermal",
    [SIM_BY_SETTING] = "setting",
    [SIM_BY_SLOWDOWN] = "slowdown",
    [SIM_BY_BRAKE] = "power_brake",
    [SIM_BY_NOTHING] = "none",
    NULL,
};

#define PATH_WORD(id, name, words, ...) name,
static const char *const path_words[] = {SCREENS(PATH_WORD) NULL};

const char *const sim_per_words[] = {"gpu", "node", "rack", NULL};

struct fault_text {
    struct sim_fault fault;
    struct sim_fault_place place;
    const struct yaml_node *kind, *facts, *when;
    const char *text;
};

static const struct yaml_field parameters[] = {
    {"share", YAML_F64, offsetof(struct fault_text, fault.share), .min = 0, .max = 0.95},
    {"ns", YAML_F64, offsetof(struct fault_text, fault.ns), .min = 0, .max = 1e6},
    {"mhz", YAML_F64, offsetof(struct fault_text, fault.mhz), .min = 1, .max = 100000},
    {"w", YAML_F64, offsetof(struct fault_text, fault.w), .min = 1, .max = 10000},
    {"factor", YAML_F64, offsetof(struct fault_text, fault.factor), .min = 1, .max = 1000},
    {"per_s", YAML_F64, offsetof(struct fault_text, fault.per_s), .min = 0.1, .max = 1e9},
    {"degrees", YAML_F64, offsetof(struct fault_text, fault.degrees), .min = 1, .max = 100},
    {"number", YAML_U32, offsetof(struct fault_text, fault.number), .min = 1, .max = 999},
    {"state", YAML_WORD, offsetof(struct fault_text, fault.state), .words = sim_fabric_words},
    {"count", YAML_U32, offsetof(struct fault_text, fault.count), .min = 1, .max = 1000000},
    {"corrected", YAML_U32, offsetof(struct fault_text, fault.corrected), .min = 1, .max = 1000000},
    {"sm", YAML_U32, offsetof(struct fault_text, fault.sm)},
    {"peer", YAML_U32, offsetof(struct fault_text, fault.peer), .max = 255},
    {"gen", YAML_U32, offsetof(struct fault_text, fault.gen), .min = 1, .max = 8},
    {"width", YAML_U32, offsetof(struct fault_text, fault.width), .min = 1, .max = 32},
    {"seconds", YAML_F64, offsetof(struct fault_text, fault.seconds), .min = 0, .max = 86400},
    {"after", YAML_U64, offsetof(struct fault_text, fault.after)},
    {"bytes", YAML_BYTES, offsetof(struct fault_text, fault.bytes), .max = 0x1p41},
    {"stride", YAML_BYTES, offsetof(struct fault_text, fault.stride), .min = 8, .max = 0x1p40},
    {"bit", YAML_U32, offsetof(struct fault_text, fault.bit), .max = 63},
    {"tries", YAML_U32, offsetof(struct fault_text, fault.tries), .min = 1, .max = 100},
    {"reason", YAML_WORD, offsetof(struct fault_text, fault.reason), .words = reason_words},
    {"path", YAML_WORD, offsetof(struct fault_text, fault.path), .words = path_words},
    {"hidden", YAML_BOOL, offsetof(struct fault_text, fault.hidden)},
    {"reported", YAML_BOOL, offsetof(struct fault_text, fault.reported)},
    {"pending", YAML_BOOL, offsetof(struct fault_text, fault.pending)},
    {"failed", YAML_BOOL, offsetof(struct fault_text, fault.failed)},
    {"text", YAML_STRING, offsetof(struct fault_text, text)},
    {"facts", YAML_NODE, offsetof(struct fault_text, facts)},
};

/* Keys that every fault of a node has, or every fault that is drawn, and the kind's own. */
static size_t fault_list_fields(bool drawn, size_t kind, struct yaml_field fields[FIELDS_MAX])
{
    static const struct yaml_field of_node[] = {
        {"kind", YAML_NODE, offsetof(struct fault_text, kind), true},
        {"when", YAML_NODE, offsetof(struct fault_text, when)},
        {"gpu", YAML_NODE, offsetof(struct fault_text, place.gpu), true},
    };
    static const struct yaml_field of_fleet[] = {
        {"kind", YAML_NODE, offsetof(struct fault_text, kind), true},
        {"when", YAML_NODE, offsetof(struct fault_text, when)},
        {"hits", YAML_F64, offsetof(struct fault_text, place.hits), .min = 0, .max = 1},
        {"per", YAML_WORD, offsetof(struct fault_text, place.per), .words = sim_per_words},
    };
    size_t count = drawn ? COUNT_OF(of_fleet) : COUNT_OF(of_node);
    memcpy(fields, drawn ? of_fleet : of_node, count * sizeof *fields);
    for (int k = 0; k < PARAMETERS_MAX && fault_kinds[kind].parameters[k]; k++) {
        const char *name = fault_kinds[kind].parameters[k];
        bool optional = name[0] == '?';
        size_t i = 0;
        while (!str_equal(parameters[i].key, name + optional))
            i++;
        fields[count] = parameters[i];
        fields[count++].required = !optional;
    }
    return count;
}

static const char *const each_words[] = {"launch", "session", NULL};

struct when_text {
    struct sim_when when;
    int each;
};

static const struct yaml_field when_fields[] = {
    {"chance", YAML_F64, offsetof(struct when_text, when.chance), .min = 0.0001, .max = 1},
    {"each", YAML_WORD, offsetof(struct when_text, each), .words = each_words},
    {"from_ms", YAML_F64, offsetof(struct when_text, when.from_ms), .min = 0, .max = 1e9},
    {"for_ms", YAML_F64, offsetof(struct when_text, when.for_ms), .min = 0.001, .max = 1e9},
    {"grow_ms", YAML_F64, offsetof(struct when_text, when.grow_ms), .min = 0.001, .max = 1e9},
    {"sessions", YAML_U32, offsetof(struct when_text, when.sessions), .min = 1, .max = 1000},
};

static int fault_read_when(const struct yaml_node *node, int kind, struct sim_when *out_when,
                           struct err *err)
{
    struct when_text text = {{0}};
    if (!fault_kinds[kind].may_change)
        return yaml_error(node, err, "a fault of this kind is always present");
    int rc = yaml_read_fields(node, when_fields, COUNT_OF(when_fields), &text, err);
    if (rc) {
        err_prefix(err, "when");
        return rc;
    }
    text.when.timed = true;
    text.when.each_session = text.each == 1;
    *out_when = text.when;
    return 0;
}

int sim_fault_read(const struct yaml_node *node, bool drawn, struct sim_fault *out_fault,
                   struct sim_fault_place *out_place, struct err *err)
{
    struct fault_text text = {.fault = {.count = 1,
                                        .peer = SIM_ANY_PEER,
                                        .path = DEVICE_SCREEN_FP32,
                                        .stride = 8,
                                        .bit = WRONG_BIT},
                              .place = {.hits = 1}};
    struct yaml_field fields[FIELDS_MAX];
    const struct yaml_node *kind = yaml_get(node, "kind");
    if (yaml_expect(node, YAML_MAPPING, err))
        return -EINVAL;
    if (!kind)
        return yaml_error(node, err, "key \"kind\" is missing");
    const char *words[SIM_FAULT_COUNT];
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++)
        words[i] = fault_kinds[i].word;
    size_t index;
    int rc = yaml_as_word(kind, words, SIM_FAULT_COUNT, &index, err);
    if (rc)
        return rc;
    size_t count = fault_list_fields(drawn, index, fields);
    rc = yaml_read_fields(node, fields, count, &text, err);
    if (rc)
        return rc;
    if (text.text)
        rc = sim_copy_setting(node, "text", fault_kinds[index].setting, text.text, text.fault.text,
                              err);
    if (rc)
        return rc;
    if (text.facts)
        rc = sim_health_read(text.facts, text.fault.health, err);
    if (rc)
        return rc;
    if (text.when)
        rc = fault_read_when(text.when, (int)index, &text.fault.when, err);
    if (rc)
        return rc;
    text.fault.kind = (int)index;
    *out_fault = text.fault;
    *out_place = text.place;
    return 0;
}

int sim_fault_fits(const struct yaml_node *node, const struct sim_fault *fault,
                   const struct sim_model *model, struct err *err)
{
    struct sim_model trial = *model;
    struct err reason = {0};
    if (sim_model_apply(&trial, fault, &reason))
        return yaml_error(node, err, "%s", reason.text);
    return 0;
}

/* NVML's bits of the clock event reasons. */
static const uint64_t throttle_bits[] = {
    [SIM_BY_POWER] = 0x4,    [SIM_BY_HEAT] = 0x20,  [SIM_BY_SETTING] = 0x2,
    [SIM_BY_SLOWDOWN] = 0x8, [SIM_BY_BRAKE] = 0x80, [SIM_BY_NOTHING] = 0,
};

/* Bus width of an HBM stack, and of the channels that stand for stacks in narrower memories. */
enum { STACK_BITS = 1024, CHANNEL_BITS = 64 };

/* Degrees to slowdown that a GPU loses before heat holds its clock down. */
static const double hot_margin_c = 0;

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
    if (model->wrong_share > 0 && model->wrong_sm >= model->sms - fault->count)
        return err_set(err, -EINVAL, "the wrong SM would be among the missing ones");
    model->sms -= fault->count;
    model->hidden_sms += fault->hidden ? fault->count : 0;
    return 0;
}

/* Capacity, bus width and bandwidth change together. */
static int lose_stack(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    uint32_t bits = model->hardware.memory_bus_bits;
    uint32_t stack_bits = bits >= 2 * STACK_BITS ? STACK_BITS : CHANNEL_BITS;
    uint32_t stacks = bits / stack_bits;
    if (fault->count >= stacks)
        return err_set(err, -EINVAL, "the model has only %u stacks", stacks);
    double left = 1 - (double)fault->count / stacks;
    uint64_t bytes = (uint64_t)((double)model->memory_bytes * left);
    model->bandwidth.main_read *= left;
    model->bandwidth.main_write *= left;
    model->bandwidth.main_copy *= left;
    if (fault->hidden) {
        model->hidden_bytes += model->memory_bytes - bytes;
        return 0;
    }
    model->memory_bytes = bytes;
    model->hardware.memory_bus_bits = bits - fault->count * stack_bits;
    return 0;
}

static void slow_host(struct sim_model *model, double share)
{
    struct sim_bandwidth *b = &model->bandwidth;
    double *const rates[] = {&b->h2d, &b->d2h, &b->bidir};
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        *rates[i] /= 1 + share;
    model->paths[DEVICE_HOST].main_cycles *= 1 + share;
}

static int take_links_down(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    if (fault->count > model->health[HEALTH_NVLINKS_ACTIVE])
        return err_set(err, -EINVAL, "the model has only %g NVLinks",
                       model->health[HEALTH_NVLINKS_ACTIVE]);
    model->health[HEALTH_NVLINKS_ACTIVE] -= fault->count;
    model->health[HEALTH_NVLINKS_DOWN] += fault->count;
    return 0;
}

static int hold_memory(struct sim_model *model, uint64_t bytes, struct err *err)
{
    if (model->held_bytes + bytes > model->memory_bytes / 2)
        return err_set(err, -EINVAL, "more than half of the model's memory");
    model->held_bytes += bytes;
    return 0;
}

static int harm_memory(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    if (fault->bytes >= model->memory_bytes / 2)
        return err_set(err, -EINVAL, "a byte of the lower half of the model's memory is expected");
    if (fault->kind == SIM_WEAK_REGION) {
        model->weak_offset = fault->bytes;
        model->weak_share = fault->share;
        model->weak_ns = fault->ns;
        model->weak_corrected = fault->corrected;
        return 0;
    }
    model->wrong_offset = fault->bytes / 8 * 8;
    model->wrong_words = fault->count;
    model->wrong_stride = fault->stride / 8 * 8;
    model->wrong_bit = fault->bit;
    return 0;
}

static int harm_sm(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    if (fault->sm >= model->sms)
        return err_set(err, -EINVAL, "the model has only %u SMs", model->sms);
    if (fault->kind == SIM_SLOW_SM) {
        model->slow_sm = (int32_t)fault->sm;
        model->slow_share = fault->share;
        return 0;
    }
    model->wrong_sm = fault->sm;
    model->wrong_share = fault->share;
    model->wrong_path = fault->path;
    return 0;
}

static int cap_clock(double *mhz, double nominal, double cap, struct err *err)
{
    if (cap > nominal)
        return err_set(err, -EINVAL, "%g MHz is above the model's %g MHz", cap, nominal);
    *mhz = fmin(*mhz, cap);
    return 0;
}

static int hold_clock(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    double *health = model->health;
    model->throttle_bits |= throttle_bits[fault->reason];
    if (fault->reason == SIM_BY_SETTING)
        model->config.sm_clock_application_mhz = fault->mhz;
    if (fault->reason == SIM_BY_HEAT) {
        health[HEALTH_TEMPERATURE] += health[HEALTH_TEMPERATURE_MARGIN] - hot_margin_c;
        health[HEALTH_TEMPERATURE_MARGIN] = hot_margin_c;
    }
    return cap_clock(&model->clock.sm_mhz, model->nominal_clock.sm_mhz, fault->mhz, err);
}

/* The clock that a power limit leaves, by the limit's share of what the load would draw. Known of
 * H200s: 1898 of 1980 MHz at 300 W, where the survey is taken to draw 420 W, and three quarters at
 * 200 of 700 W. What is between is interpolated; what is below is a guess. */
static const struct {
    double power, clock;
} power_points[] = {{0, 0}, {200.0 / 700, 0.75}, {300.0 / 420, 1898.0 / 1980}, {1, 1}};

static double clock_at_power(double power)
{
    size_t i = 1;
    while (power > power_points[i].power)
        i++;
    double x0 = power_points[i - 1].power, x1 = power_points[i].power;
    double y0 = power_points[i - 1].clock, y1 = power_points[i].clock;
    return y0 + (y1 - y0) * (power - x0) / (x1 - x0);
}

static void limit_power(struct sim_model *model, double w)
{
    model->config.power_limit_w = w;
    if (w >= model->config.power_draw_w)
        return;
    model->clock.sm_mhz *= clock_at_power(w / model->config.power_draw_w);
    model->throttle_bits |= throttle_bits[SIM_BY_POWER];
}

uint64_t sim_throttle_bits(int reason)
{
    return throttle_bits[reason];
}

static void fall_under_load(struct sim_model *model, const struct sim_fault *fault)
{
    model->fall_share = fault->share;
    model->fall_s = fault->seconds;
    model->fall_reason = fault->reason;
}

static int lower_pcie(struct sim_model *model, const struct sim_fault *fault, struct err *err)
{
    const struct sim_hardware *hardware = &model->hardware;
    if (fault->gen > hardware->pcie_gen_max || fault->width > hardware->pcie_width_max)
        return err_set(err, -EINVAL, "above the model's PCIe %u x%u", hardware->pcie_gen_max,
                       hardware->pcie_width_max);
    model->config.pcie_gen = fault->gen ? fault->gen : model->config.pcie_gen;
    model->config.pcie_width = fault->width ? fault->width : model->config.pcie_width;
    return 0;
}

static void raise_noise(struct sim_model *model, double factor)
{
    struct sim_noise *noise = &model->noise;
    noise->jitter_cycles = factor * (noise->jitter_cycles > 0 ? noise->jitter_cycles : 0.5);
    noise->spike_rate = fmin(0.5, noise->spike_rate * factor);
    noise->bandwidth = fmin(0.5, factor * (noise->bandwidth > 0 ? noise->bandwidth : 0.002));
}

/* Faults that change what is reported, and hardly anything else. */
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
    case SIM_VIRTUALIZATION:
        memcpy(config->virtualization, fault->text, sizeof fault->text);
        break;
    case SIM_CONFIDENTIAL:
        memcpy(config->confidential, fault->text, sizeof fault->text);
        slow_host(model, fault->factor - 1);
        break;
    case SIM_PERSISTENCE_OFF:
        config->persistence = false;
        break;
    case SIM_COMPUTE_MODE:
        memcpy(config->compute_mode, fault->text, sizeof fault->text);
        break;
    case SIM_REMAP:
        model->health[HEALTH_REMAP_PENDING] = fault->pending;
        model->health[HEALTH_REMAP_FAILED] = fault->failed;
        break;
    case SIM_ECC_ERRORS:
        model->health[HEALTH_ECC_UNCORRECTED_VOLATILE] += fault->count;
        model->health[HEALTH_ECC_UNCORRECTED_DRAM] += fault->count;
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

/* Faults of the whole GPU's behaviour that fit every model. */
static void apply_behaviour(struct sim_model *model, const struct sim_fault *fault)
{
    switch (fault->kind) {
    case SIM_SLOW_DRAM:
        model->dram_factor *= 1 + fault->share;
        break;
    case SIM_L2_SLICE:
        lose_l2(model, fault);
        break;
    case SIM_SLOW_HOST:
        slow_host(model, fault->share);
        break;
    case SIM_POWER_LIMIT:
        limit_power(model, fault->w);
        break;
    case SIM_FALLS_UNDER_LOAD:
        fall_under_load(model, fault);
        break;
    case SIM_NOISY:
        raise_noise(model, fault->factor);
        break;
    case SIM_BUSY:
        /* The other process takes turns and evicts what was cached. */
        model->health[HEALTH_PROCESSES] = 1;
        raise_noise(model, 8);
        break;
    case SIM_WAIT:
        model->wait_s = fault->seconds;
        break;
    case SIM_HANG:
        model->hang_after = (int64_t)fault->after;
        break;
    case SIM_CRASH:
        model->crash_after = (int64_t)fault->after;
        break;
    case SIM_SWAPPED_DIE: /* sim_device.c: drawn with the card */
    case SIM_MISSING:     /* sim_fleet.c: the GPU is not listed */
    case SIM_DEAD_DRIVER:
    case SIM_DEAD_LINK: /* node_links.c */
    case SIM_SLOW_LINK:
    case SIM_FABRIC_DOWN:
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
        return hold_clock(model, fault, err);
    case SIM_HBM_STACK:
        return lose_stack(model, fault, err);
    case SIM_NVLINK_DOWN:
        return take_links_down(model, fault, err);
    case SIM_ECC_GROWTH:
    case SIM_REPLAYS:
    case SIM_LINK_ERRORS:
    case SIM_XID:
    case SIM_FABRIC:
    case SIM_HOT:
        return sim_health_fault(fault, model, err);
    case SIM_MISSING_SMS:
        return lose_sms(model, fault, err);
    case SIM_SLOW_SM:
    case SIM_WRONG_SM:
        return harm_sm(model, fault, err);
    case SIM_WRONG_CARD:
        model->wrong_card_path = fault->path;
        return 0;
    case SIM_L1_WAYS:
        return lose_l1(model, fault, err);
    case SIM_MEMORY_HELD:
        return hold_memory(model, fault->bytes, err);
    case SIM_WEAK_REGION:
    case SIM_BIT_ERROR:
        return harm_memory(model, fault, err);
    case SIM_PCIE:
        return lower_pcie(model, fault, err);
    default:
        apply_behaviour(model, fault);
        return 0;
    }
}
