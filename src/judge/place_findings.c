/* Findings that belong to a place: a node, a slot or a whole model is told once, not GPU by GPU. */
#include "judge/place_findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"

enum scope { SCOPE_MODEL, SCOPE_NODE, SCOPE_PCI, SCOPE_INDEX, SCOPE_COUNT };

/* The least number of GPUs that make a common finding. */
static const size_t least[SCOPE_COUNT] = {3, 2, 3, 3};

/* An accusation and where it belongs in one scope. */
struct placed_finding {
    uint32_t finding, group, place, metric;
    uint32_t cause; /* symbol, of facts; what explains it, of measured figures */
};

/* How many judged GPUs a place of a group has. */
struct census {
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

static int by_census(const void *left, const void *right)
{
    const struct census *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Judged GPUs by group and place, sorted. 0 or -ENOMEM. */
static int take_census(const struct fleet *fleet, enum scope scope, struct census **out_census,
                       size_t *out_count)
{
    struct census *census = mem_array(fleet->count, sizeof *census);
    size_t count = 0, kept = 0;
    if (!census)
        return -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[i];
        if (fleet_judged(gpu) && gpu->group != GROUP_NONE)
            census[count++] = (struct census){gpu->group, place_of(gpu, scope), 1};
    }
    if (count)
        qsort(census, count, sizeof *census, by_census);
    for (size_t i = 0; i < count; i++) {
        if (kept && by_census(&census[kept - 1], &census[i]) == 0)
            census[kept - 1].count++;
        else
            census[kept++] = census[i];
    }
    *out_census = census;
    *out_count = kept;
    return 0;
}

static size_t inhabitants(const struct census *census, size_t count, uint32_t group, uint32_t place)
{
    const struct census wanted = {.group = group, .place = place};
    const struct census *found = bsearch(&wanted, census, count, sizeof *census, by_census);
    return found ? found->count : 0;
}

static int by_entry(const void *left, const void *right)
{
    const struct placed_finding *a = left, *b = right;
    const uint32_t keys[][2] = {{a->group, b->group},
                                {a->place, b->place},
                                {a->metric, b->metric},
                                {a->cause, b->cause},
                                {a->finding, b->finding}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool same_place(const struct placed_finding *a, const struct placed_finding *b)
{
    return a->group == b->group && a->place == b->place && a->metric == b->metric &&
           a->cause == b->cause;
}

static int collect(struct judge *judge, enum scope scope, struct placed_finding *entries,
                   size_t *out_count)
{
    struct fleet *fleet = &judge->fleet;
    size_t count = 0;
    for (size_t i = 0; i < judge->findings.count; i++) {
        const struct finding *finding = &judge->findings.items[i];
        const struct fleet_gpu *gpu = &fleet->gpus[finding->gpu];
        uint32_t place = place_of(gpu, scope), cause = finding->explained_by;
        if (!finding->accused || finding->shared || finding->dropped || !place ||
            gpu->group == GROUP_NONE || !gpu->uuid) /* a list of UUIDs could not name it */
            continue;
        if (finding->rule < 0 && symbols_text(&fleet->symbols, finding->cause, &cause))
            return -ENOMEM;
        entries[count++] =
            (struct placed_finding){(uint32_t)i, gpu->group, place, finding->metric, cause};
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

/* Keeps of measured figures, which are sorted, those about as bad as the middle one; gives their
 * number, from entries[0] on. */
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

/* One entry of the inventory for findings entries[0 .. count - 1], which are then shared. */
static int tell(struct judge *judge, enum scope scope, struct placed_finding *entries, size_t count,
                size_t all, struct inventory_node *out)
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

static int collapse(struct judge *judge, enum scope scope, struct placed_finding *entries,
                    struct inventory *inventory)
{
    struct census *census = NULL;
    size_t census_count = 0, count = 0;
    int rc = take_census(&judge->fleet, scope, &census, &census_count);
    if (!rc)
        rc = collect(judge, scope, entries, &count);
    for (size_t i = 0, end; i < count && !rc; i = end) {
        for (end = i + 1; end < count && same_place(&entries[i], &entries[end]);)
            end++;
        size_t all = inhabitants(census, census_count, entries[i].group, entries[i].place);
        qsort_r(&entries[i], end - i, sizeof *entries, by_deviation, judge);
        size_t alike = keep_alike(judge, &entries[i], end - i);
        if (alike < least[scope] || 3 * alike < 2 * all)
            continue;
        struct inventory_node *grown =
            realloc(inventory->node_findings, (inventory->node_finding_count + 1) * sizeof *grown);
        if (!grown) {
            rc = -ENOMEM;
            break;
        }
        inventory->node_findings = grown;
        struct inventory_node *node = &grown[inventory->node_finding_count++];
        *node = (struct inventory_node){0};
        rc = tell(judge, scope, &entries[i], alike, all, node);
    }
    free(census);
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
    if (!rc && inventory->node_finding_count > first)
        qsort(inventory->node_findings + first, inventory->node_finding_count - first,
              sizeof *inventory->node_findings, by_text);
    free(entries);
    return rc;
}

int place_findings_add(struct inventory *inventory, const char *node, char *finding,
                       const char *uuid)
{
    struct inventory_node *grown =
        realloc(inventory->node_findings, (inventory->node_finding_count + 1) * sizeof *grown);
    if (!grown || !finding) {
        inventory->node_findings = grown ? grown : inventory->node_findings;
        free(finding);
        return -ENOMEM;
    }
    inventory->node_findings = grown;
    struct inventory_node *entry = &grown[inventory->node_finding_count++];
    *entry = (struct inventory_node){.finding = finding};
    entry->gpus = mem_array(1, sizeof *entry->gpus);
    if (!entry->gpus || str_copy_to(&entry->node, node))
        return -ENOMEM;
    if (uuid && str_copy_to(&entry->gpus[0], uuid))
        return -ENOMEM;
    entry->gpu_count = uuid ? 1 : 0;
    return 0;
}
