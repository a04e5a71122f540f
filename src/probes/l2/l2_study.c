/* The stages of the study of L2. */
#include "probes/l2/l2_study.h"

#include <errno.h>

#include "probes/l2/l2_capacity.h"
#include "probes/l2/l2_fetch.h"
#include "probes/l2/l2_level.h"

int l2_reach(struct probe_context *context, enum l2_stage stage, struct err *err)
{
    static int (*const stages[])(struct probe_context *, struct l2_study *, struct err *) = {
        [L2_LEVEL] = l2_measure_level,
        [L2_FETCH] = l2_measure_fetch,
        [L2_CAPACITY] = l2_measure_capacity,
        [L2_LINE] = l2_measure_line,
    };
    struct l2_study *l2 = &context->l2;
    while (l2->stage < stage && !(l2->stage >= L2_CAPACITY && l2->unbounded) &&
           !(l2->stage >= L2_LEVEL && l2->blurred)) {
        int rc = stages[l2->stage + 1](context, l2, err);
        if (rc)
            return rc;
        l2->stage++;
    }
    if (stage > L2_LEVEL && l2->blurred)
        return err_set(err, -ENODATA,
                       "hits of up to %.0f cycles cannot be told from misses of %.0f on average",
                       l2->levels[l2->level_count - 1], l2->main.cycles);
    return 0;
}
