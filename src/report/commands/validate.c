/* Checks an inventory for contradictions. */
#include "report/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "inventory/curves.h"
#include "inventory/fingerprint.h"
#include "inventory/link_row.h"
#include "inventory/sm_rates.h"
#include "judge/judge.h"
#include "judge/world.h"
#include "report/command.h"

static const char *validate_name_of(const struct inventory_gpu *gpu)
{
    return gpu->uuid ? gpu->uuid : "a GPU without uuid";
}

static int validate_links(const struct inventory_gpu *gpu, struct err *err)
{
    struct err wrong = {0};
    int rc = link_row_check(&gpu->links, &wrong);
    return rc ? err_set(err, rc, "%.80s: %s", validate_name_of(gpu), wrong.text) : 0;
}

static bool is_load_key(const char *key)
{
    for (size_t i = 0; i < LOAD_CURVE_KEYS; i++)
        if (strcmp(load_curve_keys[i], key) == 0)
            return true;
    return false;
}

static bool is_load_fact(const struct fact *fact)
{
    if (strcmp(fact->key, "begun_after_s") == 0)
        return fact_number(fact) >= 0 && isfinite(fact_number(fact));
    return is_load_key(fact->key) &&
           fact->kind == (load_curve_has(fact->key) ? FACT_NUMBERS : FACT_TEXT);
}

static int validate_load(const struct inventory_gpu *gpu, struct err *err)
{
    struct load_curve curve;
    for (size_t i = 0; i < gpu->load.count; i++) {
        const struct fact *fact = &gpu->load.items[i];
        if (!is_load_fact(fact) ||
            (load_curve_has(fact->key) && !load_curve_read(&gpu->load, &curve)))
            return err_set(err, -EINVAL, "%.80s: load: %.80s is not what a load has",
                           validate_name_of(gpu), fact->key);
    }
    return 0;
}

static bool fact_is_second_value(const struct fact *fact)
{
    double value = fact_number(fact);
    if (fact->kind == FACT_INT || fact->kind == FACT_REAL)
        return value >= 0 && value <= 1e18;
    return fact->kind == FACT_UNKNOWN;
}

static int validate_repeats(const struct inventory_gpu *gpu, struct err *err)
{
    if (gpu->run.first_reason && gpu->run.first_status == GPU_OK)
        return err_set(err, -EINVAL, "%.80s: first_try has status ok, so nothing was tried again",
                       validate_name_of(gpu));
    if (gpu->run.first_status != GPU_OK && gpu->run.first_status != GPU_CRASHED &&
        gpu->run.first_status != GPU_TIMED_OUT && gpu->run.first_status != GPU_FAILED)
        return err_set(err, -EINVAL,
                       "%.80s: first_try has status %s, expected crashed, timed_out or failed",
                       validate_name_of(gpu), gpu_status_name(gpu->run.first_status));
    for (size_t i = 0; i < gpu->measured_again.count; i++)
        if (!fact_is_second_value(&gpu->measured_again.items[i]))
            return err_set(err, -EINVAL,
                           "%.80s: measured_again: %.80s is neither a possible figure nor null",
                           validate_name_of(gpu), gpu->measured_again.items[i].key);
    return 0;
}

static bool confirmation_is_of_two(const char *confirmed)
{
    return str_equal(confirmed, "2 of 2") || str_equal(confirmed, "1 of 2");
}

static bool confirmation_is_by_figures(const char *confirmed)
{
    unsigned figures = 0;
    int length = 0;
    return sscanf(confirmed, "by %4u figures%n", &figures, &length) == 1 && figures >= 2 &&
           length && !confirmed[length];
}

/* What a second measurement says of the finding. One that a low SM clock explains goes with the
 * clock, even if its own figure was not measured again. NULL: nothing. */
static const struct fact *validate_second_value(const struct inventory_evidence *finding,
                                                const struct inventory_gpu *gpu)
{
    const struct fact *own = facts_get(&gpu->measured_again, finding->metric);
    if (!own && str_equal(finding->confirmed, "1 of 2"))
        own = facts_get(&gpu->measured_again, "clock.sm");
    return own && own->kind != FACT_UNKNOWN ? own : NULL;
}

static int validate_confirmation(const struct inventory_evidence *finding, bool outlier,
                                 const struct inventory_gpu *gpu, struct err *err)
{
    const char *confirmed = finding->confirmed;
    if (!(confirmation_is_of_two(confirmed) || confirmation_is_by_figures(confirmed) ||
          str_equal(confirmed, "by its cause") || str_equal(confirmed, "by its repetitions") ||
          str_equal(confirmed, "no")))
        return err_set(
            err, -EINVAL,
            "%.80s: %.80s is confirmed \"%.40s\", expected 2 of 2, 1 of 2, by its cause, "
            "by its repetitions, by N figures or no",
            validate_name_of(gpu), finding->metric, confirmed);
    if (confirmation_is_of_two(confirmed) && !validate_second_value(finding, gpu))
        return err_set(err, -EINVAL,
                       "%.80s: %.80s is confirmed \"%s\", but measured_again has no value of it",
                       validate_name_of(gpu), finding->metric, confirmed);
    if (outlier && (str_equal(confirmed, "1 of 2") || str_equal(confirmed, "no")))
        return err_set(err, -EINVAL, "%.80s: %.80s is confirmed \"%s\", but is among the outliers",
                       validate_name_of(gpu), finding->metric, confirmed);
    return 0;
}

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
    bool *outlier;    /* GPUs that are in outliers, or in an entry of nodes that is acted on */
    uint32_t measured;
};

static int known_text_order(const void *a, const void *b)
{
    const struct known_text *left = a, *right = b;
    return strcmp(left->text, right->text);
}

static const struct known_text *known_text_find(const struct index *index, const char *text)
{
    return bsearch(&(struct known_text){.text = text}, index->entries, index->count,
                   sizeof *index->entries, known_text_order);
}

static void index_add(struct index *index, const char *text, size_t place)
{
    if (text)
        index->entries[index->count++] = (struct known_text){text, place};
}

static int index_sort(struct index *index, const char *what, struct err *err)
{
    sort_stable(index->entries, index->count, sizeof *index->entries, known_text_order);
    for (size_t i = 1; i < index->count; i++)
        if (known_text_order(&index->entries[i - 1], &index->entries[i]) == 0)
            return err_set(err, -EINVAL, "%s \"%.80s\" occurs twice", what, index->entries[i].text);
    return 0;
}

static int build_indices(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    c->models.entries = mem_array(v->model_count, sizeof *c->models.entries);
    c->gpus.entries = mem_array(v->gpu_count, sizeof *c->gpus.entries);
    c->unmeasured.entries = mem_array(v->unmeasured_count, sizeof *c->unmeasured.entries);
    for (size_t i = 0; i < v->model_count; i++)
        index_add(&c->models, v->models[i].id, i);
    for (size_t i = 0; i < v->gpu_count; i++)
        index_add(&c->gpus, v->gpus[i].uuid, i);
    for (size_t i = 0; i < v->unmeasured_count; i++)
        index_add(&c->unmeasured, v->unmeasured[i].uuid, i);
    int rc = index_sort(&c->models, "models: id", err);
    if (!rc)
        rc = index_sort(&c->gpus, "gpus: uuid", err);
    return rc ? rc : index_sort(&c->unmeasured, "unmeasured: uuid", err);
}

/* A busy GPU may have been measured nevertheless: then it is not in unmeasured. */
static bool validate_is_measured(const struct checker *c, const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER ||
           (gpu->status == GPU_BUSY && gpu->uuid && !known_text_find(&c->unmeasured, gpu->uuid));
}

static int validate_gpus(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    for (size_t i = 0; i < v->gpu_count; i++) {
        const struct inventory_gpu *gpu = &v->gpus[i];
        const struct known_text *model =
            gpu->model ? known_text_find(&c->models, gpu->model) : NULL;
        bool measured = validate_is_measured(c, gpu);
        if (gpu->model && !model)
            return err_set(err, -EINVAL,
                           "gpus: %.80s is of model \"%.80s\", which the file does not have",
                           gpu->uuid ? gpu->uuid : "one", gpu->model);
        if (measured && gpu->uuid && known_text_find(&c->unmeasured, gpu->uuid))
            return err_set(err, -EINVAL, "%.80s has status %s, but is listed in unmeasured",
                           gpu->uuid, gpu_status_name(gpu->status));
        c->measured += measured;
        if (model && measured)
            c->counts[model->place]++;
        int rc = validate_repeats(gpu, err);
        if (rc)
            return rc;
        rc = validate_links(gpu, err);
        if (rc)
            return rc;
        rc = validate_load(gpu, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Figures are sizes, times, rates and counts, so they are not negative. 1e18: no memory has an
 * exabyte. */
static bool figure_is_possible(double value)
{
    return !isfinite(value) || (value >= 0 && value <= 1e18);
}

static int validate_check_figure(const char *whose, const char *metric, double value, double spread,
                                 struct err *err)
{
    bool odd_spread = figure_is_possible(value);
    if (odd_spread && figure_is_possible(spread))
        return 0;
    return err_set(err, -EINVAL, "%.80s: %s%.80s is %g, which is impossible", whose,
                   odd_spread ? "the spread of " : "", metric, odd_spread ? spread : value);
}

/* Whether what belongs to the list is there: the other columns of its curve; for places, KEY_at, a
 * value KEY at each. */
static bool list_is_complete(const struct facts *facts, const struct fact *list)
{
    struct surface_curves surface;
    struct load_curve load;
    struct latency_curve latency;
    struct curve curve;
    size_t length = strlen(list->key);
    if (strncmp(list->key, SURFACE_CURVES_KEYS, strlen(SURFACE_CURVES_KEYS)) == 0)
        return surface_curves_read(facts, &surface);
    if (strncmp(list->key, "curve_", 6) == 0 && facts_get(facts, LATENCY_CURVE_KEY))
        return latency_curve_read(facts, &latency);
    if (strncmp(list->key, "curve_", 6) == 0)
        return load_curve_has(list->key) ? load_curve_read(facts, &load)
                                         : curve_read(facts, &curve);
    if (length < 4 || strcmp(list->key + length - 3, "_at") != 0)
        return true;
    char *key = str_copy_n(list->key, length - 3);
    const struct fact *values = facts_get(facts, key);
    free(key);
    return values && values->kind == FACT_NUMBERS && values->count == list->count;
}

static int validate_lists(const char *whose, const char *metric, const struct facts *facts,
                          struct err *err)
{
    for (size_t i = 0; i < facts->count; i++)
        if (facts->items[i].kind == FACT_NUMBERS && !list_is_complete(facts, &facts->items[i]))
            return err_set(err, -EINVAL,
                           "%.80s: %.80s: the lists that belong to %.80s are missing or of "
                           "another length",
                           whose, metric, facts->items[i].key);
    return 0;
}

static int validate_board(const struct inventory_gpu *gpu, struct err *err)
{
    struct fingerprint fingerprint;
    struct sm_rates rates;
    const struct fact *map = facts_get(&gpu->board, FINGERPRINT_FACT);
    const struct fact *alone = facts_get(&gpu->board, SM_RATES_FACT);
    bool odd_map = map && map->kind == FACT_NUMBERS && fingerprint_read(&gpu->board, &fingerprint);
    bool odd_rates = alone && alone->kind == FACT_NUMBERS && sm_rates_read(&gpu->board, &rates);
    if (odd_map || odd_rates)
        return err_set(err, -EINVAL,
                       "%.80s: board: the lists that belong to %s are missing or of another length",
                       validate_name_of(gpu), odd_map ? FINGERPRINT_FACT : SM_RATES_FACT);
    return 0;
}

static int validate_figures(const struct inventory *inventory, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        for (size_t k = 0; k < gpu->value_count && !rc; k++)
            rc = validate_check_figure(gpu->uuid ? gpu->uuid : "a GPU without uuid",
                                       gpu->values[k].metric, gpu->values[k].value,
                                       gpu->values[k].spread, err);
        if (!rc)
            rc = validate_board(gpu, err);
    }
    for (size_t i = 0; i < inventory->model_count; i++) {
        const struct measures *memory = &inventory->models[i].memory;
        for (size_t k = 0; k < memory->count && !rc; k++) {
            const struct measure *m = &memory->items[k];
            if (m->kind == MEASURE_NUMBER && measure_status_valued(m->status))
                rc = validate_check_figure(inventory->models[i].id, m->metric, m->value, m->spread,
                                           err);
            if (!rc)
                rc = validate_lists(inventory->models[i].id, m->metric, &m->notes, err);
        }
    }
    return rc;
}

static int validate_count(const char *what, uint64_t stated, uint64_t found, struct err *err)
{
    if (stated == found)
        return 0;
    return err_set(err, -EINVAL, "%s is %llu, but the file has %llu", what,
                   (unsigned long long)stated, (unsigned long long)found);
}

static int validate_counts(const struct checker *c, struct err *err)
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
    int rc = validate_count("survey.measured", v->total_measured, c->measured, err);
    if (rc)
        return rc;
    rc = validate_count("survey.unmeasured", v->total_unmeasured, v->unmeasured_count, err);
    if (rc)
        return rc;
    /* c->unmeasured has no entries without UUID: such an entry is a rank, not a GPU. */
    return validate_count("survey.gpus", v->total_gpus,
                          (uint64_t)v->total_measured + c->unmeasured.count, err);
}

/* A GPU that could not be measured twice may be an outlier, and keeps its status. */
static bool validate_may_be_outlier(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OUTLIER ||
           (gpu->run.first_status != GPU_OK &&
            (gpu->status == GPU_CRASHED || gpu->status == GPU_TIMED_OUT ||
             gpu->status == GPU_FAILED));
}

/* A GPU with status outlier is in one of the lists, and no other GPU is, with one exception. */
static int validate_outliers(const struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    uint64_t outlier = 0;
    for (size_t i = 0; i < v->gpu_count; i++) {
        bool odd = c->outlier[i] ? !validate_may_be_outlier(&v->gpus[i])
                                 : v->gpus[i].status == GPU_OUTLIER;
        outlier += c->outlier[i];
        if (odd)
            return err_set(err, -EINVAL, "%.80s has status %s, but is%s among those flagged",
                           v->gpus[i].uuid ? v->gpus[i].uuid : "a GPU without uuid",
                           gpu_status_name(v->gpus[i].status), c->outlier[i] ? "" : " not");
    }
    return validate_count("survey.outliers", v->total_outliers, outlier, err);
}

/* The index of the GPU, found by UUID or, if it has none, by node and PCI address; -1: none. */
static ptrdiff_t validate_find_suspect(const struct checker *c,
                                       const struct inventory_outlier *suspect)
{
    const struct inventory *v = c->inventory;
    if (suspect->uuid) {
        const struct known_text *entry = known_text_find(&c->gpus, suspect->uuid);
        return entry ? (ptrdiff_t)entry->place : -1;
    }
    for (size_t i = 0; i < v->gpu_count; i++)
        if (!v->gpus[i].uuid && str_equal(v->gpus[i].node, suspect->node) &&
            str_equal(v->gpus[i].pci, suspect->pci))
            return (ptrdiff_t)i;
    return -1;
}

static int validate_suspects(const struct checker *c, const char *list,
                             const struct inventory_outlier *suspects, size_t count,
                             struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *uuid = suspects[i].uuid ? suspects[i].uuid : "a GPU without uuid";
        ptrdiff_t place = validate_find_suspect(c, &suspects[i]);
        if (place < 0)
            return err_set(err, -EINVAL, "%s: %.80s is not among the gpus", list, uuid);
        const struct inventory_gpu *gpu = &c->inventory->gpus[place];
        if (!str_equal(gpu->model, suspects[i].model) || !str_equal(gpu->node, suspects[i].node))
            return err_set(err, -EINVAL, "%s: %.80s has another model or node among the gpus", list,
                           uuid);
        bool outlier = suspects == c->inventory->outliers;
        if (outlier ? suspects[i].action < ACTION_ALERT : suspects[i].action != ACTION_TELL)
            return err_set(err, -EINVAL, "%s: %.80s has the action %s, expected %s", list, uuid,
                           action_name(suspects[i].action), outlier ? "alert or drain" : "tell");
        c->outlier[place] |= outlier;
        for (size_t k = 0; k < suspects[i].evidence_count; k++) {
            const struct inventory_evidence *finding = &suspects[i].evidence[k];
            int rc = finding->confirmed ? validate_confirmation(finding, outlier, gpu, err) : 0;
            if (rc)
                return rc;
        }
    }
    return 0;
}

static int validate_nodes(const struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    for (size_t i = 0; i < v->node_finding_count; i++) {
        for (size_t g = 0; g < v->node_findings[i].gpu_count; g++) {
            const char *uuid = v->node_findings[i].gpus[g];
            const struct known_text *entry = known_text_find(&c->gpus, uuid);
            if (!entry && !known_text_find(&c->unmeasured, uuid))
                return err_set(err, -EINVAL, "nodes: %.80s is not among the gpus", uuid);
            if (entry && v->node_findings[i].action >= ACTION_ALERT)
                c->outlier[entry->place] = true;
        }
    }
    return 0;
}

static int validate_exit_code(const struct inventory *inventory, struct err *err)
{
    bool incomplete = inventory_is_incomplete(inventory);
    bool odd = inventory_action(inventory) == ACTION_DRAIN;
    int code = inventory->exit_code;
    if ((code == 0 && (odd || incomplete)) || (code == 3 && (!odd || incomplete)))
        return err_set(err, -EINVAL, "survey.exit_code %d contradicts the counts in survey", code);
    return 0;
}

static int validate_generated(const struct inventory *inventory, struct err *err)
{
    int64_t time_s = 0;
    if (!inventory->generated || !clock_parse_stamp(inventory->generated, &time_s))
        return 0;
    return err_set(err, -EINVAL,
                   "gpumemtopo.generated is \"%.40s\", expected a time in UTC such as "
                   "2026-11-14T12:00:00Z",
                   inventory->generated);
}

static int validate_check_all(struct checker *c, struct err *err)
{
    const struct inventory *v = c->inventory;
    int rc = validate_generated(v, err);
    if (rc)
        return rc;
    rc = build_indices(c, err);
    if (rc)
        return rc;
    c->counts = mem_array(v->model_count, sizeof *c->counts);
    c->outlier = mem_array(v->gpu_count, sizeof *c->outlier);
    rc = validate_gpus(c, err);
    if (rc)
        return rc;
    rc = validate_figures(v, err);
    if (rc)
        return rc;
    rc = validate_counts(c, err);
    if (rc)
        return rc;
    rc = validate_suspects(c, "outliers", v->outliers, v->outlier_count, err);
    if (rc)
        return rc;
    rc = validate_suspects(c, "watch", v->watch, v->watch_count, err);
    if (rc)
        return rc;
    rc = validate_nodes(c, err);
    if (rc)
        return rc;
    rc = validate_outliers(c, err);
    if (rc)
        return rc;
    return validate_exit_code(v, err);
}

int report_validate(const struct inventory *inventory, struct err *err)
{
    struct checker c = {.inventory = inventory};
    int rc = validate_check_all(&c, err);
    free(c.models.entries);
    free(c.gpus.entries);
    free(c.unmeasured.entries);
    free(c.counts);
    free(c.outlier);
    return rc;
}

static int validate_world(const char *path)
{
    struct world world;
    struct err err = {0};
    int rc = world_read_file(path, &world, &err);
    if (rc)
        log_failure(&err);
    else
        world_fini(&world);
    return command_exit_code(rc);
}

static int validate_inventory(const char *path)
{
    struct inventory inventory;
    struct err err = {0};
    int code = command_read(path, &inventory);
    if (code)
        return code;
    int rc = report_validate(&inventory, &err);
    if (rc) {
        err_prefix(&err, "%s", path);
        log_failure(&err);
    }
    inventory_fini(&inventory);
    return command_exit_code(rc);
}

int command_validate(const struct command_options *options)
{
    int worst = EXIT_DONE;
    for (int i = 0; i < options->file_count; i++) {
        const char *path = options->files[i];
        int code = world_is_file(path) ? validate_world(path) : validate_inventory(path);
        worst = code == EXIT_DONE || worst == EXIT_NO_REPORT ? worst : code;
    }
    return worst;
}
