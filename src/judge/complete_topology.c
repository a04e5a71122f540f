/* A model's topology completed from an earlier record of it. */
#include <errno.h>

#include "judge/consensus.h"

/* Value, spread and count are told anew, the rest stands as it was. */
static int renew(const struct measure *earlier, const struct measure *now, struct measure *out)
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

/* Adds what is in *measure, which then belongs to the list. */
static int append(struct measures *measures, const struct measure *measure)
{
    struct measure *slot = measures_add_missing(measures, measure->metric, MEASURE_FAILED, NULL);
    if (!slot)
        return -ENOMEM;
    measure_fini(slot);
    *slot = *measure;
    return 0;
}

int consensus_complete(struct measures *memory, const struct measures *earlier)
{
    struct measures whole = {0};
    int rc = 0;
    for (size_t i = 0; i < earlier->count && !rc; i++) {
        const struct measure *was = &earlier->items[i], *now = measures_get(memory, was->metric);
        struct measure measure = {0};
        rc = now ? renew(was, now, &measure) : measure_copy(&measure, was);
        if (!rc)
            rc = append(&whole, &measure);
        if (rc)
            measure_fini(&measure);
    }
    for (size_t i = 0; i < memory->count && !rc; i++) {
        struct measure measure = {0};
        if (measures_get(&whole, memory->items[i].metric))
            continue;
        rc = measure_copy(&measure, &memory->items[i]);
        if (!rc)
            rc = append(&whole, &measure);
        if (rc)
            measure_fini(&measure);
    }
    if (rc) {
        measures_fini(&whole);
        return rc;
    }
    measures_fini(memory);
    *memory = whole;
    return 0;
}
