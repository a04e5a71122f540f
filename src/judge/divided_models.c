/* Divided models: the GPUs form two groups, and the judge cannot tell which group is right. */
#include "judge/divided_models.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/place_findings.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

/* Each group has at least this share of the GPUs. GPUs of a smaller group are outliers. */
static const double GROUP_SHARE = 0.25;

/* The medians of the groups differ by at least APART + APART_FEW / n standard deviations of the
 * wider group, and at most the share BETWEEN of the GPUs lies in the middle third between the
 * medians. */
static const double APART = 6, APART_FEW = 24, BETWEEN = 0.05;

/* Nodes are named only if they are at most this many. */
enum { NODES_MAX = 4 };

/* The figures of a model at equal clock, cut at one value into two groups. */
struct cut {
    size_t n, below; /* GPUs; GPUs of the lower group */
    uint32_t *gpus;
    double *values, *low, *high, *scratch;
    double center[2];
};

static int cut_init(struct cut *cut, size_t count)
{
    cut->gpus = mem_array(count, sizeof *cut->gpus);
    cut->values = mem_array(count, sizeof *cut->values);
    cut->low = mem_array(count, sizeof *cut->low);
    cut->high = mem_array(count, sizeof *cut->high);
    cut->scratch = mem_array(count, sizeof *cut->scratch);
    return cut->gpus && cut->values && cut->low && cut->high && cut->scratch ? 0 : -ENOMEM;
}

static void cut_fini(struct cut *cut)
{
    free(cut->gpus);
    free(cut->values);
    free(cut->low);
    free(cut->high);
    free(cut->scratch);
}

static bool is_accused(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct findings *findings = &judge->findings;
    for (uint32_t at = findings->last[gpu]; at; at = findings->items[at - 1].previous)
        if (findings->items[at - 1].accused && findings->items[at - 1].rule == (int32_t)metric)
            return true;
    return false;
}

static void gather(const struct judge *judge, const struct group *group, size_t metric,
                   struct cut *cut)
{
    const struct yardstick *y = yardstick_of(judge, group, metric);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]) || is_accused(judge, gpu, metric))
            continue;
        cut->gpus[cut->n] = gpu;
        cut->values[cut->n++] = cell->value * judge_common_factor(judge, y, gpu, metric);
    }
}

static void divide(struct cut *cut, double at)
{
    size_t above = 0;
    cut->below = 0;
    for (size_t i = 0; i < cut->n; i++) {
        if (cut->values[i] < at)
            cut->low[cut->below++] = cut->values[i];
        else
            cut->high[above++] = cut->values[i];
    }
    cut->center[0] = robust_median(cut->low, cut->below);
    cut->center[1] = robust_median(cut->high, above);
}

/* Finds two centres, each the median of the values that are nearer to it than to the other. */
static bool find_groups(struct cut *cut)
{
    enum { ROUNDS = 4 };
    for (size_t i = 0; i < cut->n; i++)
        cut->scratch[i] = cut->values[i];
    double middle = robust_quantile(cut->scratch, cut->n, GROUP_SHARE) / 2;
    middle += robust_quantile(cut->scratch, cut->n, 1 - GROUP_SHARE) / 2;
    for (int round = 0; round < ROUNDS; round++) {
        divide(cut, middle);
        middle = (cut->center[0] + cut->center[1]) / 2;
    }
    size_t smaller = cut->below < cut->n - cut->below ? cut->below : cut->n - cut->below;
    return smaller >= DIVIDED_MIN && (double)smaller >= GROUP_SHARE * (double)cut->n;
}

static bool are_apart(struct cut *cut, const struct judge_metric *rule)
{
    double gap = cut->center[1] - cut->center[0];
    double low_sigma = robust_fit(cut->low, cut->below, cut->scratch).sigma;
    double sigma = fmax(low_sigma, robust_fit(cut->high, cut->n - cut->below, cut->scratch).sigma);
    size_t between = 0;
    for (size_t i = 0; i < cut->n; i++)
        between += fabs(cut->values[i] - cut->center[0] - gap / 2) < gap / 6;
    return gap >= fmax(rule->accuse, rule->floor) * fabs(cut->center[1]) &&
           gap >= (APART + APART_FEW / (double)cut->n) * sigma &&
           (double)between <= BETWEEN * (double)cut->n;
}

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

static int add_divided(const struct judge *judge, const struct group *group, size_t metric,
                       struct cut *cut, struct inventory *inventory)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct fleet *fleet = &judge->fleet;
    bool worse_above = rule->worse == JUDGE_HIGHER;
    double middle = (cut->center[0] + cut->center[1]) / 2;
    double worse = cut->center[worse_above], better = cut->center[!worse_above];
    const struct cell *cell = fleet_number(judge->columns[metric], cut->gpus[0], false);
    const char *unit = cell->unit ? fleet_text(fleet, cell->unit) : "";
    struct strbuf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < cut->n; i++)
        if ((cut->values[i] >= middle) == worse_above)
            cut->gpus[n++] = cut->gpus[i];
    strbuf_printf(&text, "%zu of %zu GPUs of %s: %s about ", n, cut->n, group->id, rule->metric);
    fact_text_put_number(&text, worse, unit);
    strbuf_puts(&text, ", the others ");
    fact_text_put_number(&text, better, unit);
    strbuf_printf(&text, " (%+.1f %%)", 100 * (worse / better - 1));
    put_nodes(&text, fleet, cut->gpus, n);
    strbuf_puts(&text, ": the model is divided, nobody is accused");
    return add(fleet, &text, cut->gpus, n, inventory);
}

int divided_models_report(const struct judge *judge, const struct group *group, size_t metric,
                          struct inventory *inventory, bool *out_divided)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    /* Two groups make the scale large. So a small scale saves the search for them. */
    if (!y->usable || rule->worse == JUDGE_ANY || y->sigma < rule->accuse * fabs(y->center) / 4) {
        *out_divided = false;
        return 0;
    }
    struct cut cut = {0};
    int rc = cut_init(&cut, group->count);
    if (rc)
        goto out;
    gather(judge, group, metric, &cut);
    bool divided = find_groups(&cut) && are_apart(&cut, rule);
    if (divided)
        rc = add_divided(judge, group, metric, &cut, inventory);
    if (!rc)
        *out_divided = divided;
out:
    cut_fini(&cut);
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
