/* GPUs that are new, gone or in another place since the baseline. */
#include "judge/moved_gpus.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/results.h"
#include "judge/place_findings.h"

static const char *shown(const char *text)
{
    return text ? text : "?";
}

/* Whether the fleet has this UUID or node. seen: per symbol. */
static bool has(const struct judge *judge, const bool *seen, const char *text)
{
    uint32_t symbol = text ? symbols_find(&judge->fleet.symbols, text) : 0;
    return symbol && seen[symbol];
}

/* The only GPU of the baseline with this die, if no other GPU of the baseline or of the fleet has
 * an equal fingerprint and its own UUID is not in the fleet; NULL: there is none, or it is not
 * certain. Dies of one layout cannot be told apart. */
static const struct inventory_gpu *same_die(const struct judge *judge, const bool *seen,
                                            uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct inventory *baseline = judge->basis.baseline;
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, FINGERPRINT_FACT);
    const char *text = column ? fleet_fact_text(fleet, column, gpu) : NULL;
    const struct inventory_gpu *found = NULL;
    struct fingerprint own, other;
    if (!text || fingerprint_read(text, &own))
        return NULL;
    for (size_t i = 0; i < fleet->count; i++) {
        const char *theirs = fleet_fact_text(fleet, column, (uint32_t)i);
        if (i != gpu && theirs && !fingerprint_read(theirs, &other) &&
            fingerprint_compare(&other, &own).match != FINGERPRINT_OTHER)
            return NULL;
    }
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        const char *theirs = facts_text(&baseline->gpus[i].board, FINGERPRINT_FACT);
        enum fingerprint_match match = theirs && !fingerprint_read(theirs, &other)
                                           ? fingerprint_compare(&other, &own).match
                                           : FINGERPRINT_OTHER;
        if (match == FINGERPRINT_OTHER)
            continue;
        if (found || match != FINGERPRINT_SAME || has(judge, seen, baseline->gpus[i].uuid))
            return NULL;
        found = &baseline->gpus[i];
    }
    return found;
}

static char *describe_new(const struct judge *judge, const bool *seen, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const char *uuid = fleet_text(fleet, fleet->gpus[gpu].uuid);
    const char *pci = fleet_text(fleet, fleet->gpus[gpu].pci);
    const struct inventory_gpu *old = same_die(judge, seen, gpu);
    return old ? str_format(
                     "new since the baseline: %s at %s; its fingerprint is that of %s, which "
                     "was in %s at %s: the same die may have another UUID",
                     shown(uuid), shown(pci), shown(old->uuid), shown(old->node), shown(old->pci))
               : str_format("new since the baseline: %s at %s", shown(uuid), shown(pci));
}

static int report_present(const struct judge *judge, const struct inventory_lookup *lookup,
                          const bool *seen, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    int rc = 0;
    for (size_t i = 0; i < fleet->count && !rc; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        const char *uuid = fleet_text(fleet, gpu->uuid), *node = fleet_text(fleet, gpu->node);
        const char *pci = fleet_text(fleet, gpu->pci);
        const struct inventory_gpu *then = inventory_find_gpu(lookup, uuid);
        if (!then)
            rc = place_findings_add(inventory, node, describe_new(judge, seen, fleet->order[i]),
                                    uuid);
        else if (!str_equal(then->node, node) || !str_equal(then->pci, pci))
            rc = place_findings_add(
                inventory, node,
                str_format("moved since the baseline: %s at %s, was in %s at %s", shown(uuid),
                           shown(pci), shown(then->node), shown(then->pci)),
                uuid);
    }
    return rc;
}

/* A survey of some nodes says nothing about the others of the baseline. */
static bool is_elsewhere(const struct judge *judge, const bool *seen,
                         const struct inventory_gpu *gpu)
{
    return gpu->uuid && !has(judge, seen, gpu->uuid) && !has(judge, seen, gpu->node);
}

static int report_gone(const struct judge *judge, const bool *seen, struct inventory *inventory)
{
    const struct inventory *baseline = judge->basis.baseline;
    size_t elsewhere = 0;
    int rc = 0;
    for (size_t i = 0; i < baseline->gpu_count; i++)
        elsewhere += is_elsewhere(judge, seen, &baseline->gpus[i]);
    bool part = 2 * elsewhere > baseline->gpu_count;
    if (part)
        rc = place_findings_add(
            inventory, NULL,
            str_format("%zu of %zu GPUs of the baseline are on nodes that were not surveyed",
                       elsewhere, baseline->gpu_count),
            NULL);
    for (size_t i = 0; i < baseline->gpu_count && !rc; i++) {
        const struct inventory_gpu *gpu = &baseline->gpus[i];
        if (gpu->uuid && !has(judge, seen, gpu->uuid) && !(part && is_elsewhere(judge, seen, gpu)))
            rc = place_findings_add(
                inventory, gpu->node,
                str_format("gone since the baseline: %s at %s", gpu->uuid, shown(gpu->pci)), NULL);
    }
    return rc;
}

int moved_gpus_report(const struct judge *judge, struct inventory *inventory)
{
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline)
        return 0;
    bool *seen = mem_array(judge->fleet.symbols.count + 1, sizeof *seen);
    int rc = seen ? inventory_lookup_create(judge->basis.baseline, &lookup) : -ENOMEM;
    for (size_t i = 0; i < judge->fleet.count && !rc; i++)
        seen[judge->fleet.gpus[i].uuid] = seen[judge->fleet.gpus[i].node] = true;
    if (!rc)
        rc = report_present(judge, lookup, seen, inventory);
    if (!rc)
        rc = report_gone(judge, seen, inventory);
    inventory_lookup_destroy(lookup);
    free(seen);
    return rc;
}
