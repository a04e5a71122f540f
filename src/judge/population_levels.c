/* By how much the figures of the populations of a model differ. */
#include "judge/population_levels.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/conditions.h"
#include "judge/robust.h"

/* With this many GPUs, their own centre is better known than whether it differs from others. */
enum { OWN_CENTER_MIN = 8 };

/* One figure of one population, at the usual SM clock. */
struct population_fit {
    size_t all; /* GPUs with the figure, also accused ones: the level must not change with them */
    size_t n;   /* GPUs behind centre and scale */
    double center, sigma;
};

/* One figure of the populations of a model. */
struct level_comparison {
    const struct judge *judge;
    const struct group *model;
    const struct judge_metric *rule;
    size_t metric;
    double tail; /* probability of a difference by chance that each test may have */
    struct population_fit *fits;
};

static bool fit_is_large(const struct population_fit *fit)
{
    return fit->all >= YARDSTICK_MIN && fit->n > 1;
}

static struct population_level *level_of(const struct level_comparison *c, size_t number)
{
    size_t metrics = c->judge->basis.config->metric_count;
    return &c->judge->levels[(c->model->populations_at + number) * metrics + c->metric];
}

static void levels_fit(const struct level_comparison *c, const bool *left_out, struct work *work)
{
    double share = c->rule->follows[JUDGE_SM_CLOCK];
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct group *population = &c->judge->fleet.populations[c->model->populations_at + i];
        size_t all = yardstick_gather(c->judge, population, c->metric, NULL, work);
        size_t n = yardstick_gather(c->judge, population, c->metric, left_out, work);
        for (size_t k = 0; k < n; k++)
            work->values[k] /= 1 + share * (c->judge->clock_ratio[work->gpus[k]] - 1);
        double spread = robust_median(work->scratch, n);
        const struct robust_fit usual = robust_fit(work->values, n, work->scratch);
        c->fits[i] = (struct population_fit){
            .all = all,
            .n = n,
            .center = usual.center,
            .sigma = n ? yardstick_scale(&usual, spread) : NAN,
        };
    }
}

/* The population with most figures, the first of equals. */
static const struct population_fit *largest_fit(const struct level_comparison *c)
{
    const struct population_fit *best = &c->fits[0];
    for (size_t i = 1; i < c->model->populations; i++)
        if (c->fits[i].n > best->n)
            best = &c->fits[i];
    return best;
}

/* The medians of two large populations differ by more than chance allows. */
static bool fits_differ(const struct level_comparison *c, const struct population_fit *a,
                        const struct population_fit *b)
{
    double error = CPD_MEDIAN_ERROR *
                   sqrt(a->sigma * a->sigma / (double)a->n + b->sigma * b->sigma / (double)b->n);
    double dof = (double)(a->n < b->n ? a->n : b->n) - 1;
    return fabs(a->center - b->center) > robust_student_quantile(c->tail / 2, dof) * error;
}

static double fit_distance(const struct population_fit *a, const struct population_fit *b)
{
    return a->n && b->n && b->center != 0 ? fabs(a->center / b->center - 1) : 0;
}

/* The largest distance between the levels of large populations. */
static double levels_apart(const struct level_comparison *c, const struct population_fit *reference)
{
    double apart = 0;
    for (size_t i = 0; i < c->model->populations; i++)
        if (fit_is_large(&c->fits[i]) && level_of(c, i)->differs)
            apart = fmax(apart, fit_distance(&c->fits[i], reference));
    return apart;
}

/* Among few GPUs, a distance that may be chance leaves uncertain what is usual. */
static void levels_set_large(const struct level_comparison *c,
                             const struct population_fit *reference)
{
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct population_fit *own = &c->fits[i];
        struct population_level *level = level_of(c, i);
        if (own == reference || !fit_is_large(own) || own->center == 0)
            continue;
        level->differs = fits_differ(c, own, reference);
        if (level->differs || own->n >= OWN_CENTER_MIN)
            level->factor = reference->center / own->center;
        else
            level->width = fit_distance(own, reference);
    }
}

static void levels_set_small(const struct level_comparison *c,
                             const struct population_fit *reference)
{
    double apart = levels_apart(c, reference);
    const struct group *populations = &c->judge->fleet.populations[c->model->populations_at];
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct population_fit *own = &c->fits[i];
        struct population_level *level = level_of(c, i);
        enum kinds_compare kinds =
            fleet_kinds_compare(&c->judge->fleet, populations[i].like,
                                populations[reference - c->fits].like, c->rule->metric);
        level->other_kind = kinds == KINDS_APART;
        level->not_compared = level->other_kind && !fit_is_large(own);
        if (fit_is_large(own) || kinds == KINDS_ALIKE)
            continue;
        level->apart = fit_is_large(reference);
        level->width = fmax(apart, fmin(fit_distance(own, reference), POPULATION_BOARDS_APART));
    }
}

static void levels_compare(const struct level_comparison *c)
{
    const struct population_fit *reference = largest_fit(c);
    if (!reference->n || reference->center == 0)
        return;
    for (size_t i = 0; i < c->model->populations; i++)
        level_of(c, i)->center = fit_is_large(&c->fits[i]) ? c->fits[i].center : NAN;
    if (fit_is_large(reference))
        levels_set_large(c, reference);
    levels_set_small(c, reference);
}

static void levels_compare_model(const struct judge *judge, const struct group *model, double tail,
                                 const bool *left_out, struct work *work)
{
    const struct judge_config *config = judge->basis.config;
    struct level_comparison c = {
        .judge = judge,
        .model = model,
        .tail = tail,
        .fits = mem_array(model->populations, sizeof *c.fits),
    };
    for (size_t m = 0; m < config->metric_count; m++) {
        c.metric = m;
        c.rule = &config->metrics[m];
        if (c.rule->worse != JUDGE_LOWER && c.rule->worse != JUDGE_HIGHER)
            continue;
        levels_fit(&c, left_out, work);
        levels_compare(&c);
    }
    free(c.fits);
}

void population_levels_find(const struct judge *judge, const bool *left_out, struct work *work)
{
    const struct fleet *fleet = &judge->fleet;
    /* Metrics that no GPU has are not tested. */
    size_t count = 0, metrics = 0;
    for (size_t m = 0; m < judge->basis.config->metric_count; m++)
        metrics += judge->columns[m] != NULL;
    for (size_t g = 0; g < judge->fleet.group_count; g++)
        count += judge->fleet.groups[g].populations - 1;
    size_t tests = count * metrics;
    for (size_t i = 0; i < fleet->population_count * judge->basis.config->metric_count; i++)
        judge->levels[i] = (struct population_level){.factor = 1, .center = NAN, .scale = 1};
    if (!tests)
        return;
    double tail = judge->basis.config->false_alarms / (double)tests;
    for (size_t g = 0; g < fleet->group_count; g++)
        if (fleet->groups[g].populations > 1)
            levels_compare_model(judge, &fleet->groups[g], fmin(tail, 0.5), left_out, work);
}

/* The metric differs between the populations of the model. */
static bool levels_differ(const struct judge *judge, const struct group *model, size_t metric)
{
    size_t metrics = judge->basis.config->metric_count;
    for (size_t i = 0; i < model->populations; i++)
        if (judge->levels[(model->populations_at + i) * metrics + metric].differs)
            return true;
    return false;
}

void population_levels_report(const struct judge *judge, const struct group *model,
                              struct inventory_model *out_model)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    if (model->populations < 2)
        return;
    out_model->populations = mem_array(model->populations, sizeof *out_model->populations);
    out_model->population_count = model->populations;
    for (size_t i = 0; i < model->populations; i++) {
        size_t number = model->populations_at + i;
        const struct group *population = &fleet->populations[number];
        struct strbuf keys = {0}, values = {0};
        struct inventory_population *out = &out_model->populations[i];
        for (size_t k = 0; k < population->count; k++)
            out->count += fleet->gpus[population->members[k]].measured;
        fleet_put_kind(fleet, model, population, &keys, &values);
        bool unknown = str_equal(keys.data, "board.part") && !population->part;
        out->by = keys.data;
        out->value = str_copy(unknown ? NULL : values.data);
        strbuf_fini(&values);
        for (size_t m = 0; m < config->metric_count; m++) {
            double usual = judge->levels[number * config->metric_count + m].center;
            if (isfinite(usual) && levels_differ(judge, model, m))
                facts_set_real(&out->figures, config->metrics[m].metric, measure_digits(usual, 6));
        }
    }
}
