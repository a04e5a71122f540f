/* By how much the figures of the populations of a model differ. */
#include "judge/population_levels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/place_findings.h"
#include "judge/student.h"

/* The boards of one model differ by a few per cent: 2.5 % in bandwidth and 4 % in latency on the
 * H200. The own distance of a population that is too small counts up to this share. */
static const double BOARDS_APART = 0.05;

/* With this many GPUs, their own centre is better known than whether it differs from others. */
enum { OWN_CENTER_MIN = 8 };

/* One figure of one population, at the usual SM clock. */
struct population_fit {
    size_t all; /* GPUs with the figure, also accused ones: the level must not change with them */
    size_t n;   /* GPUs behind centre and scale */
    double center, sigma;
};

/* One figure of the populations of a model. */
struct comparison {
    const struct judge *judge;
    const struct group *model;
    const struct judge_metric *rule;
    size_t metric;
    double tail; /* probability of a difference by chance that each test may have */
    struct population_fit *fits;
};

static bool is_large(const struct population_fit *fit)
{
    return fit->all >= YARDSTICK_MIN && fit->n > 1;
}

static struct population_level *level_of(const struct comparison *c, size_t number)
{
    size_t metrics = c->judge->basis.config->metric_count;
    return &c->judge->levels[(c->model->populations_at + number) * metrics + c->metric];
}

static void fit(const struct comparison *c, const bool *accused, struct work *work)
{
    double share = c->rule->follows[JUDGE_SM_CLOCK];
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct group *population = &c->judge->fleet.populations[c->model->populations_at + i];
        size_t all = yardstick_gather(c->judge, population, c->metric, NULL, work);
        size_t n = yardstick_gather(c->judge, population, c->metric, accused, work);
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
static const struct population_fit *largest(const struct comparison *c)
{
    const struct population_fit *best = &c->fits[0];
    for (size_t i = 1; i < c->model->populations; i++)
        if (c->fits[i].n > best->n)
            best = &c->fits[i];
    return best;
}

/* The medians of two large populations differ by more than chance allows. */
static bool differ(const struct comparison *c, const struct population_fit *a,
                   const struct population_fit *b)
{
    double error = CPD_MEDIAN_ERROR *
                   sqrt(a->sigma * a->sigma / (double)a->n + b->sigma * b->sigma / (double)b->n);
    double dof = (double)(a->n < b->n ? a->n : b->n) - 1;
    return fabs(a->center - b->center) > student_quantile(c->tail / 2, dof) * error;
}

static double distance(const struct population_fit *a, const struct population_fit *b)
{
    return a->n && b->n && b->center != 0 ? fabs(a->center / b->center - 1) : 0;
}

/* The largest distance between the levels of large populations. */
static double levels_apart(const struct comparison *c, const struct population_fit *reference)
{
    double apart = 0;
    for (size_t i = 0; i < c->model->populations; i++)
        if (is_large(&c->fits[i]) && level_of(c, i)->differs)
            apart = fmax(apart, distance(&c->fits[i], reference));
    return apart;
}

/* Among few GPUs, a distance that may be chance leaves uncertain what is usual. */
static void set_large(const struct comparison *c, const struct population_fit *reference)
{
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct population_fit *own = &c->fits[i];
        struct population_level *level = level_of(c, i);
        if (own == reference || !is_large(own) || own->center == 0)
            continue;
        level->differs = differ(c, own, reference);
        if (level->differs || own->n >= OWN_CENTER_MIN)
            level->factor = reference->center / own->center;
        else
            level->width = distance(own, reference);
    }
}

static void set_small(const struct comparison *c, const struct population_fit *reference)
{
    double apart = levels_apart(c, reference);
    for (size_t i = 0; i < c->model->populations; i++) {
        const struct population_fit *own = &c->fits[i];
        if (is_large(own))
            continue;
        struct population_level *level = level_of(c, i);
        level->apart = is_large(reference);
        level->width = fmax(apart, fmin(distance(own, reference), BOARDS_APART));
    }
}

static void compare(const struct comparison *c)
{
    const struct population_fit *reference = largest(c);
    if (!reference->n || reference->center == 0)
        return;
    for (size_t i = 0; i < c->model->populations; i++)
        level_of(c, i)->center = is_large(&c->fits[i]) ? c->fits[i].center : NAN;
    if (is_large(reference))
        set_large(c, reference);
    set_small(c, reference);
}

/* Metrics that no GPU has are not tested. */
static size_t count_tests(const struct judge *judge)
{
    size_t count = 0, metrics = 0;
    for (size_t m = 0; m < judge->basis.config->metric_count; m++)
        metrics += judge->columns[m] != NULL;
    for (size_t g = 0; g < judge->fleet.group_count; g++)
        count += judge->fleet.groups[g].populations - 1;
    return count * metrics;
}

static int compare_model(const struct judge *judge, const struct group *model, double tail,
                         const bool *accused, struct work *work)
{
    const struct judge_config *config = judge->basis.config;
    struct comparison c = {
        .judge = judge,
        .model = model,
        .tail = tail,
        .fits = mem_array(model->populations, sizeof *c.fits),
    };
    if (!c.fits)
        return -ENOMEM;
    for (size_t m = 0; m < config->metric_count; m++) {
        c.metric = m;
        c.rule = &config->metrics[m];
        if (c.rule->worse != JUDGE_LOWER && c.rule->worse != JUDGE_HIGHER)
            continue;
        fit(&c, accused, work);
        compare(&c);
    }
    free(c.fits);
    return 0;
}

int population_levels_find(const struct judge *judge, const bool *accused, struct work *work)
{
    const struct fleet *fleet = &judge->fleet;
    size_t tests = count_tests(judge);
    for (size_t i = 0; i < fleet->population_count * judge->basis.config->metric_count; i++)
        judge->levels[i] = (struct population_level){.factor = 1, .center = NAN, .scale = 1};
    if (!tests)
        return 0;
    double tail = judge->basis.config->false_alarms / (double)tests;
    for (size_t g = 0; g < fleet->group_count; g++)
        if (fleet->groups[g].populations > 1 &&
            compare_model(judge, &fleet->groups[g], fmin(tail, 0.5), accused, work))
            return -ENOMEM;
    return 0;
}

/* The metric differs between the populations of the model. */
static bool is_divided(const struct judge *judge, const struct group *model, size_t metric)
{
    size_t metrics = judge->basis.config->metric_count;
    for (size_t i = 0; i < model->populations; i++)
        if (judge->levels[(model->populations_at + i) * metrics + metric].differs)
            return true;
    return false;
}

static int report_population(const struct judge *judge, const struct group *model, size_t number,
                             struct inventory_population *out)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    const struct group *population = &fleet->populations[number];
    const struct fact_column *parts = fleet_facts(fleet, SET_BOARD, "part");
    const struct fact part = fleet_fact(fleet, parts, population->part);
    for (size_t i = 0; i < population->count; i++)
        out->count += fleet->gpus[population->members[i]].measured;
    if (str_copy_to(&out->by, "board.part") ||
        str_copy_to(&out->value, population->part ? part.text : NULL))
        return -ENOMEM;
    for (size_t m = 0; m < config->metric_count; m++) {
        double usual = judge->levels[number * config->metric_count + m].center;
        if (isfinite(usual) && is_divided(judge, model, m) &&
            facts_set_real(&out->figures, config->metrics[m].metric, measure_digits(usual, 6)))
            return -ENOMEM;
    }
    return 0;
}

int population_levels_report(const struct judge *judge, const struct group *model,
                             struct inventory_model *out_model)
{
    if (model->populations < 2)
        return 0;
    out_model->populations = mem_array(model->populations, sizeof *out_model->populations);
    if (!out_model->populations)
        return -ENOMEM;
    out_model->population_count = model->populations;
    for (size_t i = 0; i < model->populations; i++)
        if (report_population(judge, model, model->populations_at + i, &out_model->populations[i]))
            return -ENOMEM;
    return 0;
}

/* The share by which a metric of a population is worse than in the largest one. */
static double level_loss(const struct judge *judge, size_t population, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    double factor = judge->levels[population * judge->basis.config->metric_count + metric].factor;
    return judge_worse_share(rule->worse, 1 / factor - 1);
}

int population_levels_report_apart(const struct judge *judge, const struct group *model,
                                   struct inventory *inventory)
{
    for (size_t i = 0; i < model->populations; i++)
        for (size_t m = 0; m < judge->basis.config->metric_count; m++) {
            size_t number = model->populations_at + i;
            double loss = level_loss(judge, number, m);
            if (!(loss > BOARDS_APART))
                continue;
            char *text =
                str_format("all GPUs of %s: %s is %.0f %% worse than in the largest "
                           "population, more than boards usually differ: nobody is accused",
                           judge->fleet.populations[number].id,
                           judge->basis.config->metrics[m].metric, 100 * loss);
            if (place_findings_add(inventory, NULL, text, NULL))
                return -ENOMEM;
        }
    return 0;
}
