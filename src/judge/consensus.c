/* One record per model: median for numbers, majority for everything else. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/group.h"

/* One metric over the group's GPUs that count. */
struct column {
    const struct measure **entries; /* one per GPU that has the metric */
    size_t count;
    double *numbers; /* room for one figure per entry */
};

static bool counts(const struct fleet *fleet, size_t gpu)
{
    return fleet_measured(fleet->gpus[gpu]) && !fleet->outlier[gpu];
}

static bool is_number(const struct measure *m)
{
    return m->kind == MEASURE_NUMBER && measure_status_valued(m->status);
}

/* Equal in what a majority is counted by: status, bound, unit and words. */
static bool alike(const struct measure *a, const struct measure *b)
{
    if (a->kind != b->kind || a->bound != b->bound || is_number(a) != is_number(b) ||
        a->word_count != b->word_count || !str_equal(a->unit, b->unit))
        return false;
    if (!is_number(a) && a->kind == MEASURE_NUMBER && a->status != b->status)
        return false;
    for (size_t i = 0; i < a->word_count; i++)
        if (!str_equal(a->words[i], b->words[i]))
            return false;
    return true;
}

/* The entry most others are alike to; the first of equals. */
static const struct measure *majority(const struct column *column)
{
    const struct measure *best = NULL;
    size_t best_votes = 0;
    for (size_t i = 0; i < column->count && best_votes <= column->count / 2; i++) {
        size_t votes = 0;
        if (best && alike(best, column->entries[i]))
            continue;
        for (size_t j = 0; j < column->count; j++)
            votes += alike(column->entries[i], column->entries[j]);
        if (votes > best_votes) {
            best = column->entries[i];
            best_votes = votes;
        }
    }
    return best;
}

enum figure { FIGURE_VALUE, FIGURE_CONFIDENCE };

static double median_figure(const struct column *column, const struct measure *kind,
                            enum figure figure, double *out_half_range)
{
    size_t n = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct measure *m = column->entries[i];
        if (alike(kind, m))
            column->numbers[n++] = figure == FIGURE_VALUE ? m->value : m->confidence;
    }
    if (out_half_range)
        *out_half_range =
            (cpd_quantile(column->numbers, n, 0.75) - cpd_quantile(column->numbers, n, 0.25)) / 2;
    return cpd_median(column->numbers, n);
}

/* Notes that are numbers become their median, others stand as the majority entry has them. */
static void merge_notes(const struct column *column, const struct measure *kind,
                        struct measure *out_measure)
{
    for (size_t f = 0; f < out_measure->notes.count; f++) {
        struct fact *fact = &out_measure->notes.items[f];
        size_t n = 0;
        if (fact->kind != FACT_INT && fact->kind != FACT_REAL)
            continue;
        for (size_t i = 0; i < column->count; i++) {
            const struct fact *other = facts_get(&column->entries[i]->notes, fact->key);
            if (other && other->kind == fact->kind && alike(kind, column->entries[i]))
                column->numbers[n++] =
                    fact->kind == FACT_INT ? (double)other->integer : other->real;
        }
        double median = cpd_median(column->numbers, n);
        if (fact->kind == FACT_INT)
            fact->integer = llround(median);
        else
            fact->real = median;
    }
}

static int merge_column(const struct column *column, struct measure *out_measure)
{
    const struct measure *kind = majority(column);
    size_t noisy = 0, n = 0;
    const char *reason = NULL;
    if (measure_copy(out_measure, kind))
        return -ENOMEM;
    for (size_t i = 0; i < column->count; i++) {
        const struct measure *m = column->entries[i];
        if (!alike(kind, m))
            continue;
        n++;
        if (m->status == MEASURE_NOISY) {
            noisy++;
            reason = m->reason;
        }
    }
    out_measure->n = (uint32_t)n;
    if (!is_number(kind))
        return 0;
    /* A single GPU has no peers to scatter among: its own spread stays, never a certain zero. */
    double own_spread = kind->spread;
    out_measure->value = median_figure(column, kind, FIGURE_VALUE, &out_measure->spread);
    if (n == 1)
        out_measure->spread = own_spread;
    out_measure->confidence = median_figure(column, kind, FIGURE_CONFIDENCE, NULL);
    merge_notes(column, kind, out_measure);
    measure_round(out_measure);
    return measure_set_status(out_measure, noisy * 2 > n ? MEASURE_NOISY : MEASURE_OK,
                              noisy * 2 > n ? reason : NULL);
}

/* Gathers one metric from all GPUs that count. */
static void fill_column(const struct fleet *fleet, const struct group *group, const char *metric,
                        struct column *column)
{
    column->count = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (!counts(fleet, group->members[i]))
            continue;
        const struct measure *m = measures_get(&fleet->gpus[group->members[i]]->measures, metric);
        if (m)
            column->entries[column->count++] = m;
    }
}

static int merge_metrics(const struct fleet *fleet, const struct group *group,
                         struct column *column, struct measures *out_memory)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_result *gpu = fleet->gpus[group->members[i]];
        if (!counts(fleet, group->members[i]))
            continue;
        for (size_t k = 0; k < gpu->measures.count; k++) {
            const char *metric = gpu->measures.items[k].metric;
            if (measures_get(out_memory, metric))
                continue;
            fill_column(fleet, group, metric, column);
            struct measure *slot = measures_add_missing(out_memory, metric, MEASURE_FAILED, NULL);
            struct measure merged = {0};
            if (!slot || merge_column(column, &merged)) {
                measure_fini(&merged);
                return -ENOMEM;
            }
            measure_fini(slot);
            *slot = merged;
        }
    }
    return 0;
}

static const struct facts *hardware_of(const struct fleet *fleet, const struct group *group)
{
    const struct facts *any = &fleet->gpus[group->members[0]]->hardware;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_result *gpu = fleet->gpus[group->members[i]];
        if (counts(fleet, group->members[i]) && gpu->hardware.count)
            return &gpu->hardware;
        if (!any->count)
            any = &gpu->hardware;
    }
    return any;
}

int consensus_build(const struct fleet *fleet, const struct group *group,
                    struct inventory_model *out_model, struct err *err)
{
    struct column column = {
        .entries = mem_array(group->count, sizeof *column.entries),
        .numbers = mem_array(group->count, sizeof *column.numbers),
    };
    struct inventory_model model = {.id = str_copy(group->id)};
    int rc = column.entries && column.numbers && model.id ? str_copy_to(&model.name, group->name)
                                                          : -ENOMEM;
    for (size_t i = 0; i < group->count; i++)
        model.count += fleet_has_figures(fleet->gpus[group->members[i]]);
    if (!rc)
        rc = facts_copy(&model.identity, hardware_of(fleet, group));
    if (!rc)
        rc = merge_metrics(fleet, group, &column, &model.memory);
    free(column.entries);
    free(column.numbers);
    *out_model = model; /* owned by the inventory also when incomplete */
    return rc ? err_no_memory(err) : 0;
}

/* One of a GPU's tables of facts. */
typedef const struct facts *facts_of(const struct gpu_result *gpu);

static const struct facts *config_of(const struct gpu_result *gpu)
{
    return &gpu->config;
}

static const struct facts *health_of(const struct gpu_result *gpu)
{
    return &gpu->health;
}

/* Boyer and Moore: the majority where there is one; else some value that occurs, always the same
 * one, since the GPUs stand in their fixed order. */
static const struct fact *usual_fact(const struct fleet *fleet, const struct group *group,
                                     facts_of *of, const char *key)
{
    const struct fact *candidate = NULL;
    size_t lead = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct fact *fact = facts_get(of(fleet->gpus[group->members[i]]), key);
        if (!fact)
            continue;
        if (!lead)
            candidate = fact;
        lead += fact_equal(fact, candidate) ? 1 : (size_t)-1;
    }
    return candidate;
}

static int usual_facts(const struct fleet *fleet, const struct group *group, facts_of *of,
                       struct facts *out_usual)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct facts *facts = of(fleet->gpus[group->members[i]]);
        for (size_t k = 0; k < facts->count; k++) {
            const char *key = facts->items[k].key;
            if (!facts_get(out_usual, key) &&
                facts_set(out_usual, usual_fact(fleet, group, of, key)))
                return -ENOMEM;
        }
    }
    return 0;
}

int consensus_settings(const struct fleet *fleet, struct group *group)
{
    int rc = usual_facts(fleet, group, config_of, &group->usual);
    return rc ? rc : usual_facts(fleet, group, health_of, &group->usual_health);
}
