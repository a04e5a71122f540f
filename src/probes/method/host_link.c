/* Turns at the host link while it is measured. */
#include "probes/method/host_link.h"

#include <errno.h>
#include <math.h>

#include "base/str.h"

/* Confidence of a figure that another GPU's traffic may have changed. */
static const double SHARED_CONFIDENCE = 0.5;

void host_link_begin(struct probe_context *context)
{
    struct device_link link;
    device_begin_link(context->device, &link);
    context->link.alone &= link.alone;
    context->link.near &= link.near;
}

void host_link_end(struct probe_context *context)
{
    device_end_link(context->device);
}

static int remark(const struct device_link *link, struct measure *measure)
{
    if (!link->near && facts_set_text(&measure->notes, "cpus", "not near the GPU"))
        return -ENOMEM;
    if (link->alone)
        return 0;
    measure->confidence = fmin(measure->confidence, SHARED_CONFIDENCE);
    return measure_set_status(measure, MEASURE_NOISY,
                              "another GPU of the node may have used its link at the same time");
}

int host_link_remark(struct probe_context *context, const char *metric)
{
    for (size_t i = 0; i < context->measures->count; i++) {
        struct measure *measure = &context->measures->items[i];
        if (str_equal(measure->metric, metric) && measure_status_valued(measure->status))
            return remark(&context->link, measure);
    }
    return 0;
}
