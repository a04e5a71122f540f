/* Dies and SMs that are not those of the baseline, and GPUs that are new, gone or in another place.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/results.h"
#include "inventory/sm_rates.h"
#include "judge/evidence/stages.h"
#include "judge/verdict.h"

int judge_sm_rates(const struct fleet *fleet, uint32_t gpu, struct sm_rates *out_rates)
{
    struct facts board = {0};
    fleet_put_facts(fleet, SET_BOARD, sm_rates_keys, SM_RATES_KEYS, gpu, &board);
    int rc = sm_rates_read(&board, out_rates);
    facts_fini(&board);
    return rc;
}

/* -EINVAL if it is not known. */
static int fleet_fingerprint(const struct fleet *fleet, uint32_t gpu, struct fingerprint *out)
{
    struct facts board = {0};
    fleet_put_facts(fleet, SET_BOARD, fingerprint_keys, FINGERPRINT_KEYS, gpu, &board);
    int rc = fingerprint_read(&board, out);
    facts_fini(&board);
    return rc;
}

/* A GPU, and what it was in the baseline. */
struct board_change {
    uint32_t gpu;
    const struct inventory_gpu *then;
};

/* Calls `compare` for every judged GPU that has the fact now and had it in the baseline. */
static void compare_boards(struct judge *judge, const char *fact,
                           void (*compare)(struct judge *judge, const struct board_change *change))
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, fact);
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline || !column)
        return;
    const struct inventory_gpu **then = judge_find_in_baseline(judge, &lookup);
    for (size_t i = 0; i < fleet->count; i++) {
        struct board_change change = {.gpu = fleet->order[i]};
        change.then = then[change.gpu];
        if (change.then && facts_get(&change.then->board, fact) && column->codes[change.gpu] &&
            fleet_judged(&fleet->gpus[change.gpu]))
            compare(judge, &change);
    }
    inventory_lookup_destroy(lookup);
    free(then);
}

/* The group whose SMs moved, and no others; -1 if there is none. Another die has SMs of all groups
 * at other places. */
static int find_moved_group(const struct fleet *fleet, uint32_t gpu,
                            const struct fingerprint_score *score, size_t sms)
{
    uint16_t moved[FINGERPRINT_SMS_MAX];
    size_t count = 0;
    struct sm_rates rates;
    if (judge_sm_rates(fleet, gpu, &rates) || rates.sms != sms)
        return -1;
    for (size_t i = 0; i < sms; i++)
        if (score->moved_sms[i])
            moved[count++] = (uint16_t)i;
    return sm_rates_group(&rates, moved, count);
}

/* A swapped board works, and the change may be intended. */
static void compare_dies(struct judge *judge, const struct board_change *change)
{
    struct fingerprint before, now;
    if (fingerprint_read(&change->then->board, &before) ||
        fleet_fingerprint(&judge->fleet, change->gpu, &now))
        return;
    struct fingerprint_score score = fingerprint_compare(&before, &now);
    if (score.match != FINGERPRINT_OTHER && score.match != FINGERPRINT_CHANGED)
        return;
    int group = find_moved_group(&judge->fleet, change->gpu, &score, now.sms);
    const char *stamp = judge_baseline_stamp(judge);
    const char *where = score.worst_cycles > 0 ? "farther from" : "nearer to";
    struct finding finding =
        finding_new(judge, change->gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE, EVIDENCE_CHANGE);
    finding.unit = judge_symbol(judge, "cycles");
    finding.verdict = VERDICT_MISCONFIGURED;
    char *cause =
        group >= 0 ? str_format("the %zu SMs of group %d are up to %.1f cycles %s L2 than they "
                                "were, the others are not "
                                "(baseline of %s)",
                                score.moved, group, fabs(score.worst_cycles), where, stamp)
        : score.match == FINGERPRINT_OTHER
            ? str_format(
                  "this UUID is not the die it was: %zu of %zu SMs are at another distance from "
                  "L2, "
                  "%.1f cycles root mean square where the same die gives %.1f (baseline of %s)",
                  score.moved, (size_t)now.sms, score.distance_cycles, score.noise_cycles, stamp)
            : str_format("SM %zu is %.1f cycles %s L2 than it was (baseline of %s)", score.worst_sm,
                         fabs(score.worst_cycles), where, stamp);
    findings_add(judge, finding, cause);
}

void stage_dies(struct judge *judge)
{
    compare_boards(judge, FINGERPRINT_FACT, compare_dies);
}

/* SMs, and groups of SMs, that read L2 slower than in the baseline while the others do not. Another
 * die has SMs of its own. */
static void compare_sm_rates(struct judge *judge, const struct board_change *change)
{
    struct sm_rates before, now;
    if (change->then->status == GPU_BUSY ||
        issue_find(judge, change->gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE) ||
        sm_rates_read(&change->then->board, &before) ||
        judge_sm_rates(&judge->fleet, change->gpu, &now))
        return;
    struct sm_loss loss = sm_rates_slower(&before, &now);
    if (!loss.count)
        return;
    struct strbuf text = {0};
    sm_loss_put(&text, &loss);
    strbuf_printf(&text, " than in the baseline of %s, the others do not",
                  judge_baseline_stamp(judge));
    findings_add(
        judge,
        finding_new(judge, change->gpu, "board." SM_RATES_FACT, BASIS_BASELINE, EVIDENCE_CHANGE),
        text.data);
}

void stage_sm_rates(struct judge *judge)
{
    compare_boards(judge, SM_RATES_FACT, compare_sm_rates);
}

static const char *text_or_unknown(const char *text)
{
    return text ? text : "?";
}

/* Whether the fleet has this UUID or node. seen: per symbol. */
static bool fleet_has(const struct judge *judge, const bool *seen, const char *text)
{
    uint32_t symbol = text ? symbols_find(&judge->fleet.symbols, text) : 0;
    return symbol && seen[symbol];
}

/* The only GPU of the baseline with this die, if no other GPU of the baseline or of the fleet has
 * an equal fingerprint and its own UUID is not in the fleet; NULL: there is none, or it is not
 * certain. Dies of one layout cannot be told apart. */
static const struct inventory_gpu *find_same_die(const struct judge *judge, const bool *seen,
                                                 uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct inventory *baseline = judge->basis.baseline;
    const struct inventory_gpu *found = NULL;
    struct fingerprint own, other;
    if (fleet_fingerprint(fleet, gpu, &own))
        return NULL;
    for (size_t i = 0; i < fleet->count; i++)
        if (i != gpu && !fleet_fingerprint(fleet, (uint32_t)i, &other) &&
            fingerprint_compare(&other, &own).match != FINGERPRINT_OTHER)
            return NULL;
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        enum fingerprint_match match = fingerprint_read(&baseline->gpus[i].board, &other)
                                           ? FINGERPRINT_OTHER
                                           : fingerprint_compare(&other, &own).match;
        if (match == FINGERPRINT_OTHER)
            continue;
        if (found || match != FINGERPRINT_SAME || fleet_has(judge, seen, baseline->gpus[i].uuid))
            return NULL;
        found = &baseline->gpus[i];
    }
    return found;
}

static void moved_add(struct inventory *inventory, const char *node, const char *uuid, char *text)
{
    struct inventory_node *entry = verdict_add_remark(inventory, text);
    entry->node = str_copy(node);
    if (uuid)
        verdict_add_place_gpu(entry, uuid);
}

static void report_present(const struct judge *judge, const struct inventory_lookup *lookup,
                           const bool *seen, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        const char *uuid = fleet_text(fleet, gpu->uuid), *node = fleet_text(fleet, gpu->node);
        const char *pci = fleet_text(fleet, gpu->pci);
        const char *shown = text_or_unknown(uuid), *at = text_or_unknown(pci);
        const struct inventory_gpu *then = inventory_find_gpu(lookup, uuid);
        const struct inventory_gpu *old = then ? NULL : find_same_die(judge, seen, fleet->order[i]);
        if (old)
            moved_add(inventory, node, uuid,
                      str_format("new since the baseline: %s at %s; its fingerprint is that of %s, "
                                 "which was in %s at %s: the same die may have another UUID",
                                 shown, at, text_or_unknown(old->uuid), text_or_unknown(old->node),
                                 text_or_unknown(old->pci)));
        else if (!then)
            moved_add(inventory, node, uuid,
                      str_format("new since the baseline: %s at %s", shown, at));
        else if (!str_equal(then->node, node) || !str_equal(then->pci, pci))
            moved_add(inventory, node, uuid,
                      str_format("moved since the baseline: %s at %s, was in %s at %s", shown, at,
                                 text_or_unknown(then->node), text_or_unknown(then->pci)));
    }
}

/* A survey of some nodes says nothing about the others of the baseline. */
static bool is_elsewhere(const struct judge *judge, const bool *seen,
                         const struct inventory_gpu *gpu)
{
    return gpu->uuid && !fleet_has(judge, seen, gpu->uuid) && !fleet_has(judge, seen, gpu->node);
}

static void report_gone(const struct judge *judge, const bool *seen, struct inventory *inventory)
{
    const struct inventory *baseline = judge->basis.baseline;
    size_t elsewhere = 0;
    for (size_t i = 0; i < baseline->gpu_count; i++)
        elsewhere += is_elsewhere(judge, seen, &baseline->gpus[i]);
    bool part = 2 * elsewhere > baseline->gpu_count;
    if (part)
        moved_add(inventory, NULL, NULL,
                  str_format("%zu of %zu GPUs of the baseline are on nodes that were not surveyed",
                             elsewhere, baseline->gpu_count));
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        const struct inventory_gpu *gpu = &baseline->gpus[i];
        if (gpu->uuid && !fleet_has(judge, seen, gpu->uuid) &&
            !(part && is_elsewhere(judge, seen, gpu)))
            moved_add(inventory, gpu->node, NULL,
                      str_format("gone since the baseline: %s at %s", gpu->uuid,
                                 text_or_unknown(gpu->pci)));
    }
}

void stage_moved_gpus(struct judge *judge, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline)
        return;
    bool *seen = mem_array(fleet->symbols.count + 1, sizeof *seen);
    lookup = inventory_lookup_create(judge->basis.baseline);
    for (size_t i = 0; i < fleet->count; i++)
        seen[fleet->gpus[i].uuid] = seen[fleet->gpus[i].node] = true;
    report_present(judge, lookup, seen, inventory);
    report_gone(judge, seen, inventory);
    inventory_lookup_destroy(lookup);
    free(seen);
}
