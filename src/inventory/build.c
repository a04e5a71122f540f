/* Parts of an inventory that a survey and a merge fill in the same way. */
#include "inventory/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

int inventory_set_head(struct inventory *inventory, const char *version, const char *backend,
                       char *const *command, size_t command_count)
{
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(0, stamp);
    inventory->command = mem_array(command_count, sizeof *inventory->command);
    if (!inventory->command || str_copy_to(&inventory->version, version) ||
        str_copy_to(&inventory->generated, stamp) || str_copy_to(&inventory->backend, backend))
        return -ENOMEM;
    for (size_t i = 0; i < command_count; i++) {
        char *word = str_copy(i ? command[i] : str_last_part(command[i]));
        if (!word)
            return -ENOMEM;
        inventory->command[inventory->command_count++] = word;
    }
    return 0;
}

int inventory_add_bare(struct inventory *inventory, const char *const *nodes, size_t count)
{
    inventory->node_findings = mem_array(count, sizeof *inventory->node_findings);
    if (!inventory->node_findings)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct inventory_node *node = &inventory->node_findings[inventory->node_finding_count++];
        if (str_copy_to(&node->node, nodes[i]) || str_copy_to(&node->finding, inventory_bare_node))
            return -ENOMEM;
    }
    return 0;
}

int inventory_add_unknown(struct inventory *inventory, const struct inventory_unmeasured *entry)
{
    size_t count = inventory->unmeasured_count;
    struct inventory_unmeasured *grown =
        realloc(inventory->unmeasured, (count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    inventory->unmeasured = grown;
    grown[count] = (struct inventory_unmeasured){
        .rank = entry->rank, .status = entry->status, .gpus_given = entry->gpus_given};
    inventory->unmeasured_count++;
    inventory->total_unmeasured = (uint32_t)inventory->unmeasured_count;
    return str_copy_to(&grown[count].node, entry->node) ||
                   str_copy_to(&grown[count].reason, entry->reason)
               ? -ENOMEM
               : 0;
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
        qsort(&inventory->unmeasured[known], inventory->unmeasured_count - known,
              sizeof *inventory->unmeasured, unknown_order);
}
