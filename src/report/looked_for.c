/* Whether a survey looked for what another one had found. */
#include "report/looked_for.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "catalogue/metrics.h"
#include "inventory/results.h"

/* What says that a deviation was looked for: the figure itself, or a count of what was tested.
 * NULL: the metric is no figure, but what every survey reads. */
static const char *evidence_of(const char *metric)
{
    static const struct {
        const char *prefix, *count;
    } counts[] = {{"compute.wrong_in.", "compute.wrong"},
                  {"compute.wrong_on.", "compute.screen"},
                  {"compute.not_as_host.", "compute.screen"}};
    for (size_t i = 0; i < COUNT_OF(counts) && metric; i++)
        if (strncmp(metric, counts[i].prefix, strlen(counts[i].prefix)) == 0)
            return counts[i].count;
    for (size_t i = 0; i < metric_row_count && metric; i++)
        if (strcmp(metric_rows[i].key, metric) == 0)
            return metric;
    return NULL;
}

bool report_looked_for(const struct inventory_gpu *gpu, const char *metric)
{
    const char *evidence = evidence_of(metric);
    const struct inventory_value *value = evidence ? inventory_value_of(gpu, evidence) : NULL;
    return !evidence || (value && isfinite(value->value));
}

bool report_result_looked_for(const struct gpu_result *result, const char *metric)
{
    const char *evidence = evidence_of(metric);
    double value;
    return !evidence || (measures_value(&result->measures, evidence, &value) && isfinite(value));
}
