/* The list of findings, which only grows, and its index by issue. */
#include "judge/evidence/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/state.h"

const struct evidence_kind evidence_kinds[EVIDENCE_COUNT] = {
    [EVIDENCE_FAULT] = {"fault", "what no healthy GPU shows"},
    [EVIDENCE_HINT] = {"hint", "what healthy GPUs may show too"},
    [EVIDENCE_MINORITY] = {"minority", "a fact differs from that of a clear majority of the model"},
    [EVIDENCE_NO_MAJORITY] = {"no_majority",
                              "a fact differs, and no majority of the model is clear"},
    [EVIDENCE_CHANGE] = {"change", "a fact differs from that of the baseline"},
    [EVIDENCE_NO_ANSWER] = {"no_answer", "the GPU crashed or hung twice, others did not"},
    [EVIDENCE_WORKER] = {"worker", "a worker of the GPU crashed, hung or failed"},
    [EVIDENCE_BEYOND] = {"beyond", "a figure is beyond its bound"},
    [EVIDENCE_WITHIN] = {"within", "a figure is worse, within its bound"},
    [EVIDENCE_JOINING] = {"joining", "a figure is worse, and two others are beyond their bounds"},
    [EVIDENCE_FEW_PEERS] = {"few_peers", "a figure is much worse than those of too few other GPUs"},
    [EVIDENCE_UNSTEADY] = {"unsteady", "the repetitions of a figure scatter"},
    [EVIDENCE_CONSEQUENCE] = {"consequence", "a figure follows a lowered SM clock"},
    [EVIDENCE_GROUP] = {"group", "one of many GPUs that only this figure separates: the model is "
                                 "divided"},
    [EVIDENCE_WEAK_NODE] = {"weak_node", "all GPUs of the node are worse, together beyond the "
                                         "bound"},
    [EVIDENCE_HELD] = {"held", "a setting or a lock lowers the SM clock, by much"},
    [EVIDENCE_HELD_A_LITTLE] = {"held_a_little", "a setting or a lock lowers the SM clock"},
    [EVIDENCE_THROTTLED] = {"throttled", "a throttle reason lowers the SM clock, by much"},
    [EVIDENCE_THROTTLED_A_LITTLE] = {"throttled_a_little", "a throttle reason lowers the SM clock"},
    [EVIDENCE_CAUSE] = {"cause", "what explains it, or that nothing does"},
    [EVIDENCE_PERHAPS_BUILT] = {"perhaps_built",
                                "how the GPU was built may explain it, and was not measured"},
    [EVIDENCE_SEEN_AGAIN] = {"seen_again", "a second measurement shows it too"},
    [EVIDENCE_NOT_SEEN_AGAIN] = {"not_seen_again", "a second measurement does not show it"},
    [EVIDENCE_NOT_REPEATED] = {"not_repeated", "the second measurement failed"},
    [EVIDENCE_DUPLICATE] = {"duplicate", "another basis has the same finding, which is kept"},
    [EVIDENCE_SHARED] = {"shared", "two thirds of a model, a node or a slot have it"},
    [EVIDENCE_CONFIRMED] = {"confirmed", "its cause, or other figures, confirm it"},
    [EVIDENCE_NOT_CONFIRMED] = {"not_confirmed", "nothing else shows it"},
    [EVIDENCE_ALONE] = {"alone", "it joined other figures, and none of them counts any more"},
    [EVIDENCE_NODE_IS_FINE] = {"node_is_fine", "its node does not share it after all"},
    [EVIDENCE_GPUS_MISSING] = {"gpus_missing", "a node lists fewer GPUs than it must have"},
    [EVIDENCE_FEWER_GPUS] = {"fewer_gpus", "a node lists fewer GPUs, and may be built this way"},
    [EVIDENCE_BUILT] = {"built", "what GPUs of a model were built with costs"},
    [EVIDENCE_REMARK] = {"remark", "what the judge cannot decide, or only mentions"},
};

const char judge_basis_earlier[] = "earlier";

const char *basis_name(enum basis basis)
{
    static const char *const names[] = {"fleet", "reference", "baseline",
                                        "world", "rule",      judge_basis_earlier};
    return names[basis];
}

void findings_init(struct findings *findings, size_t gpus)
{
    findings->last = mem_array(gpus, sizeof *findings->last);
}

void findings_fini(struct findings *findings)
{
    free((void *)findings->items);
    free(findings->issues);
    free(findings->last);
    arena_fini(&findings->causes);
    memset(findings, 0, sizeof *findings);
}

uint32_t judge_symbol(struct judge *judge, const char *text)
{
    return symbols_of(&judge->fleet.symbols, text);
}

struct finding finding_new(struct judge *judge, uint32_t gpu, const char *metric, enum basis basis,
                           enum evidence evidence)
{
    return (struct finding){.issue = ISSUE_NEW,
                            .gpu = gpu,
                            .metric = judge_symbol(judge, metric),
                            .basis = basis,
                            .evidence = evidence,
                            .rule = -1,
                            .verdict = VERDICT_DEGRADED,
                            .value = NAN,
                            .expected = NAN,
                            .deviation = NAN,
                            .score = NAN};
}

struct finding finding_about(const struct judge *judge, const struct issue *issue,
                             enum evidence evidence)
{
    struct finding finding = *issue_finding(judge, issue);
    finding.evidence = evidence;
    return finding;
}

static uint32_t issue_begin(struct findings *findings, const struct finding *finding)
{
    findings->issues = mem_grow(findings->issues, &findings->issue_capacity,
                                findings->issue_count + 1, sizeof *findings->issues);
    findings->issues[findings->issue_count++] =
        (struct issue){.gpu = finding->gpu,
                       .metric = finding->metric,
                       .basis = finding->basis,
                       .previous = findings->last[finding->gpu]};
    findings->last[finding->gpu] = (uint32_t)findings->issue_count;
    return (uint32_t)findings->issue_count - 1;
}

/* What NVML reports of a MIG instance is of its GPU; `health_of` says so. */
static bool finding_is_of_whole_gpu(const struct judge *judge, const struct finding *finding)
{
    const struct fleet *fleet = &judge->fleet;
    return finding->issue == ISSUE_NEW &&
           strncmp(fleet_text(fleet, finding->metric), "health.", 7) == 0 &&
           fleet_fact_text(fleet, fleet_facts(fleet, SET_CONFIG, "health_of"), finding->gpu);
}

void findings_add(struct judge *judge, struct finding finding, char *cause)
{
    struct findings *findings = &judge->findings;
    struct finding *items =
        mem_grow((void *)findings->items, &findings->capacity, findings->count + 1, sizeof *items);
    findings->items = items;
    if (cause && finding_is_of_whole_gpu(judge, &finding)) {
        char *more = str_format("%s (of the whole GPU)", cause);
        free(cause);
        cause = more;
    }
    if (cause)
        finding.cause = arena_copy(&findings->causes, cause, strlen(cause));
    free(cause);
    finding.stage = judge->stage;
    if (finding.issue == ISSUE_NEW)
        finding.issue = issue_begin(findings, &finding);
    struct issue *issue = &findings->issues[finding.issue];
    issue->evidence |= (evidence_set)1 << finding.evidence;
    issue->newest = (uint32_t)findings->count;
    items[findings->count++] = finding;
}

void findings_add_rule(struct judge *judge, uint32_t gpu, const char *metric,
                       enum evidence evidence, enum verdict verdict, double value, char *cause)
{
    struct finding finding = finding_new(judge, gpu, metric, BASIS_RULE, evidence);
    finding.verdict = verdict;
    finding.value = value;
    findings_add(judge, finding, cause);
}

void finding_compare(struct finding *finding, double value, double expected)
{
    finding->value = value;
    finding->expected = expected;
    finding->deviation = value / expected - 1;
}

const struct issue *issue_find(const struct judge *judge, uint32_t gpu, const char *metric,
                               enum basis basis)
{
    uint32_t symbol = symbols_find(&judge->fleet.symbols, metric);
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && (issue->metric != symbol || issue->basis != basis))
        issue = issue_previous(judge, issue);
    return issue;
}

const struct issue *issue_last(const struct judge *judge, uint32_t gpu)
{
    uint32_t last = judge->findings.last[gpu];
    return last ? &judge->findings.issues[last - 1] : NULL;
}

const struct issue *issue_previous(const struct judge *judge, const struct issue *issue)
{
    return issue->previous ? &judge->findings.issues[issue->previous - 1] : NULL;
}

const struct finding *issue_finding(const struct judge *judge, const struct issue *issue)
{
    return &judge->findings.items[issue->newest];
}

bool issue_has(const struct issue *issue, evidence_set kinds)
{
    return (issue->evidence & kinds) != 0;
}
