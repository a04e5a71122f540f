/* Merges what was measured several times in a run into one figure each. */
#include "probes/rounds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/method/repeats.h"

enum { REASON_MAX = 240 };

struct round_values {
    const char *metric; /* the probe table's */
    double within;      /* the probe's */
    bool highest;       /* the probe's */
    double values[ROUNDS];
    size_t count;   /* of values, without that of the first round */
    bool confirm;   /* the values only confirm that of the first round */
    uint32_t n;     /* samples behind them */
    size_t without; /* rounds that gave no value */
    char *reason;   /* NULL, or why the first of those did not */
};

/* Bounds, names and missing values cannot be averaged: there the result of the first round
 * stays. */
static bool is_number(const struct measure *m)
{
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
           m->bound == MEASURE_EXACT;
}

static bool is_name(const struct measure *m)
{
    return m && m->unit && strcmp(m->unit, "id") == 0;
}

static struct round_values *values_of(struct rounds *rounds, const struct probe *probe,
                                      const char *metric)
{
    for (size_t i = 0; i < rounds->count; i++)
        if (strcmp(rounds->items[i].metric, metric) == 0)
            return &rounds->items[i];
    struct round_values *grown =
        mem_grow(rounds->items, &rounds->capacity, rounds->count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    rounds->items = grown;
    struct round_values *values = &grown[rounds->count++];
    *values =
        (struct round_values){.metric = metric, .within = probe->within, .highest = probe->highest};
    return values;
}

/* m: the result of this round, NULL for none. A repetition may leave out what is not judged. */
static int keep(struct rounds *rounds, const struct probe *probe, const char *metric,
                const struct measure *m, const char *reason)
{
    bool judged = strcmp(metric, probe->description.name) == 0;
    if ((!m && !judged) || is_name(m))
        return 0;
    struct round_values *values = values_of(rounds, probe, metric);
    if (!values)
        return -ENOMEM;
    if (is_number(m) && values->count < ROUNDS - 1) {
        values->values[values->count++] = m->value;
        values->confirm = strcmp(m->method, repeats_confirming) == 0;
        values->n += m->n;
        return 0;
    }
    values->without++;
    if (!values->reason)
        return str_copy_to(&values->reason, m && m->reason ? m->reason : reason);
    return 0;
}

int rounds_repeat(struct rounds *rounds, struct probe_context *context, const struct probe *probe,
                  struct err *err)
{
    struct measures *first = context->measures, own = {0};
    struct err failure = {0};
    context->measures = &own;
    context->repeating = true;
    int rc = probe_run(probe, context, &failure);
    context->measures = first;
    context->repeating = false;
    int kept = 0;
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i] && !kept; i++)
        if (is_number(measures_get(first, probe->metrics[i])))
            kept = keep(rounds, probe, probe->metrics[i], measures_get(&own, probe->metrics[i]),
                        failure.text);
    measures_fini(&own);
    if (kept || rc == -ENOMEM)
        return err_no_memory(err);
    return rc == -EIO ? err_set(err, rc, "%s again: %s", probe->description.name, failure.text) : 0;
}

static int mark_noisy(struct measure *m, const struct round_values *v, const double *all,
                      size_t count)
{
    char reason[REASON_MAX];
    if (v->without)
        snprintf(reason, sizeof reason, "%zu of %d rounds over the run gave no value: %s",
                 v->without, ROUNDS, v->reason ? v->reason : "");
    else
        snprintf(reason, sizeof reason, "over the run it took values from %.6g to %.6g",
                 cpd_quantile(all, count, 0), cpd_quantile(all, count, 1));
    m->confidence = 0.5;
    return m->status == MEASURE_OK ? measure_set_status(m, MEASURE_NOISY, reason) : 0;
}

static int merge_one(struct measure *m, const struct round_values *v)
{
    double all[ROUNDS] = {m->value};
    size_t count = 1;
    for (size_t i = 0; i < v->count; i++)
        all[count++] = v->values[i];
    double range = repeats_half_range(all, count);
    if (!v->confirm)
        m->value = cpd_quantile(all, count, v->highest ? 1 : 0.5);
    m->spread = fmax(m->spread, range);
    m->n += v->n;
    m->confidence = fmin(m->confidence, repeats_confidence(m->value, m->spread));
    int rc = 0;
    if (v->without || range > v->within * fabs(m->value))
        rc = mark_noisy(m, v, all, count);
    measure_round(m);
    return rc;
}

int rounds_merge(const struct rounds *rounds, struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++)
        for (size_t k = 0; k < rounds->count; k++) {
            if (strcmp(measures->items[i].metric, rounds->items[k].metric) != 0)
                continue;
            int rc = merge_one(&measures->items[i], &rounds->items[k]);
            if (rc)
                return rc;
        }
    return 0;
}

void rounds_fini(struct rounds *rounds)
{
    for (size_t i = 0; i < rounds->count; i++)
        free(rounds->items[i].reason);
    free(rounds->items);
    *rounds = (struct rounds){0};
}
