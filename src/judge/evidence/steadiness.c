/* Unsteady GPUs: their repetitions scatter far more than those of their model. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/robust.h"

/* Prior for the share of healthy GPUs with an unsteady figure: PRIOR_UNSTEADY of PRIOR_GPUS. */
static const double PRIOR_GPUS = 100, PRIOR_UNSTEADY = 0.5;

/* A figure is unsteady if it scatters by more than this many times the usual, and by more than its
 * floor. */
static const double TIMES_USUAL = 8;

static double spread_share(const struct cell *cell)
{
    return cell->value != 0 && isfinite(cell->spread) ? fabs(cell->spread / cell->value) : 0;
}

/* One metric over a group. */
struct spread_column {
    const struct metric_column *cells;
    double floor;           /* of the metric */
    double usual;           /* median of spread / value; NaN: too few GPUs */
    size_t count, unsteady; /* GPUs with the metric; those of them that are unsteady */
};

/* The GPU's cell if it is unsteady; NULL otherwise. */
static const struct cell *unsteady_cell(const struct judge *judge,
                                        const struct spread_column *column, uint32_t gpu)
{
    const struct cell *cell = fleet_number(column->cells, gpu, true);
    bool wide = cell && spread_share(cell) > fmax(column->floor, TIMES_USUAL * column->usual);
    return wide && !isnan(column->usual) && fleet_judged(&judge->fleet.gpus[gpu]) ? cell : NULL;
}

/* The expected number of healthy GPUs in the group with as many unsteady figures by chance: a short
 * disturbance makes one figure unsteady, a faulty GPU several. In each figure the other GPUs give
 * the probability. */
static double expected_by_chance(const struct judge *judge, const struct group *group,
                                 const struct spread_column *columns, uint32_t gpu)
{
    size_t metrics = judge->basis.config->metric_count;
    double figures = 0, chosen = 0, expected = (double)group->count;
    for (size_t m = 0; m < metrics; m++)
        figures += !isnan(columns[m].usual) && fleet_number(columns[m].cells, gpu, true);
    for (size_t m = 0; m < metrics; m++) {
        const struct spread_column *column = &columns[m];
        if (!unsteady_cell(judge, column, gpu))
            continue;
        double share = ((double)column->unsteady - 1 + PRIOR_UNSTEADY) /
                       ((double)column->count - 1 + PRIOR_GPUS);
        expected *= share * (figures - chosen) / (chosen + 1); /* binomial coefficient */
        chosen++;
    }
    return chosen > 0 ? expected : INFINITY;
}

/* numbers: room for all GPUs of the group. */
static void spread_column_fill(const struct judge *judge, const struct group *group,
                               struct spread_column *column, double *numbers)
{
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cell *cell = fleet_number(column->cells, group->members[i], true);
        if (cell && fleet_judged(&judge->fleet.gpus[group->members[i]]))
            numbers[n++] = spread_share(cell);
    }
    column->usual = n < PEERS_MIN ? NAN : robust_median(numbers, n);
    column->count = isnan(column->usual) ? 0 : n;
    column->unsteady = 0;
    for (size_t i = 0; i < group->count && !isnan(column->usual); i++)
        column->unsteady += unsteady_cell(judge, column, group->members[i]) != NULL;
}

static void steadiness_report(struct judge *judge, size_t metric, const struct cell *cell,
                              uint32_t gpu, double usual)
{
    char *name = str_format("%s" MEASURE_SPREAD, judge->basis.config->metrics[metric].metric);
    struct finding finding = finding_new(judge, gpu, name, BASIS_FLEET, EVIDENCE_UNSTEADY);
    free(name);
    finding.unit = cell->unit;
    finding.verdict = VERDICT_UNSTEADY;
    finding.value = cell->spread;
    finding.expected = usual * fabs(cell->value);
    findings_add(judge, finding,
                 str_format("cause unknown: repetitions scatter by %.2g %%, those of its peers by "
                            "%.2g %%",
                            100 * spread_share(cell), 100 * usual));
}

void stage_steadiness(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    struct spread_column *columns = mem_array(config->metric_count, sizeof *columns);
    double *numbers = mem_array(judge->fleet.count, sizeof *numbers);
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct judge_metric *rule = &config->metrics[m];
        bool scatters = rule->worse == JUDGE_LOWER || rule->worse == JUDGE_HIGHER;
        columns[m].cells = scatters ? judge->columns[m] : NULL;
        columns[m].floor = rule->floor;
    }
    for (size_t g = 0; g < judge->fleet.group_count; g++) {
        const struct group *group = &judge->fleet.groups[g];
        for (size_t m = 0; m < config->metric_count; m++)
            spread_column_fill(judge, group, &columns[m], numbers);
        for (size_t i = 0; i < group->count; i++) {
            uint32_t gpu = group->members[i];
            if (expected_by_chance(judge, group, columns, gpu) > config->false_alarms)
                continue;
            for (size_t m = 0; m < config->metric_count; m++) {
                const struct cell *cell = unsteady_cell(judge, &columns[m], gpu);
                if (cell)
                    steadiness_report(judge, m, cell, gpu, columns[m].usual);
            }
        }
    }
    free(columns);
    free(numbers);
}
