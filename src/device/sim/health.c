/* What the driver of a simulated GPU reports about its health, and about its link under load. */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "base/mem.h"
#include "device/sim/gpu.h"
#include "inventory/throttle.h"

enum { CELSIUS_MAX = 200, BANKS_MAX = 640 };
static const double count_max = 0x1p53;

/* The time for which the counters of a GPU are watched, in seconds. */
static const double OPEN_S = 10;

static const struct health_row {
    const char *key;
    bool is_flag;
    double healthy, min, max; /* numbers */
} rows[SIM_HEALTH_COUNT] = {
    [SIM_TEMPERATURE] = {"temperature_c", false, 50, -CELSIUS_MAX, CELSIUS_MAX},
    [SIM_TEMPERATURE_MEMORY] = {"temperature_memory_c", false, 60, -CELSIUS_MAX, CELSIUS_MAX},
    [SIM_TEMPERATURE_MARGIN] = {"temperature_margin_c", false, 37, -CELSIUS_MAX, CELSIUS_MAX},
    [SIM_VIOLATION_POWER] = {"violation_power_ns"},
    [SIM_VIOLATION_THERMAL] = {"violation_thermal_ns"},
    [SIM_ECC_CORRECTED_VOLATILE] = {"ecc_corrected_volatile"},
    [SIM_ECC_UNCORRECTED_VOLATILE] = {"ecc_uncorrected_volatile"},
    [SIM_ECC_CORRECTED_SRAM] = {"ecc_corrected_sram"},
    [SIM_ECC_CORRECTED_DRAM] = {"ecc_corrected_dram"},
    [SIM_ECC_UNCORRECTED_SRAM] = {"ecc_uncorrected_sram"},
    [SIM_ECC_UNCORRECTED_DRAM] = {"ecc_uncorrected_dram"},
    [SIM_ECC_UNCORRECTED_NEW] = {"ecc_uncorrected_new"},
    [SIM_ECC_CORRECTED_NEW] = {"ecc_corrected_new"},
    [SIM_ECC_CORRECTED_PER_S] = {"ecc_corrected_per_s"},
    [SIM_RETIRED_PAGES_CORRECTED] = {"retired_pages_corrected"},
    [SIM_RETIRED_PAGES_UNCORRECTED] = {"retired_pages_uncorrected"},
    [SIM_RETIRED_PAGES_PENDING] = {"retired_pages_pending", true},
    [SIM_REMAPPED_ROWS_CORRECTED] = {"remapped_rows_corrected"},
    [SIM_REMAPPED_ROWS_UNCORRECTED] = {"remapped_rows_uncorrected"},
    [SIM_REMAP_PENDING] = {"remap_pending", true},
    [SIM_REMAP_FAILED] = {"remap_failed", true},
    [SIM_REMAP_BANKS_MAX] = {"remap_banks_max", false, BANKS_MAX},
    [SIM_REMAP_BANKS_HIGH] = {"remap_banks_high"},
    [SIM_REMAP_BANKS_PARTIAL] = {"remap_banks_partial"},
    [SIM_REMAP_BANKS_LOW] = {"remap_banks_low"},
    [SIM_REMAP_BANKS_NONE] = {"remap_banks_none"},
    [SIM_INFOROM_VALID] = {"inforom_valid", true, true},
    [SIM_PCIE_REPLAYS] = {"pcie_replays"},
    [SIM_PCIE_REPLAYS_NEW] = {"pcie_replays_new"},
    [SIM_PCIE_REPLAYS_PER_S] = {"pcie_replays_per_s"},
    [SIM_NVLINKS_ACTIVE] = {"nvlinks_active"},
    [SIM_NVLINKS_DOWN] = {"nvlinks_down"},
    [SIM_NVLINK_ERRORS] = {"nvlink_errors"},
    [SIM_NVLINK_ERRORS_NEW] = {"nvlink_errors_new"},
    [SIM_NVLINK_ERRORS_PER_S] = {"nvlink_errors_per_s"},
    [SIM_PROCESSES] = {"processes"},
};

const char *const sim_fabric_words[] = {
    [SIM_FABRIC_NONE] = "none",
    [SIM_FABRIC_NOT_STARTED] = "not_started",
    [SIM_FABRIC_IN_PROGRESS] = "in_progress",
    [SIM_FABRIC_COMPLETED] = "completed",
    [SIM_FABRIC_FAILED] = "failed",
    [SIM_FABRIC_DEGRADED] = "degraded",
    NULL,
};

void sim_health_defaults(double health[SIM_HEALTH_COUNT])
{
    for (size_t i = 0; i < SIM_HEALTH_COUNT; i++)
        health[i] = rows[i].healthy;
}

void sim_health_apply(const struct sim_health_value values[SIM_HEALTH_COUNT],
                      double health[SIM_HEALTH_COUNT])
{
    for (size_t i = 0; i < SIM_HEALTH_COUNT; i++)
        if (values[i].set)
            health[i] = values[i].value;
}

/* Errors come at this rate while the GPU is open. `counter` is that since the driver was loaded;
 * the two facts after it are of the survey alone. */
static void let_errors_come(double per_s, enum sim_health_fact counter,
                            enum sim_health_fact counter_new, enum sim_health_fact counter_per_s,
                            double health[SIM_HEALTH_COUNT])
{
    health[counter] += ceil(per_s * OPEN_S);
    health[counter_new] += ceil(per_s * OPEN_S);
    health[counter_per_s] += round(per_s);
}

static int report_xid(unsigned number, struct sim_model *model, struct err *err)
{
    if (model->xid_count == XID_LIST_MAX)
        return err_set(err, -EINVAL, "more than %d Xid events", XID_LIST_MAX);
    model->xids[model->xid_count++] = number;
    return 0;
}

int sim_health_fault(const struct sim_fault *fault, struct sim_model *model, struct err *err)
{
    double *health = model->health;
    switch (fault->kind) {
    case SIM_ECC_GROWTH:
        let_errors_come(fault->per_s, SIM_ECC_CORRECTED_VOLATILE, SIM_ECC_CORRECTED_NEW,
                        SIM_ECC_CORRECTED_PER_S, health);
        health[SIM_ECC_CORRECTED_DRAM] += ceil(fault->per_s * OPEN_S);
        break;
    case SIM_REPLAYS:
        let_errors_come(fault->per_s, SIM_PCIE_REPLAYS, SIM_PCIE_REPLAYS_NEW,
                        SIM_PCIE_REPLAYS_PER_S, health);
        break;
    case SIM_LINK_ERRORS:
        let_errors_come(fault->per_s, SIM_NVLINK_ERRORS, SIM_NVLINK_ERRORS_NEW,
                        SIM_NVLINK_ERRORS_PER_S, health);
        break;
    case SIM_FABRIC:
        model->fabric_set = true;
        model->fabric_state = fault->state;
        break;
    case SIM_HOT:
        health[SIM_TEMPERATURE] += round(fault->degrees);
        health[SIM_TEMPERATURE_MEMORY] += round(fault->degrees);
        health[SIM_TEMPERATURE_MARGIN] -= round(fault->degrees);
        break;
    default:
        return report_xid(fault->number, model, err);
    }
    return 0;
}

static int read_value(const struct health_row *row, const struct yaml_node *node,
                      struct sim_health_value *out_value, struct err *err)
{
    bool flag = false;
    double value = 0;
    int rc = row->is_flag
                 ? yaml_as_bool(node, &flag, err)
                 : yaml_as_f64(node, row->min, row->max > 0 ? row->max : count_max, &value, err);
    if (!rc && value != floor(value))
        rc = yaml_error(node, err, "expected a whole number");
    if (rc) {
        err_prefix(err, "%s", row->key);
        return rc;
    }
    *out_value = (struct sim_health_value){true, row->is_flag ? flag : value};
    return 0;
}

int sim_health_read(const struct yaml_node *node, struct sim_health_value health[SIM_HEALTH_COUNT],
                    struct err *err)
{
    const struct yaml_node *nodes[SIM_HEALTH_COUNT] = {0};
    struct yaml_field fields[SIM_HEALTH_COUNT];
    for (size_t i = 0; i < SIM_HEALTH_COUNT; i++)
        fields[i] = (struct yaml_field){rows[i].key, YAML_NODE, i * sizeof *nodes};
    int rc = yaml_read_fields(node, fields, SIM_HEALTH_COUNT, nodes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < SIM_HEALTH_COUNT; i++) {
        if (nodes[i])
            rc = read_value(&rows[i], nodes[i], &health[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int tell_throttle(const struct sim_model *model, struct facts *facts)
{
    struct strbuf text = {0};
    throttle_put_text(model->throttle_bits, &text);
    int rc = text.failed ? -ENOMEM : facts_set_text(facts, "throttle", text.data);
    strbuf_fini(&text);
    return rc;
}

static int tell_xids(const struct sim_model *model, struct facts *facts)
{
    struct strbuf text = {0};
    xid_put_list(&text, model->xids, model->xid_count);
    int rc = text.failed ? -ENOMEM : facts_set_text(facts, "xid", text.data);
    strbuf_fini(&text);
    return rc;
}

static int tell_fabric(const struct sim_model *model, struct facts *facts)
{
    bool has_links = model->health[SIM_NVLINKS_ACTIVE] > 0;
    int usual = has_links ? SIM_FABRIC_COMPLETED : SIM_FABRIC_NONE;
    int state = model->fabric_set ? model->fabric_state : usual;
    return state == SIM_FABRIC_NONE
               ? facts_set_unknown(facts, "fabric_state", "not supported")
               : facts_set_text(facts, "fabric_state", sim_fabric_words[state]);
}

static int tell_health(const struct sim_model *model, struct facts *facts)
{
    double draw = fmin(model->config.power_draw_w, model->config.power_limit_w);
    int rc = facts_set_int(facts, "power_draw_w", llround(draw));
    if (rc)
        return rc;
    rc = tell_throttle(model, facts);
    if (rc)
        return rc;
    rc = tell_xids(model, facts);
    if (rc)
        return rc;
    rc = tell_fabric(model, facts);
    if (rc)
        return rc;
    for (size_t i = 0; i < SIM_HEALTH_COUNT; i++) {
        rc = rows[i].is_flag ? facts_set_bool(facts, rows[i].key, model->health[i] > 0)
                             : facts_set_int(facts, rows[i].key, llround(model->health[i]));
        if (rc)
            return rc;
    }
    return 0;
}

int gpu_read_health(struct device *device, struct facts *config, struct facts *health,
                    struct err *err)
{
    const struct sim_model *model = &((const struct gpu *)device)->model;
    if (facts_set_int(config, "pcie_gen", model->config.pcie_gen) ||
        facts_set_int(config, "pcie_width", model->config.pcie_width) ||
        facts_set_bool(config, "pcie_under_load", true) || tell_health(model, health))
        return err_no_memory(err);
    return 0;
}
