/* Rules that need no other GPU: errors, pending repairs, a link that is slower than its slot. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/xid.h"
#include "judge/held_clock.h"
#include "judge/stages.h"

/* A value above 0, or true, is a finding. `#` in the words is replaced by the value. */
static const struct rule {
    const char *key;
    bool accuses;
    enum inventory_kind kind;
    const char *words;
} rules[] = {
    {"ecc_uncorrected_volatile", true, KIND_FAILING,
     "uncorrectable ECC errors since the driver was loaded: #"},
    {"ecc_uncorrected_new", true, KIND_FAILING, "uncorrectable ECC errors during the survey: #"},
    {"remap_pending", true, KIND_FAILING, "a row remap is pending: the GPU needs a reset"},
    {"remap_failed", true, KIND_FAILING, "a row remap failed: the memory cannot be repaired"},
    {"retired_pages_pending", true, KIND_FAILING,
     "page retirement is pending: the GPU needs a reset"},
    {"remap_banks_none", true, KIND_DEGRADED, "banks of memory without spare rows: #"},
    {"remap_banks_low", true, KIND_DEGRADED, "banks of memory with few spare rows left: #"},
    {"ecc_uncorrected_dram", false, KIND_FAILING,
     "uncorrectable ECC errors of memory in its life: #"},
    {"ecc_uncorrected_sram", false, KIND_FAILING,
     "uncorrectable ECC errors of caches in its life: #"},
    {"nvlink_errors", false, KIND_FAILING, "errors on NVLinks: #"},
};

static char *put_value(const char *words, double number)
{
    struct strbuf text = {0};
    for (; *words; words++) {
        if (*words == '#')
            strbuf_printf(&text, "%.0f", number);
        else
            strbuf_append(&text, words, 1);
    }
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static int apply_rule(struct judge *judge, const struct rule *rule)
{
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, rule->key);
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", rule->key);
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        double value = fleet_fact_number(&judge->fleet, column, gpu);
        if (value > 0 && findings_add_rule(judge, gpu, metric, rule->accuses, rule->kind, value,
                                           put_value(rule->words, value)))
            return -ENOMEM;
    }
    return 0;
}

static int check_throttle(struct judge *judge)
{
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, "throttle");
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        const char *list = fleet_fact_text(&judge->fleet, column, gpu);
        size_t k = 0;
        while (k < HELD_CLOCK_REASONS &&
               !(held_clock_reasons[k].wrong && held_clock_has(list, &held_clock_reasons[k])))
            k++;
        if (k < HELD_CLOCK_REASONS &&
            findings_add_rule(judge, gpu, "health.throttle", true, held_clock_reasons[k].kind, NAN,
                              str_copy(held_clock_reasons[k].words)))
            return -ENOMEM;
    }
    return 0;
}

/* A link that is slower under load than GPU and slot allow. */
static int check_link(struct judge *judge, const char *key, const char *max_key, const char *words)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, key);
    const struct fact_column *limits = fleet_facts(fleet, SET_HARDWARE, max_key);
    const struct fact_column *loaded = fleet_facts(fleet, SET_CONFIG, "pcie_under_load");
    char metric[64];
    snprintf(metric, sizeof metric, "config.%s", key);
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        double value = fleet_fact_number(fleet, column, gpu);
        double limit = fleet_fact_number(fleet, limits, gpu);
        bool idle = fleet_fact_number(fleet, loaded, gpu) == 0; /* idle links are slow */
        if (!(value < limit) || !(value > 0) || idle)
            continue;
        if (findings_add_rule(
                judge, gpu, metric, true, KIND_DEGRADED, value,
                str_format("PCIe link runs %s%.0f of %s%.0f", words, value, words, limit)))
            return -ENOMEM;
        struct finding *finding = &judge->findings.items[judge->findings.count - 1];
        finding->expected = limit;
        finding->deviation = value / limit - 1;
    }
    return 0;
}

/* A mode that changes with the next reset: the change was requested and is not in effect yet. */
static int check_pending(struct judge *judge, const char *key, const char *pending_key)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *now = fleet_facts(fleet, SET_CONFIG, key);
    const struct fact_column *pending = fleet_facts(fleet, SET_CONFIG, pending_key);
    char metric[64];
    snprintf(metric, sizeof metric, "config.%s", pending_key);
    for (size_t i = 0; i < fleet->count && now && pending; i++) {
        uint32_t gpu = fleet->order[i];
        if (!fleet_known(fleet, now->codes[gpu]) || !fleet_known(fleet, pending->codes[gpu]) ||
            now->codes[gpu] == pending->codes[gpu])
            continue;
        if (findings_add_rule(judge, gpu, metric, false, KIND_MISCONFIGURED, NAN,
                              str_copy("the mode changes with the next reset")))
            return -ENOMEM;
    }
    return 0;
}

/* Boards have NVLinks that are not connected, and on cards without a bridge none is. So a GPU is
 * accused if more links are down than on most of its model or, without a majority, if some are down
 * and some active. */
static int check_nvlinks(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *down = fleet_facts(fleet, SET_HEALTH, "nvlinks_down");
    const struct fact_column *active = fleet_facts(fleet, SET_HEALTH, "nvlinks_active");
    for (size_t i = 0; i < fleet->count && down; i++) {
        uint32_t gpu = fleet->order[i], group = fleet->gpus[gpu].group;
        if (group == GROUP_NONE)
            continue;
        const struct usual *usual = fleet_usual(fleet, &fleet->groups[group], SET_HEALTH, down);
        double value = fleet_fact_number(fleet, down, gpu);
        bool wrong = usual_is_clear(usual) ? value > fleet_code_number(fleet, usual->code)
                                           : value > 0 && fleet_fact_number(fleet, active, gpu) > 0;
        if (wrong && findings_add_rule(judge, gpu, "health.nvlinks_down", true, KIND_FAILING, value,
                                       put_value("NVLinks down: #", value)))
            return -ENOMEM;
    }
    return 0;
}

/* A GPU that is not registered with the fabric cannot use its NVLinks. Where no GPU of the model
 * is, the site does not use the fabric. */
static int check_unregistered(struct judge *judge, uint32_t gpu, const struct fact_column *column,
                              const char *state)
{
    const struct fleet *fleet = &judge->fleet;
    if (fleet->gpus[gpu].group == GROUP_NONE)
        return 0;
    const struct usual *usual =
        fleet_usual(fleet, &fleet->groups[fleet->gpus[gpu].group], SET_HEALTH, column);
    const struct fact other = fleet_fact(fleet, column, usual->code);
    if (other.kind != FACT_TEXT || strcmp(other.text, "completed") != 0)
        return 0;
    return findings_add_rule(judge, gpu, "health.fabric_state", usual_is_clear(usual), KIND_FAILING,
                             NAN,
                             str_format("registration with the NVLink fabric: %s; completed on %u "
                                        "of %u of its model",
                                        state, usual->votes, usual->known));
}

static int check_fabric(struct judge *judge)
{
    static const struct {
        const char *state;
        enum inventory_kind kind;
        const char *words;
    } wrong[] = {
        {"failed", KIND_FAILING, "the registration with the NVLink fabric failed"},
        {"degraded", KIND_DEGRADED, "the NVLink fabric gives this GPU less bandwidth"},
    };
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, "fabric_state");
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        const char *state = fleet_fact_text(&judge->fleet, column, gpu);
        if (!state || strcmp(state, "completed") == 0)
            continue;
        size_t k = 0;
        while (k < COUNT_OF(wrong) && strcmp(wrong[k].state, state) != 0)
            k++;
        int rc = k < COUNT_OF(wrong)
                     ? findings_add_rule(judge, gpu, "health.fabric_state", true, wrong[k].kind,
                                         NAN, str_copy(wrong[k].words))
                     : check_unregistered(judge, gpu, column, state);
        if (rc)
            return rc;
    }
    return 0;
}

/* The worst of the events: accusations first, then the most severe kind, then the first one. */
static const struct xid *worst_xid(const unsigned *numbers, size_t count, size_t *out_at)
{
    const struct xid *worst = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct xid *xid = xid_find(numbers[i]);
        if (worst && (worst->accuses != xid->accuses ? worst->accuses : worst->kind <= xid->kind))
            continue;
        worst = xid;
        *out_at = i;
    }
    return worst;
}

static char *xid_words(const unsigned *numbers, size_t count, size_t worst)
{
    struct strbuf text = {0};
    strbuf_printf(&text, "Xid %u during the survey: %s", numbers[worst],
                  xid_find(numbers[worst])->meaning);
    const char *before = "; also Xid ";
    for (size_t i = 0; i < count; i++) {
        if (i == worst)
            continue;
        strbuf_printf(&text, "%s%u", before, numbers[i]);
        before = ", ";
    }
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static int check_xids(struct judge *judge)
{
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, "xid");
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        unsigned numbers[XID_LIST_MAX];
        size_t count = xid_parse_list(fleet_fact_text(&judge->fleet, column, gpu), numbers), at = 0;
        const struct xid *worst = worst_xid(numbers, count, &at);
        if (worst && findings_add_rule(judge, gpu, "health.xid", worst->accuses, worst->kind,
                                       numbers[at], xid_words(numbers, count, at)))
            return -ENOMEM;
    }
    return 0;
}

static int check_inforom(struct judge *judge)
{
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, "inforom_valid");
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        if (fleet_fact_number(&judge->fleet, column, gpu) == 0 &&
            findings_add_rule(judge, gpu, "health.inforom_valid", true, KIND_FAILING, NAN,
                              str_copy("the InfoROM is corrupt")))
            return -ENOMEM;
    }
    return 0;
}

int judge_rules(struct judge *judge)
{
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (apply_rule(judge, &rules[i]))
            return -ENOMEM;
    return check_inforom(judge) || check_nvlinks(judge) || check_fabric(judge) ||
                   check_xids(judge) || check_throttle(judge) ||
                   check_link(judge, "pcie_gen", "pcie_gen_max", "generation ") ||
                   check_link(judge, "pcie_width", "pcie_width_max", "x") ||
                   check_pending(judge, "ecc", "ecc_pending") ||
                   check_pending(judge, "mig", "mig_pending")
               ? -ENOMEM
               : 0;
}
