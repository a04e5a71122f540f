/* The nodes of a survey. */
#include "survey/root/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* One sighting of a node. The boot id distinguishes machines of the same name. */
struct node_entry {
    char *name;
    char *boot_id; /* NULL: simulated */
    bool empty;    /* no GPU was seen there */
};

static int add(struct node_list *list, const char *name, const char *boot_id, bool empty,
               struct err *err)
{
    struct node_entry *grown =
        mem_grow(list->entries, &list->capacity, list->count + 1, sizeof *list->entries);
    if (!grown)
        return err_no_memory(err);
    list->entries = grown;
    struct node_entry entry = {.empty = empty};
    if (str_copy_to(&entry.name, name) || str_copy_to(&entry.boot_id, boot_id)) {
        free(entry.name);
        return err_no_memory(err);
    }
    grown[list->count++] = entry;
    return 0;
}

int nodes_add(struct node_list *list, const struct announce *announce, bool simulated,
              struct err *err)
{
    const char *boot_id = simulated ? NULL : announce->boot_id;
    int rc = 0;
    for (size_t i = 0; i < announce->gpu_count && !rc; i++)
        if (!i || !str_equal(announce->gpus[i].node, announce->gpus[i - 1].node))
            rc = add(list, announce->gpus[i].node, boot_id, false, err);
    for (size_t i = 0; i < announce->bare_count && !rc; i++)
        rc = add(list, announce->bare_nodes[i], boot_id, true, err);
    for (size_t i = 0; i < announce->dead_count && !rc; i++)
        rc = add(list, announce->dead[i].node, boot_id, false, err);
    if (!rc && !simulated && !announce->gpu_count)
        rc = add(list, announce->host, boot_id, announce->listing != LISTING_FAILED, err);
    return rc;
}

static int entry_order(const void *a, const void *b)
{
    const struct node_entry *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : str_order(left->boot_id, right->boot_id);
}

int nodes_settle(struct node_list *list, struct err *err)
{
    list->bare = mem_array(list->count, sizeof *list->bare);
    if (!list->bare)
        return err_no_memory(err);
    if (list->count)
        qsort(list->entries, list->count, sizeof *list->entries, entry_order);
    for (size_t i = 0; i < list->count;) {
        const struct node_entry *first = &list->entries[i];
        bool empty = true;
        for (; i < list->count && entry_order(first, &list->entries[i]) == 0; i++)
            empty &= list->entries[i].empty;
        list->node_count++;
        if (empty)
            list->bare[list->bare_count++] = first->name;
    }
    return 0;
}

void nodes_fini(struct node_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].name);
        free(list->entries[i].boot_id);
    }
    free(list->entries);
    free(list->bare);
    memset(list, 0, sizeof *list);
}
