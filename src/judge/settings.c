/* Facts against the majority of the model: hardware, versions, settings. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/divided_models.h"
#include "judge/fact_text.h"

static const char *const set_names[SET_COUNT] = {"hardware", "board", "config", "health"};

/* Facts that are compared in another way than the rest of their set. */
enum comparing { SKIP, DIFFERENT, LOWER };
static const struct special {
    enum fact_set set;
    const char *key;
    enum comparing comparing;
    enum inventory_kind kind;
    bool by_board; /* the board part determines it: compared among GPUs with the same one */
} specials[] = {
    /* Only versions of the board are compared: serial and part numbers may differ. */
    {SET_BOARD, "vbios", DIFFERENT, KIND_MISCONFIGURED, true},
    {SET_BOARD, "driver", DIFFERENT, KIND_MISCONFIGURED, false},
    {SET_BOARD, "inforom", DIFFERENT, KIND_MISCONFIGURED, true},
    /* Rules, and the comparison of measured with reported values, check these. */
    {SET_CONFIG, "ecc_pending", SKIP, 0, false},
    {SET_CONFIG, "mig_pending", SKIP, 0, false},
    {SET_CONFIG, "memory_free_bytes", SKIP, 0, false},
    {SET_CONFIG, "pcie_under_load", SKIP, 0, false},
    {SET_CONFIG, "pcie_gen", LOWER, KIND_DEGRADED, false},
    {SET_CONFIG, "pcie_width", LOWER, KIND_DEGRADED, false},
    /* The board has this value; software cannot change it. */
    {SET_CONFIG, "power_limit_w", DIFFERENT, KIND_MISCONFIGURED, true},
    {SET_CONFIG, "power_limit_default_w", DIFFERENT, KIND_MISMATCHED, true},
    {SET_CONFIG, "sm_clock_application_default_mhz", DIFFERENT, KIND_MISMATCHED, true},
    {SET_HEALTH, "nvlinks_active", LOWER, KIND_FAILING, false},
};

static struct special manner_of(enum fact_set set, const char *key)
{
    static const struct special usual[SET_COUNT] = {
        [SET_HARDWARE] = {SET_HARDWARE, NULL, DIFFERENT, KIND_MISMATCHED, false},
        [SET_BOARD] = {SET_BOARD, NULL, SKIP, 0, false},
        [SET_CONFIG] = {SET_CONFIG, NULL, DIFFERENT, KIND_MISCONFIGURED, false},
        [SET_HEALTH] = {SET_HEALTH, NULL, SKIP, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(specials); i++)
        if (specials[i].set == set && strcmp(specials[i].key, key) == 0)
            return specials[i];
    return usual[set];
}

static bool differs(const struct fleet *fleet, enum comparing comparing, uint32_t code,
                    uint32_t usual)
{
    double own = fleet_code_number(fleet, code), other = fleet_code_number(fleet, usual);
    if (!fleet_known(fleet, code) || code == usual)
        return false;
    if (isnan(own) || isnan(other))
        return comparing == DIFFERENT;
    return comparing == LOWER ? own < other : !judge_number_same(own, other);
}

/* Some GPUs store ECC data in main memory and report less memory with ECC on. Only ECC is reported
 * then. */
static bool follows_from_ecc(const struct fleet *fleet, const struct group *group, const char *key,
                             uint32_t gpu)
{
    const struct fact_column *ecc = fleet_facts(fleet, SET_CONFIG, "ecc");
    const struct usual *usual = fleet_usual(fleet, group, SET_CONFIG, ecc);
    return strcmp(key, "memory_bytes") == 0 && usual && fleet_known(fleet, ecc->codes[gpu]) &&
           ecc->codes[gpu] != usual->code;
}

/* Whether the maximum of the link is known. Then a rule compares the link with it. */
static bool has_limit(const struct fleet *fleet, const char *key, uint32_t gpu)
{
    char max_key[64];
    snprintf(max_key, sizeof max_key, "%.50s_max", key);
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, max_key), gpu) > 0;
}

static char *cause_of(const struct fleet *fleet, const struct fact_column *column, uint32_t code,
                      const struct usual *usual, bool clear, const char *group)
{
    struct strbuf text = {0};
    const struct fact own = fleet_fact(fleet, column, code);
    const struct fact other = fleet_fact(fleet, column, usual->code);
    fact_text_put_key(&text, own.key);
    strbuf_puts(&text, " ");
    fact_text_put_value(&text, &own);
    strbuf_printf(&text, ", %u of %u of its %s: ", usual->votes, usual->known, group);
    fact_text_put_value(&text, &other);
    strbuf_puts(&text, clear ? "" : "; too few to tell who is right");
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static int report(struct judge *judge, const struct special *manner,
                  const struct fact_column *column, const struct usual *usual, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const char *key = fleet_text(fleet, column->head.name);
    uint32_t code = column->codes[gpu];
    char *name = str_format("%s.%s", set_names[manner->set], key);
    struct finding *finding = name ? findings_add(judge, gpu, name, BASIS_FLEET) : NULL;
    free(name);
    if (!finding || symbols_text(&judge->fleet.symbols, fact_text_unit(key), &finding->unit))
        return -ENOMEM;
    const struct fact own = fleet_fact(fleet, column, code);
    if (own.kind == FACT_INT || own.kind == FACT_REAL) {
        finding->value = fleet_code_number(fleet, code);
        finding->expected = fleet_code_number(fleet, usual->code);
        if (finding->expected != 0)
            finding->deviation = finding->value / finding->expected - 1;
    }
    finding->kind = manner->kind;
    finding->accused = usual_is_clear(usual);
    const struct group *model = &fleet->groups[fleet->gpus[gpu].group];
    finding->cause = cause_of(fleet, column, code, usual, finding->accused,
                              manner->by_board && model->populations > 1 ? "board part" : "model");
    return finding->cause ? 0 : -ENOMEM;
}

/* The GPUs of a group whose fact differs from the majority in a way that is reported. Returns their
 * number. */
static size_t find_differing(const struct fleet *fleet, const struct group *group,
                             enum fact_set set, size_t number, uint32_t *out_gpus)
{
    const struct fact_column *column = &fleet->facts[set].items[number];
    const char *key = fleet_text(fleet, column->head.name);
    enum comparing comparing = manner_of(set, key).comparing;
    const struct usual *usual = &group->usual[set][number];
    size_t count = 0;
    if (comparing == SKIP || usual->votes == usual->known)
        return 0;
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        if (differs(fleet, comparing, column->codes[gpu], usual->code) &&
            !follows_from_ecc(fleet, group, key, gpu) &&
            !(comparing == LOWER && has_limit(fleet, key, gpu)))
            out_gpus[count++] = gpu;
    }
    return count;
}

/* Without a clear majority, a fact in which several GPUs differ is reported for the model. */
static bool is_divided(const struct usual *usual, size_t differing)
{
    return differing >= DIVIDED_MIN && !usual_is_clear(usual);
}

static int compare_column(struct judge *judge, const struct group *group, enum fact_set set,
                          size_t number, uint32_t *differing)
{
    const struct fact_column column = judge->fleet.facts[set].items[number];
    const struct special manner = manner_of(set, fleet_text(&judge->fleet, column.head.name));
    const struct usual *usual = &group->usual[set][number];
    size_t count = find_differing(&judge->fleet, group, set, number, differing);
    if (is_divided(usual, count))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (report(judge, &manner, &column, usual, differing[i]))
            return -ENOMEM;
    return 0;
}

/* The number of GPUs with a known memory clock, and of those that run at the usual one. */
static struct usual clock_votes(const struct judge *judge, const struct group *group,
                                const struct metric_column *column)
{
    struct usual votes = {0};
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        if (!fleet_judged(&judge->fleet.gpus[gpu]) || !fleet_number(column, gpu, true))
            continue;
        votes.known++;
        votes.votes += judge_number_same(judge_condition_ratio(judge, JUDGE_MEMORY_CLOCK, gpu), 1);
    }
    return votes;
}

static char *clock_words(double own, double usual, const struct usual *votes)
{
    return usual_is_clear(votes)
               ? str_format("memory clock %.0f MHz, model runs at %.0f MHz", own, usual)
               : str_format("memory clock %.0f MHz, %u of %u of its model: %.0f MHz; too few to "
                            "tell who is right",
                            own, votes->votes, votes->known, usual);
}

/* The memory clock is a setting that is known only under load. */
static int compare_memory_clock(struct judge *judge, const struct group *group)
{
    const struct metric_column *column = fleet_metric(&judge->fleet, "clock.memory");
    const struct usual votes = clock_votes(judge, group, column);
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(column, gpu, true);
        double ratio = judge_condition_ratio(judge, JUDGE_MEMORY_CLOCK, gpu);
        if (!cell || !judge_number_lower(ratio, 1))
            continue;
        struct finding *finding = findings_add(judge, gpu, "clock.memory", BASIS_FLEET);
        if (!finding)
            return -ENOMEM;
        finding->unit = cell->unit;
        finding->accused = usual_is_clear(&votes);
        finding->kind = KIND_MISCONFIGURED;
        finding->value = cell->value;
        finding->expected = cell->value / ratio;
        finding->deviation = ratio - 1;
        finding->cause = clock_words(cell->value, cell->value / ratio, &votes);
        if (!finding->cause)
            return -ENOMEM;
    }
    return 0;
}

/* The groups inside which a fact of a model is compared: the model itself, or its populations. */
struct peers {
    const struct group *groups;
    size_t count;
};

static struct peers peers_of(const struct fleet *fleet, const struct group *model,
                             enum fact_set set, size_t number)
{
    const char *key = fleet_text(fleet, fleet->facts[set].items[number].head.name);
    if (manner_of(set, key).by_board)
        return (struct peers){&fleet->populations[model->populations_at], model->populations};
    return (struct peers){model, 1};
}

static int compare_facts(struct judge *judge, const struct group *model, enum fact_set set,
                         uint32_t *differing)
{
    for (size_t i = 0; i < judge->fleet.facts[set].count; i++) {
        const struct peers peers = peers_of(&judge->fleet, model, set, i);
        for (size_t k = 0; k < peers.count; k++)
            if (compare_column(judge, &peers.groups[k], set, i, differing))
                return -ENOMEM;
    }
    return 0;
}

int judge_settings(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t *differing = mem_array(fleet->count, sizeof *differing);
    int rc = differing ? 0 : -ENOMEM;
    for (size_t g = 0; g < fleet->group_count && !rc; g++) {
        const struct group *group = &fleet->groups[g];
        for (int set = 0; set < SET_COUNT && !rc; set++)
            rc = compare_facts(judge, group, (enum fact_set)set, differing);
        if (!rc)
            rc = compare_memory_clock(judge, group);
    }
    free(differing);
    return rc;
}

static int report_divided(const struct judge *judge, const struct group *group, enum fact_set set,
                          size_t number, uint32_t *differing, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    size_t count = find_differing(fleet, group, set, number, differing);
    if (!is_divided(&group->usual[set][number], count))
        return 0;
    return divided_models_report_fact(judge, group, set, &fleet->facts[set].items[number],
                                      differing, count, inventory);
}

int judge_settings_report_divided(const struct judge *judge, const struct group *group,
                                  struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t *differing = mem_array(group->count, sizeof *differing);
    int rc = differing ? 0 : -ENOMEM;
    for (int set = 0; set < SET_COUNT; set++) {
        for (size_t i = 0; i < fleet->facts[set].count && !rc; i++) {
            const struct peers peers = peers_of(fleet, group, (enum fact_set)set, i);
            for (size_t k = 0; k < peers.count && !rc; k++)
                rc = report_divided(judge, &peers.groups[k], (enum fact_set)set, i, differing,
                                    inventory);
        }
    }
    free(differing);
    return rc;
}
