/* Rules that need no other GPU: errors, pending repairs, a link that is slower than its slot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/fabric.h"
#include "inventory/xid.h"
#include "judge/conditions.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"

/* A fact of `health` above 0, or true, is a finding if its row has a rule. */
static void health_rule_apply(struct judge *judge, const struct health_row *row)
{
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, row->key);
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", row->key);
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        double value = fleet_fact_number(&judge->fleet, column, gpu);
        if (!(value > 0))
            continue;
        findings_add_rule(
            judge, gpu, metric, row->rule == RULE_FAULT ? EVIDENCE_FAULT : EVIDENCE_HINT,
            row->verdict, value,
            row->finding ? str_copy(row->finding) : str_format("%s: %.0f", row->words, value));
    }
}

/* How many GPUs of the GPU's node are of its model. fleet.order goes by node. */
static size_t gpus_beside(const struct fleet *fleet, size_t at)
{
    const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[at]];
    size_t first = at, end = at + 1, count = 0;
    while (first && fleet->gpus[fleet->order[first - 1]].node == gpu->node)
        first--;
    while (end < fleet->count && fleet->gpus[fleet->order[end]].node == gpu->node)
        end++;
    for (size_t i = first; i < end; i++)
        count += fleet->gpus[fleet->order[i]].group == gpu->group;
    return count;
}

/* Boards for NVLink (SXM, or with a fabric behind the links) have their links connected, cards
 * perhaps no bridge. A GPU that is passed through, or alone in its node, may have none. */
static bool needs_its_links(const struct fleet *fleet, size_t at)
{
    uint32_t gpu = fleet->order[at];
    const char *name = fleet_text(fleet, fleet->gpus[gpu].name);
    const char *kind =
        fleet_fact_text(fleet, fleet_facts(fleet, SET_CONFIG, "virtualization"), gpu);
    const char *state = fleet_fact_text(
        fleet, fleet_facts(fleet, SET_HEALTH, health_key(HEALTH_FABRIC_STATE)), gpu);
    return (state || strstr(name, "SXM")) && (!kind || strcmp(kind, "none") == 0) &&
           gpus_beside(fleet, at) > 1;
}

/* Boards have NVLinks that are not connected, and on cards without a bridge none is. So a GPU is
 * accused if more links are down than on most of its model or, without a majority, if some are down
 * and some active; and if all are down that it needs. Where no GPU of a model on several nodes has
 * one, the site does not use them: watched. */
static void rule_check_nvlinks(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *down =
        fleet_facts(fleet, SET_HEALTH, health_key(HEALTH_NVLINKS_DOWN));
    const struct fact_column *active =
        fleet_facts(fleet, SET_HEALTH, health_key(HEALTH_NVLINKS_ACTIVE));
    for (size_t i = 0; i < fleet->count && down; i++) {
        uint32_t gpu = fleet->order[i], group = fleet->gpus[gpu].group;
        if (group == GROUP_NONE)
            continue;
        const struct usual *usual = fleet_usual(fleet, &fleet->groups[group], SET_HEALTH, down);
        double value = fleet_fact_number(fleet, down, gpu);
        double working = fleet_fact_number(fleet, active, gpu);
        bool more = usual_is_clear(usual) ? value > fleet_code_number(fleet, usual->code)
                                          : value > 0 && working > 0;
        bool none = value > 0 && working == 0 && needs_its_links(fleet, i);
        bool unused = !more && fleet->groups[group].count > gpus_beside(fleet, i);
        if (more || none)
            findings_add_rule(judge, gpu, "health.nvlinks_down",
                              unused ? EVIDENCE_HINT : EVIDENCE_FAULT, VERDICT_FAILING, value,
                              str_format("NVLinks down: %.0f%s", value, none ? ", all" : ""));
    }
}

/* A GPU that is not registered with the fabric cannot use its NVLinks. Where no GPU of the model
 * is, the site does not use the fabric. */
static void rule_check_unregistered(struct judge *judge, uint32_t gpu,
                                    const struct fact_column *column, const char *state)
{
    const struct fleet *fleet = &judge->fleet;
    if (fleet->gpus[gpu].group == GROUP_NONE)
        return;
    const struct usual *usual =
        fleet_usual(fleet, &fleet->groups[fleet->gpus[gpu].group], SET_HEALTH, column);
    const struct fact other = fleet_fact(fleet, column, usual->code);
    if (other.kind == FACT_TEXT && strcmp(other.text, "completed") == 0)
        findings_add_rule(judge, gpu, "health.fabric_state",
                          usual_is_clear(usual) ? EVIDENCE_MINORITY : EVIDENCE_NO_MAJORITY,
                          VERDICT_FAILING, NAN,
                          str_format("registration with the NVLink fabric: %s; completed on %u "
                                     "of %u of its model",
                                     state, usual->votes, usual->known));
}

static void rule_check_fabric(struct judge *judge)
{
    const struct fact_column *column =
        fleet_facts(&judge->fleet, SET_HEALTH, health_key(HEALTH_FABRIC_STATE));
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        const char *state = fleet_fact_text(&judge->fleet, column, gpu);
        if (!state || strcmp(state, "completed") == 0)
            continue;
        const struct fabric_fault *fault = fabric_worst(state);
        if (strcmp(state, "failed") == 0)
            findings_add_rule(judge, gpu, "health.fabric_state", EVIDENCE_FAULT, VERDICT_FAILING,
                              NAN, str_copy("the registration with the NVLink fabric failed"));
        else if (fault)
            findings_add_rule(judge, gpu, "health.fabric_state",
                              fault->accuses ? EVIDENCE_FAULT : EVIDENCE_HINT, fault->verdict, NAN,
                              strchr(state, ',') ? str_format("%s (%s)", fault->finding, state)
                                                 : str_copy(fault->finding));
        else
            rule_check_unregistered(judge, gpu, column, state);
    }
}

/* GPUs of a node reach each other by NVLink only inside one clique of one cluster. */
static void rule_check_cliques(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_HEALTH, FABRIC_CLIQUE);
    for (size_t first = 0, end; first < fleet->count && column; first = end) {
        uint32_t usual = 0, node = fleet->gpus[fleet->order[first]].node;
        size_t most = 0, known = 0;
        for (end = first; end < fleet->count && fleet->gpus[fleet->order[end]].node == node;
             end++) {
            uint32_t code = column->codes[fleet->order[end]];
            size_t same = 0;
            for (size_t k = first; k <= end; k++)
                same += column->codes[fleet->order[k]] == code;
            if (!fleet_known(fleet, code))
                continue;
            known++;
            if (same > most) {
                most = same;
                usual = code;
            }
        }
        bool clear = most >= 3 && 3 * most >= 2 * known;
        for (size_t k = first; k < end && most < known; k++) {
            uint32_t gpu = fleet->order[k];
            const char *clique = fleet_fact_text(fleet, column, gpu);
            if (!clique || column->codes[gpu] == usual)
                continue;
            findings_add_rule(
                judge, gpu, "health." FABRIC_CLIQUE,
                clear ? EVIDENCE_MINORITY : EVIDENCE_NO_MAJORITY, VERDICT_MISCONFIGURED, NAN,
                str_format("NVLink clique %s, %zu of %zu GPUs of its node are in %s", clique, most,
                           known, fleet_fact(fleet, column, usual).text));
        }
    }
}

/* The number of the worst event: accusations first, then the most severe kind, then the first. */
static size_t worst_xid(const unsigned *numbers, size_t count)
{
    size_t worst = 0;
    for (size_t i = 1; i < count; i++) {
        const struct xid *a = xid_find(numbers[worst]), *b = xid_find(numbers[i]);
        if (a->accuses != b->accuses ? b->accuses : b->verdict < a->verdict)
            worst = i;
    }
    return worst;
}

static void rule_check_xids(struct judge *judge)
{
    const struct fact_column *column =
        fleet_facts(&judge->fleet, SET_HEALTH, health_key(HEALTH_XID));
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        unsigned numbers[XID_LIST_MAX];
        size_t count = xid_parse_list(fleet_fact_text(&judge->fleet, column, gpu), numbers);
        if (!count)
            continue;
        size_t worst = worst_xid(numbers, count);
        const struct xid *xid = xid_find(numbers[worst]);
        struct strbuf text = {0};
        strbuf_printf(&text, "Xid %u during the survey: %s", numbers[worst], xid->meaning);
        const char *before = "; also Xid ";
        for (size_t k = 0; k < count; k++) {
            if (k == worst)
                continue;
            strbuf_printf(&text, "%s%u", before, numbers[k]);
            before = ", ";
        }
        findings_add_rule(judge, gpu, "health.xid", xid->accuses ? EVIDENCE_FAULT : EVIDENCE_HINT,
                          xid->verdict, numbers[worst], text.data);
    }
}

static void rule_check_inforom(struct judge *judge)
{
    const struct fact_column *column =
        fleet_facts(&judge->fleet, SET_HEALTH, health_key(HEALTH_INFOROM_VALID));
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        if (fleet_fact_number(&judge->fleet, column, gpu) == 0)
            findings_add_rule(judge, gpu, "health.inforom_valid", EVIDENCE_FAULT, VERDICT_FAILING,
                              NAN, str_copy("the InfoROM is corrupt"));
    }
}

static void rule_check_throttle(struct judge *judge)
{
    const struct fact_column *column =
        fleet_facts(&judge->fleet, SET_HEALTH, health_key(HEALTH_THROTTLE));
    for (size_t i = 0; i < judge->fleet.count && column; i++) {
        uint32_t gpu = judge->fleet.order[i];
        const char *list = fleet_fact_text(&judge->fleet, column, gpu);
        const struct throttle_reason *reason = throttle_reasons;
        while (reason->name && !(reason->wrong && str_list_has(list, reason->name)))
            reason++;
        if (reason->name)
            findings_add_rule(judge, gpu, "health.throttle", EVIDENCE_FAULT, reason->verdict, NAN,
                              str_copy(reason->words));
    }
}

/* A link that is slower under load than GPU and slot allow. */
static void rule_check_link(struct judge *judge, const char *key, const char *max_key,
                            const char *words)
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
        struct finding finding = finding_new(judge, gpu, metric, BASIS_RULE, EVIDENCE_FAULT);
        finding_compare(&finding, value, limit);
        findings_add(judge, finding,
                     str_format("PCIe link runs %s%.0f of %s%.0f", words, value, words, limit));
    }
}

/* A mode that changes with the next reset: the change was requested and is not in effect yet. */
static void rule_check_pending(struct judge *judge, const char *key, const char *pending_key)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *now = fleet_facts(fleet, SET_CONFIG, key);
    const struct fact_column *pending = fleet_facts(fleet, SET_CONFIG, pending_key);
    char metric[64];
    snprintf(metric, sizeof metric, "config.%s", pending_key);
    for (size_t i = 0; i < fleet->count && now && pending; i++) {
        uint32_t gpu = fleet->order[i];
        if (fleet_known(fleet, now->codes[gpu]) && fleet_known(fleet, pending->codes[gpu]) &&
            now->codes[gpu] != pending->codes[gpu])
            findings_add_rule(judge, gpu, metric, EVIDENCE_HINT, VERDICT_MISCONFIGURED, NAN,
                              str_copy("the mode changes with the next reset"));
    }
}

void stage_rules(struct judge *judge)
{
    for (size_t i = 0; i < HEALTH_FACTS; i++)
        if (catalogue_health[i].rule)
            health_rule_apply(judge, &catalogue_health[i]);
    rule_check_inforom(judge);
    rule_check_nvlinks(judge);
    rule_check_fabric(judge);
    rule_check_cliques(judge);
    rule_check_xids(judge);
    rule_check_throttle(judge);
    rule_check_link(judge, "pcie_gen", "pcie_gen_max", "generation ");
    rule_check_link(judge, "pcie_width", "pcie_width_max", "x");
    rule_check_pending(judge, "ecc", "ecc_pending");
    rule_check_pending(judge, "mig", "mig_pending");
}
