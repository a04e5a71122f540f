/* L1 and shared memory may be one array: the more shared memory a block asks for, the less L1. */
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "probes/resident.h"

enum { WISHES = 4 }; /* none, a quarter, half and three quarters of what a block may have */

/* L1 that shrinks to less than this share when most of shared memory is asked for shares with it.
 */
static const double SHRUNK = 0.9;

static int measure_wishes(struct probe_context *context, uint64_t *wishes, double *sizes,
                          struct err *err)
{
    uint64_t most = device_limits(context->device)->shared_bytes_max;
    for (size_t i = 0; i < WISHES; i++) {
        struct study study = context->studies[STUDY_L1_DATA];
        double error;
        wishes[i] = study.shared_bytes = most * i / WISHES / 1024 * 1024;
        int rc = resident_measure_quick(context, &study, &sizes[i], &error, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int report(struct probe_context *context, const uint64_t *wishes, const double *sizes,
                  struct err *err)
{
    static const char *const word = "l1_data";
    bool shared = sizes[WISHES - 1] < SHRUNK * sizes[0];
    struct strbuf text = {0};
    for (size_t i = 0; i < WISHES; i++)
        strbuf_printf(&text, "%s%llu:%.0f", i ? " " : "", (unsigned long long)wishes[i], sizes[i]);
    struct measure *words = measures_add_words(context->measures, "shared.shared_with", &word,
                                               shared, "L1 size by shared memory asked for");
    struct measure *m = NULL;
    if (words) {
        words->n = WISHES;
        words->confidence = 0.99;
    }
    if (words && !shared) {
        strbuf_fini(&text);
        return measures_add_missing(context->measures, "shared.carveout", MEASURE_UNSUPPORTED,
                                    "L1 does not shrink when shared memory is asked for")
                   ? 0
                   : err_no_memory(err);
    }
    if (words) {
        m = measures_add(context->measures, "shared.carveout", round(sizes[0] - sizes[WISHES - 1]),
                         "B", "L1 size by shared memory asked for");
    }
    int rc = m && !text.failed ? facts_set_text(&m->notes, "l1_by_wish", text.data) : -1;
    strbuf_fini(&text);
    if (rc)
        return err_no_memory(err);
    m->n = WISHES;
    m->confidence = 0.9;
    return 0;
}

static int run_carveout(struct probe_context *context, struct err *err)
{
    static const char *const metrics[] = {"shared.shared_with", "shared.carveout"};
    const struct study *study = &context->studies[STUDY_L1_DATA];
    uint64_t wishes[WISHES];
    double sizes[WISHES];
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_REGION, err);
    if (rc)
        return rc;
    if (study->supported && !study->unbounded) {
        rc = measure_wishes(context, wishes, sizes, err);
        return rc ? rc : report(context, wishes, sizes, err);
    }
    for (size_t i = 0; i < 2; i++)
        if (!measures_add_missing(context->measures, metrics[i], MEASURE_UNSUPPORTED,
                                  "there is no L1 for global loads to compare with"))
            return err_no_memory(err);
    return 0;
}

const struct probe probe_shared_carveout = {
    .description = {"shared.carveout", "whether shared memory is taken from L1", PROFILE_STANDARD},
    .metrics = {"shared.shared_with", "shared.carveout"},
    .run = run_carveout,
};
