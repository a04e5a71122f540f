/* What confirms a finding: a second measurement, its cause, or other figures. */
#include "judge/confirmations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* A second value confirms a deviation if it deviates at least this much of it. A disturbance is
 * over by then. Against a fleet, two figures of one memory accuse from about 4.2 standard
 * deviations on, a single one from about 5.2: at most 2 % of the healthy figures deviate by half of
 * that. */
static const double SEEN_AGAIN_SHARE = 0.5;

/* Another figure confirms a finding if its own score is at least this. */
static const double COMPANION_SCORE = 3;

/* The driver's clock confirms the measured one if they differ by at most this share. */
static const double CLOCK_SHARE = 0.02;

int confirmations_add(struct judge *judge, uint32_t gpu, const struct facts *values)
{
    struct repeats *repeats = &judge->repeats;
    size_t before = repeats->count;
    if (!values->count)
        return 0;
    struct repeat *grown =
        mem_grow(repeats->items, &repeats->capacity, repeats->count + values->count, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    repeats->items = grown;
    for (size_t i = 0; i < values->count; i++) {
        double value = measure_digits(fact_number(&values->items[i]), 6);
        struct repeat repeat = {.gpu = gpu, .value = value};
        if (symbols_text(&judge->fleet.symbols, values->items[i].key, &repeat.metric)) {
            repeats->count = before;
            return -ENOMEM;
        }
        grown[repeats->count++] = repeat;
    }
    return 0;
}

static int by_gpu_and_metric(const void *left, const void *right)
{
    const struct repeat *a = left, *b = right;
    if (a->gpu != b->gpu)
        return a->gpu < b->gpu ? -1 : 1;
    return (a->metric > b->metric) - (a->metric < b->metric);
}

static const struct repeat *find_repeat(const struct judge *judge, uint32_t gpu, uint32_t metric)
{
    const struct repeat wanted = {.gpu = gpu, .metric = metric};
    if (!judge->repeats.count)
        return NULL;
    return bsearch(&wanted, judge->repeats.items, judge->repeats.count, sizeof wanted,
                   by_gpu_and_metric);
}

/* Whether the finding is that repetitions scatter. */
static bool is_spread(const struct judge *judge, const struct finding *finding)
{
    const char *end = strrchr(fleet_text(&judge->fleet, finding->metric), '.');
    return end && str_equal(end, MEASURE_SPREAD);
}

/* False for a finding that compares something else under the name of the metric, such as the
 * measured clock with the reported one. */
static bool is_about_value(const struct judge *judge, const struct finding *finding)
{
    if (isnan(finding->expected))
        return false;
    if (is_spread(judge, finding))
        return true;
    const struct metric_column *column =
        fleet_metric(&judge->fleet, fleet_text(&judge->fleet, finding->metric));
    const struct cell *cell = fleet_number(column, finding->gpu, true);
    return cell && cell->value == finding->value;
}

static bool is_seen_again(const struct finding *finding, double again)
{
    double first = finding->value - finding->expected, second = again - finding->expected;
    return first * second > 0 && fabs(second) >= SEEN_AGAIN_SHARE * fabs(first);
}

/* Whether some finding accuses the GPU by this figure, or by a throttle reason. */
static bool is_needed(const struct judge *judge, const struct repeat *repeat)
{
    bool throttle = str_equal(fleet_text(&judge->fleet, repeat->metric), GPU_RESULT_THROTTLED);
    for (uint32_t at = judge->findings.last[repeat->gpu]; at;) {
        const struct finding *finding = &judge->findings.items[at - 1];
        if (finding->accused && (throttle ? finding->throttled : finding->metric == repeat->metric))
            return true;
        at = finding->previous;
    }
    return false;
}

static void sort_repeats(struct judge *judge)
{
    struct repeats *repeats = &judge->repeats;
    size_t kept = 0;
    for (size_t i = 0; i < repeats->count; i++)
        if (is_needed(judge, &repeats->items[i]))
            repeats->items[kept++] = repeats->items[i];
    repeats->count = kept;
    if (kept)
        qsort(repeats->items, kept, sizeof *repeats->items, by_gpu_and_metric);
}

/* A clock that is low but not unusual is accused if a throttle reason holds it down. If that was
 * over in the second measurement, the low clock is what this GPU usually has. */
static bool is_throttle_over(const struct judge *judge, const struct finding *finding)
{
    uint32_t throttled = symbols_find(&judge->fleet.symbols, GPU_RESULT_THROTTLED);
    const struct repeat *repeat = find_repeat(judge, finding->gpu, throttled);
    return finding->throttled && isnan(finding->score) && repeat && repeat->value == 0;
}

/* The losses that the clock explains go when the clock is no longer accused. */
static void drop_consequences(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.count; i++) {
        struct finding *finding = &judge->findings.items[i];
        const struct finding *clock = finding_of(judge, finding->gpu, "clock.sm", BASIS_FLEET);
        if (finding->accused && finding->explained_by == 1u << JUDGE_SM_CLOCK &&
            isnan(finding->score) && clock && clock->confirmed == SEEN_ONCE) {
            finding->accused = false;
            finding->confirmed = SEEN_ONCE;
        }
    }
}

void confirmations_compare(struct judge *judge)
{
    sort_repeats(judge);
    for (size_t i = 0; i < judge->findings.count; i++) {
        struct finding *finding = &judge->findings.items[i];
        const struct repeat *repeat = find_repeat(judge, finding->gpu, finding->metric);
        if (!finding->accused || !repeat || !is_about_value(judge, finding))
            continue;
        finding->accused =
            is_seen_again(finding, repeat->value) && !is_throttle_over(judge, finding);
        finding->confirmed = isnan(repeat->value) ? NOT_CONFIRMED
                             : finding->accused   ? CONFIRMED_AGAIN
                                                  : SEEN_ONCE;
    }
    drop_consequences(judge);
}

/* Sizes and values that are fixed in hardware are decided by many loads; a disturbance does not
 * change them. */
static bool can_be_disturbed(const struct judge *judge, const struct finding *finding)
{
    if (is_spread(judge, finding))
        return true;
    if (finding->rule < 0 || finding->basis == BASIS_RULE)
        return false;
    const struct judge_metric *rule = &judge->basis.config->metrics[finding->rule];
    const char *kind = strrchr(rule->metric, '.');
    return rule->worse != JUDGE_ANY && !str_equal(kind, ".size");
}

/* A setting or the reported hardware explains it. */
static bool has_cause(const struct finding *finding)
{
    return finding->clock_held || finding->explained_by || finding->kind != KIND_DEGRADED;
}

static bool has_repeat(const struct judge *judge, const struct finding *finding)
{
    for (size_t i = 0; i < judge->repeats.count; i++)
        if (judge->repeats.items[i].gpu == finding->gpu &&
            judge->repeats.items[i].metric == finding->metric)
            return true;
    return false;
}

int confirmations_end(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.count; i++) {
        const struct finding *finding = &judge->findings.items[i];
        struct facts unknown = {0};
        if (!finding->accused || finding->by_node || has_cause(finding) ||
            !can_be_disturbed(judge, finding) || has_repeat(judge, finding))
            continue;
        const char *metric = fleet_text(&judge->fleet, finding->metric);
        int rc = facts_set_unknown(&unknown, metric, NULL) ||
                         confirmations_add(judge, finding->gpu, &unknown)
                     ? -ENOMEM
                     : 0;
        facts_fini(&unknown);
        if (rc)
            return rc;
    }
    return 0;
}

enum part { PART_MEMORY, PART_SM, PART_HOST, PART_SPREAD, PART_OTHER };

/* What one cause moves together: L2 and the memory behind it, all that is measured in an SM, both
 * directions of the host link; the spreads of all figures. */
static enum part part_of(const struct judge *judge, const struct finding *finding)
{
    const char *metric = fleet_text(&judge->fleet, finding->metric);
    if (is_spread(judge, finding))
        return PART_SPREAD;
    static const struct {
        const char *prefix;
        enum part part;
    } parts[] = {{"main.", PART_MEMORY},
                 {"l2.", PART_MEMORY},
                 {"l1_data.", PART_SM},
                 {"sm.", PART_SM},
                 {"host.", PART_HOST}};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (strncmp(metric, parts[i].prefix, strlen(parts[i].prefix)) == 0)
            return parts[i].part;
    return PART_OTHER;
}

static bool is_companion(const struct judge *judge, const struct finding *finding,
                         const struct finding *other)
{
    return other->metric != finding->metric && !other->dropped && can_be_disturbed(judge, other) &&
           (other->accused || fabs(other->score) >= COMPANION_SCORE) &&
           part_of(judge, other) != PART_OTHER && part_of(judge, other) == part_of(judge, finding);
}

static uint32_t count_figures(const struct judge *judge, const struct finding *finding)
{
    uint32_t count = 1;
    for (uint32_t at = judge->findings.last[finding->gpu]; at;) {
        const struct finding *other = &judge->findings.items[at - 1];
        count += is_companion(judge, finding, other);
        at = other->previous;
    }
    return count;
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

static void settle(const struct judge *judge, struct finding *finding)
{
    finding->confirming = count_figures(judge, finding) + driver_agrees(judge, finding);
    if (has_cause(finding))
        finding->confirmed = CONFIRMED_BY_CAUSE;
    else if (finding->confirming > 1)
        finding->confirmed = CONFIRMED_BY_FIGURES;
    else
        finding->confirmed = NOT_CONFIRMED;
}

static bool is_open(const struct judge *judge, const struct finding *finding)
{
    return finding->accused && !finding->dropped && !finding->shared && !finding->by_node &&
           finding->confirmed == CONFIRMATION_NONE && can_be_disturbed(judge, finding);
}

/* Whether a finding accuses the GPU that did not join others. */
static bool is_accused_otherwise(const struct judge *judge, uint32_t gpu)
{
    for (uint32_t at = judge->findings.last[gpu]; at;) {
        const struct finding *finding = &judge->findings.items[at - 1];
        if (finding->accused && !finding->joined && !finding->dropped)
            return true;
        at = finding->previous;
    }
    return false;
}

void confirmations_settle(struct judge *judge)
{
    struct findings *findings = &judge->findings;
    /* All are settled before `accused` changes, so that the order of the findings does not matter.
     */
    for (size_t i = 0; i < findings->count; i++)
        if (is_open(judge, &findings->items[i]))
            settle(judge, &findings->items[i]);
    for (size_t i = 0; i < findings->count; i++)
        findings->items[i].accused &= findings->items[i].confirmed != NOT_CONFIRMED;
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].joined && !findings->items[i].by_node &&
            !is_accused_otherwise(judge, findings->items[i].gpu))
            findings->items[i].accused = false;
}

int confirmations_text(const struct finding *finding, char **out_text)
{
    *out_text = NULL;
    switch (finding->confirmed) {
    case CONFIRMATION_NONE:
        return 0;
    case CONFIRMED_AGAIN:
        return str_copy_to(out_text, "2 of 2");
    case SEEN_ONCE:
        return str_copy_to(out_text, "1 of 2");
    case CONFIRMED_BY_CAUSE:
        return str_copy_to(out_text, "by its cause");
    case NOT_CONFIRMED:
        return str_copy_to(out_text, "no");
    case CONFIRMED_BY_FIGURES:
        *out_text = str_format("by %u figures", finding->confirming);
        return *out_text ? 0 : -ENOMEM;
    }
    return 0;
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

static int by_key(const void *left, const void *right)
{
    const struct fact *a = left, *b = right;
    return str_order(a->key, b->key);
}

static int set_value(struct facts *facts, const char *metric, double value)
{
    return isnan(value) ? facts_set_unknown(facts, metric, "the second measurement failed")
                        : facts_set_real(facts, metric, value);
}

int confirmations_list(const struct judge *judge, uint32_t gpu, struct facts *out_facts)
{
    const struct repeats *repeats = &judge->repeats;
    for (size_t i = first_repeat(repeats, gpu); i < repeats->count && repeats->items[i].gpu == gpu;
         i++)
        if (set_value(out_facts, fleet_text(&judge->fleet, repeats->items[i].metric),
                      repeats->items[i].value))
            return -ENOMEM;
    if (out_facts->count)
        qsort(out_facts->items, out_facts->count, sizeof *out_facts->items, by_key);
    return 0;
}
