/* The entries of divided models: the GPUs form two groups, and the judge cannot tell which group is
 * right. */
#include "judge/divided_models.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/figure_groups.h"
#include "judge/place_findings.h"
#include "judge/yardstick.h"

/* Nodes are named only if they are at most this many. */
enum { NODES_MAX = 4 };

/* ", all on n01, n02": the nodes of the GPUs, if they are few. */
static void put_nodes(struct strbuf *out, const struct fleet *fleet, const uint32_t *gpus, size_t n)
{
    uint32_t nodes[NODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = fleet->gpus[gpus[i]].node; /* gpus is sorted by node */
        if (!node || (count && nodes[count - 1] == node))
            continue;
        if (count == NODES_MAX)
            return;
        nodes[count++] = node;
    }
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s%s", i ? ", " : ", all on ", fleet_text(fleet, nodes[i]));
}

/* Adds one entry that lists these GPUs. Takes over the text, also on failure. */
static int add(const struct fleet *fleet, struct strbuf *text, const uint32_t *gpus, size_t n,
               struct inventory *inventory)
{
    char **uuids = mem_array(n, sizeof *uuids);
    if (text->failed)
        strbuf_fini(text);
    int rc = place_findings_add(inventory, NULL, text->data, NULL);
    if (rc || !uuids) {
        free(uuids);
        return -ENOMEM;
    }
    struct inventory_node *entry = &inventory->node_findings[inventory->node_finding_count - 1];
    free(entry->gpus);
    entry->gpus = uuids;
    for (size_t i = 0; i < n && !rc; i++) {
        rc = str_copy_to(&uuids[entry->gpu_count], fleet_text(fleet, fleet->gpus[gpus[i]].uuid));
        entry->gpu_count += uuids[entry->gpu_count] != NULL;
    }
    return rc;
}

/* One figure of a model at equal clock: the GPUs of the worse group, and the median of both. */
struct groups {
    uint32_t *worse;
    size_t worse_count, other_count;
    double *worse_values, *other_values;
};

static int groups_init(struct groups *groups, size_t count)
{
    groups->worse = mem_array(count, sizeof *groups->worse);
    groups->worse_values = mem_array(count, sizeof *groups->worse_values);
    groups->other_values = mem_array(count, sizeof *groups->other_values);
    return groups->worse && groups->worse_values && groups->other_values ? 0 : -ENOMEM;
}

static void groups_fini(struct groups *groups)
{
    free(groups->worse);
    free(groups->worse_values);
    free(groups->other_values);
}

static void gather(const struct judge *judge, const struct group *group, size_t metric,
                   struct groups *out)
{
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]))
            continue;
        double value = cell->value * figure_groups_factor(judge, gpu, metric);
        if (figure_groups_has(judge, gpu, metric)) {
            out->worse[out->worse_count] = gpu;
            out->worse_values[out->worse_count++] = value;
        } else
            out->other_values[out->other_count++] = value;
    }
}

static int report_figure(const struct judge *judge, const struct group *group, size_t metric,
                         const struct groups *groups, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    const struct cell *cell = fleet_number(judge->columns[metric], groups->worse[0], false);
    const char *unit = cell->unit ? fleet_text(fleet, cell->unit) : "";
    double worse = robust_median(groups->worse_values, groups->worse_count);
    double usual = robust_median(groups->other_values, groups->other_count);
    struct strbuf text = {0};
    strbuf_printf(&text, "%zu of %zu GPUs of %s: %s about ", groups->worse_count,
                  groups->worse_count + groups->other_count, group->id,
                  judge->basis.config->metrics[metric].metric);
    fact_text_put_number(&text, worse, unit);
    strbuf_puts(&text, ", the others ");
    fact_text_put_number(&text, usual, unit);
    strbuf_printf(&text, " (%+.1f %%)", 100 * (worse / usual - 1));
    put_nodes(&text, fleet, groups->worse, groups->worse_count);
    strbuf_puts(&text, ": the model is divided, unexplained: nobody is accused");
    return add(fleet, &text, groups->worse, groups->worse_count, inventory);
}

int divided_models_report(const struct judge *judge, const struct group *group, size_t metric,
                          struct inventory *inventory, bool *out_divided)
{
    struct groups groups = {0};
    *out_divided = false;
    for (size_t i = 0; i < group->count && !*out_divided; i++)
        *out_divided = figure_groups_has(judge, group->members[i], metric);
    if (!*out_divided)
        return 0;
    int rc = groups_init(&groups, group->count);
    if (!rc) {
        gather(judge, group, metric, &groups);
        rc = report_figure(judge, group, metric, &groups, inventory);
    }
    groups_fini(&groups);
    return rc;
}

int divided_models_report_fact(const struct judge *judge, const struct group *group,
                               enum fact_set set, const struct fact_column *column,
                               const uint32_t *gpus, size_t count, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    const struct usual *usual = fleet_usual(fleet, group, set, column);
    const struct fact most = fleet_fact(fleet, column, usual->code);
    const struct fact other = fleet_fact(fleet, column, column->codes[gpus[0]]);
    struct strbuf text = {0};
    bool alike = true;
    for (size_t i = 0; i < count; i++)
        alike = alike && column->codes[gpus[i]] == column->codes[gpus[0]];
    fact_text_put_key(&text, most.key);
    strbuf_printf(&text, " of %s: ", group->id);
    fact_text_put_value(&text, &most);
    strbuf_printf(&text, " on %u of %u GPUs, ", usual->votes, usual->known);
    fact_text_put_value(&text, &other);
    strbuf_printf(&text, "%s on %zu", alike ? "" : " or another", count);
    put_nodes(&text, fleet, gpus, count);
    strbuf_puts(&text, ": the model is divided, nobody is accused");
    return add(fleet, &text, gpus, count, inventory);
}
