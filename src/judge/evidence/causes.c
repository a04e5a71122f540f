/* Causes of measured deviations. A condition in which the GPU differs from its model explains a
 * deviation if the loss that it can cause is large enough. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/sm_rates.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/model.h"
#include "judge/verdict.h"

/* A condition that explains less than this part of the loss is not named. */
static const double PART = 0.2;

/* If ECC data is stored in main memory, ECC costs at most this share of the bandwidth. */
static const double ECC_COST = 0.15;

static const struct {
    const char *name, *unit;
    enum verdict verdict;
} conditions[JUDGE_CONDITION_COUNT] = {
    [JUDGE_SM_CLOCK] = {"SM clock", "MHz", VERDICT_DEGRADED},
    [JUDGE_MEMORY_CLOCK] = {"memory clock", "MHz", VERDICT_MISCONFIGURED},
    [JUDGE_SMS] = {"SMs", "", VERDICT_MISMATCHED},
    [JUDGE_MEMORY_BUS] = {"memory bus", "bits", VERDICT_MISMATCHED},
    [JUDGE_L2] = {"L2", "B", VERDICT_MISMATCHED},
    [JUDGE_PCIE] = {"PCIe link", "", VERDICT_DEGRADED},
    [JUDGE_POWER_LIMIT] = {"power limit", "W", VERDICT_MISCONFIGURED},
};

/* The conditions that explain a loss. */
struct explanation {
    struct strbuf words;
    double loss; /* the share that they can cause together */
    enum verdict verdict;
    uint32_t bits;
};

/* Bits of finding.explained_by after those of the conditions. */
enum { BIT_ECC = JUDGE_CONDITION_COUNT, BIT_PARTLY };

static void explanation_put(struct explanation *explanation, const struct judge *judge,
                            enum judge_condition condition, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    struct strbuf *words = &explanation->words;
    double own = judge_condition_value(fleet, condition, gpu);
    double usual = own / judge_condition_ratio(judge, condition, gpu);
    strbuf_puts(words, words->length ? "; " : "");
    if (condition == JUDGE_PCIE) {
        strbuf_printf(words, "PCIe generation %.0f x%.0f, model has %.2g times that",
                      fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, "pcie_gen"), gpu),
                      fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, "pcie_width"), gpu),
                      usual / own);
        return;
    }
    bool clock = condition == JUDGE_SM_CLOCK || condition == JUDGE_MEMORY_CLOCK;
    strbuf_printf(words, "%s ", conditions[condition].name);
    fact_text_put_number(words, own, conditions[condition].unit);
    strbuf_puts(words, clock ? ", model runs at " : ", model has ");
    fact_text_put_number(words, usual, conditions[condition].unit);
}

static void explanation_add(struct explanation *explanation, double loss, enum verdict verdict,
                            unsigned bit)
{
    explanation->bits |= 1u << bit;
    /* The most severe kind is kept: the enumeration begins with it. */
    if (explanation->loss == 0 || verdict < explanation->verdict)
        explanation->verdict = verdict;
    explanation->loss = 1 - (1 - explanation->loss) * (1 - fmin(loss, 0.999));
}

static void explanation_add_ecc(struct explanation *explanation, const struct judge *judge,
                                const struct judge_metric *rule, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct group *group = &fleet->groups[fleet->gpus[gpu].group];
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, "ecc");
    const struct usual *usual = fleet_usual(fleet, group, SET_CONFIG, column);
    if (strncmp(rule->metric, "main.bandwidth", 14) != 0 || !usual ||
        fleet_fact_number(fleet, column, gpu) != 1 || fleet_code_number(fleet, usual->code) != 0)
        return;
    strbuf_puts(&explanation->words, explanation->words.length ? "; " : "");
    strbuf_puts(&explanation->words, "ECC on, off on its peers");
    explanation_add(explanation, ECC_COST, VERDICT_MISCONFIGURED, BIT_ECC);
}

/* SMs at a low clock cannot keep a memory or link busy. So a lowered SM clock, whose own cause is
 * known, also explains bandwidths that do not follow it at usual clocks: an H200 locked at 45 % of
 * its clock reaches half of its memory bandwidth, and 88 % of its host bandwidth. */
static void explanation_add_clock(struct explanation *explanation, const struct judge *judge,
                                  const struct judge_metric *rule, uint32_t gpu)
{
    const struct issue *clock = issue_find(judge, gpu, "clock.sm", BASIS_FLEET);
    double ratio = judge->clock_ratio[gpu];
    bool of_load = strncmp(rule->metric, "load.", 5) == 0;
    if ((!of_load && !strstr(rule->metric, ".bandwidth")) || rule->follows[JUDGE_SM_CLOCK] > 0 ||
        !clock || certainty_by_evidence(clock) != CERTAINTY_SURE ||
        !issue_has(clock, CLOCK_IS_LOWERED) || !judge_number_lower(ratio, 1))
        return;
    explanation_put(explanation, judge, JUDGE_SM_CLOCK, gpu);
    explanation_add(explanation, 1 - ratio, issue_finding(judge, clock)->verdict, JUDGE_SM_CLOCK);
}

static void explanation_find(struct explanation *explanation, const struct judge *judge,
                             const struct judge_metric *rule, uint32_t gpu)
{
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++) {
        enum judge_condition condition = (enum judge_condition)c;
        double ratio = judge_condition_ratio(judge, condition, gpu);
        /* Figures were compared at equal SM clock. */
        if (condition == JUDGE_SM_CLOCK || rule->follows[c] <= 0 || !judge_number_lower(ratio, 1))
            continue;
        explanation_put(explanation, judge, condition, gpu);
        /* The share that a figure loses if a condition is `ratio` of the usual. */
        double share = rule->follows[condition];
        double loss = rule->worse == JUDGE_HIGHER ? share * (1 / ratio - 1) : share * (1 - ratio);
        explanation_add(explanation, loss, conditions[c].verdict, (unsigned)c);
    }
    explanation_add_clock(explanation, judge, rule, gpu);
    explanation_add_ecc(explanation, judge, rule, gpu);
}

/* "cause unknown: memory clock and SMs are normal" */
static void put_cause_unknown(struct strbuf *out, const struct judge_metric *rule)
{
    const char *names[JUDGE_CONDITION_COUNT];
    size_t count = 0;
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
        if (c != JUDGE_SM_CLOCK && rule->follows[c] > 0)
            names[count++] = conditions[c].name;
    strbuf_puts(out, "cause unknown");
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s%s", i == 0 ? ": " : i + 1 < count ? ", " : " and ", names[i]);
    if (count)
        strbuf_puts(out, count == 1 ? " is normal" : " are normal");
}

/* Names the SMs that are slower than the others where a bandwidth of L2 is low. */
static void put_slow_sms(struct strbuf *out, const struct fleet *fleet, const char *metric,
                         uint32_t gpu)
{
    struct sm_rates rates;
    if (strncmp(metric, "l2.bandwidth", 12) != 0 || judge_sm_rates(fleet, gpu, &rates))
        return;
    struct sm_loss loss = sm_rates_weak(&rates);
    if (!loss.count)
        return;
    sm_loss_put(out, &loss);
    strbuf_puts(out, " than the others, ");
}

void stage_causes(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.issue_count; i++) {
        struct finding finding = finding_about(judge, &judge->findings.issues[i], EVIDENCE_CAUSE);
        if (finding.cause || finding.rule < 0)
            continue;
        const struct judge_metric *rule = &judge->basis.config->metrics[finding.rule];
        struct explanation explanation = {{0}};
        struct strbuf text = {0};
        double loss = judge_worse_share(rule->worse, finding.deviation), room = rule->floor;
        /* The rest may be what healthy GPUs differ by. */
        if (finding.basis == BASIS_FLEET)
            room += model_constants[JOIN_SCORE] *
                    model_figure(judge, finding.gpu, (size_t)finding.rule)->sigma;
        explanation_find(&explanation, judge, rule, finding.gpu);
        if (explanation.loss > 0 && judge_loss_fits(loss, explanation.loss, room)) {
            strbuf_puts(&text, explanation.words.data);
            finding.verdict = explanation.verdict;
            finding.explained_by = explanation.bits;
        } else if (explanation.loss >= PART * loss && explanation.loss > 0) {
            strbuf_printf(&text,
                          "%s explains %.0f %% of the %.0f %%; the cause of the rest is unknown",
                          explanation.words.data, 100 * explanation.loss, 100 * loss);
            finding.explained_by = explanation.bits | 1u << BIT_PARTLY;
        } else {
            /* Names the SM, if it was measured: "sm.l1_worst_sm" has the SM of "sm.l1_worst". */
            char name[80];
            snprintf(name, sizeof name, "%.60s_sm", rule->metric);
            double sm = fleet_value(&judge->fleet, name, finding.gpu, true);
            if (!isnan(sm))
                strbuf_printf(&text, "SM %.0f is slower than the others, ", sm);
            put_slow_sms(&text, &judge->fleet, rule->metric, finding.gpu);
            put_cause_unknown(&text, rule);
        }
        strbuf_fini(&explanation.words);
        findings_add(judge, finding, text.data);
    }
}
