/* Centre, scale and bound of each metric in each model, and in each of its populations. */
#include "judge/yardstick.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "judge/conditions.h"
#include "judge/robust.h"

enum {
    SLOPE_MIN = 32, /* GPUs needed to find how a figure follows the clock */
    TAIL_MIN = 200, /* deviations needed to find the tails of all metrics together */
    OWN_TAIL = 100, /* deviations needed to find the tails of one metric, if they are heavier */
};

/* The scale is at least SPREAD_PART * the spread of the repetitions. On the first 13 H200 cards no
 * figure scatters less than that between the cards. It is also at least RESOLUTION * the centre:
 * with equal figures of a few GPUs, the next GPU may still differ by that. */
static const double SPREAD_PART = 0.25, RESOLUTION = 0.001;

/* The clocks must differ by this share to find how a figure follows them. */
static const double CLOCKS_APART = 0.01;

/* A larger clock share is chance and is not used. A smaller one is limited to 1, because otherwise
 * the expected figure at a low clock could be 0 or less. */
static const double SHARE_MAX = 1.2;

/* The error of a clock share that was found from the fleet, and of one from the configuration. */
static const double SHARE_FOUND = 0.03, SHARE_STATED = 0.15;

/* Weight of the square of a GPU's own spread. The value is the median of three rounds, the spread
 * half their range. If two rounds were disturbed alike, the score is at most 2 / sqrt(0.5), which
 * is not watched. */
static const double OWN = 0.5;

/* Degrees of freedom of the tails if there are too few deviations to find them. */
static const double TAIL_DOF = 8;

/* The edge is not used if more than the share BEYOND_MAX of the GPUs, faulty ones included, lies
 * beyond NEAR_EDGE * edge on the worse side. */
static const double NEAR_EDGE = 0.75, BEYOND_MAX = 0.05;

void work_init(struct work *work, size_t count)
{
    *work = (struct work){
        .gpus = mem_array(count, sizeof *work->gpus),
        .ratios = mem_array(count, sizeof *work->ratios),
        .values = mem_array(count, sizeof *work->values),
        .scratch = mem_array(4 * count, sizeof *work->scratch),
    };
}

void work_fini(struct work *work)
{
    free(work->gpus);
    free(work->ratios);
    free(work->values);
    free(work->scratch);
}

size_t yardstick_gather(const struct judge *judge, const struct group *group, size_t metric,
                        const bool *left_out, struct work *work)
{
    const struct metric_column *column = judge->columns[metric];
    size_t n = 0;
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(column, gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]) || judge->other_hardware[gpu] ||
            (left_out && left_out[gpu * judge->basis.config->metric_count + metric]))
            continue;
        work->gpus[n] = gpu;
        work->values[n] = cell->value;
        work->scratch[n++] = isfinite(cell->spread) ? cell->spread : 0;
    }
    return n;
}

/* The same, as in the largest population. GPUs of populations that are too small are left out. */
static size_t gather_comparable(const struct judge *judge, const struct group *group, size_t metric,
                                const bool *left_out, struct work *work)
{
    size_t all = yardstick_gather(judge, group, metric, left_out, work), n = 0;
    for (size_t i = 0; i < all; i++) {
        const struct population_level *level = judge_level(judge, work->gpus[i], metric);
        if (level->apart || level->not_compared)
            continue;
        work->gpus[n] = work->gpus[i];
        work->values[n] = work->values[i] * level->factor;
        work->scratch[n++] = work->scratch[i] * level->factor;
    }
    return n;
}

static void yardstick_find_clock_share(const struct judge *judge, const struct judge_metric *rule,
                                       size_t n, struct work *work, struct yardstick *out)
{
    double stated = rule->follows[JUDGE_SM_CLOCK];
    out->clock_share = stated;
    out->share_error = stated > 0 ? SHARE_STATED : 0;
    if (stated == 0 || n < SLOPE_MIN)
        return;
    for (size_t i = 0; i < n; i++)
        work->ratios[i] = judge->clock_ratio[work->gpus[i]];
    double found = robust_share(work->ratios, work->values, n, CLOCKS_APART, work->scratch);
    if (!(found >= 0 && found <= SHARE_MAX))
        return;
    out->clock_share = fmin(found, 1);
    out->share_error = SHARE_FOUND;
}

double yardstick_scale(const struct robust_fit *fit, double spread)
{
    return fmax(fit->sigma, fmax(SPREAD_PART * spread, RESOLUTION * fabs(fit->center)));
}

/* The resolution of whole numbers, such as latencies in cycles, is 1. */
static double yardstick_find_step(const struct work *work, size_t n)
{
    const double least = 10; /* smaller numbers are ratios and counts */
    size_t whole = 0;
    for (size_t i = 0; i < n; i++)
        whole += work->values[i] >= least && work->values[i] == floor(work->values[i]);
    return 3 * whole >= 2 * n ? 1 : 0;
}

void yardstick_make(const struct judge *judge, const struct group *group, size_t metric,
                    const bool *left_out, struct work *work, struct yardstick *out)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t n =
        rule->worse == JUDGE_NONE ? 0 : gather_comparable(judge, group, metric, left_out, work);
    *out = (struct yardstick){.n = n, .usable = n >= YARDSTICK_MIN};
    if (!n)
        return;
    out->step = rule->worse == JUDGE_ANY ? 0 : yardstick_find_step(work, n);
    out->spread = robust_median(work->scratch, n);
    yardstick_find_clock_share(judge, rule, n, work, out);
    for (size_t i = 0; i < n; i++)
        work->values[i] *= judge_clock_factor(judge, out, work->gpus[i]);
    struct robust_fit fit = robust_fit_cautious(work->values, n, work->scratch);
    out->center = fit.center;
    out->sigma = yardstick_scale(&fit, out->spread);
    out->limited = out->sigma > fit.sigma;
    out->dof = (double)(fit.kept > 1 ? fit.kept - 1 : 1);
    out->usable = out->usable && fit.center != 0;
}

double yardstick_score(const struct yardstick *yardstick, double value, double spread,
                       double clock_ratio, const struct population_level *level)
{
    /* The scatter of the fleet includes the usual spread. A larger spread makes the figure of the
     * GPU less certain, and so do an unusual clock and a population of which little is known. */
    double excess = isfinite(spread) ? spread * spread - yardstick->spread * yardstick->spread : 0;
    double away = yardstick->share_error * (clock_ratio - 1) * yardstick->center;
    double apart = level->width * yardstick->center, scale = level->scale * yardstick->sigma;
    double sigma = sqrt(scale * scale + OWN * fmax(excess, 0) + away * away + apart * apart);
    double deviation = value - yardstick->center;
    double size = fmax(fabs(deviation) - yardstick->step, 0);
    return sigma > 0 ? copysign(size, deviation) / sigma : 0;
}

enum side { BETTER = -1, WORSE = 1 };

/* Deviations to one side, divided by the scale. Returns their number. Faults make GPUs worse, so
 * the better side has only healthy scatter and shows how heavy its tails are. */
static size_t yardstick_one_side(const struct judge *judge, const struct group *group,
                                 size_t metric, enum side side, const bool *left_out,
                                 struct work *work, double *out_sizes, size_t room)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    if (!y->usable || y->limited || rule->worse == JUDGE_ANY)
        return 0;
    size_t n = gather_comparable(judge, group, metric, left_out, work), count = 0;
    for (size_t i = 0; i < n && count < room; i++) {
        double deviation =
            work->values[i] * judge_clock_factor(judge, y, work->gpus[i]) - y->center;
        if (side * judge_worse_share(rule->worse, deviation) > 0)
            out_sizes[count++] =
                fabs(deviation) / (y->sigma * judge_level(judge, work->gpus[i], metric)->scale);
    }
    return count;
}

struct yardstick *yardstick_of(const struct judge *judge, const struct group *group, size_t metric)
{
    size_t g = (size_t)(group - judge->fleet.groups);
    return &judge->yardsticks[g * judge->basis.config->metric_count + metric];
}

/* The score at which healthy figures end; INFINITY if they do not end sharply. Also INFINITY if
 * more GPUs lie far out on the worse side than are likely to be faulty: then the sides differ. */
static double yardstick_find_edge(const struct judge *judge, const struct group *group,
                                  size_t metric, const bool *left_out, struct work *work,
                                  double *sizes, size_t room, size_t better)
{
    double edge = better >= OWN_TAIL ? robust_edge(sizes, better) : INFINITY;
    if (isinf(edge))
        return edge;
    size_t n = yardstick_one_side(judge, group, metric, WORSE, left_out, work, sizes, room),
           beyond = 0;
    for (size_t i = 0; i < n; i++)
        beyond += sizes[i] > NEAR_EDGE * edge;
    return (double)beyond > BEYOND_MAX * (double)(n + better) ? INFINITY : edge;
}

void yardstick_find_tails(const struct judge *judge, const struct group *group,
                          const bool *left_out, struct work *work)
{
    size_t metrics = judge->basis.config->metric_count, room = group->count * metrics, n = 0;
    double *sizes = mem_array(room, sizeof *sizes);
    for (size_t m = 0; m < metrics; m++)
        n += yardstick_one_side(judge, group, m, BETTER, left_out, work, sizes + n, room - n);
    double common = n >= TAIL_MIN ? robust_tail_dof(sizes, n) : TAIL_DOF;
    for (size_t m = 0; m < metrics; m++) {
        struct yardstick *y = yardstick_of(judge, group, m);
        if (!y->usable)
            continue;
        n = yardstick_one_side(judge, group, m, BETTER, left_out, work, sizes, room);
        y->tail_dof = n >= OWN_TAIL ? fmin(robust_tail_dof(sizes, n), common) : common;
        y->edge = yardstick_find_edge(judge, group, m, left_out, work, sizes, room, n);
    }
    free(sizes);
}

/* The second factor: sigma was found from the middle of the distribution as if it were normal. */
double yardstick_bound(double tail, double dof)
{
    return robust_student_quantile(tail, dof) * CPD_QUARTILE_SIGMA /
           robust_student_quantile(0.25, dof);
}

/* From this number of GPUs on, a population is always judged by its own scatter. */
enum { OWN_MIN = 30 };

/* The scale of a few GPUs is uncertain: it counts as wider only from this ratio on. */
static const double WIDER = 2;

/* Share of healthy GPUs that may be watched by chance, for one of their figures. */
static const double WATCHED_SHARE = 0.005;

/* The number of false accusations in one survey is for this many GPUs and more. Small surveys are
 * made often, of each node for instance: with fewer GPUs it is proportionally smaller. */
static const double FULL_SURVEY = 128;

static struct population_level *level_at(const struct judge *judge, size_t population,
                                         size_t metric)
{
    return &judge->levels[population * judge->basis.config->metric_count + metric];
}

/* The centre is known from n GPUs only. */
static double scale_with_center(double sigma, size_t n)
{
    return sigma * sqrt(1 + CPD_MEDIAN_ERROR * CPD_MEDIAN_ERROR / (double)n);
}

/* The figures of one population, converted as the yardstick is. Scales are in units of its sigma.
 */
struct own_scale {
    size_t n;
    double cautious, dof; /* as the scale of the yardstick is found */
    double usual;         /* of the values near the centre */
    double better;        /* root mean square of the deviations to the better side */
};

static double better_scale(const struct judge_metric *rule, const struct work *work, size_t n,
                           double center)
{
    double squares = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double worse = judge_worse_share(rule->worse, work->values[i] - center);
        squares += worse < 0 ? worse * worse : 0;
        count += worse < 0;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

static struct own_scale own_scale_find(const struct judge *judge, const struct group *population,
                                       const struct yardstick *y, size_t metric,
                                       const bool *left_out, struct work *work)
{
    size_t n = yardstick_gather(judge, population, metric, left_out, work);
    for (size_t i = 0; i < n; i++)
        work->values[i] *= judge_common_factor(judge, y, work->gpus[i], metric);
    const struct robust_fit cautious = robust_fit_cautious(work->values, n, work->scratch);
    const struct robust_fit usual = robust_fit(work->values, n, work->scratch);
    return (struct own_scale){
        .n = n,
        .cautious = scale_with_center(yardstick_scale(&cautious, y->spread), n) / y->sigma,
        .dof = cautious.kept > 1 ? (double)cautious.kept - 1 : 1,
        .usual = scale_with_center(yardstick_scale(&usual, y->spread), n) / y->sigma,
        .better =
            better_scale(&judge->basis.config->metrics[metric], work, n, usual.center) / y->sigma,
    };
}

/* A population is judged by its own scatter if that is known well, if it is much wider than that of
 * the model, to the better side, where faults do not count, or if it is so narrow that smaller
 * losses stand out in spite of the uncertainty. Otherwise it is judged by the scatter of the model,
 * or by its own if that is a little wider. */
static void own_scale_choose(struct population_level *level, const struct own_scale *own,
                             double tail)
{
    bool narrow = own->n >= YARDSTICK_MIN && yardstick_bound(tail, own->dof) * own->cautious <
                                                 yardstick_bound(tail, level->dof) * level->scale;
    bool wide = own->n > 2 && own->better > WIDER * level->scale;
    if (own->n >= OWN_MIN || narrow || wide) {
        level->scale = own->cautious;
        level->dof = own->dof;
    } else if (own->n >= YARDSTICK_MIN)
        level->scale = fmax(level->scale, own->usual);
}

void yardstick_find_scales(const struct judge *judge, const struct group *model,
                           const bool *left_out, double tail, struct work *work)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct yardstick *y = yardstick_of(judge, model, m);
        for (size_t i = 0; i < model->populations && y->usable; i++) {
            size_t number = model->populations_at + i;
            struct population_level *level = level_at(judge, number, m);
            level->scale = scale_with_center(1, y->n);
            level->dof = y->dof;
            if (model->populations == 1 || config->metrics[m].worse == JUDGE_ANY)
                continue;
            const struct own_scale own =
                own_scale_find(judge, &judge->fleet.populations[number], y, m, left_out, work);
            own_scale_choose(level, &own, tail);
        }
    }
}

/* The bound found last: most metrics of a model ask for the same one. */
struct bound_known {
    double tail, dof, bound;
};

static double bound_known(struct bound_known *known, double tail, double dof)
{
    if (known->tail != tail || known->dof != dof)
        *known = (struct bound_known){tail, dof, yardstick_bound(tail, dof)};
    return known->bound;
}

void yardstick_find_bounds(const struct judge *judge, const struct group *model,
                           const struct yardstick_chances *chances)
{
    struct bound_known single = {0}, pair = {0}, watch = {0};
    for (size_t m = 0; m < judge->basis.config->metric_count; m++) {
        const struct yardstick *y = yardstick_of(judge, model, m);
        for (size_t i = 0; i < model->populations && y->usable; i++) {
            struct population_level *level = level_at(judge, model->populations_at + i, m);
            double dof = fmin(level->dof, y->tail_dof);
            level->bound = fmin(bound_known(&single, chances->single, dof), y->edge);
            /* The figures of a healthy memory may be correlated: assume the heaviest tails. */
            level->pair_bound = bound_known(&pair, chances->pair, fmin(dof, ROBUST_DOF_MIN));
            level->watch_bound = bound_known(&watch, chances->watch, dof);
        }
    }
}

/* The number of comparisons: of single figures, and of pairs of figures of one memory; and of the
 * GPUs compared. */
struct comparisons {
    double single, pairs, gpus;
};

static struct comparisons count_comparisons(const struct judge *judge, const size_t *memories)
{
    const struct fleet *fleet = &judge->fleet;
    struct comparisons count = {0};
    for (size_t i = 0; i < fleet->count; i++)
        count.gpus += fleet_judged(&fleet->gpus[i]);
    for (size_t m = 0; m < judge->basis.config->metric_count; m++) {
        const struct metric_column *column = judge->columns[m];
        double partners = 0;
        for (size_t k = 0; k < m; k++)
            partners += memories[k] == memories[m];
        for (size_t g = 0; g < fleet->group_count && column; g++) {
            const struct group *group = &fleet->groups[g];
            if (!yardstick_of(judge, group, m)->usable)
                continue;
            for (size_t i = 0; i < group->count; i++) {
                bool made = fleet_judged(&fleet->gpus[group->members[i]]) &&
                            fleet_number(column, group->members[i], false);
                count.single += made;
                count.pairs += made ? partners : 0;
            }
        }
    }
    return count;
}

struct yardstick_chances yardstick_find_chances(const struct judge *judge, const size_t *memories)
{
    const struct comparisons made = count_comparisons(judge, memories);
    double allowed = judge->basis.config->false_alarms * fmin(made.gpus / FULL_SURVEY, 1);
    return (struct yardstick_chances){
        .single = fmin(allowed / fmax(made.single, 1), 0.5),
        .pair = fmin(sqrt(allowed / fmax(made.pairs, 1)), 0.5),
        .watch = WATCHED_SHARE * made.gpus / fmax(made.single, 1),
    };
}
