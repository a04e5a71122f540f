/* Checks what an inventory says about second tries and second measurements. */
#include "report/validate_repeats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *name_of(const struct inventory_gpu *gpu)
{
    return gpu->uuid ? gpu->uuid : "a GPU without uuid";
}

static bool is_second_value(const struct fact *fact)
{
    double value = fact_number(fact);
    if (fact->kind == FACT_INT || fact->kind == FACT_REAL)
        return value >= 0 && value <= 1e18;
    return fact->kind == FACT_UNKNOWN;
}

int report_validate_repeats(const struct inventory_gpu *gpu, struct err *err)
{
    if (gpu->first_reason && gpu->first_status == GPU_OK)
        return err_set(err, -EINVAL, "%.80s: first_try has status ok, so nothing was tried again",
                       name_of(gpu));
    if (gpu->first_status != GPU_OK && gpu->first_status != GPU_CRASHED &&
        gpu->first_status != GPU_TIMED_OUT && gpu->first_status != GPU_FAILED)
        return err_set(err, -EINVAL,
                       "%.80s: first_try has status %s, expected crashed, timed_out or failed",
                       name_of(gpu), gpu_status_name(gpu->first_status));
    for (size_t i = 0; i < gpu->measured_again.count; i++)
        if (!is_second_value(&gpu->measured_again.items[i]))
            return err_set(err, -EINVAL,
                           "%.80s: measured_again: %.80s is neither a possible figure nor null",
                           name_of(gpu), gpu->measured_again.items[i].key);
    return 0;
}

static bool is_of_two(const char *confirmed)
{
    return str_equal(confirmed, "2 of 2") || str_equal(confirmed, "1 of 2");
}

static bool is_by_figures(const char *confirmed)
{
    unsigned figures = 0;
    int length = 0;
    return sscanf(confirmed, "by %4u figures%n", &figures, &length) == 1 && figures >= 2 &&
           length && !confirmed[length];
}

static bool is_known(const char *confirmed)
{
    return is_of_two(confirmed) || is_by_figures(confirmed) ||
           str_equal(confirmed, "by its cause") || str_equal(confirmed, "no");
}

/* What a second measurement says of the finding. One that a low SM clock explains goes with the
 * clock, even if its own figure was not measured again. NULL: nothing. */
static const struct fact *second_value(const struct inventory_finding *finding,
                                       const struct inventory_gpu *gpu)
{
    const struct fact *own = facts_get(&gpu->measured_again, finding->metric);
    if (!own && str_equal(finding->confirmed, "1 of 2"))
        own = facts_get(&gpu->measured_again, "clock.sm");
    return own && own->kind != FACT_UNKNOWN ? own : NULL;
}

static int check_confirmed(const struct inventory_finding *finding, bool accused,
                           const struct inventory_gpu *gpu, struct err *err)
{
    const char *confirmed = finding->confirmed;
    if (!is_known(confirmed))
        return err_set(
            err, -EINVAL,
            "%.80s: %.80s is confirmed \"%.40s\", expected 2 of 2, 1 of 2, by its cause, "
            "by N figures or no",
            name_of(gpu), finding->metric, confirmed);
    if (is_of_two(confirmed) && !second_value(finding, gpu))
        return err_set(err, -EINVAL,
                       "%.80s: %.80s is confirmed \"%s\", but measured_again has no value of it",
                       name_of(gpu), finding->metric, confirmed);
    if (accused && (str_equal(confirmed, "1 of 2") || str_equal(confirmed, "no")))
        return err_set(err, -EINVAL, "%.80s: %.80s is confirmed \"%s\", but is among the outliers",
                       name_of(gpu), finding->metric, confirmed);
    return 0;
}

int report_validate_confirmed(const struct inventory_outlier *entry, bool accused,
                              const struct inventory_gpu *gpu, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < entry->finding_count && !rc; i++)
        if (entry->findings[i].confirmed)
            rc = check_confirmed(&entry->findings[i], accused, gpu, err);
    return rc;
}
