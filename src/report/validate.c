/* Checks an inventory for contradictions. */
#include "report/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "judge/judge.h"
#include "report/validate_links.h"
#include "report/validate_load.h"
#include "report/validate_repeats.h"

/* Texts and their indices, sorted for look-up. */
struct known_text {
    const char *text;
    size_t place;
};
struct index {
    struct known_text *entries;
    size_t count;
};

struct checker {
    const struct inventory *inventory;
    struct index models, gpus, unmeasured;
    uint32_t *counts; /* measured GPUs by model */
    bool *accused;    /* GPUs that are in outliers or in an accused finding of a node */
    uint32_t measured;
};

static int entry_order(const void *a, const void *b)
{
    const struct known_text *left = a, *right = b;
    return strcmp(left->text, right->text);
}

static const struct known_text *find(const struct index *index, const char *text)
{
    return bsearch(&(struct known_text){.text = text}, index->entries, index->count,
                   sizeof *index->entries, entry_order);
}

static int index_init(struct index *index, size_t count, struct err *err)
{
    index->entries = mem_array(count, sizeof *index->entries);
    return index->entries ? 0 : err_no_memory(err);
}

static void index_add(struct index *index, const char *text, size_t place)
{
    if (text)
        index->entries[index->count++] = (struct known_text){text, place};
}

static int index_sort(struct index *index, const char *what, struct err *err)
{
    qsort(index->entries, index->count, sizeof *index->entries, entry_order);
    for (size_t i = 1; i < index->count; i++)
        if (entry_order(&index->entries[i - 1], &index->entries[i]) == 0)
            return err_set(err, -EINVAL, "%s \"%.80s\" occurs twice", what, index->entries[i].text);
    return 0;
}

static int build_indices(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    int rc = index_init(&c->models, v->model_count, err);
    if (rc)
        return rc;
    rc = index_init(&c->gpus, v->gpu_count, err);
    if (rc)
        return rc;
    rc = index_init(&c->unmeasured, v->unmeasured_count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < v->model_count; i++)
        index_add(&c->models, v->models[i].id, i);
    for (size_t i = 0; i < v->gpu_count; i++)
        index_add(&c->gpus, v->gpus[i].uuid, i);
    for (size_t i = 0; i < v->unmeasured_count; i++)
        index_add(&c->unmeasured, v->unmeasured[i].uuid, i);
    rc = index_sort(&c->models, "models: id", err);
    if (rc)
        return rc;
    rc = index_sort(&c->gpus, "gpus: uuid", err);
    if (rc)
        return rc;
    return index_sort(&c->unmeasured, "unmeasured: uuid", err);
}

/* A busy GPU may have been measured nevertheless: then it is not in unmeasured. */
static bool is_measured(const struct checker *c, const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER ||
           (gpu->status == GPU_BUSY && gpu->uuid && !find(&c->unmeasured, gpu->uuid));
}

static int check_gpus(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    for (size_t i = 0; i < v->gpu_count; i++) {
        const struct inventory_gpu *gpu = &v->gpus[i];
        const struct known_text *model = gpu->model ? find(&c->models, gpu->model) : NULL;
        bool measured = is_measured(c, gpu);
        if (gpu->model && !model)
            return err_set(err, -EINVAL,
                           "gpus: %.80s is of model \"%.80s\", which the file does not have",
                           gpu->uuid ? gpu->uuid : "one", gpu->model);
        if (measured && gpu->uuid && find(&c->unmeasured, gpu->uuid))
            return err_set(err, -EINVAL, "%.80s has status %s, but is listed in unmeasured",
                           gpu->uuid, gpu_status_name(gpu->status));
        c->measured += measured;
        if (model && measured)
            c->counts[model->place]++;
        int rc = report_validate_repeats(gpu, err);
        if (rc)
            return rc;
        rc = report_validate_links(gpu, err);
        if (rc)
            return rc;
        rc = report_validate_load(gpu, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Figures are sizes, times, rates and counts, so they are not negative. 1e18: no memory has an
 * exabyte. */
static bool is_possible(double value)
{
    return !isfinite(value) || (value >= 0 && value <= 1e18);
}

static int check_figure(const char *whose, const char *metric, double value, double spread,
                        struct err *err)
{
    bool odd_spread = is_possible(value);
    if (odd_spread && is_possible(spread))
        return 0;
    return err_set(err, -EINVAL, "%.80s: %s%.80s is %g, which is impossible", whose,
                   odd_spread ? "the spread of " : "", metric, odd_spread ? spread : value);
}

static int check_figures(const struct inventory *inventory, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        for (size_t k = 0; k < gpu->value_count && !rc; k++)
            rc = check_figure(gpu->uuid ? gpu->uuid : "a GPU without uuid", gpu->values[k].metric,
                              gpu->values[k].value, gpu->values[k].spread, err);
    }
    for (size_t i = 0; i < inventory->model_count; i++) {
        const struct measures *memory = &inventory->models[i].memory;
        for (size_t k = 0; k < memory->count && !rc; k++) {
            const struct measure *m = &memory->items[k];
            if (m->kind == MEASURE_NUMBER && measure_status_valued(m->status))
                rc = check_figure(inventory->models[i].id, m->metric, m->value, m->spread, err);
        }
    }
    return rc;
}

static int check_count(const char *what, uint64_t stated, uint64_t found, struct err *err)
{
    if (stated == found)
        return 0;
    return err_set(err, -EINVAL, "%s is %llu, but the file has %llu", what,
                   (unsigned long long)stated, (unsigned long long)found);
}

static int check_counts(const struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    for (size_t i = 0; i < v->model_count; i++)
        if (v->models[i].count != c->counts[i])
            return err_set(err, -EINVAL, "models: %.80s has count %u, but %u measured GPUs",
                           v->models[i].id, v->models[i].count, c->counts[i]);
    for (size_t i = 0; i < v->model_count; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < v->models[i].population_count; k++)
            sum += v->models[i].populations[k].count;
        if (v->models[i].population_count && sum != v->models[i].count)
            return err_set(err, -EINVAL, "models: %.80s has count %u, but its populations %" PRIu64,
                           v->models[i].id, v->models[i].count, sum);
    }
    int rc = check_count("survey.measured", v->total_measured, c->measured, err);
    if (rc)
        return rc;
    rc = check_count("survey.unmeasured", v->total_unmeasured, v->unmeasured_count, err);
    if (rc)
        return rc;
    /* c->unmeasured has no entries without UUID: such an entry is a rank, not a GPU. */
    return check_count("survey.gpus", v->total_gpus,
                       (uint64_t)v->total_measured + c->unmeasured.count, err);
}

/* A GPU that could not be measured twice may be accused, and keeps its status. */
static bool may_be_accused(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OUTLIER ||
           (gpu->first_status != GPU_OK &&
            (gpu->status == GPU_CRASHED || gpu->status == GPU_TIMED_OUT ||
             gpu->status == GPU_FAILED));
}

/* A GPU with status outlier is in one of the lists, and no other GPU is, with one exception. */
static int check_accused(const struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    uint64_t accused = 0;
    for (size_t i = 0; i < v->gpu_count; i++) {
        bool odd = c->accused[i] ? !may_be_accused(&v->gpus[i]) : v->gpus[i].status == GPU_OUTLIER;
        accused += c->accused[i];
        if (odd)
            return err_set(err, -EINVAL, "%.80s has status %s, but is%s among the accused",
                           v->gpus[i].uuid ? v->gpus[i].uuid : "a GPU without uuid",
                           gpu_status_name(v->gpus[i].status), c->accused[i] ? "" : " not");
    }
    return check_count("survey.outliers", v->total_outliers, accused, err);
}

/* The index of the GPU, found by UUID or, if it has none, by node and PCI address; -1: none. */
static ptrdiff_t find_suspect(const struct checker *c, const struct inventory_outlier *suspect)
{
    const struct inventory *v = c->inventory;
    if (suspect->uuid) {
        const struct known_text *entry = find(&c->gpus, suspect->uuid);
        return entry ? (ptrdiff_t)entry->place : -1;
    }
    for (size_t i = 0; i < v->gpu_count; i++)
        if (!v->gpus[i].uuid && str_equal(v->gpus[i].node, suspect->node) &&
            str_equal(v->gpus[i].pci, suspect->pci))
            return (ptrdiff_t)i;
    return -1;
}

static int check_suspects(const struct checker *c, const char *list,
                          const struct inventory_outlier *suspects, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *uuid = suspects[i].uuid ? suspects[i].uuid : "a GPU without uuid";
        ptrdiff_t place = find_suspect(c, &suspects[i]);
        if (place < 0)
            return err_set(err, -EINVAL, "%s: %.80s is not among the gpus", list, uuid);
        const struct inventory_gpu *gpu = &c->inventory->gpus[place];
        if (!str_equal(gpu->model, suspects[i].model) || !str_equal(gpu->node, suspects[i].node))
            return err_set(err, -EINVAL, "%s: %.80s has another model or node among the gpus", list,
                           uuid);
        bool accused = suspects == c->inventory->outliers;
        c->accused[place] |= accused;
        int rc = report_validate_confirmed(&suspects[i], accused, gpu, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_nodes(const struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    for (size_t i = 0; i < v->node_finding_count; i++) {
        for (size_t g = 0; g < v->node_findings[i].gpu_count; g++) {
            const char *uuid = v->node_findings[i].gpus[g];
            const struct known_text *entry = find(&c->gpus, uuid);
            if (!entry && !find(&c->unmeasured, uuid))
                return err_set(err, -EINVAL, "nodes: %.80s is not among the gpus", uuid);
            if (entry && v->node_findings[i].accused)
                c->accused[entry->place] = true;
        }
    }
    return 0;
}

static int check_exit_code(const struct inventory *inventory, struct err *err)
{
    bool incomplete = inventory->total_unmeasured || inventory->total_lost_ranks;
    bool odd = inventory->total_outliers || judge_accused_nodes(inventory);
    int code = inventory->exit_code;
    if ((code == 0 && (odd || incomplete)) || (code == 3 && (!odd || incomplete)))
        return err_set(err, -EINVAL, "survey.exit_code %d contradicts the counts in survey", code);
    return 0;
}

static int check_generated(const struct inventory *inventory, struct err *err)
{
    int64_t time_s = 0;
    if (!inventory->generated || !clock_parse_stamp(inventory->generated, &time_s))
        return 0;
    return err_set(err, -EINVAL,
                   "gpumemtopo.generated is \"%.40s\", expected a time in UTC such as "
                   "2026-11-14T12:00:00Z",
                   inventory->generated);
}

static int check_all(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    int rc = check_generated(v, err);
    if (rc)
        return rc;
    rc = build_indices(c, err);
    if (rc)
        return rc;
    c->counts = mem_array(v->model_count, sizeof *c->counts);
    c->accused = mem_array(v->gpu_count, sizeof *c->accused);
    if (!c->counts || !c->accused)
        return err_no_memory(err);
    rc = check_gpus(c, err);
    if (rc)
        return rc;
    rc = check_figures(v, err);
    if (rc)
        return rc;
    rc = check_counts(c, err);
    if (rc)
        return rc;
    rc = check_suspects(c, "outliers", v->outliers, v->outlier_count, err);
    if (rc)
        return rc;
    rc = check_suspects(c, "watch", v->watch, v->watch_count, err);
    if (rc)
        return rc;
    rc = check_nodes(c, err);
    if (rc)
        return rc;
    rc = check_accused(c, err);
    if (rc)
        return rc;
    return check_exit_code(v, err);
}

int report_validate(const struct inventory *inventory, struct err *err)
{
    struct checker c = {.inventory = inventory};
    int rc = check_all(&c, err);
    free(c.models.entries);
    free(c.gpus.entries);
    free(c.unmeasured.entries);
    free(c.counts);
    free(c.accused);
    return rc;
}
