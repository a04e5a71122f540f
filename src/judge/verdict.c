/* The verdicts: one table says how sure the evidence of an issue is; the lists of the inventory are
 * made from it and from the policy. */
#include "judge/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/state.h"

#define ANY(kind) EVIDENCE_SET(kind)

/* docs/JUDGE.md has the same table; tests/judge/test_verdict.c compares them. */
const struct certainty_row certainty_rows[] = {
    /* What is not listed. */
    {.context = CONTEXT_OTHER_BASIS, .certainty = CERTAINTY_IGNORED},
    {.any = ANY(DUPLICATE), .certainty = CERTAINTY_IGNORED},
    {.none = ANY(WORKER) | ANY(NO_ANSWER),
     .context = CONTEXT_UNMEASURED,
     .but_not = CONTEXT_TRIED_TWICE,
     .certainty = CERTAINTY_IGNORED},
    {.none = ANY(WORKER) | ANY(NO_ANSWER) | ANY(FAULT) | ANY(MINORITY),
     .context = CONTEXT_UNMEASURED,
     .certainty = CERTAINTY_IGNORED},
    /* What is not sure after all. */
    {.context = CONTEXT_BUSY, .certainty = CERTAINTY_UNSURE},
    {.none = ANY(FAULT) | ANY(MINORITY) | ANY(NO_ANSWER),
     .context = CONTEXT_SLICED,
     .certainty = CERTAINTY_UNSURE},
    {.any = ANY(NOT_SEEN_AGAIN) | ANY(NOT_REPEATED) | ANY(NOT_CONFIRMED),
     .certainty = CERTAINTY_UNSURE},
    {.any = ANY(ALONE) | ANY(NODE_IS_FINE) | ANY(PERHAPS_BUILT), .certainty = CERTAINTY_UNSURE},
    /* What is sure, also of a GPU of a divided model. */
    {.any = ANY(HELD) | ANY(THROTTLED) | ANY(WEAK_NODE), .certainty = CERTAINTY_SURE},
    {.any = ANY(GROUP), .certainty = CERTAINTY_UNSURE},
    /* What is sure by itself. */
    {.any = ANY(FAULT) | ANY(MINORITY) | ANY(NO_ANSWER), .certainty = CERTAINTY_SURE},
    {.any = ANY(BEYOND) | ANY(JOINING) | ANY(UNSTEADY) | ANY(CONSEQUENCE),
     .certainty = CERTAINTY_SURE},
    {.any = ANY(SHARED) | ANY(GPUS_MISSING) | ANY(BUILT), .certainty = CERTAINTY_SURE},
    {.certainty = CERTAINTY_UNSURE},
};
const size_t certainty_row_count = COUNT_OF(certainty_rows);

const char *certainty_name(enum certainty certainty)
{
    static const char *const names[] = {"ignored", "unsure", "sure"};
    return names[certainty];
}

static enum certainty certainty_look_up(evidence_set evidence, unsigned context)
{
    const struct certainty_row *row = certainty_rows;
    while ((row->any && !(row->any & evidence)) || (row->none & evidence) ||
           (row->context & ~context) || (row->but_not & context))
        row++;
    return row->certainty;
}

enum certainty certainty_by_evidence(const struct issue *issue)
{
    return certainty_look_up(issue->evidence, 0);
}

enum certainty certainty_of(const struct judge *judge, const struct issue *issue)
{
    const struct fleet_gpu *gpu = &judge->fleet.gpus[issue->gpu];
    bool failed =
        gpu->status == GPU_CRASHED || gpu->status == GPU_TIMED_OUT || gpu->status == GPU_FAILED;
    unsigned context = 0;
    if (judge->basis.drift_only && issue->basis != BASIS_BASELINE)
        context |= CONTEXT_OTHER_BASIS;
    if (!gpu->measured)
        context |= CONTEXT_UNMEASURED;
    if (!gpu->measured && failed && gpu->run.first_status != GPU_OK && issue->basis == BASIS_RULE &&
        issue_finding(judge, issue)->verdict == VERDICT_FAILING)
        context |= CONTEXT_TRIED_TWICE;
    if (gpu->busy)
        context |= CONTEXT_BUSY;
    if (gpu->sliced)
        context |= CONTEXT_SLICED;
    return certainty_look_up(issue->evidence, context);
}

/* Facts are no figures: a limit that is lower by a third need not cost anything. */
static bool metric_is_fact(const char *metric)
{
    static const char *const sets[] = {"config.", "health.", "hardware.", "board."};
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        if (strncmp(metric, sets[i], strlen(sets[i])) == 0)
            return true;
    return false;
}

double verdict_loss(const struct judge_config *config, const char *metric,
                    const struct finding *finding)
{
    enum judge_worse worse = finding->rule < 0 ? JUDGE_ANY : config->metrics[finding->rule].worse;
    double loss = worse == JUDGE_LOWER    ? -finding->deviation
                  : worse == JUDGE_HIGHER ? finding->deviation
                                          : fabs(finding->deviation);
    if (!(loss > 0) || metric_is_fact(metric))
        return NAN;
    return measure_digits(policy_cost(&config->policy, metric, loss), 3);
}

/* An issue with its verdict, its loss and what is to be done. */
struct judged_issue {
    uint32_t place; /* of its GPU in fleet.order */
    enum verdict verdict;
    enum action action;
    double loss;
    const struct finding *finding;
};

/* By GPU and verdict: the largest loss that is sure; NaN: none. Freed by the caller. */
static double *sure_losses(const struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    size_t count = (fleet->count ? fleet->count : 1) * VERDICT_COUNT;
    double *losses = mem_array(count, sizeof *losses);
    for (size_t i = 0; i < count; i++)
        losses[i] = NAN;
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        const struct finding *finding = issue_finding(judge, issue);
        double *loss = &losses[issue->gpu * VERDICT_COUNT + finding->verdict];
        if (certainty_of(judge, issue) == CERTAINTY_SURE)
            *loss = fmax(*loss, verdict_loss(judge->basis.config, fleet_text(fleet, issue->metric),
                                             finding));
    }
    return losses;
}

/* NOTHING also for what is not listed. Where losses decide, a fact costs what the figures of its
 * GPU lost that have the same verdict. */
static struct judged_issue issue_judge(const struct judge *judge, const struct issue *issue,
                                       const double *losses)
{
    const struct judge_config *config = judge->basis.config;
    enum certainty certainty = certainty_of(judge, issue);
    const struct finding *finding = issue_finding(judge, issue);
    const bool sure = certainty == CERTAINTY_SURE;
    const char *metric = fleet_text(&judge->fleet, issue->metric);
    double loss = verdict_loss(config, metric, finding);
    double cost = metric_is_fact(metric) && config->policy.rows[finding->verdict].by_loss
                      ? losses[issue->gpu * VERDICT_COUNT + finding->verdict]
                      : loss;
    enum action action = certainty == CERTAINTY_IGNORED
                             ? ACTION_NOTHING
                             : policy_action(&config->policy, finding->verdict, cost, sure);
    /* What only GPUs elsewhere show is told, never more. */
    if (issue->basis == BASIS_WORLD && action > ACTION_TELL)
        action = ACTION_TELL;
    return (struct judged_issue){
        .verdict = sure ? finding->verdict : VERDICT_UNKNOWN,
        .action = action,
        .loss = loss,
        .finding = finding,
    };
}

/* What is listed with its place is not listed with each GPU, except findings by rule. */
static bool issue_is_of_place(const struct issue *issue)
{
    return issue_has(issue, EVIDENCE_SET(SHARED)) && issue->basis != BASIS_RULE;
}

void verdict_mark_outliers(struct judge *judge)
{
    double *losses = sure_losses(judge);
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        struct fleet_gpu *gpu = &judge->fleet.gpus[issue->gpu];
        gpu->deviates |= certainty_of(judge, issue) == CERTAINTY_SURE;
        gpu->outlier |=
            !issue_is_of_place(issue) && issue_judge(judge, issue, losses).action >= ACTION_ALERT;
    }
    free(losses);
}

static double finding_size(const struct finding *finding)
{
    return isnan(finding->deviation) ? 0 : fabs(finding->deviation);
}

/* By GPU; then by list; then the most severe verdict, then the largest deviation. */
static int judged_issue_order(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct judged_issue *a = left, *b = right;
    const struct finding *fa = a->finding, *fb = b->finding;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if ((a->action == ACTION_TELL) != (b->action == ACTION_TELL))
        return b->action == ACTION_TELL ? -1 : 1;
    if (fa->verdict != fb->verdict)
        return fa->verdict < fb->verdict ? -1 : 1;
    if (finding_size(fa) != finding_size(fb))
        return finding_size(fa) > finding_size(fb) ? -1 : 1;
    int order = str_order(fleet_text(fleet, fa->metric), fleet_text(fleet, fb->metric));
    return order ? order : (fa->basis > fb->basis) - (fa->basis < fb->basis);
}

static size_t verdict_collect(const struct judge *judge, struct judged_issue *out_issues)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t *places = mem_array(fleet->count, sizeof *places);
    double *losses = sure_losses(judge);
    size_t count = 0;
    for (size_t i = 0; i < fleet->count; i++)
        places[fleet->order[i]] = (uint32_t)i;
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        out_issues[count] = issue_judge(judge, issue, losses);
        out_issues[count].place = places[issue->gpu];
        count += out_issues[count].action != ACTION_NOTHING && !issue_is_of_place(issue);
    }
    free(places);
    free(losses);
    if (count)
        sort_stable_with(out_issues, count, sizeof *out_issues, judged_issue_order, (void *)fleet);
    return count;
}

static void outlier_add_issue(struct inventory_outlier *entry, const struct fleet *fleet,
                              const struct judged_issue *issue)
{
    const struct finding *finding = issue->finding;
    entry->evidence[entry->evidence_count++] = (struct inventory_evidence){
        .metric = str_copy(fleet_text(fleet, finding->metric)),
        .unit = str_copy(finding->unit ? fleet_text(fleet, finding->unit) : ""),
        .basis = str_copy(basis_name(finding->basis)),
        .cause = str_copy(finding->cause),
        .confirmed = judge_confirmation_text(finding),
        .value = measure_digits(finding->value, 6),
        .expected = measure_digits(finding->expected, 6),
        .deviation = measure_digits(finding->deviation, 3),
        .score = measure_digits(finding->score, 3),
    };
    if (issue->verdict < entry->verdict) /* the enumeration begins with the most severe one */
        entry->verdict = issue->verdict;
    if (issue->action > entry->action)
        entry->action = issue->action;
    entry->loss = fmax(entry->loss, issue->loss); /* NaN only if both are */
}

/* Fills one list: of what is alerted or drained, or of what is told. */
static void verdict_fill(const struct fleet *fleet, const struct judged_issue *issues, size_t count,
                         bool told, struct inventory_outlier **out_list, size_t *out_count)
{
    size_t capacity = 0;
    for (size_t i = 0, end; i < count; i = end) {
        const bool is_told = issues[i].action == ACTION_TELL;
        for (end = i + 1; end < count && issues[i].place == issues[end].place &&
                          is_told == (issues[end].action == ACTION_TELL);)
            end++;
        if (is_told != told)
            continue;
        const struct fleet_gpu *gpu = &fleet->gpus[issues[i].finding->gpu];
        *out_list = mem_grow(*out_list, &capacity, *out_count + 1, sizeof **out_list);
        struct inventory_outlier *entry = &(*out_list)[(*out_count)++];
        *entry = (struct inventory_outlier){
            .uuid = str_copy(fleet_text(fleet, gpu->uuid)),
            .node = str_copy(fleet_text(fleet, gpu->node)),
            .pci = str_copy(fleet_text(fleet, gpu->pci)),
            .model = str_copy(gpu->group == GROUP_NONE ? NULL : fleet->groups[gpu->group].id),
            .verdict = VERDICT_UNKNOWN,
            .loss = NAN,
            .evidence = mem_array(end - i, sizeof *entry->evidence),
        };
        for (size_t k = i; k < end; k++)
            outlier_add_issue(entry, fleet, &issues[k]);
    }
}

void verdict_drop_places(struct inventory *inventory)
{
    size_t kept = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        struct inventory_node *place = &inventory->node_findings[i];
        if (place->action != ACTION_NOTHING)
            inventory->node_findings[kept++] = *place;
        else
            inventory_node_fini(place);
    }
    inventory->node_finding_count = kept;
}

void verdict_lists(const struct judge *judge, struct inventory *inventory)
{
    struct judged_issue *issues = mem_array(judge->findings.issue_count + 1, sizeof *issues);
    size_t count = verdict_collect(judge, issues);
    verdict_fill(&judge->fleet, issues, count, false, &inventory->outliers,
                 &inventory->outlier_count);
    verdict_fill(&judge->fleet, issues, count, true, &inventory->watch, &inventory->watch_count);
    free(issues);
}

static struct inventory_node *places_add(struct inventory *inventory,
                                         const struct inventory_node *entry)
{
    size_t count = inventory->node_finding_count++;
    inventory->node_findings =
        mem_resize(inventory->node_findings, count, count + 1, sizeof *inventory->node_findings);
    inventory->node_findings[count] = *entry;
    return &inventory->node_findings[count];
}

struct inventory_node *verdict_add_place(const struct judge_config *config,
                                         struct inventory *inventory, enum evidence evidence,
                                         enum verdict verdict, double loss, const char *node,
                                         char *finding)
{
    bool sure = certainty_look_up((evidence_set)1 << evidence, 0) == CERTAINTY_SURE;
    return places_add(inventory, &(struct inventory_node){
                                     .node = str_copy(node),
                                     .finding = finding,
                                     .verdict = sure ? verdict : VERDICT_UNKNOWN,
                                     .loss = loss,
                                     .action = policy_action(&config->policy, verdict, loss, sure),
                                 });
}

struct inventory_node *verdict_add_remark(struct inventory *inventory, char *text)
{
    return places_add(inventory, &(struct inventory_node){.finding = text,
                                                          .verdict = VERDICT_UNKNOWN,
                                                          .loss = NAN,
                                                          .action = ACTION_TELL});
}

void verdict_add_place_gpu(struct inventory_node *entry, const char *uuid)
{
    entry->gpus =
        mem_resize(entry->gpus, entry->gpu_count, entry->gpu_count + 1, sizeof *entry->gpus);
    entry->gpus[entry->gpu_count++] = str_copy(uuid);
}
