/* Who deviates: robust scores inside each model, bounded for the number of comparisons made. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/group.h"

/* Fewer GPUs of a model than this have no consensus to deviate from. */
enum { GROUP_MIN = 5 };

/* Median absolute deviation of a normal distribution, in standard deviations. */
static const double MAD_SIGMA = 1.4826;

/* Measured spreads have heavier tails than the normal distribution: scores must exceed its
 * quantile by this factor. */
static const double TAIL_FACTOR = 1.5;

/* Where all GPUs agree to the digit, a deviation at the floor of relevance scores this much. */
static const double FLOOR_SCORE = 10;

/* Upper quantile of the standard normal distribution, by bisection of its tail. */
static double normal_quantile(double tail)
{
    double low = 0, high = 40;
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / sqrt(2)) / 2 > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* A judged metric over one group. */
struct row {
    const struct judge_metric *rule;
    double *values; /* per member; NaN where there is none */
    double *present, *spreads;
    size_t count;
    double median, sigma;
};

static void fill_row(const struct fleet *fleet, const struct group *group, struct row *row)
{
    row->count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_result *gpu = fleet->gpus[group->members[i]];
        const struct measure *m = measures_get(&gpu->measures, row->rule->metric);
        bool usable = fleet_measured(gpu) && m && m->kind == MEASURE_NUMBER &&
                      measure_status_valued(m->status) && m->bound == MEASURE_EXACT &&
                      isfinite(m->value);
        row->values[i] = usable ? m->value : NAN;
        row->spreads[i] = usable && isfinite(m->spread) ? m->spread : 0;
        if (usable)
            row->present[row->count++] = m->value;
    }
    row->median = cpd_median(row->present, row->count);
    row->sigma = fmax(MAD_SIGMA * cpd_mad(row->present, row->count),
                      fabs(row->median) * row->rule->floor / FLOOR_SCORE);
}

static bool is_worse(const struct judge_metric *rule, double deviation)
{
    return rule->worse == 0 || (rule->worse > 0 ? deviation > 0 : deviation < 0);
}

static int add_finding(struct inventory_outlier *outlier, const struct inventory_finding *finding,
                       const char *unit)
{
    size_t bytes = (outlier->finding_count + 1) * sizeof *outlier->findings;
    struct inventory_finding *grown = realloc(outlier->findings, bytes);
    if (!grown)
        return -ENOMEM;
    outlier->findings = grown;
    struct inventory_finding *slot = &grown[outlier->finding_count];
    *slot = *finding;
    slot->metric = str_copy(finding->metric);
    slot->unit = str_copy(unit ? unit : "");
    slot->basis = str_copy("fleet");
    slot->cause = str_copy("unexplained");
    outlier->finding_count++;
    return slot->metric && slot->unit && slot->basis && slot->cause ? 0 : -ENOMEM;
}

/* The GPU's entry in a list, made when it has none: GPUs are visited in order, so it is last. NULL
 * when out of memory. */
static struct inventory_outlier *entry_of(struct inventory_outlier **list, size_t *count,
                                          const struct gpu_result *gpu, const char *model)
{
    if (*count && str_equal((*list)[*count - 1].uuid, gpu->uuid))
        return &(*list)[*count - 1];
    struct inventory_outlier *grown = realloc(*list, (*count + 1) * sizeof **list);
    if (!grown)
        return NULL;
    *list = grown;
    struct inventory_outlier *entry = &grown[(*count)++];
    *entry = (struct inventory_outlier){.kind = KIND_DEGRADED};
    if (str_copy_to(&entry->uuid, gpu->uuid) || str_copy_to(&entry->node, gpu->node) ||
        str_copy_to(&entry->pci, gpu->pci) || str_copy_to(&entry->model, model))
        return NULL;
    return entry;
}

static int judge_value(struct fleet *fleet, const struct group *group, const struct row *row,
                       size_t member, double bound, struct inventory *inventory)
{
    double value = row->values[member];
    double deviation = row->median != 0 ? value / row->median - 1 : 0;
    if (isnan(value) || !is_worse(row->rule, deviation) || deviation == 0 ||
        fabs(deviation) < row->rule->floor)
        return 0;
    size_t place = group->members[member];
    const struct gpu_result *gpu = fleet->gpus[place];
    /* A GPU's own repetitions that scatter widely make its median less certain. */
    double sigma = fmax(row->sigma, row->spreads[member]);
    double score = sigma > 0 ? (value - row->median) / sigma : copysign(FLOOR_SCORE, deviation);
    bool accused = fabs(score) >= bound;
    struct inventory_outlier *entry =
        accused ? entry_of(&inventory->outliers, &inventory->outliers_length, gpu, group->id)
                : entry_of(&inventory->watch, &inventory->watch_count, gpu, group->id);
    const struct measure *m = measures_get(&gpu->measures, row->rule->metric);
    const struct inventory_finding finding = {.metric = row->rule->metric,
                                              .value = value,
                                              .expected = row->median,
                                              .deviation = measure_digits(deviation, 3),
                                              .score = measure_digits(score, 3)};
    if (!entry || add_finding(entry, &finding, m->unit))
        return -ENOMEM;
    fleet->outlier[place] |= accused;
    return 0;
}

struct rows {
    struct row *items;
    size_t count;
};

static void rows_fini(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->items[i].values);
        free(rows->items[i].present);
        free(rows->items[i].spreads);
    }
    free(rows->items);
}

static int rows_init(struct rows *rows, const struct fleet *fleet, const struct group *group,
                     const struct judge_config *config)
{
    rows->count = config->metric_count;
    rows->items = mem_array(rows->count, sizeof *rows->items);
    if (!rows->items) {
        rows->count = 0;
        return -ENOMEM;
    }
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->items[i];
        row->rule = &config->metrics[i];
        row->values = mem_array(group->count, sizeof *row->values);
        row->present = mem_array(group->count, sizeof *row->present);
        row->spreads = mem_array(group->count, sizeof *row->spreads);
        if (!row->values || !row->present || !row->spreads)
            return -ENOMEM;
        fill_row(fleet, group, row);
    }
    return 0;
}

static int judge_group(struct fleet *fleet, const struct group *group,
                       const struct judge_config *config, double bound, struct inventory *inventory)
{
    struct rows rows;
    int rc = rows_init(&rows, fleet, group, config);
    for (size_t member = 0; member < group->count && !rc; member++) {
        for (size_t i = 0; i < rows.count && !rc; i++)
            if (rows.items[i].count >= GROUP_MIN)
                rc = judge_value(fleet, group, &rows.items[i], member, bound, inventory);
    }
    rows_fini(&rows);
    return rc;
}

static int by_place(const void *left, const void *right)
{
    const struct inventory_outlier *a = left, *b = right;
    int order = str_order(a->node, b->node);
    if (!order)
        order = str_order(a->pci, b->pci);
    return order ? order : str_order(a->uuid, b->uuid);
}

int outliers_find(struct fleet *fleet, const struct judge_config *config,
                  struct inventory *inventory, struct err *err)
{
    double comparisons = (double)fleet->count * (double)config->metric_count;
    double bound = TAIL_FACTOR * normal_quantile(config->false_alarms / fmax(comparisons, 1) / 2);
    for (size_t i = 0; i < fleet->group_count; i++)
        if (judge_group(fleet, &fleet->groups[i], config, bound, inventory))
            return err_no_memory(err);
    if (inventory->outliers_length)
        qsort(inventory->outliers, inventory->outliers_length, sizeof *inventory->outliers,
              by_place);
    if (inventory->watch_count)
        qsort(inventory->watch, inventory->watch_count, sizeof *inventory->watch, by_place);
    return 0;
}
