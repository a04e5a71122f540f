/* The one split of least total cost. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd_internal.h"

static void find_range(struct cpd__view *view)
{
    view->lo = view->hi = view->series[0];
    for (size_t i = 1; i < view->n; i++) {
        if (view->series[i] < view->lo)
            view->lo = view->series[i];
        if (view->series[i] > view->hi)
            view->hi = view->series[i];
    }
}

int cpd_single(const double *series, size_t n, enum cpd_cost cost, size_t *out_split,
               double *out_gain)
{
    if (!cpd__finite(series, n))
        return -EDOM;
    struct cpd__view view = {.series = series, .n = n};
    if (n > 0)
        find_range(&view);
    if (view.lo == view.hi) {
        *out_split = 0;
        *out_gain = 0.0;
        return 0;
    }
    struct cpd__item *items = NULL;
    double *scores = mem_array(n, sizeof *scores);
    if (cost == CPD_COST_RANK) {
        items = cpd__sort(series, n);
        view.items = items;
        cpd__scores_rank(&view, scores);
    } else {
        cpd__scores_mean(&view, scores);
    }
    cpd__best_split(scores, n, out_split, out_gain);
    free(items);
    free(scores);
    return 0;
}
