/* What confirms a deviation. Before a GPU is accused by a figure that can be disturbed, something
 * else must show the deviation: a second measurement, the cause, or other figures. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/verdict.h"

/* A second value confirms a deviation if it deviates at least this much of it. A disturbance is
 * over by then. Against a fleet, two figures of one memory accuse from about 4.2 standard
 * deviations on, a single one from about 5.2: at most 2 % of the healthy figures deviate by half of
 * that. */
static const double SEEN_AGAIN_SHARE = 0.5;

/* Another figure confirms a finding if its own score is at least this. */
static const double COMPANION_SCORE = 3;

/* The repetitions of a figure agree if it deviates by this many times their spread. */
static const double AGREE = 4;

/* The driver's clock confirms the measured one if they differ by at most this share. */
static const double CLOCK_SHARE = 0.02;

void judge_repeats_add(struct judge *judge, uint32_t gpu, const struct facts *values)
{
    struct repeats *repeats = &judge->repeats;
    if (!values->count)
        return;
    repeats->items = mem_grow(repeats->items, &repeats->capacity, repeats->count + values->count,
                              sizeof *repeats->items);
    for (size_t i = 0; i < values->count; i++)
        repeats->items[repeats->count++] =
            (struct repeat){.gpu = gpu,
                            .metric = judge_symbol(judge, values->items[i].key),
                            .value = measure_digits(fact_number(&values->items[i]), 6)};
}

void judge_suspicions(const struct judge *judge, judge_suspicion_taker *take, void *user)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        if (!fleet_judged(&fleet->gpus[gpu]))
            continue;
        for (const struct issue *issue = issue_last(judge, gpu); issue;
             issue = issue_previous(judge, issue))
            if (certainty_by_evidence(issue) == CERTAINTY_SURE)
                take(user, fleet_text(fleet, fleet->gpus[gpu].uuid),
                     fleet_text(fleet, issue->metric));
    }
}

void judge_add_again(struct judge *judge, const struct gpu_result *again)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t symbol = symbols_find(&fleet->symbols, again->uuid), gpu = 0;
    struct facts values = {0};
    gpu_result_second_values(again, &values);
    while (gpu < fleet->count && fleet->gpus[gpu].uuid != symbol)
        gpu++;
    if (gpu < fleet->count)
        judge_repeats_add(judge, gpu, &values);
    facts_fini(&values);
}

static int repeat_order(const void *left, const void *right)
{
    const struct repeat *a = left, *b = right;
    if (a->gpu != b->gpu)
        return a->gpu < b->gpu ? -1 : 1;
    return (a->metric > b->metric) - (a->metric < b->metric);
}

static const struct repeat *repeat_find(const struct judge *judge, uint32_t gpu, uint32_t metric)
{
    const struct repeat wanted = {.gpu = gpu, .metric = metric};
    if (!judge->repeats.count)
        return NULL;
    return bsearch(&wanted, judge->repeats.items, judge->repeats.count, sizeof wanted,
                   repeat_order);
}

/* Whether the finding is that repetitions scatter. */
static bool finding_is_spread(const struct judge *judge, const struct finding *finding)
{
    const char *end = strrchr(fleet_text(&judge->fleet, finding->metric), '.');
    return end && str_equal(end, MEASURE_SPREAD);
}

/* False for a finding that compares something else under the name of the metric, such as the
 * measured clock with the reported one. */
static bool finding_is_about_value(const struct judge *judge, const struct finding *finding)
{
    if (isnan(finding->expected))
        return false;
    if (finding_is_spread(judge, finding))
        return true;
    const struct metric_column *column =
        fleet_metric(&judge->fleet, fleet_text(&judge->fleet, finding->metric));
    const struct cell *cell = fleet_number(column, finding->gpu, true);
    return cell && cell->value == finding->value;
}

static bool finding_is_seen_again(const struct finding *finding, double again)
{
    double first = finding->value - finding->expected, second = again - finding->expected;
    return first * second > 0 && fabs(second) >= SEEN_AGAIN_SHARE * fabs(first);
}

/* Whether some issue accuses the GPU by this figure, or by a throttle reason. */
static bool repeat_is_needed(const struct judge *judge, const struct repeat *repeat)
{
    const evidence_set throttled = EVIDENCE_SET(THROTTLED) | EVIDENCE_SET(THROTTLED_A_LITTLE);
    bool throttle = str_equal(fleet_text(&judge->fleet, repeat->metric), GPU_RESULT_THROTTLED);
    const struct issue *issue = issue_last(judge, repeat->gpu);
    while (issue && !(certainty_by_evidence(issue) == CERTAINTY_SURE &&
                      (throttle ? issue_has(issue, throttled) : issue->metric == repeat->metric)))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

/* A clock that is low but not unusual is accused if a throttle reason holds it down. If that was
 * over in the second measurement, the low clock is what this GPU usually has. */
static bool throttle_is_over(const struct judge *judge, const struct issue *issue)
{
    uint32_t throttled = symbols_find(&judge->fleet.symbols, GPU_RESULT_THROTTLED);
    const struct repeat *repeat = repeat_find(judge, issue->gpu, throttled);
    return issue_has(issue, EVIDENCE_SET(THROTTLED) | EVIDENCE_SET(THROTTLED_A_LITTLE)) &&
           isnan(issue_finding(judge, issue)->score) && repeat && repeat->value == 0;
}

static void add_confirmation(struct judge *judge, const struct issue *issue, enum evidence evidence,
                             enum confirmation confirmed)
{
    struct finding finding = finding_about(judge, issue, evidence);
    finding.confirmed = confirmed;
    findings_add(judge, finding, NULL);
}

/* The losses that the clock explains are over when the low clock is. */
static bool is_over_with_clock(const struct judge *judge, const struct issue *issue)
{
    const struct finding *finding = issue_finding(judge, issue);
    const struct issue *clock = issue_find(judge, issue->gpu, "clock.sm", BASIS_FLEET);
    return finding->explained_by == 1u << JUDGE_SM_CLOCK && isnan(finding->score) && clock &&
           issue_finding(judge, clock)->confirmed == SEEN_ONCE;
}

void stage_second_values(struct judge *judge, struct inventory *inventory)
{
    (void)inventory;
    /* Sorts the second values and drops those that no issue needs. */
    struct repeats *repeats = &judge->repeats;
    size_t kept = 0;
    for (size_t i = 0; i < repeats->count; i++)
        if (repeat_is_needed(judge, &repeats->items[i]))
            repeats->items[kept++] = repeats->items[i];
    repeats->count = kept;
    if (kept)
        sort_stable(repeats->items, kept, sizeof *repeats->items, repeat_order);
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        const struct finding *finding = issue_finding(judge, issue);
        const struct repeat *repeat = repeat_find(judge, issue->gpu, issue->metric);
        if (!repeat || certainty_by_evidence(issue) != CERTAINTY_SURE ||
            !finding_is_about_value(judge, finding))
            continue;
        if (isnan(repeat->value))
            add_confirmation(judge, issue, EVIDENCE_NOT_REPEATED, NOT_CONFIRMED);
        else if (finding_is_seen_again(finding, repeat->value) && !throttle_is_over(judge, issue))
            add_confirmation(judge, issue, EVIDENCE_SEEN_AGAIN, CONFIRMED_AGAIN);
        else
            add_confirmation(judge, issue, EVIDENCE_NOT_SEEN_AGAIN, SEEN_ONCE);
    }
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        if (certainty_by_evidence(issue) == CERTAINTY_SURE && is_over_with_clock(judge, issue))
            add_confirmation(judge, issue, EVIDENCE_NOT_SEEN_AGAIN, SEEN_ONCE);
    }
}

/* Sizes and values that are fixed in hardware are decided by many loads; a disturbance does not
 * change them. */
static bool can_be_disturbed(const struct judge *judge, const struct finding *finding)
{
    if (finding_is_spread(judge, finding))
        return true;
    if (finding->rule < 0 || finding->basis == BASIS_RULE)
        return false;
    const struct judge_metric *rule = &judge->basis.config->metrics[finding->rule];
    const char *kind = strrchr(rule->metric, '.');
    return rule->worse != JUDGE_ANY && !str_equal(kind, ".size");
}

/* A setting or the reported hardware explains it. */
static bool issue_has_cause(const struct judge *judge, const struct issue *issue)
{
    const struct finding *finding = issue_finding(judge, issue);
    return issue_has(issue, CLOCK_IS_LOWERED) || finding->explained_by ||
           (finding->verdict != VERDICT_DEGRADED && finding->verdict != VERDICT_UNSTEADY);
}

static bool has_repeat(const struct judge *judge, const struct issue *issue)
{
    for (size_t i = 0; i < judge->repeats.count; i++)
        if (judge->repeats.items[i].gpu == issue->gpu &&
            judge->repeats.items[i].metric == issue->metric)
            return true;
    return false;
}

/* Adds an unknown second value for every issue that needs one and has none: the second measurement
 * failed. */
void judge_end_again(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        if (certainty_by_evidence(issue) != CERTAINTY_SURE ||
            issue_has(issue, EVIDENCE_SET(WEAK_NODE)) || issue_has_cause(judge, issue) ||
            !can_be_disturbed(judge, issue_finding(judge, issue)) || has_repeat(judge, issue))
            continue;
        struct facts unknown = {0};
        facts_set_unknown(&unknown, fleet_text(&judge->fleet, issue->metric), NULL);
        judge_repeats_add(judge, issue->gpu, &unknown);
        facts_fini(&unknown);
    }
}

enum figure_part { PART_MEMORY, PART_SM, PART_HOST, PART_SPREAD, PART_OTHER };

/* What one cause moves together: L2 and the memory behind it, all that is measured in an SM, both
 * directions of the host link; the spreads of all figures. */
static enum figure_part figure_part_of(const struct judge *judge, const struct finding *finding)
{
    const char *metric = fleet_text(&judge->fleet, finding->metric);
    if (finding_is_spread(judge, finding))
        return PART_SPREAD;
    static const struct {
        const char *prefix;
        enum figure_part part;
    } parts[] = {{"main.", PART_MEMORY},
                 {"l2.", PART_MEMORY},
                 {"l1_data.", PART_SM},
                 {"sm.", PART_SM},
                 {"compute.slowest", PART_OTHER},
                 {"compute.", PART_SM},
                 {"host.", PART_HOST}};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (strncmp(metric, parts[i].prefix, strlen(parts[i].prefix)) == 0)
            return parts[i].part;
    return PART_OTHER;
}

/* A slow link is slow in both directions. What else the host copies disturbs one of them more. */
static bool is_as_large(const struct finding *finding, const struct finding *second)
{
    double own = fabs(finding->deviation), other = fabs(second->deviation);
    return fmin(own, other) >= fmax(own, other) / 2;
}

/* How many figures show the deviation, with its own. */
static uint32_t count_figures(const struct judge *judge, const struct issue *issue)
{
    const struct finding *finding = issue_finding(judge, issue);
    enum figure_part part = figure_part_of(judge, finding);
    uint32_t count = 1;
    for (const struct issue *other = issue_last(judge, issue->gpu); other;
         other = issue_previous(judge, other)) {
        const struct finding *second = issue_finding(judge, other);
        enum certainty verdict = certainty_of(judge, other);
        count += other->metric != issue->metric && verdict != CERTAINTY_IGNORED &&
                 can_be_disturbed(judge, second) &&
                 (verdict == CERTAINTY_SURE || fabs(second->score) >= COMPANION_SCORE) &&
                 part != PART_OTHER && figure_part_of(judge, second) == part &&
                 (part != PART_HOST || is_as_large(finding, second));
    }
    return count;
}

/* The repetitions of a figure of the GPU itself agree: what disturbs it now and then would be over
 * in some of them. Copies, clocks and loads are disturbed for longer, and the rates of the units
 * are measured once. */
static bool repetitions_agree(const struct judge *judge, const struct finding *finding)
{
    enum figure_part part = figure_part_of(judge, finding);
    if (strncmp(fleet_text(&judge->fleet, finding->metric), "compute.", 8) == 0)
        return false;
    const struct cell *cell =
        finding->rule < 0 ? NULL : fleet_number(judge->columns[finding->rule], finding->gpu, false);
    return (part == PART_MEMORY || part == PART_SM) && cell && isfinite(cell->spread) &&
           fabs(finding->value - finding->expected) >= AGREE * cell->spread;
}

/* The driver reports the SM clock too. */
static bool driver_agrees(const struct judge *judge, const struct finding *finding)
{
    if (!str_equal(fleet_text(&judge->fleet, finding->metric), "clock.sm"))
        return false;
    const struct metric_column *column = fleet_metric(&judge->fleet, "clock.sm_reported");
    const struct cell *reported = fleet_number(column, finding->gpu, true);
    return reported && fabs(reported->value / finding->value - 1) <= CLOCK_SHARE;
}

/* Whether an issue accuses the GPU that did not join others. */
static bool is_accused_otherwise(const struct judge *judge, uint32_t gpu)
{
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && (issue_has(issue, EVIDENCE_SET(JOINING)) ||
                     certainty_of(judge, issue) != CERTAINTY_SURE))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

/* The confirmation of an issue that was not measured again; its issue is ISSUE_NEW if there is
 * nothing to add. */
static struct finding find_confirmation(const struct judge *judge, const struct issue *issue)
{
    struct finding finding = finding_about(judge, issue, EVIDENCE_CONFIRMED);
    if (finding.confirmed != CONFIRMATION_NONE || certainty_of(judge, issue) != CERTAINTY_SURE ||
        issue_has(issue, EVIDENCE_SET(SHARED) | EVIDENCE_SET(WEAK_NODE)) ||
        !can_be_disturbed(judge, &finding)) {
        finding.issue = ISSUE_NEW;
        return finding;
    }
    finding.confirming = count_figures(judge, issue) + driver_agrees(judge, &finding);
    finding.confirmed = issue_has_cause(judge, issue)        ? CONFIRMED_BY_CAUSE
                        : finding.confirming > 1             ? CONFIRMED_BY_FIGURES
                        : repetitions_agree(judge, &finding) ? CONFIRMED_BY_REPETITIONS
                                                             : NOT_CONFIRMED;
    if (finding.confirmed == NOT_CONFIRMED)
        finding.evidence = EVIDENCE_NOT_CONFIRMED;
    return finding;
}

void stage_confirmations(struct judge *judge, struct inventory *inventory)
{
    (void)inventory;
    size_t count = judge->findings.issue_count, found = 0;
    struct finding *confirmations = mem_array(count, sizeof *confirmations);
    /* All are found before one is added, so that the order of the issues does not matter. */
    for (size_t i = 0; i < count; i++) {
        confirmations[found] = find_confirmation(judge, &judge->findings.issues[i]);
        found += confirmations[found].issue != ISSUE_NEW;
    }
    for (size_t i = 0; i < found; i++)
        findings_add(judge, confirmations[i], NULL);
    free(confirmations);
    for (size_t i = 0; i < count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        if (issue_has(issue, EVIDENCE_SET(JOINING)) &&
            certainty_of(judge, issue) == CERTAINTY_SURE &&
            !is_accused_otherwise(judge, issue->gpu))
            findings_add(judge, finding_about(judge, issue, EVIDENCE_ALONE), NULL);
    }
    for (size_t i = 0; i < count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        if (issue_has(issue, EVIDENCE_SET(WEAK_NODE)) && !issue_has(issue, EVIDENCE_SET(SHARED)))
            findings_add(judge, finding_about(judge, issue, EVIDENCE_NODE_IS_FINE), NULL);
    }
}

char *judge_confirmation_text(const struct finding *finding)
{
    static const char *const words[] = {
        [CONFIRMED_AGAIN] = "2 of 2",
        [SEEN_ONCE] = "1 of 2",
        [CONFIRMED_BY_CAUSE] = "by its cause",
        [CONFIRMED_BY_REPETITIONS] = "by its repetitions",
        [NOT_CONFIRMED] = "no",
    };
    if (finding->confirmed == CONFIRMED_BY_FIGURES)
        return str_format("by %u figures", finding->confirming);
    return str_copy(words[finding->confirmed]);
}

/* The index of the first second value of this GPU or a later one. */
static size_t first_repeat(const struct repeats *repeats, uint32_t gpu)
{
    size_t low = 0, high = repeats->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (repeats->items[middle].gpu < gpu)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int fact_key_order(const void *left, const void *right)
{
    const struct fact *a = left, *b = right;
    return str_order(a->key, b->key);
}

void judge_repeats_list(const struct judge *judge, uint32_t gpu, struct facts *out_facts)
{
    const struct repeats *repeats = &judge->repeats;
    for (size_t i = first_repeat(repeats, gpu); i < repeats->count && repeats->items[i].gpu == gpu;
         i++) {
        const char *metric = fleet_text(&judge->fleet, repeats->items[i].metric);
        if (isnan(repeats->items[i].value))
            facts_set_unknown(out_facts, metric, "the second measurement failed");
        else
            facts_set_real(out_facts, metric, repeats->items[i].value);
    }
    if (out_facts->count)
        sort_stable(out_facts->items, out_facts->count, sizeof *out_facts->items, fact_key_order);
}
