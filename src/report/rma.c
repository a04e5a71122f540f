/* What a vendor needs to know about one GPU: finds it and its peers. */
#include "report/rma.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "judge/robust.h"
#include "markup/text.h"

/* Fewer GPUs of the same board part are no population: see docs/JUDGE.md. */
enum { POPULATION_MIN = 5, CANDIDATES_MAX = 5 };

static bool begins_with(const char *text, const char *start)
{
    return strncasecmp(text, start, strlen(start)) == 0;
}

static bool is_meant(const struct inventory_gpu *gpu, const char *uuid)
{
    if (!gpu->uuid || !*uuid)
        return false;
    return begins_with(gpu->uuid, uuid) ||
           (begins_with(gpu->uuid, "GPU-") && begins_with(gpu->uuid + 4, uuid));
}

static void put_candidate(struct strbuf *list, size_t number, const char *uuid, const char *node)
{
    strbuf_puts(list, number ? ", " : "");
    text_put_clean(list, uuid, 50);
    strbuf_puts(list, " on ");
    text_put_clean(list, node, 40);
}

static int not_unique(const struct inventory *inventory, const char *uuid, size_t found,
                      struct err *err)
{
    struct strbuf list = {0};
    size_t shown = 0;
    for (size_t i = 0; i < inventory->gpu_count && shown < CANDIDATES_MAX; i++)
        if (is_meant(&inventory->gpus[i], uuid))
            put_candidate(&list, shown++, inventory->gpus[i].uuid, inventory->gpus[i].node);
    int rc = err_set(err, -ENOTUNIQ, "%zu GPUs begin with \"%.60s\": %s%s", found, uuid,
                     list.data ? list.data : "", found > shown ? ", ..." : "");
    strbuf_fini(&list);
    return rc;
}

/* The candidates are the outliers: one of them is sent back. */
static int not_found(const struct inventory *inventory, const char *uuid, struct err *err)
{
    struct strbuf list = {0};
    size_t shown = 0;
    for (; shown < inventory->outlier_count && shown < CANDIDATES_MAX; shown++)
        put_candidate(&list, shown, inventory->outliers[shown].uuid,
                      inventory->outliers[shown].node);
    int rc = err_set(err, -ENOENT, "no GPU begins with \"%.60s\"; %s%s%s", uuid,
                     shown ? "outliers are " : "there is no outlier", list.data ? list.data : "",
                     inventory->outlier_count > shown ? ", ..." : "");
    strbuf_fini(&list);
    return rc;
}

int rma_find_gpu(const struct inventory *inventory, const char *uuid,
                 const struct inventory_gpu **out_gpu, struct err *err)
{
    const struct inventory_gpu *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!is_meant(gpu, uuid))
            continue;
        found = gpu;
        count++;
        if (strcasecmp(gpu->uuid, uuid) == 0) { /* not only the beginning */
            count = 1;
            break;
        }
    }
    if (count > 1)
        return not_unique(inventory, uuid, count, err);
    if (!count)
        return not_found(inventory, uuid, err);
    *out_gpu = found;
    return 0;
}

static const struct inventory_outlier *find_entry(const struct inventory_outlier *list,
                                                  size_t count, const char *uuid)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(list[i].uuid, uuid))
            return &list[i];
    return NULL;
}

static bool is_peer(const struct rma *rma, const struct inventory_lookup *lookup,
                    const struct inventory_gpu *other)
{
    if (other == rma->gpu || other->status != GPU_OK || !str_equal(other->model, rma->gpu->model))
        return false;
    if (!rma->same_board)
        return true;
    const struct fact *part = inventory_fact_of(lookup, rma->gpu, INVENTORY_BOARD, "part");
    const struct fact *others = inventory_fact_of(lookup, other, INVENTORY_BOARD, "part");
    return part && others && fact_equal(part, others);
}

/* Fills `peers`; returns their number. */
static size_t find_peers(const struct rma *rma, const struct inventory_lookup *lookup,
                         const struct inventory_gpu **peers)
{
    size_t count = 0;
    for (size_t i = 0; rma->gpu->model && i < rma->inventory->gpu_count; i++)
        if (is_peer(rma, lookup, &rma->inventory->gpus[i]))
            peers[count++] = &rma->inventory->gpus[i];
    return count;
}

static const struct inventory_value *value_of(const struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (str_equal(gpu->values[i].metric, metric))
            return &gpu->values[i];
    return NULL;
}

/* scratch: room for twice the number of peers. */
static struct rma_figure compare(const struct rma *rma, const struct inventory_value *value,
                                 const struct inventory_gpu *const *peers, double *scratch)
{
    struct rma_figure figure = {.value = value, .median = NAN, .scatter = NAN, .deviation = NAN};
    const struct measure *measure =
        rma->model ? measures_get(&rma->model->memory, value->metric) : NULL;
    if (!measure) /* such as the number of an SM, which has no median */
        return figure;
    figure.unit = measure->unit;
    for (size_t i = 0; i < rma->peers; i++) {
        const struct inventory_value *other = value_of(peers[i], value->metric);
        if (other && inventory_value_is_good(other))
            scratch[figure.peers++] = other->value;
    }
    if (figure.peers < 2)
        return figure;
    struct robust_fit fit = robust_fit(scratch, figure.peers, scratch + rma->peers);
    figure.median = fit.center;
    figure.scatter = fit.sigma;
    if (measure_status_valued(value->status) && fit.center != 0)
        figure.deviation = (value->value - fit.center) / fabs(fit.center);
    return figure;
}

static int compare_all(struct rma *rma, const struct inventory_lookup *lookup)
{
    const struct inventory_gpu **peers = mem_array(rma->inventory->gpu_count, sizeof *peers);
    int rc = -ENOMEM;
    double *scratch = NULL;
    if (!peers)
        return rc;
    rma->same_board = true;
    rma->peers = find_peers(rma, lookup, peers);
    if (rma->peers < POPULATION_MIN) {
        rma->same_board = false;
        rma->peers = find_peers(rma, lookup, peers);
    }
    scratch = mem_array(2 * rma->peers, sizeof *scratch);
    rma->figures = mem_array(rma->gpu->value_count, sizeof *rma->figures);
    if (scratch && rma->figures) {
        for (size_t i = 0; i < rma->gpu->value_count; i++)
            rma->figures[rma->figure_count++] = compare(rma, &rma->gpu->values[i], peers, scratch);
        rc = 0;
    }
    free(scratch);
    free(peers);
    return rc;
}

int rma_init(struct rma *rma, const struct inventory *inventory, const struct inventory_gpu *gpu,
             struct err *err)
{
    struct inventory_lookup *lookup = NULL;
    *rma = (struct rma){.inventory = inventory, .gpu = gpu};
    if (inventory_lookup_create(inventory, &lookup))
        return err_no_memory(err);
    rma->model = inventory_model_of(lookup, gpu);
    rma->outlier = find_entry(inventory->outliers, inventory->outlier_count, gpu->uuid);
    rma->watched = find_entry(inventory->watch, inventory->watch_count, gpu->uuid);
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        if (str_equal(inventory->unmeasured[i].uuid, gpu->uuid))
            rma->failure = &inventory->unmeasured[i];
    int rc = compare_all(rma, lookup);
    for (int set = 0; set < INVENTORY_FACTS_COUNT && !rc; set++)
        rc = inventory_facts_of(lookup, gpu, (enum inventory_facts)set, &rma->facts[set]);
    inventory_lookup_destroy(lookup);
    if (!rc)
        return 0;
    rma_fini(rma);
    return err_no_memory(err);
}

void rma_fini(struct rma *rma)
{
    for (int set = 0; set < INVENTORY_FACTS_COUNT; set++)
        facts_fini(&rma->facts[set]);
    free(rma->figures);
    *rma = (struct rma){0};
}
