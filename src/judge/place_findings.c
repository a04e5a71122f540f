/* Findings of a place: if most GPUs of a model, node or slot have the same finding, it is listed
 * once. */
#include "judge/place_findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/same_fault.h"

enum scope { SCOPE_MODEL, SCOPE_NODE, SCOPE_PCI, SCOPE_INDEX, SCOPE_COUNT };

/* The smallest number of GPUs with a finding of the place. */
static const size_t least[SCOPE_COUNT] = {3, 2, 3, 3};

/* An accusation and its place in one scope. */
struct placed_finding {
    uint32_t finding, group, place, metric;
    uint32_t explained_by; /* of the finding */
    uint32_t cause;        /* symbol; of figures: without the numbers in it */
};

/* The number of judged GPUs of a group in a place. */
struct place_size {
    uint32_t group, place, count;
};

static uint32_t place_of(const struct fleet_gpu *gpu, enum scope scope)
{
    switch (scope) {
    case SCOPE_NODE:
        return gpu->node;
    case SCOPE_PCI:
        return gpu->pci;
    case SCOPE_INDEX:
        return gpu->index < 0 ? 0 : (uint32_t)gpu->index + 1;
    default:
        return 1;
    }
}

static int by_place(const void *left, const void *right)
{
    const struct place_size *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Counts the judged GPUs of each group in each place; sorted. 0 or -ENOMEM. */
static int count_gpus(const struct fleet *fleet, enum scope scope, struct place_size **out_sizes,
                      size_t *out_count)
{
    struct place_size *sizes = mem_array(fleet->count, sizeof *sizes);
    size_t count = 0, kept = 0;
    if (!sizes)
        return -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[i];
        if (fleet_judged(gpu) && gpu->group != GROUP_NONE)
            sizes[count++] = (struct place_size){gpu->group, place_of(gpu, scope), 1};
    }
    if (count)
        qsort(sizes, count, sizeof *sizes, by_place);
    for (size_t i = 0; i < count; i++) {
        if (kept && by_place(&sizes[kept - 1], &sizes[i]) == 0)
            sizes[kept - 1].count++;
        else
            sizes[kept++] = sizes[i];
    }
    *out_sizes = sizes;
    *out_count = kept;
    return 0;
}

static size_t gpus_at(const struct place_size *sizes, size_t count, uint32_t group, uint32_t place)
{
    const struct place_size wanted = {.group = group, .place = place};
    const struct place_size *found = bsearch(&wanted, sizes, count, sizeof *sizes, by_place);
    return found ? found->count : 0;
}

static int by_entry(const void *left, const void *right)
{
    const struct placed_finding *a = left, *b = right;
    const uint32_t keys[][2] = {{a->group, b->group},   {a->place, b->place},
                                {a->metric, b->metric}, {a->explained_by, b->explained_by},
                                {a->cause, b->cause},   {a->finding, b->finding}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool same_place(const struct placed_finding *a, const struct placed_finding *b)
{
    return a->group == b->group && a->place == b->place && a->metric == b->metric &&
           a->explained_by == b->explained_by && a->cause == b->cause;
}

static int collect(struct judge *judge, enum scope scope, struct placed_finding *entries,
                   size_t *out_count)
{
    struct fleet *fleet = &judge->fleet;
    size_t count = 0;
    for (size_t i = 0; i < judge->findings.count; i++) {
        const struct finding *finding = &judge->findings.items[i];
        const struct fleet_gpu *gpu = &fleet->gpus[finding->gpu];
        uint32_t place = place_of(gpu, scope), cause = 0;
        if (!finding->accused || finding->shared || finding->dropped || !place || !gpu->measured ||
            gpu->group == GROUP_NONE || !gpu->uuid) /* entries list GPUs by UUID */
            continue;
        int rc = finding->rule < 0 ? symbols_text(&fleet->symbols, finding->cause, &cause)
                                   : same_fault_cause(&fleet->symbols, finding->cause, &cause);
        if (rc)
            return rc;
        entries[count++] = (struct placed_finding){
            (uint32_t)i, gpu->group, place, finding->metric, finding->explained_by, cause};
    }
    if (count)
        qsort(entries, count, sizeof *entries, by_entry);
    *out_count = count;
    return 0;
}

static int by_deviation(const void *left, const void *right, void *user)
{
    const struct judge *judge = user;
    const struct finding *a =
        &judge->findings.items[((const struct placed_finding *)left)->finding];
    const struct finding *b =
        &judge->findings.items[((const struct placed_finding *)right)->finding];
    double da = isnan(a->deviation) ? 0 : a->deviation;
    double db = isnan(b->deviation) ? 0 : b->deviation;
    if (da != db)
        return da < db ? -1 : 1;
    return str_order(fleet_text(&judge->fleet, judge->fleet.gpus[a->gpu].uuid),
                     fleet_text(&judge->fleet, judge->fleet.gpus[b->gpu].uuid));
}

static void put_scope(struct strbuf *out, const struct fleet *fleet, enum scope scope,
                      const struct placed_finding *entry, size_t count, size_t all)
{
    const char *model = fleet->groups[entry->group].id;
    if (scope == SCOPE_PCI)
        strbuf_printf(out, "slot %s, on %zu of %zu nodes of %s: ", fleet_text(fleet, entry->place),
                      count, all, model);
    else if (scope == SCOPE_INDEX)
        strbuf_printf(out, "GPU %u, on %zu of %zu nodes of %s: ", entry->place - 1, count, all,
                      model);
    else
        strbuf_printf(out, "%zu of %zu GPUs%s%s: ", count, all, scope == SCOPE_MODEL ? " of " : "",
                      scope == SCOPE_MODEL ? model : "");
}

static char *describe(const struct judge *judge, enum scope scope,
                      const struct placed_finding *entry, const struct finding *finding,
                      size_t count, size_t all)
{
    const struct fleet *fleet = &judge->fleet;
    const char *unit = finding->unit ? fleet_text(fleet, finding->unit) : "";
    struct strbuf text = {0};
    put_scope(&text, fleet, scope, entry, count, all);
    strbuf_puts(&text, fleet_text(fleet, finding->metric));
    if (finding->rule >= 0) {
        strbuf_puts(&text, " ");
        fact_text_put_number(&text, finding->value, unit);
        strbuf_puts(&text, ", expected ");
        fact_text_put_number(&text, finding->expected, unit);
        strbuf_printf(&text, " (%+.1f %%)", 100 * finding->deviation);
    }
    strbuf_printf(&text, ": %s", finding->cause);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* Keeps the figures whose loss is between half and twice the median loss, from entries[0] on, and
 * returns their number. The entries are sorted by deviation. Facts are all kept. */
static size_t keep_alike(const struct judge *judge, struct placed_finding *entries, size_t count)
{
    const struct finding *middle = &judge->findings.items[entries[count / 2].finding];
    size_t kept = 0;
    if (middle->rule < 0)
        return count;
    for (size_t i = 0; i < count; i++) {
        double ratio = judge->findings.items[entries[i].finding].deviation / middle->deviation;
        if (ratio >= 0.5 && ratio <= 2)
            entries[kept++] = entries[i];
    }
    return kept;
}

/* Keeps the GPUs that have the same fault, from entries[0] on. 0 or -ENOMEM. */
static int keep_same_fault(const struct judge *judge, struct placed_finding *entries,
                           size_t *in_out_count)
{
    size_t count = *in_out_count, kept = 0;
    const struct finding *first = count ? &judge->findings.items[entries[0].finding] : NULL;
    if (!first || first->rule < 0)
        return 0;
    uint32_t *gpus = mem_array(count, sizeof *gpus);
    bool *other = mem_array(count, sizeof *other);
    int rc = gpus && other ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !rc; i++)
        gpus[i] = judge->findings.items[entries[i].finding].gpu;
    if (!rc)
        rc = same_fault_find_others(judge, (size_t)first->rule, gpus, count, other);
    for (size_t i = 0; i < count && !rc; i++)
        if (!other[i])
            entries[kept++] = entries[i];
    *in_out_count = rc ? count : kept;
    free(gpus);
    free(other);
    return rc;
}

/* Fills one entry of the inventory with the findings entries[0 .. count - 1] and marks them as
 * shared. */
static int fill_entry(struct judge *judge, enum scope scope, struct placed_finding *entries,
                      size_t count, size_t all, struct inventory_node *out)
{
    const struct fleet *fleet = &judge->fleet;
    const struct finding *middle = &judge->findings.items[entries[count / 2].finding];
    *out = (struct inventory_node){.accused = true, .kind = middle->kind};
    out->gpus = mem_array(count, sizeof *out->gpus);
    out->finding = describe(judge, scope, &entries[0], middle, count, all);
    if (!out->gpus || !out->finding ||
        (scope == SCOPE_NODE && str_copy_to(&out->node, fleet_text(fleet, entries[0].place))))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct finding *finding = &judge->findings.items[entries[i].finding];
        finding->shared = true;
        if (str_copy_to(&out->gpus[i], fleet_text(fleet, fleet->gpus[finding->gpu].uuid)))
            return -ENOMEM;
        out->gpu_count++;
    }
    return 0;
}

/* Adds an empty entry to the inventory's nodes. NULL: out of memory. */
static struct inventory_node *add_entry(struct inventory *inventory)
{
    struct inventory_node *grown =
        realloc(inventory->node_findings, (inventory->node_finding_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    inventory->node_findings = grown;
    struct inventory_node *entry = &grown[inventory->node_finding_count++];
    *entry = (struct inventory_node){0};
    return entry;
}

static int collapse(struct judge *judge, enum scope scope, struct placed_finding *entries,
                    struct inventory *inventory)
{
    struct place_size *sizes = NULL;
    size_t size_count = 0, count = 0;
    int rc = count_gpus(&judge->fleet, scope, &sizes, &size_count);
    if (rc)
        return rc;
    rc = collect(judge, scope, entries, &count);
    for (size_t i = 0, end; i < count && !rc; i = end) {
        for (end = i + 1; end < count && same_place(&entries[i], &entries[end]);)
            end++;
        size_t all = gpus_at(sizes, size_count, entries[i].group, entries[i].place);
        qsort_r(&entries[i], end - i, sizeof *entries, by_deviation, judge);
        size_t alike = keep_alike(judge, &entries[i], end - i);
        rc = keep_same_fault(judge, &entries[i], &alike);
        if (rc || alike < least[scope] || 3 * alike < 2 * all)
            continue;
        struct inventory_node *entry = add_entry(inventory);
        rc = entry ? fill_entry(judge, scope, &entries[i], alike, all, entry) : -ENOMEM;
    }
    free(sizes);
    return rc;
}

static int by_text(const void *left, const void *right)
{
    const struct inventory_node *a = left, *b = right;
    int order = str_order(a->node, b->node);
    return order ? order : str_order(a->finding, b->finding);
}

int place_findings_collapse(struct judge *judge, struct inventory *inventory)
{
    struct placed_finding *entries = mem_array(judge->findings.count, sizeof *entries);
    size_t first = inventory->node_finding_count;
    int rc = entries ? 0 : -ENOMEM;
    for (int scope = 0; scope < SCOPE_COUNT && !rc; scope++)
        rc = collapse(judge, (enum scope)scope, entries, inventory);
    free(entries);
    if (rc)
        return rc;
    if (inventory->node_finding_count > first)
        qsort(inventory->node_findings + first, inventory->node_finding_count - first,
              sizeof *inventory->node_findings, by_text);
    return 0;
}

int place_findings_add(struct inventory *inventory, const char *node, char *finding,
                       const char *uuid)
{
    struct inventory_node *entry = finding ? add_entry(inventory) : NULL;
    if (!entry) {
        free(finding);
        return -ENOMEM;
    }
    entry->finding = finding;
    entry->gpus = mem_array(1, sizeof *entry->gpus);
    if (!entry->gpus || str_copy_to(&entry->node, node))
        return -ENOMEM;
    if (uuid && str_copy_to(&entry->gpus[0], uuid))
        return -ENOMEM;
    entry->gpu_count = uuid ? 1 : 0;
    return 0;
}
