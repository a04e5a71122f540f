/* Faults of simulated GPUs, read from a fleet file. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/sim/model.h"

enum { PARAMETERS_MAX = 4, FIELDS_MAX = PARAMETERS_MAX + 4 };

static const char *const kind_words[] = {
    [SIM_SLOW_DRAM] = "slow_dram",
    [SIM_HBM_STACK] = "hbm_stack",
    [SIM_MEMORY_CLOCK] = "memory_clock",
    [SIM_SM_CLOCK] = "sm_clock",
    [SIM_L2_SLICE] = "l2_slice",
    [SIM_MISSING_SMS] = "missing_sms",
    [SIM_SLOW_SM] = "slow_sm",
    [SIM_L1_WAYS] = "l1_ways",
    [SIM_PCIE] = "pcie",
    [SIM_SLOW_HOST] = "slow_host",
    [SIM_NVLINK_DOWN] = "nvlink_down",
    [SIM_ECC_OFF] = "ecc_off",
    [SIM_MIG_ON] = "mig_on",
    [SIM_PERSISTENCE_OFF] = "persistence_off",
    [SIM_COMPUTE_MODE] = "compute_mode",
    [SIM_POWER_LIMIT] = "power_limit",
    [SIM_REMAP] = "remap",
    [SIM_ECC_ERRORS] = "ecc_errors",
    [SIM_ECC_GROWTH] = "ecc_corrected",
    [SIM_REPLAYS] = "pcie_replays",
    [SIM_LINK_ERRORS] = "nvlink_errors",
    [SIM_XID] = "xid",
    [SIM_FABRIC] = "fabric",
    [SIM_HOT] = "hot",
    [SIM_VBIOS] = "vbios",
    [SIM_DRIVER] = "driver",
    [SIM_NOISY] = "noisy",
    [SIM_BUSY] = "busy",
    [SIM_HEALTH] = "health",
    [SIM_MEMORY_HELD] = "memory_held",
    [SIM_WAIT] = "wait",
    [SIM_HANG] = "hang",
    [SIM_CRASH] = "crash",
    [SIM_MISSING] = "missing",
    [SIM_DEAD_DRIVER] = "dead_driver",
    [SIM_WEAK_REGION] = "weak_region",
    [SIM_BIT_ERROR] = "bit_error",
    [SIM_WRONG_SM] = "wrong_sm",
    [SIM_FALLS_UNDER_LOAD] = "falls_under_load",
    [SIM_DEAD_LINK] = "dead_link",
    [SIM_SLOW_LINK] = "slow_link",
    [SIM_FABRIC_DOWN] = "fabric_down",
    [SIM_SWAPPED_DIE] = "swapped_die",
    [SIM_FAULT_COUNT] = NULL,
};

/* Parameters that a kind takes; those with a '?' may be left out. */
static const char *const kind_parameters[SIM_FAULT_COUNT][PARAMETERS_MAX] = {
    [SIM_SLOW_DRAM] = {"share"},
    [SIM_HBM_STACK] = {"?count", "?hidden"},
    [SIM_MEMORY_CLOCK] = {"mhz"},
    [SIM_SM_CLOCK] = {"mhz", "?reason"},
    [SIM_L2_SLICE] = {"share", "?reported"},
    [SIM_MISSING_SMS] = {"?count", "?hidden"},
    [SIM_SLOW_SM] = {"sm", "share"},
    [SIM_L1_WAYS] = {"share"},
    [SIM_PCIE] = {"?gen", "?width"},
    [SIM_SLOW_HOST] = {"share"},
    [SIM_NVLINK_DOWN] = {"?count"},
    [SIM_COMPUTE_MODE] = {"text"},
    [SIM_POWER_LIMIT] = {"w"},
    [SIM_REMAP] = {"?pending", "?failed"},
    [SIM_ECC_ERRORS] = {"?count"},
    [SIM_ECC_GROWTH] = {"per_s"},
    [SIM_REPLAYS] = {"per_s"},
    [SIM_LINK_ERRORS] = {"per_s"},
    [SIM_XID] = {"number"},
    [SIM_FABRIC] = {"state"},
    [SIM_HOT] = {"degrees"},
    [SIM_VBIOS] = {"text"},
    [SIM_DRIVER] = {"text"},
    [SIM_NOISY] = {"factor"},
    [SIM_HEALTH] = {"facts"},
    [SIM_MEMORY_HELD] = {"bytes"},
    [SIM_WAIT] = {"seconds"},
    [SIM_HANG] = {"?after", "?tries"},
    [SIM_CRASH] = {"?after", "?tries"},
    [SIM_WEAK_REGION] = {"bytes", "share", "?ns", "?corrected"},
    [SIM_BIT_ERROR] = {"bytes", "?count"},
    [SIM_WRONG_SM] = {"sm", "share"},
    [SIM_FALLS_UNDER_LOAD] = {"share", "?seconds", "?reason"},
    [SIM_DEAD_LINK] = {"?peer"},
    [SIM_SLOW_LINK] = {"share", "?ns", "?peer"},
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
    {"tries", YAML_U32, offsetof(struct fault_text, fault.tries), .min = 1, .max = 100},
    {"reason", YAML_WORD, offsetof(struct fault_text, fault.reason), .words = reason_words},
    {"hidden", YAML_BOOL, offsetof(struct fault_text, fault.hidden)},
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

/* Keys that every fault of a node has, or every fault that is drawn, and the kind's own. */
static size_t list_fields(bool drawn, size_t kind, struct yaml_field fields[FIELDS_MAX])
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
    for (int i = 0; i < PARAMETERS_MAX && kind_parameters[kind][i]; i++)
        fields[count++] = parameter_field(kind_parameters[kind][i]);
    return count;
}

int sim_fault_read(const struct yaml_node *node, bool drawn, struct sim_fault *out_fault,
                   struct sim_fault_place *out_place, struct err *err)
{
    struct fault_text text = {.fault = {.count = 1, .peer = SIM_ANY_PEER}, .place = {.hits = 1}};
    struct yaml_field fields[FIELDS_MAX];
    const struct yaml_node *kind = yaml_get(node, "kind");
    if (yaml_expect(node, YAML_MAPPING, err))
        return -EINVAL;
    if (!kind)
        return yaml_error(node, err, "key \"kind\" is missing");
    size_t index;
    int rc = yaml_as_word(kind, kind_words, SIM_FAULT_COUNT, &index, err);
    if (rc)
        return rc;
    size_t count = list_fields(drawn, index, fields);
    rc = yaml_read_fields(node, fields, count, &text, err);
    if (rc)
        return rc;
    if (text.text)
        rc = sim_copy_text(node, "text", text.text, text.fault.text, err);
    if (rc)
        return rc;
    if (text.facts)
        rc = sim_health_read(text.facts, text.fault.health, err);
    if (rc)
        return rc;
    if (text.when)
        rc = sim_when_read(text.when, (int)index, &text.fault.when, err);
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
