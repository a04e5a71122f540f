/* Facts against the majority of the model (hardware, versions, settings), and settings below the
 * GPU's own default. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/verdict.h"

static const char *const set_names[SET_COUNT] = {"hardware", "board", "config", "health"};
static const enum inventory_facts fact_sets[SET_COUNT] = {INVENTORY_HARDWARE, INVENTORY_BOARD,
                                                          INVENTORY_CONFIG, INVENTORY_HEALTH};

static bool fact_differs(const struct fleet *fleet, enum fact_compared compared, uint32_t code,
                         uint32_t usual)
{
    double own = fleet_code_number(fleet, code), other = fleet_code_number(fleet, usual);
    if (!fleet_known(fleet, code) || code == usual)
        return false;
    if (isnan(own) || isnan(other))
        return compared == COMPARED_DIFFERENT;
    return compared == COMPARED_LOWER ? own < other : !judge_number_same(own, other);
}

/* Some GPUs store ECC data in main memory and report less memory with ECC on. Only ECC is reported
 * then. */
static bool fact_follows_from_ecc(const struct fleet *fleet, const struct group *group,
                                  const char *key, uint32_t gpu)
{
    const struct fact_column *ecc = fleet_facts(fleet, SET_CONFIG, "ecc");
    const struct usual *usual = fleet_usual(fleet, group, SET_CONFIG, ecc);
    return strcmp(key, "memory_bytes") == 0 && usual && fleet_known(fleet, ecc->codes[gpu]) &&
           ecc->codes[gpu] != usual->code;
}

/* Whether the maximum of the link is known. Then a rule compares the link with it. */
static bool link_has_limit(const struct fleet *fleet, const char *key, uint32_t gpu)
{
    char max_key[64];
    snprintf(max_key, sizeof max_key, "%.50s_max", key);
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, max_key), gpu) > 0;
}

/* One column of facts in one group. */
struct fact_comparison {
    const struct group *group; /* inside which the fact is compared */
    const struct fact_column *column;
    const struct usual *usual;
    enum fact_set set;
    struct fact_manner manner;
    uint32_t *differing; /* the GPUs that differ from the majority in a way that is reported */
    size_t count;
};

/* Without a clear majority, a fact in which several GPUs differ is reported for the model. */
static bool fact_is_divided(const struct fact_comparison *c)
{
    return c->count >= DIVIDED_MIN && !usual_is_clear(c->usual);
}

static void fact_compare(const struct fleet *fleet, struct fact_comparison *c)
{
    const char *key = fleet_text(fleet, c->column->head.name);
    enum fact_compared compared = c->manner.compared;
    c->count = 0;
    if (compared == COMPARED_NOT || compared == COMPARED_KIND || c->usual->votes == c->usual->known)
        return;
    for (size_t i = 0; i < c->group->count; i++) {
        uint32_t gpu = c->group->members[i];
        if (fact_differs(fleet, compared, c->column->codes[gpu], c->usual->code) &&
            !fact_follows_from_ecc(fleet, c->group, key, gpu) &&
            !(compared == COMPARED_LOWER && link_has_limit(fleet, key, gpu)))
            c->differing[c->count++] = gpu;
    }
}

static void fact_report(struct judge *judge, const struct fact_comparison *c, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *column = c->column;
    const char *key = fleet_text(fleet, column->head.name);
    const struct group *model = &fleet->groups[fleet->gpus[gpu].group];
    const struct fact own = fleet_fact(fleet, column, column->codes[gpu]);
    const struct fact other = fleet_fact(fleet, column, c->usual->code);
    bool clear = usual_is_clear(c->usual);
    char *name = str_format("%s.%s", set_names[c->set], key);
    struct finding finding = finding_new(judge, gpu, name, BASIS_FLEET,
                                         clear ? EVIDENCE_MINORITY : EVIDENCE_NO_MAJORITY);
    free(name);
    finding.unit = judge_symbol(judge, fact_text_unit(key));
    finding.verdict = c->manner.verdict;
    if (own.kind == FACT_INT || own.kind == FACT_REAL) {
        finding_compare(&finding, fleet_code_number(fleet, column->codes[gpu]),
                        fleet_code_number(fleet, c->usual->code));
        if (finding.expected == 0)
            finding.deviation = NAN;
    }
    struct strbuf text = {0};
    fact_text_put_key(&text, own.key);
    strbuf_puts(&text, " ");
    fact_text_put_value(&text, &own);
    strbuf_printf(&text, ", %u of %u of its %s: ", c->usual->votes, c->usual->known,
                  c->manner.by_board && model->populations > 1 ? "board part" : "model");
    fact_text_put_value(&text, &other);
    strbuf_puts(&text, clear ? "" : "; too few to tell who is right");
    findings_add(judge, finding, text.data);
}

/* Compares every fact of a model in the groups in which it is compared: the model itself, or its
 * populations. Then either reports the GPUs that differ, or, with an inventory, the facts in which
 * the model is divided. differing: room for all GPUs of the model. */
static void facts_compare(struct judge *judge, const struct group *model, uint32_t *differing,
                          struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (int set = 0; set < SET_COUNT; set++)
        for (size_t i = 0; i < fleet->facts[set].count; i++) {
            struct fact_comparison c = {.column = &fleet->facts[set].items[i],
                                        .differing = differing};
            c.set = (enum fact_set)set;
            c.manner = catalogue_manner(fact_sets[set], fleet_text(fleet, c.column->head.name));
            bool by_board = c.manner.by_board;
            const struct group *groups =
                by_board ? &fleet->populations[model->populations_at] : model;
            for (size_t k = 0; k < (by_board ? model->populations : 1); k++) {
                c.group = &groups[k];
                c.usual = &groups[k].usual[set][i];
                fact_compare(fleet, &c);
                if (inventory && fact_is_divided(&c))
                    judge_report_divided_fact(judge, c.group, (enum fact_set)set, c.column,
                                              differing, c.count, inventory);
                for (size_t n = 0; n < c.count && !inventory && !fact_is_divided(&c); n++)
                    fact_report(judge, &c, differing[n]);
            }
        }
}

/* The memory clock is a setting that is known only under load. */
static void memory_clock_compare(struct judge *judge, const struct group *group)
{
    const struct metric_column *column = fleet_metric(&judge->fleet, "clock.memory");
    struct usual votes = {0}; /* GPUs with a known clock, and those that run at the usual one */
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        if (!fleet_judged(&judge->fleet.gpus[gpu]) || !fleet_number(column, gpu, true))
            continue;
        votes.known++;
        votes.votes += judge_number_same(judge_condition_ratio(judge, JUDGE_MEMORY_CLOCK, gpu), 1);
    }
    bool clear = usual_is_clear(&votes);
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(column, gpu, true);
        double ratio = judge_condition_ratio(judge, JUDGE_MEMORY_CLOCK, gpu);
        if (!cell || !judge_number_lower(ratio, 1))
            continue;
        double own = cell->value, usual = cell->value / ratio;
        struct finding finding = finding_new(judge, gpu, "clock.memory", BASIS_FLEET,
                                             clear ? EVIDENCE_MINORITY : EVIDENCE_NO_MAJORITY);
        finding.unit = cell->unit;
        finding.verdict = VERDICT_MISCONFIGURED;
        finding.value = own;
        finding.expected = usual;
        finding.deviation = ratio - 1;
        findings_add(
            judge, finding,
            clear ? str_format("memory clock %.0f MHz, model runs at %.0f MHz", own, usual)
                  : str_format("memory clock %.0f MHz, %u of %u of its model: %.0f MHz; too few to "
                               "tell who is right",
                               own, votes.votes, votes.known, usual));
    }
}

void stage_settings(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t *differing = mem_array(fleet->count, sizeof *differing);
    for (size_t g = 0; g < fleet->group_count; g++) {
        facts_compare(judge, &fleet->groups[g], differing, NULL);
        memory_clock_compare(judge, &fleet->groups[g]);
    }
    free(differing);
}

void judge_report_divided_settings(struct judge *judge, const struct group *model,
                                   struct inventory *inventory)
{
    uint32_t *differing = mem_array(model->count, sizeof *differing);
    facts_compare(judge, model, differing, inventory);
    free(differing);
}

enum { AGREE_MIN = 3 }; /* GPUs that say what is usual */

/* GPUs of one model reach clocks that are 8 % apart for other reasons. So a clock counts as locked
 * only if it is at most LOCKED of the allowed one, its repetitions scatter by at most STEADY, and
 * the driver reports the same clock within SAME. On an H200 locked at 900 of 1980 MHz, the spread
 * is 0.0002 % and both clocks agree within 0.002 %. */
static const double LOCKED = 0.92, STEADY = 0.002, SAME = 0.01;

static double setting_of(const struct fleet *fleet, const char *key, uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, key), gpu);
}

/* The lower of clock limit and application clock; NaN if neither is known. */
static double allowed_clock(const struct fleet *fleet, uint32_t gpu)
{
    return fmin(setting_of(fleet, "sm_clock_limit_mhz", gpu),
                setting_of(fleet, "sm_clock_application_mhz", gpu));
}

bool judge_clock_is_locked(const struct fleet *fleet, uint32_t gpu)
{
    const struct cell *clock = fleet_number(fleet_metric(fleet, "clock.sm"), gpu, false);
    const struct cell *reported =
        fleet_number(fleet_metric(fleet, "clock.sm_reported"), gpu, false);
    const char *throttle = fleet_fact_text(fleet, fleet_facts(fleet, SET_HEALTH, "throttle"), gpu);
    return clock && reported && throttle && strcmp(throttle, "none") == 0 &&
           clock->value <= LOCKED * allowed_clock(fleet, gpu) &&
           clock->spread <= STEADY * clock->value &&
           fabs(clock->value / reported->value - 1) <= SAME;
}

char *judge_locked_clock_text(const struct fleet *fleet, uint32_t gpu)
{
    const struct cell *clock = fleet_number(fleet_metric(fleet, "clock.sm"), gpu, false);
    return str_format("the SM clock is locked at %.0f of %.0f MHz: it is steady there and the "
                      "driver names no reason (nvidia-smi -lgc or a management tool sets this)",
                      clock->value, allowed_clock(fleet, gpu));
}

/* A setting that may be lower than the card's default. Without a key: the locked clock. */
static const struct own_default {
    const char *key, *default_key;
    const char *words, *unit, *advice;
} own_defaults[] = {
    {"power_limit_w", "power_limit_default_w", "power limit", "W", ""},
    {"sm_clock_application_mhz", "sm_clock_application_default_mhz", "SM application clock", "MHz",
     " (nvidia-smi -rac sets the default)"},
    {NULL, NULL, NULL, NULL, NULL},
};

static bool own_default_is_undercut(const struct fleet *fleet, const struct own_default *setting,
                                    uint32_t gpu)
{
    if (!setting->key)
        return judge_clock_is_locked(fleet, gpu);
    return judge_number_lower(setting_of(fleet, setting->key, gpu),
                              setting_of(fleet, setting->default_key, gpu));
}

static char *own_default_words(const struct fleet *fleet, const struct own_default *setting,
                               uint32_t gpu)
{
    if (!setting->key)
        return judge_locked_clock_text(fleet, gpu);
    return str_format("%s %.0f %s, the default of the card is %.0f %s%s", setting->words,
                      setting_of(fleet, setting->key, gpu), setting->unit,
                      setting_of(fleet, setting->default_key, gpu), setting->unit, setting->advice);
}

char *judge_undercut_text(const struct fleet *fleet, uint32_t gpu)
{
    for (size_t k = 0; k < COUNT_OF(own_defaults); k++)
        if (own_default_is_undercut(fleet, &own_defaults[k], gpu))
            return own_default_words(fleet, &own_defaults[k], gpu);
    return NULL;
}

void judge_report_defaults(const struct judge *judge, const struct group *population,
                           struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t k = 0; k < COUNT_OF(own_defaults); k++) {
        const struct own_default *setting = &own_defaults[k];
        size_t low = 0, judged = 0;
        uint32_t first = 0; /* GPU that has it */
        for (size_t i = 0; i < population->count; i++) {
            uint32_t gpu = population->members[i];
            if (!fleet_judged(&fleet->gpus[gpu]))
                continue;
            judged++;
            if (own_default_is_undercut(fleet, setting, gpu))
                first = low++ ? first : gpu;
        }
        /* Of two, the other one does not say which of them is usual. */
        if (!low || (3 * low < 2 * judged && judged >= AGREE_MIN))
            continue;
        char *words = own_default_words(fleet, setting, first);
        char *text = str_format("%zu of %zu GPUs of %s: %s", low, judged, population->id, words);
        free(words);
        verdict_add_remark(inventory, text);
    }
}
