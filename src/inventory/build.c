/* Parts of an inventory that a survey and a merge fill in the same way. */
#include "inventory/build.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

void inventory_set_head(struct inventory *inventory, const char *version, const char *backend,
                        char *const *command, size_t command_count)
{
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(0, stamp);
    inventory->version = str_copy(version);
    inventory->generated = str_copy(stamp);
    inventory->backend = str_copy(backend);
    inventory->command = mem_array(command_count, sizeof *inventory->command);
    for (size_t i = 0; i < command_count; i++)
        inventory->command[inventory->command_count++] =
            str_copy(i ? command[i] : str_last_part(command[i]));
}

void inventory_add_bare(struct inventory *inventory, const char *const *nodes, size_t count)
{
    inventory->node_findings = mem_array(count, sizeof *inventory->node_findings);
    for (size_t i = 0; i < count; i++)
        inventory->node_findings[inventory->node_finding_count++] =
            (struct inventory_node){.node = str_copy(nodes[i]),
                                    .finding = str_copy(inventory_bare_node),
                                    .verdict = VERDICT_UNKNOWN,
                                    .loss = NAN,
                                    .action = ACTION_TELL};
}

void inventory_add_unknown(struct inventory *inventory, const struct inventory_unmeasured *entry)
{
    size_t count = inventory->unmeasured_count++;
    inventory->unmeasured =
        mem_resize(inventory->unmeasured, count, count + 1, sizeof *inventory->unmeasured);
    inventory->unmeasured[count] =
        (struct inventory_unmeasured){.node = str_copy(entry->node),
                                      .rank = entry->rank,
                                      .status = entry->status,
                                      .reason = str_copy(entry->reason),
                                      .gpus_allocated = entry->gpus_allocated};
    inventory->total_unmeasured = (uint32_t)inventory->unmeasured_count;
}

static int unknown_order(const void *a, const void *b)
{
    const struct inventory_unmeasured *left = a, *right = b;
    int order = str_order(left->node, right->node);
    return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

void inventory_settle_unknown(struct inventory *inventory, size_t known)
{
    if (inventory->unmeasured_count > known)
        sort_stable(&inventory->unmeasured[known], inventory->unmeasured_count - known,
                    sizeof *inventory->unmeasured, unknown_order);
}
