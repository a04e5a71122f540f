/* The verdicts: one table says what the evidence of an issue means; the lists of the inventory are
 * made from it. */
#include "judge/verdict.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/state.h"

#define ANY(kind) EVIDENCE_SET(kind)

/* docs/JUDGE.md has the same table; tests/judge/test_verdict.c compares them. */
const struct verdict_row verdict_rows[] = {
    /* What is not listed. */
    {.context = CONTEXT_OTHER_BASIS, .verdict = VERDICT_IGNORED},
    {.any = ANY(DUPLICATE), .verdict = VERDICT_IGNORED},
    {.none = ANY(WORKER) | ANY(NO_ANSWER),
     .context = CONTEXT_UNMEASURED,
     .but_not = CONTEXT_TRIED_TWICE,
     .verdict = VERDICT_IGNORED},
    {.none = ANY(WORKER) | ANY(NO_ANSWER) | ANY(FAULT) | ANY(MINORITY),
     .context = CONTEXT_UNMEASURED,
     .verdict = VERDICT_IGNORED},
    /* What takes an accusation back. */
    {.context = CONTEXT_BUSY, .verdict = VERDICT_WATCHED},
    {.none = ANY(FAULT) | ANY(MINORITY) | ANY(NO_ANSWER),
     .context = CONTEXT_SLICED,
     .verdict = VERDICT_WATCHED},
    {.any = ANY(NOT_SEEN_AGAIN) | ANY(NOT_REPEATED) | ANY(NOT_CONFIRMED),
     .verdict = VERDICT_WATCHED},
    {.any = ANY(ALONE) | ANY(NODE_IS_FINE), .verdict = VERDICT_WATCHED},
    /* What accuses, also one of a divided model. */
    {.any = ANY(HELD) | ANY(THROTTLED) | ANY(WEAK_NODE), .verdict = VERDICT_ACCUSED},
    {.any = ANY(GROUP), .verdict = VERDICT_WATCHED},
    /* What accuses by itself. */
    {.any = ANY(FAULT) | ANY(MINORITY) | ANY(NO_ANSWER), .verdict = VERDICT_ACCUSED},
    {.any = ANY(BEYOND) | ANY(JOINING) | ANY(UNSTEADY) | ANY(CONSEQUENCE),
     .verdict = VERDICT_ACCUSED},
    {.any = ANY(SHARED) | ANY(GPUS_MISSING), .verdict = VERDICT_ACCUSED},
    {.verdict = VERDICT_WATCHED},
};
const size_t verdict_row_count = COUNT_OF(verdict_rows);

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"ignored", "watched", "flagged"};
    return names[verdict];
}

static enum verdict verdict_look_up(evidence_set evidence, unsigned context)
{
    const struct verdict_row *row = verdict_rows;
    while ((row->any && !(row->any & evidence)) || (row->none & evidence) ||
           (row->context & ~context) || (row->but_not & context))
        row++;
    return row->verdict;
}

enum verdict verdict_by_evidence(const struct issue *issue)
{
    return verdict_look_up(issue->evidence, 0);
}

enum verdict verdict_of(const struct judge *judge, const struct issue *issue)
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
        issue_finding(judge, issue)->kind == KIND_FAILING)
        context |= CONTEXT_TRIED_TWICE;
    if (gpu->busy)
        context |= CONTEXT_BUSY;
    if (gpu->sliced)
        context |= CONTEXT_SLICED;
    return verdict_look_up(issue->evidence, context);
}

void verdict_mark_outliers(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        if (verdict_of(judge, issue) == VERDICT_ACCUSED)
            judge->fleet.gpus[issue->gpu].outlier = true;
    }
}

/* An issue that is listed for its GPU. */
struct listed_issue {
    uint32_t place; /* of its GPU in fleet.order */
    bool accused;
    const struct finding *finding;
};

static double finding_size(const struct finding *finding)
{
    return isnan(finding->deviation) ? 0 : fabs(finding->deviation);
}

/* By GPU; then accusations first, then the most severe kind, then the largest deviation. */
static int listed_issue_order(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct listed_issue *a = left, *b = right;
    const struct finding *fa = a->finding, *fb = b->finding;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (a->accused != b->accused)
        return a->accused ? -1 : 1;
    if (fa->kind != fb->kind)
        return fa->kind < fb->kind ? -1 : 1;
    if (finding_size(fa) != finding_size(fb))
        return finding_size(fa) > finding_size(fb) ? -1 : 1;
    int order = str_order(fleet_text(fleet, fa->metric), fleet_text(fleet, fb->metric));
    return order ? order : (fa->basis > fb->basis) - (fa->basis < fb->basis);
}

/* What is listed with its place is not listed with each GPU, except findings by rule. */
static size_t verdict_collect(const struct judge *judge, struct listed_issue *out_listed)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t *places = mem_array(fleet->count, sizeof *places);
    size_t count = 0;
    for (size_t i = 0; i < fleet->count; i++)
        places[fleet->order[i]] = (uint32_t)i;
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        enum verdict verdict = verdict_of(judge, issue);
        if (verdict == VERDICT_IGNORED ||
            (issue_has(issue, EVIDENCE_SET(SHARED)) && issue->basis != BASIS_RULE))
            continue;
        out_listed[count++] = (struct listed_issue){places[issue->gpu], verdict == VERDICT_ACCUSED,
                                                    issue_finding(judge, issue)};
    }
    free(places);
    if (count)
        sort_stable_with(out_listed, count, sizeof *out_listed, listed_issue_order, (void *)fleet);
    return count;
}

static void outlier_add_finding(struct inventory_outlier *entry, size_t room,
                                const struct fleet *fleet, const struct finding *finding)
{
    if (!entry->findings)
        entry->findings = mem_array(room, sizeof *entry->findings);
    entry->findings[entry->finding_count++] = (struct inventory_finding){
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
    /* The most severe kind is kept: the enumeration begins with it. */
    if (finding->kind < entry->kind)
        entry->kind = finding->kind;
}

/* Fills one list with the issues that are accused, or with those that are not. */
static void verdict_fill(const struct fleet *fleet, const struct listed_issue *listed, size_t count,
                         bool accused, struct inventory_outlier **out_list, size_t *out_count)
{
    size_t capacity = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && listed[i].place == listed[end].place &&
                          listed[i].accused == listed[end].accused;)
            end++;
        if (listed[i].accused != accused)
            continue;
        const struct fleet_gpu *gpu = &fleet->gpus[listed[i].finding->gpu];
        *out_list = mem_grow(*out_list, &capacity, *out_count + 1, sizeof **out_list);
        struct inventory_outlier *entry = &(*out_list)[(*out_count)++];
        *entry = (struct inventory_outlier){
            .kind = KIND_MISMATCHED,
            .uuid = str_copy(fleet_text(fleet, gpu->uuid)),
            .node = str_copy(fleet_text(fleet, gpu->node)),
            .pci = str_copy(fleet_text(fleet, gpu->pci)),
            .model = str_copy(gpu->group == GROUP_NONE ? NULL : fleet->groups[gpu->group].id),
        };
        for (size_t k = i; k < end; k++)
            outlier_add_finding(entry, end - i, fleet, listed[k].finding);
    }
}

void verdict_lists(const struct judge *judge, struct inventory *inventory)
{
    struct listed_issue *listed = mem_array(judge->findings.issue_count, sizeof *listed);
    size_t count = verdict_collect(judge, listed);
    verdict_fill(&judge->fleet, listed, count, true, &inventory->outliers,
                 &inventory->outlier_count);
    verdict_fill(&judge->fleet, listed, count, false, &inventory->watch, &inventory->watch_count);
    free(listed);
}

struct inventory_node *verdict_add_place(struct inventory *inventory, enum evidence evidence,
                                         enum inventory_kind kind, const char *node, char *finding)
{
    size_t count = inventory->node_finding_count++;
    inventory->node_findings =
        mem_resize(inventory->node_findings, count, count + 1, sizeof *inventory->node_findings);
    struct inventory_node *entry = &inventory->node_findings[count];
    *entry = (struct inventory_node){
        .node = str_copy(node),
        .finding = finding,
        .accused = verdict_look_up((evidence_set)1 << evidence, 0) == VERDICT_ACCUSED,
        .kind = kind,
    };
    return entry;
}

void verdict_add_remark(struct inventory *inventory, char *text)
{
    verdict_add_place(inventory, EVIDENCE_REMARK, KIND_FAILING, NULL, text);
}

void verdict_add_place_gpu(struct inventory_node *entry, const char *uuid)
{
    entry->gpus =
        mem_resize(entry->gpus, entry->gpu_count, entry->gpu_count + 1, sizeof *entry->gpus);
    entry->gpus[entry->gpu_count++] = str_copy(uuid);
}
