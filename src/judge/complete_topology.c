/* Completes the topology of a model from an earlier record of it. */
#include <errno.h>

#include "judge/consensus.h"

/* The earlier measure with value, spread, count and status of now. If kind or bound differ, or only
 * one of them has a value, a copy of the measure of now. */
static int update(const struct measure *earlier, const struct measure *now, struct measure *out)
{
    bool same = now->kind == earlier->kind && now->bound == earlier->bound &&
                measure_status_valued(now->status) == measure_status_valued(earlier->status);
    if (measure_copy(out, same ? earlier : now))
        return -ENOMEM;
    if (!same)
        return 0;
    out->value = now->value;
    out->n = now->n;
    if (now->n > 1 || earlier->n > 1)
        out->spread = now->spread;
    return now->status == earlier->status
               ? 0
               : measure_set_status(out, now->status,
                                    now->status == MEASURE_OK ? NULL : now->reason);
}

/* Takes over *measure, also on failure. */
static int append(struct measures *measures, struct measure *measure)
{
    struct measure *slot = measures_add_missing(measures, measure->metric, MEASURE_FAILED, NULL);
    if (!slot) {
        measure_fini(measure);
        return -ENOMEM;
    }
    measure_fini(slot);
    *slot = *measure;
    return 0;
}

/* Appends the earlier measure with the values of `now`, or a copy of it if `now` is NULL. */
static int append_updated(struct measures *measures, const struct measure *earlier,
                          const struct measure *now)
{
    struct measure measure = {0};
    if (now ? update(earlier, now, &measure) : measure_copy(&measure, earlier)) {
        measure_fini(&measure);
        return -ENOMEM;
    }
    return append(measures, &measure);
}

int consensus_complete(struct measures *memory, const struct measures *earlier)
{
    struct measures whole = {0};
    for (size_t i = 0; i < earlier->count; i++) {
        const struct measure *was = &earlier->items[i];
        if (append_updated(&whole, was, measures_get(memory, was->metric)))
            goto failed;
    }
    for (size_t i = 0; i < memory->count; i++)
        if (!measures_get(&whole, memory->items[i].metric) &&
            append_updated(&whole, &memory->items[i], NULL))
            goto failed;
    measures_fini(memory);
    *memory = whole;
    return 0;
failed:
    measures_fini(&whole);
    return -ENOMEM;
}
