/* The model of a healthy figure: levels, scales and scores of all figures. */
#include "judge/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/conditions.h"
#include "judge/placement.h"
#include "judge/robust.h"
#include "judge/world.h"

enum {
    SLOPE_MIN = 32,    /* GPUs needed to find how a figure follows the clock */
    TAIL_MIN = 200,    /* deviations needed to find the tails of all metrics together */
    OWN_TAIL = 100,    /* ... and of one metric, if they are heavier */
    KIND_MIN = 8,      /* a kind of fewer may scatter much more than the others, unseen */
    WORLD_DOF_MAX = 8, /* GPUs that the scatter of the world counts as, at most */
};

/* The clocks must differ by this share to find how a figure follows them. */
static const double CLOCKS_APART = 0.01;

/* A larger clock share is chance and is not used. A smaller one is limited to 1, because otherwise
 * the expected figure at a low clock could be 0 or less. */
static const double SHARE_MAX = 1.2;

/* The default of `few`. */
static const double FEW = 0.05;

static struct usual_figure *population_figure(const struct judge *judge, size_t population,
                                              size_t metric)
{
    return &judge->figures[population * judge->basis.config->metric_count + metric];
}

const struct usual_figure *model_figure(const struct judge *judge, uint32_t gpu, size_t metric)
{
    return population_figure(judge, judge->fleet.gpus[gpu].population, metric);
}

double model_share_of_usual(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct usual_figure *usual = model_figure(judge, gpu, metric);
    const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
    if (!cell || !usual->usable || !fleet_judged(&judge->fleet.gpus[gpu]) ||
        judge->other_hardware[gpu])
        return NAN;
    return cell->value / usual->level * judge_clock_factor(judge, usual->clock_share, gpu);
}

/* Newton's method for the logarithm of the tail, which is concave: it comes from above. */
double model_normal_bound(double tail)
{
    enum { STEPS = 5 };
    const double root_two_pi = 2.5066282746310005;
    const double farthest = 38; /* beyond it the tail is less than the least double */
    if (tail >= 0.5 || !(tail > 0))
        return tail > 0 ? 0 : farthest;
    double wanted = portable_log(tail), bound = fmin(sqrt(-2 * wanted), farthest);
    for (int i = 0; i < STEPS; i++) {
        double beyond = portable_erfc(bound / sqrt(2)) / 2;
        double density = portable_exp(-square(bound) / 2) / root_two_pi;
        bound += (portable_log(beyond) - wanted) * beyond / density;
    }
    return bound;
}

/* Wallace's approximation: the value of a normal distribution with the same probability. */
static double score_of(double size, double dof)
{
    return (8 * dof + 1) / (8 * dof + 3) * sqrt(dof * portable_log1p(size * size / dof));
}

double model_score_size(double score, double dof)
{
    double root = score * (8 * dof + 3) / (8 * dof + 1);
    return sqrt(dof * portable_expm1(root * root / dof));
}

/* GPUs of one kind: the populations of a model that do not differ in what changes the metric. */
struct figure_kind {
    size_t first, n; /* their figures in the view */
    size_t all;      /* with those that are left out */
    uint32_t like;   /* a GPU of the kind */
    double place;    /* how most of them have their SMs placed; NaN: not known, or without effect */
    struct robust_fit fit;
    struct world_peers world;
};

/* One metric of one model. Figures are at the usual SM clock and lie kind by kind. */
struct figure_view {
    struct judge *judge;
    const struct group *model;
    const struct judge_metric *rule;
    const struct metric_column *column;
    size_t metric, n, kinds;
    uint32_t *gpus;
    double *values, *ratios, *spreads, *scratch;
    struct figure_kind *kind;
    size_t *kind_of;                          /* per population of the model */
    const bool *left_out;                     /* per GPU */
    const struct metric_column *place_column; /* NULL: the figure does not depend on them */
    struct placements placements;
    double clock_share, share_error, step;
    struct robust_fit pooled; /* of the deviations inside the kinds */
    double pooled_dof;
};

static bool has_program(const struct world_population *population, const char *program)
{
    for (size_t i = 0; i < population->programs.count; i++)
        if (!program || world_program_alike(population->programs.items[i], program))
            return true;
    return false;
}

/* The branch of a driver is its first number: "580" of "580.159.04". True also if the driver of
 * the GPUs is not known. */
static bool has_driver(const struct world_population *in_world, const struct fleet *fleet,
                       const struct group *population)
{
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, "driver");
    for (size_t i = 0; i < population->count; i++) {
        const char *driver = fleet_fact_text(fleet, column, population->members[i]);
        bool found = !driver || !in_world->drivers.count;
        for (size_t k = 0; k < in_world->drivers.count && !found; k++) {
            const char *other = in_world->drivers.items[k];
            size_t length = strcspn(driver, ".");
            found = length == strcspn(other, ".") && strncmp(driver, other, length) == 0;
        }
        if (!found)
            return false;
    }
    return true;
}

/* Figures count only if the same version of the program measured them. Without figures of its board
 * part, those of the part with most GPUs. */
struct world_peers model_world(const struct judge *judge, const struct group *population,
                               const char *metric)
{
    const struct fleet *fleet = &judge->fleet;
    const struct world_model *model =
        world_find_model(judge->basis.world, fleet_text(fleet, population->key));
    const struct kind_view kind = fleet_kind_view(fleet, population->like);
    const char *part =
        population->part
            ? fleet_fact_text(fleet, fleet_facts(fleet, SET_BOARD, "part"), population->like)
            : NULL;
    struct world_peers source = {0};
    double squares = 0, dof = 0;
    /* Of GPUs elsewhere it is not known of what kind they are, but for their board; ECC is on. */
    const struct fact_column *ecc = fleet_facts(fleet, SET_CONFIG, "ecc");
    const struct usual *usual = fleet_usual(fleet, population, SET_CONFIG, ecc);
    if (catalogue_kinds_differ(&kind, NULL, metric) ||
        (usual && fleet_code_number(fleet, usual->code) == 0))
        return source;
    for (size_t i = 0; model && i < model->population_count; i++) {
        const struct world_population *other = &model->populations[i];
        const struct world_figure *figure = world_find_figure(other, metric);
        if (!figure || figure->median == 0 || !has_program(other, judge->basis.program))
            continue;
        bool own = part && str_equal(other->part, part);
        squares += (figure->n - 1) * square(figure->scatter / figure->median);
        dof += figure->n - 1;
        source.all += figure->n;
        if (own || (!source.own_kind && (!source.figure || figure->n > source.figure->n))) {
            source.own_kind = own;
            source.population = other;
            source.figure = figure;
        }
    }
    source.scatter = dof > 0 ? sqrt(squares / dof) : 0;
    source.same_driver = source.figure && has_driver(source.population, fleet, population);
    return source;
}

bool model_world_knows(const struct judge *judge, const struct group *model)
{
    const struct world_model *in_world =
        world_find_model(judge->basis.world, fleet_text(&judge->fleet, model->key));
    for (size_t i = 0; in_world && i < in_world->population_count; i++)
        if (has_program(&in_world->populations[i], judge->basis.program))
            return true;
    return false;
}

/* How most GPUs of a kind have their SMs placed. */
static double kind_find_place(const struct figure_view *view, size_t k)
{
    const struct world_population *elsewhere = view->kind[k].world.population;
    struct place_counts counts = {0};
    for (size_t p = 0; p < view->model->populations; p++)
        if (view->kind_of[p] == k)
            place_counts_add(&counts, &view->judge->fleet, view->place_column,
                             &view->judge->fleet.populations[view->model->populations_at + p]);
    return placement_usual(
        &counts, elsewhere ? world_find_figure(elsewhere, view->rule->place_metric) : NULL);
}

/* The figures of the GPUs of a kind that show what is usual: judged, usual hardware, `ok`. */
static void view_gather_kind(struct figure_view *view, size_t k, const bool *left_out)
{
    const struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    view->kind[k].all = 0;
    for (size_t p = 0; p < view->model->populations; p++) {
        const struct group *population = &fleet->populations[view->model->populations_at + p];
        for (size_t i = 0; view->kind_of[p] == k && i < population->count; i++) {
            uint32_t gpu = population->members[i];
            const struct cell *cell = fleet_number(view->column, gpu, false);
            if (!cell || !fleet_judged(&fleet->gpus[gpu]) || judge->other_hardware[gpu] ||
                !isnan(placement_other(view->place_column, view->kind[k].place, gpu)))
                continue;
            view->kind[k].all++;
            if (left_out && left_out[gpu])
                continue;
            view->gpus[view->n] = gpu;
            view->ratios[view->n] = judge->clock_ratio[gpu];
            view->values[view->n] = cell->value;
            view->spreads[view->n++] =
                isfinite(cell->spread) && cell->value != 0 ? fabs(cell->spread / cell->value) : 0;
        }
    }
}

/* Kinds and their figures. */
static void view_gather(struct figure_view *view)
{
    const struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    const struct group *populations = &fleet->populations[view->model->populations_at];
    view->n = view->kinds = 0;
    for (size_t p = 0; p < view->model->populations; p++) {
        size_t k = 0;
        while (k < view->kinds &&
               fleet_kinds_compare(fleet, populations[p].like, view->kind[k].like,
                                   view->rule->metric) != KINDS_ALIKE)
            k++;
        view->kind_of[p] = k;
        if (k == view->kinds)
            view->kind[view->kinds++] = (struct figure_kind){
                .like = populations[p].like,
                .world = model_world(judge, &populations[p], view->rule->metric)};
    }
    for (size_t k = 0; k < view->kinds; k++) {
        view->kind[k].place = view->place_column ? kind_find_place(view, k) : NAN;
        view->kind[k].first = view->n;
        view_gather_kind(view, k, view->left_out);
        /* If too few would be left, none is left out: the median bears bad ones. */
        if (view->n - view->kind[k].first < PEERS_MIN &&
            view->n - view->kind[k].first < view->kind[k].all) {
            view->n = view->kind[k].first;
            view_gather_kind(view, k, NULL);
        }
        view->kind[k].n = view->n - view->kind[k].first;
    }
}

/* The share of the figure that follows the SM clock, and the figures at the usual clock. */
static void view_at_usual_clock(struct figure_view *view)
{
    double stated = view->rule->follows[JUDGE_SM_CLOCK];
    view->clock_share = stated;
    view->share_error = stated > 0 ? model_constants[SHARE_STATED] : 0;
    if (stated == 0)
        return;
    if (view->n >= SLOPE_MIN) {
        double *relative = view->scratch, *rest = relative + view->n;
        for (size_t k = 0; k < view->kinds; k++) {
            const struct figure_kind *kind = &view->kind[k];
            for (size_t i = 0; i < kind->n; i++)
                rest[i] = view->values[kind->first + i] /
                          (1 + stated * (view->ratios[kind->first + i] - 1));
            double center = robust_median(rest, kind->n);
            for (size_t i = kind->first; i < kind->first + kind->n; i++)
                relative[i] = view->values[i] / center;
        }
        double found = robust_share(view->ratios, relative, view->n, CLOCKS_APART, rest);
        if (found >= 0 && found <= SHARE_MAX) {
            view->clock_share = fmin(found, 1);
            view->share_error = model_constants[SHARE_FOUND];
        }
    }
    for (size_t i = 0; i < view->n; i++)
        view->values[i] /= 1 + view->clock_share * (view->ratios[i] - 1);
}

/* Without the figure `skip`; NONE: with all. */
enum { NONE = -1 };

static struct robust_fit kind_fit(const struct figure_view *view, const struct figure_kind *kind,
                                  ptrdiff_t skip)
{
    double *values = view->scratch;
    size_t n = 0;
    for (size_t i = kind->first; i < kind->first + kind->n; i++)
        if ((ptrdiff_t)i != skip)
            values[n++] = view->values[i];
    struct robust_fit fit = robust_fit_cautious(values, n, values + n);
    fit.sigma = n ? fit.sigma / fabs(fit.center) : 0;
    return fit;
}

static double fit_dof(const struct robust_fit *fit)
{
    return fit->kept > 1 ? (double)fit->kept - 1 : 0;
}

/* The scale of the deviations inside the kinds, all kinds together. */
static struct robust_fit pooled_fit(const struct figure_view *view, ptrdiff_t skip, double *out_dof)
{
    double *residuals = view->scratch + 2 * view->n;
    size_t n = 0, kinds = 0;
    for (size_t k = 0; k < view->kinds; k++) {
        const struct figure_kind *kind = &view->kind[k];
        bool inside = skip >= (ptrdiff_t)kind->first && skip < (ptrdiff_t)(kind->first + kind->n);
        const struct robust_fit fit = inside ? kind_fit(view, kind, skip) : kind->fit;
        if (kind->n < (inside ? 3u : 2u) || fit.center == 0)
            continue;
        kinds++;
        for (size_t i = kind->first; i < kind->first + kind->n; i++)
            if ((ptrdiff_t)i != skip)
                residuals[n++] = view->values[i] / fit.center - 1;
    }
    struct robust_fit fit = robust_fit_cautious(residuals, n, view->scratch);
    *out_dof = fit.kept > kinds ? (double)(fit.kept - kinds) : 0;
    if (*out_dof > 0)
        fit.sigma *= sqrt((double)(fit.kept - 1) / *out_dof);
    return fit;
}

/* The scale of healthy figures: the prior, the fleet's deviations of all kinds, those of the world
 * and those of its own kind, weighted by their degrees of freedom. */
static void usual_find_scale(const struct figure_view *view, const struct figure_kind *kind,
                             const struct robust_fit *own, const struct robust_fit *pooled,
                             double pooled_dof, struct usual_figure *out)
{
    double prior = model_constants[PRIOR_PART] * (view->rule->few > 0 ? view->rule->few : FEW);
    double world_dof =
        kind->world.figure
            ? fmin(model_constants[WORLD_SURE] * (kind->world.all - 1.0), WORLD_DOF_MAX)
            : 0;
    /* Where a fleet scatters more than the world, that is how it is there. */
    if (pooled_dof >= PEERS_MIN - 1 && pooled->sigma > kind->world.scatter)
        world_dof = 0;
    double variance = model_constants[PRIOR_DOF] * square(prior),
           dof = model_constants[PRIOR_DOF] + world_dof;
    variance += world_dof * square(kind->world.scatter);
    if (pooled_dof > 0) {
        variance += pooled_dof * square(pooled->sigma);
        dof += pooled_dof;
    }
    variance /= dof;
    if (world_dof > 0) /* the assumption does not narrow what is known */
        variance = fmax(variance, square(kind->world.scatter));
    const double own_dof = fit_dof(own);
    if (view->kinds > 1 && own_dof > 0) {
        variance = (model_constants[KIND_DOF] * variance + own_dof * square(own->sigma)) /
                   (model_constants[KIND_DOF] + own_dof);
        dof = model_constants[KIND_DOF] + own_dof;
    }
    double least = fmax(model_constants[RESOLUTION], model_constants[SPREAD_PART] * out->spread);
    out->limited = variance < square(least);
    out->sigma = fmax(sqrt(variance), least);
    out->dof = dof;
}

/* One source of what is usual. */
struct level_source {
    double level, error; /* error: share; INFINITY: knows nothing */
};

/* The other kinds of the model in the fleet; of the world, if the fleet has none. */
static struct level_source other_kinds(const struct figure_view *view,
                                       const struct figure_kind *kind, double world_level,
                                       size_t *out_largest)
{
    struct level_source source = {NAN, INFINITY};
    *out_largest = 0;
    for (size_t k = 0; k < view->kinds; k++) {
        const struct figure_kind *other = &view->kind[k];
        if (other == kind || other->n <= *out_largest ||
            fleet_kinds_compare(&view->judge->fleet, kind->like, other->like, view->rule->metric) !=
                KINDS_BOARDS)
            continue;
        *out_largest = other->n;
        source = (struct level_source){other->fit.center, model_constants[LEVELS_APART]};
    }
    if (!*out_largest && kind->world.figure && !kind->world.own_kind)
        source = (struct level_source){world_level, model_constants[LEVELS_APART]};
    return source;
}

/* What is usual for a GPU of this kind, known from all figures but `skip`. */
static void usual_find(const struct figure_view *view, const struct figure_kind *kind,
                       ptrdiff_t skip, struct usual_figure *out)
{
    const struct judge *judge = view->judge;
    const struct robust_fit own = skip == NONE ? kind->fit : kind_fit(view, kind, skip);
    double pooled_dof = view->pooled_dof;
    struct robust_fit pooled = view->pooled;
    if (skip != NONE && view->n <= OTHERS_MAX)
        pooled = pooled_fit(view, skip, &pooled_dof);
    size_t n = kind->n - (skip != NONE), largest = 0;
    const struct world_figure *figure = kind->world.figure;
    double world_level = NAN;
    if (figure) {
        const struct world_figure *clock = world_find_figure(kind->world.population, "clock.sm");
        size_t group = (size_t)(view->model - judge->fleet.groups);
        double usual = judge->usual[group * JUDGE_CONDITION_COUNT + JUDGE_SM_CLOCK];
        double ratio = clock && usual > 0 ? usual / clock->median : 1;
        world_level = figure->median * (1 + view->clock_share * (ratio - 1));
    }
    const struct level_source kinds = other_kinds(view, kind, world_level, &largest);
    if (view->kinds > 1 && !largest) { /* it is like no other kind */
        pooled = own;
        pooled_dof = fit_dof(&own);
    }
    usual_find_scale(view, kind, &own, &pooled, pooled_dof, out);
    struct level_source fleet = {NAN, INFINITY}, world = {NAN, INFINITY};
    double median_error = CPD_MEDIAN_ERROR * out->sigma;
    if (n)
        fleet = (struct level_source){
            own.center, portable_hypot(median_error / sqrt((double)n),
                                       isinf(kinds.error) ? 0 : kinds.error / square((double)n))};
    if (figure && kind->world.own_kind)
        world = (struct level_source){world_level, portable_hypot(median_error / sqrt(figure->n),
                                                                  model_constants[SITES_APART])};
    double apart = fabs(fleet.level / world.level - 1);
    bool contradicts =
        apart > model_constants[CONTRADICTION] * portable_hypot(fleet.error, world.error);
    if (contradicts) {
        world.error = n >= PEERS_MIN ? INFINITY : portable_hypot(world.error, apart);
        fleet.error = n >= PEERS_MIN ? fleet.error : portable_hypot(fleet.error, apart);
    }
    const struct level_source sources[] = {fleet, world, kinds};
    double weights = 0, sum = 0;
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        double weight = isinf(sources[i].error) ? 0 : 1 / square(sources[i].error);
        weights += weight;
        sum += weight > 0 ? weight * sources[i].level : 0;
    }
    out->n = n;
    out->all = view->n - (skip != NONE);
    out->elsewhere = figure ? figure->n : 0;
    out->level = sum / weights;
    out->error = 1 / sqrt(weights);
    out->usable = weights > 0 && out->level != 0 && isfinite(out->level);
    bool by_kinds = isinf(fleet.error) && isinf(world.error);
    out->by_world =
        figure && (isinf(fleet.error) || world.error < fleet.error) && (!by_kinds || !largest);
    /* One other GPU of the fleet, or three, do not make what is known elsewhere their own. */
    out->alone = out->by_world && (!n || contradicts || out->all + 1 < PEERS_MIN);
    size_t elsewhere = figure && kind->world.own_kind ? figure->n : 0;
    out->few = !out->by_world && view->kinds > 1 && kind->all + elsewhere < KIND_MIN;
    out->certain = out->by_world ? kind->world.own_kind && kind->world.same_driver &&
                                       kind->world.all >= PEERS_MIN
                                 : kind->all >= PEERS_MIN || pooled_dof >= PEERS_MIN - 1;
}

/* Values that are fixed in hardware, such as a line size, do not scatter. They are compared if two
 * thirds of the GPUs have the same value, or all GPUs elsewhere. */
static void usual_find_fixed(const struct figure_view *view, const struct figure_kind *kind,
                             struct usual_figure *out)
{
    const struct world_figure *figure = kind->world.figure;
    double *values = view->scratch;
    size_t equal = 0;
    for (size_t i = 0; i < view->n; i++)
        values[i] = view->values[i];
    out->level = robust_median(values, view->n);
    for (size_t i = 0; i < view->n; i++)
        equal += values[i] == out->level;
    out->n = out->all = view->n;
    out->certain = out->usable = view->n >= PEERS_MIN && 3 * equal >= 2 * view->n;
    if (view->n >= PEERS_MIN || !figure ||
        figure->quantiles[0] != figure->quantiles[WORLD_QUANTILES - 1])
        return;
    out->usable = out->by_world = out->alone = true;
    out->level = figure->median;
    out->elsewhere = figure->n;
}

/* Resolution: 1 if two thirds of the figures are whole numbers, such as latencies in cycles.
 * Smaller numbers than 10 are ratios and counts. */
static double view_find_step(const struct figure_view *view)
{
    size_t whole = 0;
    for (size_t i = 0; i < view->n; i++)
        whole += view->values[i] >= 10 && view->values[i] == floor(view->values[i]);
    return view->n && 3 * whole >= 2 * view->n ? 1 : 0;
}

/* Loss and deviation, in standard deviations, of one GPU. */
static void score_gpu(struct figure_view *view, const struct usual_figure *usual, uint32_t gpu,
                      const struct cell *cell)
{
    struct judge *judge = view->judge;
    size_t slot = judge_slot(judge, gpu, view->metric);
    double away = judge->clock_ratio[gpu] - 1;
    double value = cell->value / (1 + view->clock_share * away);
    const struct placement placement =
        placement_of(&view->placements, gpu, placement_other(view->place_column, usual->place, gpu),
                     value / usual->level, usual->sigma);
    double level = usual->level * placement.effect;
    bool few = usual->few || placement.few;
    double deviation = value / level - 1;
    double spread = isfinite(cell->spread) ? cell->spread / level : 0;
    double excess = fmax(square(spread) - square(usual->spread), 0);
    double variance = square(usual->sigma) + square(usual->error) + square(placement.error) +
                      model_constants[OWN_PART] * excess + square(view->share_error * away);
    double size = fmax(fabs(deviation) - view->step / fabs(level), 0);
    judge->worse[slot] = (float)judge_worse_share(view->rule->worse, deviation);
    judge->sources[slot] = (uint16_t)(usual->by_world * SOURCE_WORLD | usual->alone * SOURCE_ALONE |
                                      usual->certain * SOURCE_CERTAIN | few * SOURCE_FEW |
                                      (unsigned)fmin(usual->dof, SOURCE_DOF_MAX) * SOURCE_DOF);
    if (view->rule->worse != JUDGE_ANY)
        judge->scores[slot] =
            (float)judge_worse_share(view->rule->worse, copysign(size / sqrt(variance), deviation));
}

/* The GPUs that show what other places than the usual one change of the figure. */
static void view_gather_placed(struct figure_view *view)
{
    for (size_t i = 0; view->place_column && i < view->model->count; i++) {
        uint32_t gpu = view->model->members[i];
        double usual = model_figure(view->judge, gpu, view->metric)->place;
        double place = placement_other(view->place_column, usual, gpu);
        double share = model_share_of_usual(view->judge, gpu, view->metric);
        if (!isnan(place) && !isnan(share) && !view->left_out[gpu])
            placement_add(&view->placements, gpu, place, share);
    }
}

/* Where the figure of a GPU is among those of its kind; NONE: it does not show what is usual. */
static ptrdiff_t view_position(const struct figure_view *view, const struct figure_kind *kind,
                               uint32_t gpu)
{
    for (size_t i = kind->first; i < kind->first + kind->n; i++)
        if (view->gpus[i] == gpu)
            return (ptrdiff_t)i;
    return NONE;
}

static void view_score(struct figure_view *view)
{
    const struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    view_gather_placed(view);
    for (size_t p = 0; p < view->model->populations; p++) {
        const struct group *population = &fleet->populations[view->model->populations_at + p];
        const struct figure_kind *kind = &view->kind[view->kind_of[p]];
        const struct usual_figure *common =
            model_figure(judge, population->members[0], view->metric);
        bool few = kind->n <= OTHERS_MAX && view->rule->worse != JUDGE_ANY;
        for (size_t i = 0; i < population->count; i++) {
            uint32_t gpu = population->members[i];
            const struct cell *cell = fleet_number(view->column, gpu, true);
            struct usual_figure usual = *common;
            if (!cell || !fleet_judged(&fleet->gpus[gpu]))
                continue;
            if (few)
                usual_find(view, kind, view_position(view, kind, gpu), &usual);
            if (usual.usable)
                score_gpu(view, &usual, gpu, cell);
        }
    }
    placement_fini(&view->placements);
}

static void model_find_metric(struct figure_view *view)
{
    const struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    size_t largest = 0;
    view->place_column =
        view->rule->place_metric ? fleet_metric(fleet, view->rule->place_metric) : NULL;
    view_gather(view);
    view->step = view->rule->worse == JUDGE_ANY ? 0 : view_find_step(view);
    view_at_usual_clock(view);
    for (size_t k = 0; k < view->kinds; k++) {
        view->kind[k].fit = kind_fit(view, &view->kind[k], NONE);
        largest = view->kind[k].n > view->kind[largest].n ? k : largest;
    }
    if (view->kinds == 1) {
        view->pooled = view->kind[0].fit;
        view->pooled_dof = fit_dof(&view->pooled);
    } else {
        view->pooled = pooled_fit(view, NONE, &view->pooled_dof);
    }
    for (size_t i = 0; i < view->n; i++)
        view->scratch[i] = view->spreads[i];
    double spread = view->n ? robust_median(view->scratch, view->n) : 0;
    for (size_t p = 0; p < view->model->populations; p++) {
        const struct figure_kind *kind = &view->kind[view->kind_of[p]];
        struct usual_figure *out =
            population_figure(judge, view->model->populations_at + p, view->metric);
        *out = (struct usual_figure){.spread = spread,
                                     .clock_share = view->clock_share,
                                     .share_error = view->share_error,
                                     .center = kind->n >= PEERS_MIN ? kind->fit.center : NAN,
                                     .largest = view->kind[largest].fit.center,
                                     .place = kind->place};
        if (view->rule->worse == JUDGE_ANY)
            usual_find_fixed(view, kind, out);
        else
            usual_find(view, kind, NONE, out);
        out->other_kind = fleet_kinds_compare(fleet, kind->like, view->kind[largest].like,
                                              view->rule->metric) == KINDS_APART;
    }
    view_score(view);
}

/* How far out healthy figures of one metric lie, from the better side: faults make GPUs worse. */
struct figure_tails {
    double dof; /* degrees of freedom */
    double end; /* no healthy figure deviates more; INFINITY: no such end */
};

/* The distribution ends sharply at twice the largest deviation to the better side. Not if more GPUs
 * lie near this end on the worse side than are likely to be faulty: then the sides differ. */
static double tails_end(const struct judge *judge, const struct group *model, size_t metric,
                        const double *sizes, size_t n)
{
    double end = robust_edge(sizes, n);
    size_t beyond = 0;
    for (size_t i = 0; i < model->count; i++)
        beyond += judge->scores[judge_slot(judge, model->members[i], metric)] >
                  model_constants[NEAR_END] * end;
    return (double)beyond > model_constants[BEYOND_MAX] * (double)model->count ? INFINITY : end;
}

/* Finds the tails of all metrics of a model and makes the deviations of its GPUs scores of a normal
 * distribution. */
static void model_find_scores(struct judge *judge, const struct group *model, const bool *left_out)
{
    size_t metrics = judge->scored_count, n = 0;
    double *sizes = mem_array(model->count * metrics, sizeof *sizes);
    struct figure_tails *tails = mem_array(metrics, sizeof *tails);
    for (size_t k = 0; k < metrics; k++) {
        size_t first = n, m = judge->scored[k];
        for (size_t i = 0; i < model->count; i++) {
            uint32_t gpu = model->members[i];
            double score = judge->scores[judge_slot(judge, gpu, m)];
            if (score < 0 && !left_out[gpu] && !model_figure(judge, gpu, m)->limited &&
                fleet_number(judge->columns[m], gpu, false) && !judge->other_hardware[gpu])
                sizes[n++] = -score;
        }
        bool enough = n - first >= OWN_TAIL;
        tails[k].dof = enough ? robust_tail_dof(sizes + first, n - first, -1) : INFINITY;
        tails[k].end = enough ? tails_end(judge, model, m, sizes + first, n - first) : INFINITY;
    }
    double common = n >= TAIL_MIN ? robust_tail_dof(sizes, n, 1) : model_constants[TAIL_DOF];
    for (size_t k = 0; k < metrics; k++) {
        size_t m = judge->scored[k];
        double tail = fmin(tails[k].dof, common);
        for (size_t p = 0; p < model->populations; p++) {
            struct usual_figure *figure = population_figure(judge, model->populations_at + p, m);
            figure->dof = fmin(figure->dof, tail);
        }
        for (size_t i = 0; i < model->count; i++) {
            size_t slot = judge_slot(judge, model->members[i], m);
            double size = fabs(judge->scores[slot]);
            double dof = fmin(tail, judge->sources[slot] / SOURCE_DOF);
            double least = size >= tails[k].end ? model_constants[SHARP_SCORE] : 0;
            if (size > 1) /* below, both are nearly the same */
                judge->scores[slot] =
                    (float)copysign(fmax(score_of(size, dof), least), judge->scores[slot]);
        }
    }
    free(sizes);
    free(tails);
}

void model_find(struct judge *judge, const bool *left_out)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    size_t slots = (judge->scored_count + 1) * fleet->count;
    struct figure_view view = {.judge = judge,
                               .left_out = left_out,
                               .gpus = mem_array(fleet->count, sizeof *view.gpus),
                               .values = mem_array(fleet->count, sizeof *view.values),
                               .ratios = mem_array(fleet->count, sizeof *view.ratios),
                               .spreads = mem_array(fleet->count, sizeof *view.spreads),
                               .scratch = mem_array(5 * fleet->count + 1, sizeof *view.scratch),
                               .kind = mem_array(fleet->population_count, sizeof *view.kind),
                               .kind_of = mem_array(fleet->population_count, sizeof *view.kind_of)};
    for (size_t i = 0; i < slots; i++)
        judge->worse[i] = judge->scores[i] = NAN;
    for (size_t g = 0; g < fleet->group_count; g++) {
        view.model = &fleet->groups[g];
        for (size_t k = 0; k < judge->scored_count; k++) {
            view.metric = judge->scored[k];
            view.rule = &config->metrics[view.metric];
            view.column = judge->columns[view.metric];
            model_find_metric(&view);
        }
        model_find_scores(judge, view.model, left_out);
    }
    free(view.gpus);
    free(view.values);
    free(view.ratios);
    free(view.spreads);
    free(view.scratch);
    free(view.kind);
    free(view.kind_of);
}

/* Whether the metric differs between kinds of the model by more than chance. With N such tests each
 * may fail with probability `false_alarms` / N. */
static bool figures_differ(const struct judge *judge, const struct group *model, size_t metric,
                           double tail)
{
    const size_t first = model->populations_at, end = first + model->populations;
    const struct usual_figure *largest = population_figure(judge, first, metric);
    for (size_t p = first; p < end; p++)
        if (population_figure(judge, p, metric)->n > largest->n)
            largest = population_figure(judge, p, metric);
    for (size_t p = first; p < end; p++) {
        const struct usual_figure *own = population_figure(judge, p, metric);
        if (isnan(own->center) || own->center == largest->center)
            continue;
        double error = CPD_MEDIAN_ERROR * sqrt(square(own->sigma) / (double)own->n +
                                               square(largest->sigma) / (double)largest->n);
        double bound = robust_student_quantile(tail / 2, (double)own->n - 1);
        if (fabs(own->center / largest->center - 1) > bound * error)
            return true;
    }
    return false;
}

void model_report_populations(const struct judge *judge, const struct group *model,
                              struct inventory_model *out_model)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    size_t tests = judge->scored_count * (fleet->population_count - fleet->group_count);
    if (model->populations < 2)
        return;
    out_model->populations = mem_array(model->populations, sizeof *out_model->populations);
    out_model->population_count = model->populations;
    for (size_t i = 0; i < model->populations; i++) {
        const struct group *population = &fleet->populations[model->populations_at + i];
        struct strbuf keys = {0}, values = {0};
        struct inventory_population *out = &out_model->populations[i];
        for (size_t k = 0; k < population->count; k++)
            out->count += fleet->gpus[population->members[k]].measured;
        fleet_put_kind(fleet, model, population, &keys, &values);
        bool unknown = str_equal(keys.data, "board.part") && !population->part;
        out->by = keys.data;
        out->value = str_copy(unknown ? NULL : values.data);
        strbuf_fini(&values);
    }
    for (size_t m = 0; m < config->metric_count; m++) {
        enum judge_worse worse = config->metrics[m].worse;
        if (!judge->columns[m] || (worse != JUDGE_LOWER && worse != JUDGE_HIGHER) ||
            !figures_differ(judge, model, m, fmin(config->false_alarms / (double)tests, 0.5)))
            continue;
        for (size_t i = 0; i < model->populations; i++) {
            double usual = population_figure(judge, model->populations_at + i, m)->center;
            if (isfinite(usual))
                facts_set_real(&out_model->populations[i].figures, config->metrics[m].metric,
                               measure_digits(usual, 6));
        }
    }
}
