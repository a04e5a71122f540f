/* GPUs that are new, gone or in another place since the baseline. */
#include "judge/moved_gpus.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/place_findings.h"

static const char *shown(const char *text)
{
    return text ? text : "?";
}

static int report_present(const struct judge *judge, const struct inventory_lookup *lookup,
                          struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    int rc = 0;
    for (size_t i = 0; i < fleet->count && !rc; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        const char *uuid = fleet_text(fleet, gpu->uuid), *node = fleet_text(fleet, gpu->node);
        const char *pci = fleet_text(fleet, gpu->pci);
        const struct inventory_gpu *then = inventory_find_gpu(lookup, uuid);
        if (!then)
            rc = place_findings_add(
                inventory, node,
                str_format("new since the baseline: %s at %s", shown(uuid), shown(pci)), uuid);
        else if (!str_equal(then->node, node) || !str_equal(then->pci, pci))
            rc = place_findings_add(
                inventory, node,
                str_format("moved since the baseline: %s at %s, was in %s at %s", shown(uuid),
                           shown(pci), shown(then->node), shown(then->pci)),
                uuid);
    }
    return rc;
}

static int report_gone(const struct judge *judge, struct inventory *inventory)
{
    const struct inventory *baseline = judge->basis.baseline;
    uint32_t *seen = mem_array(judge->fleet.symbols.count, sizeof *seen);
    int rc = seen ? 0 : -ENOMEM;
    for (size_t i = 0; i < judge->fleet.count && !rc; i++)
        seen[judge->fleet.gpus[i].uuid] = 1;
    for (size_t i = 0; i < baseline->gpu_count && !rc; i++) {
        const struct inventory_gpu *gpu = &baseline->gpus[i];
        uint32_t symbol = symbols_find(&judge->fleet.symbols, gpu->uuid);
        if (gpu->uuid && !(symbol && seen[symbol]))
            rc = place_findings_add(
                inventory, gpu->node,
                str_format("gone since the baseline: %s at %s", gpu->uuid, shown(gpu->pci)), NULL);
    }
    free(seen);
    return rc;
}

int moved_gpus_report(const struct judge *judge, struct inventory *inventory)
{
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline)
        return 0;
    if (inventory_lookup_create(judge->basis.baseline, &lookup))
        return -ENOMEM;
    int rc = report_present(judge, lookup, inventory);
    if (!rc)
        rc = report_gone(judge, inventory);
    inventory_lookup_destroy(lookup);
    return rc;
}
