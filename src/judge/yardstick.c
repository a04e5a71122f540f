/* Centre, scale and bound of each metric in each model. */
#include "judge/yardstick.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "judge/robust.h"
#include "judge/student.h"

enum {
    SLOPE_MIN = 32, /* GPUs needed to find how a figure follows the clock */
    TAIL_MIN = 200, /* deviations needed to find the tails of all metrics together */
    OWN_TAIL = 100, /* deviations needed to find the tails of one metric, if they are heavier */
};

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
static const double TAIL_DOF = 12;

/* The edge is not used if more than the share BEYOND_MAX of the GPUs, faulty ones included, lies
 * beyond NEAR_EDGE * edge on the worse side. */
static const double NEAR_EDGE = 0.75, BEYOND_MAX = 0.05;

int work_init(struct work *work, size_t count)
{
    *work = (struct work){
        .gpus = mem_array(count, sizeof *work->gpus),
        .ratios = mem_array(count, sizeof *work->ratios),
        .values = mem_array(count, sizeof *work->values),
        .scratch = mem_array(4 * count, sizeof *work->scratch),
    };
    return work->gpus && work->ratios && work->values && work->scratch ? 0 : -ENOMEM;
}

void work_fini(struct work *work)
{
    free(work->gpus);
    free(work->ratios);
    free(work->values);
    free(work->scratch);
}

size_t yardstick_gather(const struct judge *judge, const struct group *group, size_t metric,
                        const bool *accused, struct work *work)
{
    const struct judge_config *config = judge->basis.config;
    const struct metric_column *column = judge->columns[metric];
    size_t n = 0;
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(column, gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]) || judge->other_hardware[gpu] ||
            (accused && accused[gpu * config->metric_count + metric]))
            continue;
        work->gpus[n] = gpu;
        work->values[n] = cell->value;
        work->scratch[n++] = isfinite(cell->spread) ? cell->spread : 0;
    }
    return n;
}

/* The same, as in the largest population. GPUs of populations that are too small are left out. */
static size_t gather(const struct judge *judge, const struct group *group, size_t metric,
                     const bool *accused, struct work *work)
{
    size_t all = yardstick_gather(judge, group, metric, accused, work), n = 0;
    for (size_t i = 0; i < all; i++) {
        const struct population_level *level = judge_level(judge, work->gpus[i], metric);
        if (level->apart)
            continue;
        work->gpus[n] = work->gpus[i];
        work->values[n] = work->values[i] * level->factor;
        work->scratch[n++] = work->scratch[i] * level->factor;
    }
    return n;
}

static void find_clock_share(const struct judge *judge, const struct judge_metric *rule, size_t n,
                             struct work *work, struct yardstick *out)
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

void yardstick_make(const struct judge *judge, const struct group *group, size_t metric,
                    const bool *accused, struct work *work, struct yardstick *out)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t n = rule->worse == JUDGE_NONE ? 0 : gather(judge, group, metric, accused, work);
    *out = (struct yardstick){.n = n, .usable = n >= YARDSTICK_MIN};
    if (!n)
        return;
    out->spread = robust_median(work->scratch, n);
    find_clock_share(judge, rule, n, work, out);
    for (size_t i = 0; i < n; i++)
        work->values[i] *= judge_clock_factor(judge, out, work->gpus[i]);
    struct robust_fit fit = robust_fit(work->values, n, work->scratch);
    out->center = fit.center;
    out->sigma = fmax(fit.sigma, fabs(fit.center) * rule->floor / YARDSTICK_FLOOR_SCORE);
    out->dof = (double)(fit.kept > 1 ? fit.kept - 1 : 1);
    out->usable = out->usable && fit.center != 0;
}

double yardstick_score(const struct yardstick *yardstick, double value, double spread,
                       double clock_ratio, double width)
{
    /* The scatter of the fleet includes the usual spread. A larger spread makes the figure of the
     * GPU less certain, and so do an unusual clock and a population of which little is known. */
    double excess = isfinite(spread) ? spread * spread - yardstick->spread * yardstick->spread : 0;
    double away = yardstick->share_error * (clock_ratio - 1) * yardstick->center;
    double apart = width * yardstick->center;
    double sigma = sqrt(yardstick->sigma * yardstick->sigma + OWN * fmax(excess, 0) + away * away +
                        apart * apart);
    return sigma > 0 ? (value - yardstick->center) / sigma : 0;
}

enum side { BETTER = -1, WORSE = 1 };

/* Deviations to one side, divided by the scale. Returns their number. Faults make GPUs worse, so
 * the better side has only healthy scatter and shows how heavy its tails are. */
static size_t one_side(const struct judge *judge, const struct group *group, size_t metric,
                       enum side side, const bool *accused, struct work *work, double *out_sizes,
                       size_t room)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    bool limited = y->sigma <= fabs(y->center) * rule->floor / YARDSTICK_FLOOR_SCORE;
    if (!y->usable || limited || rule->worse == JUDGE_ANY)
        return 0;
    size_t n = gather(judge, group, metric, accused, work), count = 0;
    for (size_t i = 0; i < n && count < room; i++) {
        double deviation =
            work->values[i] * judge_clock_factor(judge, y, work->gpus[i]) - y->center;
        if (side * judge_worse_share(rule->worse, deviation) > 0)
            out_sizes[count++] = fabs(deviation) / y->sigma;
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
static double find_edge(const struct judge *judge, const struct group *group, size_t metric,
                        const bool *accused, struct work *work, double *sizes, size_t room,
                        size_t better)
{
    double edge = better >= OWN_TAIL ? robust_edge(sizes, better) : INFINITY;
    if (isinf(edge))
        return edge;
    size_t n = one_side(judge, group, metric, WORSE, accused, work, sizes, room), beyond = 0;
    for (size_t i = 0; i < n; i++)
        beyond += sizes[i] > NEAR_EDGE * edge;
    return (double)beyond > BEYOND_MAX * (double)(n + better) ? INFINITY : edge;
}

int yardstick_tails(const struct judge *judge, const struct group *group, const bool *accused,
                    struct work *work)
{
    size_t metrics = judge->basis.config->metric_count, room = group->count * metrics, n = 0;
    double *sizes = mem_array(room, sizeof *sizes);
    if (!sizes)
        return -ENOMEM;
    for (size_t m = 0; m < metrics; m++)
        n += one_side(judge, group, m, BETTER, accused, work, sizes + n, room - n);
    double common = n >= TAIL_MIN ? robust_tail_dof(sizes, n) : TAIL_DOF;
    for (size_t m = 0; m < metrics; m++) {
        struct yardstick *y = yardstick_of(judge, group, m);
        if (!y->usable)
            continue;
        n = one_side(judge, group, m, BETTER, accused, work, sizes, room);
        double tail = n >= OWN_TAIL ? fmin(robust_tail_dof(sizes, n), common) : common;
        y->dof = 1 / (1 / y->dof + 1 / tail);
        y->edge = find_edge(judge, group, m, accused, work, sizes, room, n);
    }
    free(sizes);
    return 0;
}

/* The second factor: sigma was found from the middle of the distribution as if it were normal. */
double yardstick_bound(double tail, double dof)
{
    return student_quantile(tail, dof) * CPD_QUARTILE_SIGMA / student_quantile(0.25, dof);
}
