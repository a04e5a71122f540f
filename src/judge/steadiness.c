/* GPUs that do not repeat their own figures while their namesakes do. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

enum { GROUP_MIN = 5, FIGURES_MIN = 2 };

/* A figure is unsteady when it scatters by so many times what is usual, and by this share of
 * itself at least. */
static const double TIMES_USUAL = 8, SHARE_MIN = 0.02;

static double share_of(const struct cell *cell)
{
    return cell->value != 0 && isfinite(cell->spread) ? fabs(cell->spread / cell->value) : 0;
}

static double usual_share(const struct judge *judge, const struct group *group,
                          const struct metric_column *column, double *numbers)
{
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cell *cell = fleet_number(column, group->members[i], true);
        if (cell && fleet_judged(&judge->fleet.gpus[group->members[i]]))
            numbers[n++] = share_of(cell);
    }
    return n < GROUP_MIN ? NAN : robust_median(numbers, n);
}

static int report(struct judge *judge, size_t metric, const struct cell *cell, uint32_t gpu,
                  double usual)
{
    const char *name = judge->basis.config->metrics[metric].metric;
    char *spread = str_format("%s.spread", name);
    struct finding *finding = spread ? findings_add(judge, gpu, spread, BASIS_FLEET) : NULL;
    free(spread);
    if (!finding)
        return -ENOMEM;
    finding->accused = true;
    finding->unit = cell->unit;
    finding->value = cell->spread;
    finding->expected = usual * fabs(cell->value);
    finding->cause =
        str_format("unexplained: repetitions scatter by %.2g %%, those of its peers by "
                   "%.2g %%",
                   100 * share_of(cell), 100 * usual);
    return finding->cause ? 0 : -ENOMEM;
}

/* The GPU's cell where it scatters far more than usual; NULL otherwise. */
static const struct cell *unsteady_cell(const struct judge *judge,
                                        const struct metric_column *column, uint32_t gpu,
                                        double usual)
{
    const struct cell *cell = fleet_number(column, gpu, true);
    bool wide = cell && share_of(cell) > fmax(SHARE_MIN, TIMES_USUAL * usual);
    return wide && !isnan(usual) && fleet_judged(&judge->fleet.gpus[gpu]) ? cell : NULL;
}

/* One unsteady figure can be a passing disturbance; several are the GPU. */
static int judge_group(struct judge *judge, const struct group *group,
                       const struct metric_column *const *columns, double *numbers, double *usual)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++)
        usual[m] = usual_share(judge, group, columns[m], numbers);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        size_t unsteady = 0;
        for (size_t m = 0; m < config->metric_count; m++)
            unsteady += unsteady_cell(judge, columns[m], gpu, usual[m]) != NULL;
        for (size_t m = 0; m < config->metric_count && unsteady >= FIGURES_MIN; m++) {
            const struct cell *cell = unsteady_cell(judge, columns[m], gpu, usual[m]);
            if (cell && report(judge, m, cell, gpu, usual[m]))
                return -ENOMEM;
        }
    }
    return 0;
}

int judge_steadiness(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    const struct metric_column **columns = mem_array(config->metric_count, sizeof *columns);
    double *numbers = mem_array(judge->fleet.count, sizeof *numbers);
    double *usual = mem_array(config->metric_count, sizeof *usual);
    int rc = columns && numbers && usual ? 0 : -ENOMEM;
    for (size_t m = 0; m < config->metric_count && !rc; m++) {
        const struct judge_metric *rule = &config->metrics[m];
        bool scatters = rule->worse == JUDGE_LOWER || rule->worse == JUDGE_HIGHER;
        columns[m] = scatters ? fleet_metric(&judge->fleet, rule->metric) : NULL;
    }
    for (size_t g = 0; g < judge->fleet.group_count && !rc; g++)
        rc = judge_group(judge, &judge->fleet.groups[g], columns, numbers, usual);
    free(columns);
    free(numbers);
    free(usual);
    return rc;
}
