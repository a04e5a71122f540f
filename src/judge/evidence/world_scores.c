/* Figures of GPUs that have too few peers, against sketches of GPUs elsewhere. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/evidence/stages.h"
#include "judge/verdict.h"
#include "judge/world.h"
#include "judge/yardstick.h"

/* Behind an accusation are at least as many GPUs as in a fleet. With fewer than PAIR the figures of
 * the model's largest population count. */
enum { ACCUSE_MIN = YARDSTICK_MIN, PAIR = 2 };

/* Boards of one model differ by up to this share (docs/JUDGE.md, "Populations"): the width if the
 * sketches do not show it. */
static const double BOARDS_APART = 0.05;

/* As in yardstick.c: weight of the square of a GPU's own spread, and error of a share from the
 * configuration that follows the SM clock. */
static const double OWN = 0.5, SHARE_ERROR = 0.15;

/* Degrees of freedom of the tails, which are combined with those of the scatter: 1 / (1 / a + 1 /
 * b). In yardstick.c the smaller ones of both count. WATCH_TAIL: one in 740 healthy figures is
 * watched.
 */
static const double TAIL_DOF = 12, WATCH_TAIL = 0.00135;

/* Sites differ in ways that no sketch shows, such as cooling: a smaller loss accuses nobody. */
static const double ACCUSE_LOSS = 0.03;

/* If all GPUs have the same value, a deviation equal to the floor has this score. */
static const double FLOOR_SCORE = 8;

/* The robust scatter of few GPUs is less certain than a standard deviation of as many: it has about
 * this share of its degrees of freedom. Then at most 1 % of healthy lone GPUs are accused, which
 * is so with 5 GPUs in the world and a scatter of 2 % (docs/share.md). */
static const double SURE = 0.7;

/* What the GPUs of one population are compared with in one metric. */
struct world_standard {
    const struct world_population *population;
    const struct world_figure *figure; /* NULL: none */
    double sigma;
    double watch_dof, accuse_dof; /* degrees of freedom of the bounds */
    double width;                 /* uncertainty of what is usual, as a share of the centre */
    bool may_accuse;              /* enough GPUs, with the same board part and driver */
    bool same_driver;
};

/* The board part of a population; NULL: not known. */
static const char *board_part(const struct fleet *fleet, const struct group *population)
{
    const struct fact part =
        fleet_fact(fleet, fleet_facts(fleet, SET_BOARD, "part"), population->part);
    return population->part && part.kind == FACT_TEXT ? part.text : NULL;
}

static bool has_program(const struct world_population *population, const char *program)
{
    for (size_t i = 0; i < population->programs.count; i++)
        if (!program || world_program_alike(population->programs.items[i], program))
            return true;
    return false;
}

/* The branch of a driver is its first number: "580" of "580.159.04". */
static bool same_branch(const char *a, const char *b)
{
    size_t length = strcspn(a, ".");
    return length == strcspn(b, ".") && strncmp(a, b, length) == 0;
}

/* True also if the driver of the GPUs is not known. */
static bool has_driver(const struct world_population *in_world, const struct fleet *fleet,
                       const struct group *population)
{
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, "driver");
    for (size_t i = 0; i < population->count; i++) {
        const char *driver = fleet_fact_text(fleet, column, population->members[i]);
        bool found = !driver || !in_world->drivers.count;
        for (size_t k = 0; k < in_world->drivers.count && !found; k++)
            found = same_branch(driver, in_world->drivers.items[k]);
        if (!found)
            return false;
    }
    return true;
}

/* The population with most GPUs in a metric, of those that the same program measured. */
static const struct world_population *largest_population(const struct world_model *model,
                                                         const char *metric, const char *program)
{
    const struct world_population *best = NULL;
    uint32_t most = 0;
    for (size_t i = 0; i < model->population_count; i++) {
        const struct world_population *population = &model->populations[i];
        const struct world_figure *figure = world_find_figure(population, metric);
        if (!figure || figure->n <= most || !has_program(population, program))
            continue;
        best = population;
        most = figure->n;
    }
    return best;
}

/* The largest distance of another population's median from this one, as a share. */
static double boards_apart(const struct world_model *model, const struct world_figure *figure)
{
    double apart = 0;
    for (size_t i = 0; i < model->population_count; i++) {
        const struct world_figure *other =
            world_find_figure(&model->populations[i], figure->metric);
        if (other)
            apart = fmax(apart, fabs(other->median / figure->median - 1));
    }
    return apart > 0 ? apart : BOARDS_APART;
}

static double relative_scatter(const struct world_figure *figure)
{
    return figure && figure->median != 0 ? figure->scatter / fabs(figure->median) : 0;
}

static struct world_standard world_find_standard(const struct judge *judge,
                                                 const struct group *population,
                                                 const struct judge_metric *rule)
{
    const struct fleet *fleet = &judge->fleet;
    const struct world_model *model =
        world_find_model(judge->basis.world, fleet_text(fleet, population->key));
    struct world_standard standard = {0};
    const struct world_population *most =
        model ? largest_population(model, rule->metric, judge->basis.program) : NULL;
    if (!most)
        return standard;
    const char *part = board_part(fleet, population);
    const struct world_population *own = part ? world_find_population(model, part) : NULL;
    const struct world_figure *common = world_find_figure(most, rule->metric);
    const struct world_figure *figure =
        own && has_program(own, judge->basis.program) ? world_find_figure(own, rule->metric) : NULL;
    bool known = figure && figure->n >= PAIR;
    standard.population = known ? own : most;
    standard.figure = known ? figure : common;
    if (standard.figure->median == 0)
        return (struct world_standard){0};
    double center = fabs(standard.figure->median), n = standard.figure->n;
    double scatter = relative_scatter(standard.figure);
    if (n < ACCUSE_MIN) /* the scatter of so few is uncertain */
        scatter = fmax(scatter, relative_scatter(common));
    scatter = fmax(scatter, rule->floor / FLOOR_SCORE);
    standard.sigma = center * scatter * sqrt(1 + CPD_MEDIAN_ERROR * CPD_MEDIAN_ERROR / n);
    standard.watch_dof = 1 / (1 / fmax(n - 1, 1) + 1 / TAIL_DOF);
    standard.accuse_dof = 1 / (1 / fmax(SURE * (n - 1), SURE) + 1 / TAIL_DOF);
    standard.width = known ? 0 : boards_apart(model, common);
    standard.same_driver = has_driver(standard.population, fleet, population);
    standard.may_accuse = known && n >= ACCUSE_MIN && standard.same_driver;
    return standard;
}

/* A GPU's condition over the usual one in the world; 1 if either is unknown. */
static double world_ratio(const struct judge *judge, const struct world_standard *standard,
                          const char *metric, uint32_t gpu)
{
    const struct world_figure *usual = world_find_figure(standard->population, metric);
    const struct cell *cell = fleet_number(fleet_metric(&judge->fleet, metric), gpu, true);
    double ratio = usual && cell ? cell->value / usual->median : 1;
    return ratio > 0 && isfinite(ratio) ? ratio : 1;
}

/* One comparison of one GPU. */
struct world_comparison {
    const struct cell *cell;
    double sm_clock, memory_clock; /* ratios to the usual ones */
    double expected, worse, score;
};

static struct world_comparison world_compare(const struct judge *judge,
                                             const struct world_standard *standard, size_t metric,
                                             uint32_t gpu)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct world_figure *figure = standard->figure;
    struct world_comparison c = {.cell = fleet_number(judge->columns[metric], gpu, false)};
    c.sm_clock = world_ratio(judge, standard, "clock.sm", gpu);
    c.memory_clock = world_ratio(judge, standard, "clock.memory", gpu);
    double share = rule->follows[JUDGE_SM_CLOCK], factor = 1 + share * (c.sm_clock - 1);
    double spread = isfinite(c.cell->spread) ? c.cell->spread : 0;
    double excess = fmax(spread * spread - figure->spread * figure->spread, 0);
    double away = share > 0 ? SHARE_ERROR * (c.sm_clock - 1) * figure->median : 0;
    double apart = standard->width * figure->median;
    double sigma =
        sqrt(standard->sigma * standard->sigma + OWN * excess + away * away + apart * apart);
    c.expected = figure->median * factor;
    c.worse = judge_worse_share(rule->worse, c.cell->value / c.expected - 1);
    c.score = (c.cell->value - c.expected) / (factor * sigma);
    return c;
}

/* The host takes part in these figures, and it is another one. Clocks are judged by their cause. */
static bool is_only_watched(const char *metric)
{
    return strncmp(metric, "host.", 5) == 0 || strncmp(metric, "clock.", 6) == 0;
}

/* A lower SM clock that explains a loss of bandwidth absolves the memory. */
static void world_judge_gpu(struct judge *judge, const struct world_standard *standard,
                            size_t metric, double tail, uint32_t gpu)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct world_comparison c = world_compare(judge, standard, metric, gpu);
    double score = judge_worse_share(rule->worse, c.score);
    if (!(c.worse >= rule->floor) || c.worse == 0 ||
        !(score >= yardstick_bound(WATCH_TAIL, standard->watch_dof)))
        return;
    bool beyond = standard->may_accuse && !is_only_watched(rule->metric) &&
                  rule->worse != JUDGE_ANY && c.worse >= fmax(rule->accuse, ACCUSE_LOSS) &&
                  score >= yardstick_bound(tail, standard->accuse_dof);
    bool by_memory =
        judge_number_lower(c.memory_clock, 1) &&
        judge_loss_fits(c.worse, rule->follows[JUDGE_MEMORY_CLOCK] * (1 - c.memory_clock),
                        rule->floor);
    bool by_clock = !by_memory && judge_number_lower(c.sm_clock, 1) &&
                    strstr(rule->metric, ".bandwidth") &&
                    judge_loss_fits(c.worse, 1 - c.sm_clock, rule->floor);
    const char *remark = standard->same_driver ? "" : "; they had another driver";
    struct finding finding = finding_new(judge, gpu, rule->metric, BASIS_WORLD,
                                         beyond && !by_clock ? EVIDENCE_BEYOND : EVIDENCE_WITHIN);
    finding.rule = (int32_t)metric;
    finding.unit = c.cell->unit;
    finding_compare(&finding, c.cell->value, c.expected);
    finding.score = c.score;
    char *cause;
    if (by_memory) {
        finding.verdict = VERDICT_MISCONFIGURED;
        finding.explained_by = 1u << JUDGE_MEMORY_CLOCK;
        double clock = judge_condition_value(&judge->fleet, JUDGE_MEMORY_CLOCK, gpu);
        cause = str_format("memory clock %.0f MHz, GPUs elsewhere run at %.0f MHz%s", clock,
                           clock / c.memory_clock, remark);
    } else if (by_clock) {
        finding.explained_by = 1u << JUDGE_SM_CLOCK;
        cause = str_format("SM clock %.1f %% lower than of GPUs elsewhere%s",
                           100 * (1 - c.sm_clock), remark);
    } else
        cause = str_format("unexplained: worse than %u GPU%s elsewhere %s%s", standard->figure->n,
                           standard->figure->n == 1 ? "" : "s",
                           standard->width > 0 ? "with another board part" : "with its board part",
                           remark);
    findings_add(judge, finding, cause);
}

/* The GPUs of a population that have too few peers in a metric and can be compared. */
static size_t count_few(const struct judge *judge, const struct group *population, size_t metric)
{
    const struct kind_view kind = fleet_kind_view(&judge->fleet, population->like);
    size_t count = 0;
    /* Of GPUs elsewhere it is not known of what kind they are. */
    if (catalogue_kinds_differ(&kind, NULL, judge->basis.config->metrics[metric].metric))
        return 0;
    for (size_t i = 0; i < population->count; i++) {
        uint32_t gpu = population->members[i];
        count += fleet_judged(&judge->fleet.gpus[gpu]) && !judge->other_hardware[gpu] &&
                 fleet_number(judge->columns[metric], gpu, false);
    }
    return count < YARDSTICK_MIN ? count : 0;
}

static void world_judge_metric(struct judge *judge, const struct group *population, size_t metric,
                               double tail)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    if (rule->worse == JUDGE_NONE || !count_few(judge, population, metric))
        return;
    const struct world_standard standard = world_find_standard(judge, population, rule);
    /* A value that is fixed in hardware is the same everywhere, or it is not compared. */
    bool scatters = standard.figure && standard.figure->quantiles[0] !=
                                           standard.figure->quantiles[WORLD_QUANTILES - 1];
    if (!standard.figure || (rule->worse == JUDGE_ANY && scatters))
        return;
    for (size_t i = 0; i < population->count; i++) {
        uint32_t gpu = population->members[i];
        if (fleet_judged(&judge->fleet.gpus[gpu]) && !judge->other_hardware[gpu] &&
            fleet_number(judge->columns[metric], gpu, false))
            world_judge_gpu(judge, &standard, metric, tail, gpu);
    }
}

void stage_world(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    size_t comparisons = 0;
    if (!judge->basis.world)
        return;
    for (size_t p = 0; p < fleet->population_count; p++)
        for (size_t m = 0; m < config->metric_count; m++)
            comparisons += count_few(judge, &fleet->populations[p], m);
    double tail = fmin(config->false_alarms / fmax((double)comparisons, 1), 0.5);
    for (size_t p = 0; p < fleet->population_count; p++)
        for (size_t m = 0; m < config->metric_count; m++)
            world_judge_metric(judge, &fleet->populations[p], m, tail);
}

bool judge_world_knows(const struct judge *judge, const struct group *model)
{
    const struct world_model *in_world =
        world_find_model(judge->basis.world, fleet_text(&judge->fleet, model->key));
    for (size_t i = 0; in_world && i < in_world->population_count; i++)
        if (has_program(&in_world->populations[i], judge->basis.program))
            return true;
    return false;
}

void judge_report_world(const struct judge *judge, const struct group *model,
                        struct inventory *inventory)
{
    bool few = false;
    if (!judge->basis.world || judge_world_knows(judge, model))
        return;
    for (size_t i = 0; i < model->populations; i++)
        for (size_t m = 0; m < judge->basis.config->metric_count; m++)
            few |= count_few(judge, &judge->fleet.populations[model->populations_at + i], m) > 0;
    if (!few)
        return;
    bool has_model = world_find_model(judge->basis.world, fleet_text(&judge->fleet, model->key));
    char *text = str_format("%s: not compared with GPUs elsewhere: %s", model->id,
                            has_model ? "another version of gpumemtopo made the --world file"
                                      : "no --world file has this model");
    verdict_add_remark(inventory, text);
}
