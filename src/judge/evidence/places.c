/* Issues that say the same are listed once: of one GPU and metric on several bases, one is kept;
 * what most GPUs of a model, a node or a slot have is listed for that place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/robust.h"
#include "judge/verdict.h"

/* An accusation is preferred to a watch; then the first basis. */
static bool issue_is_preferred(const struct judge *judge, const struct issue *a,
                               const struct issue *b)
{
    enum certainty verdict = certainty_of(judge, a), other = certainty_of(judge, b);
    return verdict != other ? verdict == CERTAINTY_SURE : a->basis < b->basis;
}

void stage_duplicates(struct judge *judge, struct inventory *inventory)
{
    (void)inventory;
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i], *other = issue;
        while ((other = issue_previous(judge, other))) {
            if (other->metric != issue->metric || certainty_of(judge, other) == CERTAINTY_IGNORED ||
                certainty_of(judge, issue) == CERTAINTY_IGNORED)
                continue;
            bool kept = issue_is_preferred(judge, issue, other);
            findings_add(judge, finding_about(judge, kept ? other : issue, EVIDENCE_DUPLICATE),
                         NULL);
        }
    }
}

enum scope { SCOPE_MODEL, SCOPE_NODE, SCOPE_PCI, SCOPE_INDEX, SCOPE_COUNT };

/* The smallest number of GPUs with a finding of the place. */
static const size_t least[SCOPE_COUNT] = {3, 2, 3, 3};

/* An issue that accuses, and its place in one scope. */
struct placed_issue {
    uint32_t issue, group, place, metric;
    uint32_t explained_by; /* of its newest finding */
    uint32_t cause;        /* symbol; of figures: without the numbers in it */
};

static const struct finding *placed_finding(const struct judge *judge,
                                            const struct placed_issue *placed)
{
    return issue_finding(judge, &judge->findings.issues[placed->issue]);
}

/* The number of judged GPUs of a group in a place. */
struct place_size {
    uint32_t group, place, count;
};

static uint32_t scope_place(const struct fleet_gpu *gpu, enum scope scope)
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

static int place_size_order(const void *left, const void *right)
{
    const struct place_size *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Counts the judged GPUs of each group in each place; sorted. Freed by the caller. */
static struct place_size *place_sizes(const struct fleet *fleet, enum scope scope,
                                      size_t *out_count)
{
    struct place_size *sizes = mem_array(fleet->count, sizeof *sizes);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[i];
        if (fleet_judged(gpu) && gpu->group != GROUP_NONE)
            sizes[count++] = (struct place_size){gpu->group, scope_place(gpu, scope), 1};
    }
    if (count)
        sort_stable(sizes, count, sizeof *sizes, place_size_order);
    for (size_t i = 0; i < count; i++) {
        if (kept && place_size_order(&sizes[kept - 1], &sizes[i]) == 0)
            sizes[kept - 1].count++;
        else
            sizes[kept++] = sizes[i];
    }
    *out_count = kept;
    return sizes;
}

static size_t place_gpu_count(const struct place_size *sizes, size_t count, uint32_t group,
                              uint32_t place)
{
    const struct place_size wanted = {.group = group, .place = place};
    const struct place_size *found =
        bsearch(&wanted, sizes, count, sizeof *sizes, place_size_order);
    return found ? found->count : 0;
}

static int placed_issue_order(const void *left, const void *right)
{
    const struct placed_issue *a = left, *b = right;
    const uint32_t keys[][2] = {{a->group, b->group},   {a->place, b->place},
                                {a->metric, b->metric}, {a->explained_by, b->explained_by},
                                {a->cause, b->cause},   {a->issue, b->issue}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool placed_alike(const struct placed_issue *a, const struct placed_issue *b)
{
    return a->group == b->group && a->place == b->place && a->metric == b->metric &&
           a->explained_by == b->explained_by && a->cause == b->cause;
}

/* The symbol of a cause. The causes of figures count without their numbers: GPUs with the same
 * fault have different numbers in them. */
static uint32_t cause_symbol(struct judge *judge, const struct finding *finding)
{
    if (finding->rule < 0)
        return judge_symbol(judge, finding->cause);
    struct strbuf words = {0};
    for (const char *at = finding->cause; at && *at; at++)
        if (!strchr("0123456789.", *at))
            strbuf_append(&words, at, 1);
    uint32_t symbol = judge_symbol(judge, words.data ? words.data : "");
    strbuf_fini(&words);
    return symbol;
}

/* Entries list GPUs by UUID. */
static size_t places_collect(struct judge *judge, enum scope scope, struct placed_issue *out_placed)
{
    size_t count = 0;
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        const struct finding *finding = issue_finding(judge, issue);
        const struct fleet_gpu *gpu = &judge->fleet.gpus[issue->gpu];
        uint32_t place = scope_place(gpu, scope);
        if (place && gpu->measured && gpu->group != GROUP_NONE && gpu->uuid &&
            !issue_has(issue, EVIDENCE_SET(SHARED)) && certainty_of(judge, issue) == CERTAINTY_SURE)
            out_placed[count++] = (struct placed_issue){(uint32_t)i,
                                                        gpu->group,
                                                        place,
                                                        issue->metric,
                                                        finding->explained_by,
                                                        cause_symbol(judge, finding)};
    }
    if (count)
        sort_stable(out_placed, count, sizeof *out_placed, placed_issue_order);
    return count;
}

static int placed_deviation_order(const void *left, const void *right, void *user)
{
    const struct judge *judge = user;
    const struct finding *a = placed_finding(judge, left), *b = placed_finding(judge, right);
    double da = isnan(a->deviation) ? 0 : a->deviation;
    double db = isnan(b->deviation) ? 0 : b->deviation;
    if (da != db)
        return da < db ? -1 : 1;
    return str_order(fleet_text(&judge->fleet, judge->fleet.gpus[a->gpu].uuid),
                     fleet_text(&judge->fleet, judge->fleet.gpus[b->gpu].uuid));
}

static void place_put_scope(struct strbuf *out, const struct fleet *fleet, enum scope scope,
                            const struct placed_issue *entry, size_t count, size_t all)
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

static char *place_text(const struct judge *judge, enum scope scope,
                        const struct placed_issue *entry, const struct finding *finding,
                        size_t count, size_t all)
{
    const struct fleet *fleet = &judge->fleet;
    const char *unit = finding->unit ? fleet_text(fleet, finding->unit) : "";
    struct strbuf text = {0};
    place_put_scope(&text, fleet, scope, entry, count, all);
    strbuf_puts(&text, fleet_text(fleet, finding->metric));
    if (finding->rule >= 0) {
        strbuf_puts(&text, " ");
        fact_text_put_number(&text, finding->value, unit);
        strbuf_puts(&text, ", expected ");
        fact_text_put_number(&text, finding->expected, unit);
        strbuf_printf(&text, " (%+.1f %%)", 100 * finding->deviation);
    }
    strbuf_printf(&text, ": %s", finding->cause);
    return text.data;
}

/* Keeps the figures whose loss is between half and twice the median loss, from entries[0] on, and
 * returns their number. The entries are sorted by deviation. Facts are all kept. */
static size_t placed_keep_alike(const struct judge *judge, struct placed_issue *entries,
                                size_t count)
{
    const struct finding *middle = placed_finding(judge, &entries[count / 2]);
    size_t kept = 0;
    if (middle->rule < 0)
        return count;
    for (size_t i = 0; i < count; i++) {
        double ratio = placed_finding(judge, &entries[i])->deviation / middle->deviation;
        if (ratio >= 0.5 && ratio <= 2)
            entries[kept++] = entries[i];
    }
    return kept;
}

static double figure_loss(const struct judge *judge, uint32_t gpu, size_t metric)
{
    return judge->worse ? judge->worse[judge_slot(judge, gpu, metric)] : NAN;
}

/* Whether an issue accuses the GPU by this metric of the configuration. */
static bool figure_is_accused(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && !(issue_finding(judge, issue)->rule == (int32_t)metric &&
                      certainty_of(judge, issue) == CERTAINTY_SURE))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

/* Sets `other` of the GPUs that lose in this metric, if fewer than two thirds of them do. A GPU
 * shares the loss if it loses half as much as the accused ones usually do; one that was not
 * compared says nothing. losses: room for `count` numbers. */
static void placed_find_others(const struct judge *judge, size_t metric,
                               const struct placed_issue *entries, size_t count, double *losses,
                               bool *other)
{
    size_t accused = 0, sharing = 0, compared = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t gpu = placed_finding(judge, &entries[i])->gpu;
        double loss = figure_loss(judge, gpu, metric);
        if (figure_is_accused(judge, gpu, metric) && !isnan(loss))
            losses[accused++] = loss;
    }
    if (!accused)
        return;
    double half = robust_median(losses, accused) / 2;
    for (size_t i = 0; i < count; i++) {
        losses[i] = figure_loss(judge, placed_finding(judge, &entries[i])->gpu, metric);
        compared += !isnan(losses[i]);
        sharing += losses[i] >= half;
    }
    for (size_t i = 0; i < count && 3 * sharing < 2 * compared; i++)
        other[i] |= losses[i] >= half;
}

/* Keeps the GPUs that have the same fault, from entries[0] on, and returns their number. A GPU that
 * also loses in another figure of that memory, in which fewer than two thirds of them lose, has
 * another fault. */
static size_t placed_keep_same_fault(const struct judge *judge, struct placed_issue *entries,
                                     size_t count)
{
    const struct judge_config *config = judge->basis.config;
    int32_t rule = count ? placed_finding(judge, &entries[0])->rule : -1;
    size_t kept = 0;
    if (rule < 0)
        return count;
    double *losses = mem_array(count, sizeof *losses);
    bool *other = mem_array(count, sizeof *other);
    for (size_t m = 0; m < config->metric_count; m++)
        if (m != (size_t)rule &&
            measure_same_memory(config->metrics[m].metric, config->metrics[rule].metric))
            placed_find_others(judge, m, entries, count, losses, other);
    for (size_t i = 0; i < count; i++)
        if (!other[i])
            entries[kept++] = entries[i];
    free(losses);
    free(other);
    return kept;
}

/* Adds one entry to the inventory for entries[0 .. count - 1], which are shared then. */
static void place_report(struct judge *judge, enum scope scope, const struct placed_issue *entries,
                         size_t count, size_t all, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    const struct finding *middle = placed_finding(judge, &entries[count / 2]);
    struct inventory_node *entry = verdict_add_place(
        judge->basis.config, inventory, EVIDENCE_SHARED, middle->verdict,
        verdict_loss(judge->basis.config, fleet_text(fleet, middle->metric), middle),
        scope == SCOPE_NODE ? fleet_text(fleet, entries[0].place) : NULL,
        place_text(judge, scope, &entries[0], middle, count, all));
    for (size_t i = 0; i < count; i++) {
        const struct issue *issue = &judge->findings.issues[entries[i].issue];
        verdict_add_place_gpu(entry, fleet_text(fleet, fleet->gpus[issue->gpu].uuid));
        judge->fleet.gpus[issue->gpu].outlier |= entry->action >= ACTION_ALERT;
        findings_add(judge, finding_about(judge, issue, EVIDENCE_SHARED), NULL);
    }
}

static int place_entry_order(const void *left, const void *right)
{
    const struct inventory_node *a = left, *b = right;
    int order = str_order(a->node, b->node);
    return order ? order : str_order(a->finding, b->finding);
}

void stage_places(struct judge *judge, struct inventory *inventory)
{
    struct placed_issue *entries = mem_array(judge->findings.issue_count, sizeof *entries);
    size_t first = inventory->node_finding_count;
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        size_t size_count;
        struct place_size *sizes = place_sizes(&judge->fleet, (enum scope)scope, &size_count);
        size_t count = places_collect(judge, (enum scope)scope, entries);
        for (size_t i = 0, end; i < count; i = end) {
            for (end = i + 1; end < count && placed_alike(&entries[i], &entries[end]);)
                end++;
            size_t all = place_gpu_count(sizes, size_count, entries[i].group, entries[i].place);
            sort_stable_with(&entries[i], end - i, sizeof *entries, placed_deviation_order, judge);
            size_t alike = placed_keep_alike(judge, &entries[i], end - i);
            alike = placed_keep_same_fault(judge, &entries[i], alike);
            if (alike >= least[scope] && 3 * alike >= 2 * all)
                place_report(judge, (enum scope)scope, &entries[i], alike, all, inventory);
        }
        free(sizes);
    }
    free(entries);
    if (inventory->node_finding_count > first)
        sort_stable(inventory->node_findings + first, inventory->node_finding_count - first,
                    sizeof *inventory->node_findings, place_entry_order);
}
