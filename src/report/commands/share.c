/* gpumemtopo-report share: sketches of the healthy GPUs of inventories. */
#include "report/commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/results.h"
#include "judge/robust.h"
#include "judge/world.h"
#include "report/basis.h"
#include "report/command.h"

static const char SM_CLOCK[] = "clock.sm", MEMORY_CLOCK[] = "clock.memory";

/* One figure of one GPU in one inventory. Texts belong to the inventory. */
struct sample {
    const char *name, *key, *part; /* of its model; its board part */
    const char *metric;            /* "": stands for the GPU itself */
    const char *uuid;
    const struct inventory *from;
    const char *driver;
    double value, spread, clock; /* clock: SM clock of the GPU; NaN: not known */
    size_t order;                /* of the inventory */
};

struct share {
    const struct judge_config *config;
    const struct inventory *inventories;
    size_t count;
    const char **left_out; /* sorted UUIDs */
    size_t left_out_count, left_out_room;
    struct sample *samples;
    size_t sample_count, sample_room;
    double *values, *spreads, *scratch; /* room for all samples */
};

static void share_leave_out(struct share *share, const char *uuid)
{
    if (!uuid)
        return;
    share->left_out = mem_grow(share->left_out, &share->left_out_room, share->left_out_count + 1,
                               sizeof *share->left_out);
    share->left_out[share->left_out_count++] = uuid;
}

static void share_find_left_out(struct share *share)
{
    for (size_t i = 0; i < share->count; i++) {
        const struct inventory *inventory = &share->inventories[i];
        for (size_t g = 0; g < inventory->gpu_count; g++) {
            const struct inventory_gpu *gpu = &inventory->gpus[g];
            if (gpu->status == GPU_OUTLIER || gpu->status == GPU_BUSY)
                share_leave_out(share, gpu->uuid);
        }
        for (size_t n = 0; n < inventory->node_finding_count; n++)
            for (size_t g = 0; g < inventory->node_findings[n].gpu_count; g++)
                share_leave_out(share, inventory->node_findings[n].gpus[g]);
    }
    if (share->left_out_count)
        sort_stable(share->left_out, share->left_out_count, sizeof *share->left_out,
                    str_item_order);
}

static bool share_is_left_out(const struct share *share, const struct inventory_gpu *gpu)
{
    return gpu->status != GPU_OK || !gpu->uuid ||
           (share->left_out_count && bsearch(&gpu->uuid, share->left_out, share->left_out_count,
                                             sizeof *share->left_out, str_item_order));
}

/* Also of figures that say how SMs are placed. */
static const struct judge_metric *rule_of(const struct share *share, const char *metric)
{
    const struct judge_metric *found = NULL;
    bool needed = str_equal(metric, MEMORY_CLOCK);
    for (size_t i = 0; i < share->config->metric_count; i++) {
        const struct judge_metric *rule = &share->config->metrics[i];
        needed |= str_equal(rule->place_metric, metric);
        if (str_equal(rule->metric, metric)) {
            needed |= rule->worse != JUDGE_NONE || rule->for_world;
            found = rule;
        }
    }
    return needed ? found : NULL;
}

/* NaN: the figure was not measured again. A second value of a GPU that is not accused is the one
 * that acquitted it: a disturbance was over by then. */
static double second_value(const struct inventory_gpu *gpu, const char *metric)
{
    return fact_number(facts_get(&gpu->measured_again, metric));
}

static void share_add_sample(struct share *share, const struct sample *sample)
{
    share->samples = mem_grow(share->samples, &share->sample_room, share->sample_count + 1,
                              sizeof *share->samples);
    share->samples[share->sample_count++] = *sample;
}

static void share_add_gpu(struct share *share, size_t order, const struct inventory_lookup *lookup,
                          const struct inventory_model *model, const struct inventory_gpu *gpu)
{
    const struct inventory_value *clock = inventory_value_of(gpu, SM_CLOCK);
    struct sample sample = {.name = model->name ? model->name : "",
                            .key = model->key,
                            .part = facts_text(&gpu->board, "part"),
                            .metric = "",
                            .uuid = gpu->uuid,
                            .from = &share->inventories[order],
                            .driver = facts_text(&gpu->board, "driver"),
                            .clock = clock && inventory_value_is_good(clock) ? clock->value : NAN,
                            .order = order};
    share_add_sample(share, &sample);
    const struct kind_view kind = catalogue_kind_view(lookup, gpu);
    double first_clock = sample.clock, second_clock = second_value(gpu, SM_CLOCK);
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        double again = second_value(gpu, value->metric);
        bool repeated = isfinite(again);
        sample.metric = value->metric;
        sample.value = repeated ? again : value->value;
        sample.clock = repeated && isfinite(second_clock) ? second_clock : first_clock;
        sample.spread = isfinite(value->spread) ? fabs(value->spread) : 0;
        if (inventory_value_is_good(value) && rule_of(share, value->metric) &&
            !catalogue_kinds_differ(&kind, NULL, value->metric)) /* a sketch tells no kind */
            share_add_sample(share, &sample);
    }
}

static void share_add_inventory(struct share *share, size_t order)
{
    const struct inventory *inventory = &share->inventories[order];
    struct inventory_lookup *lookup = inventory_lookup_create(inventory);
    for (size_t g = 0; g < inventory->gpu_count; g++) {
        const struct inventory_gpu *gpu = &inventory->gpus[g];
        const struct inventory_model *model = inventory_model_of(lookup, gpu);
        /* A memory without ECC is another one. */
        const struct fact *ecc = inventory_fact_of(lookup, gpu, INVENTORY_CONFIG, "ecc");
        bool ecc_off = ecc && ecc->kind == FACT_BOOL && !ecc->flag;
        if (model && model->key && !ecc_off && !share_is_left_out(share, gpu))
            share_add_gpu(share, order, lookup, model, gpu);
    }
    inventory_lookup_destroy(lookup);
}

static int sample_population_order(const struct sample *a, const struct sample *b)
{
    int order = strcmp(a->key, b->key);
    return order ? order : str_order(a->part, b->part);
}

/* By model, part, metric and GPU; the newest first, and the first file of equal times. */
static int sample_order(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    int order = sample_population_order(a, b);
    if (!order)
        order = strcmp(a->metric, b->metric);
    if (!order)
        order = strcmp(a->uuid, b->uuid);
    if (!order)
        order = str_order(b->from->generated, a->from->generated);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Removes all but the first sample of each figure of each GPU. */
static void share_drop_older(struct share *share)
{
    size_t kept = 0;
    for (size_t i = 0; i < share->sample_count; i++) {
        const struct sample *last = kept ? &share->samples[kept - 1] : NULL;
        const struct sample *own = &share->samples[i];
        if (!last || sample_population_order(last, own) || strcmp(last->metric, own->metric) != 0 ||
            strcmp(last->uuid, own->uuid) != 0)
            share->samples[kept++] = *own;
    }
    share->sample_count = kept;
}

static double usual_clock(const struct share *share, const struct sample *samples, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(samples[i].metric, SM_CLOCK) == 0)
            share->values[n++] = samples[i].value;
    return robust_median(share->values, n);
}

/* The figure at the usual SM clock of the population. */
static double sample_at_clock(const struct sample *sample, double share_of_clock, double clock)
{
    double ratio = sample->clock / clock;
    double factor = 1 + share_of_clock * (ratio - 1);
    return isfinite(factor) && factor > 0 ? sample->value / factor : sample->value;
}

static void share_sketch_figure(const struct share *share, const struct sample *samples, size_t n,
                                double clock, struct world_population *population)
{
    struct world_figure figure = {.n = (uint32_t)n};
    const struct judge_metric *rule = rule_of(share, samples[0].metric);
    for (size_t i = 0; i < n; i++) {
        share->values[i] = sample_at_clock(&samples[i], rule->follows[JUDGE_SM_CLOCK], clock);
        share->spreads[i] = samples[i].spread;
    }
    const struct robust_fit fit = robust_fit(share->values, n, share->scratch);
    figure.median = fit.center;
    figure.scatter = fit.sigma;
    figure.spread = robust_median(share->spreads, n);
    for (int i = 0; i < WORLD_QUANTILES; i++)
        figure.quantiles[i] = robust_quantile(share->values, n, world_shares[i]);
    struct world_figure *own = world_have_figure(population, samples[0].metric);
    figure.metric = own->metric;
    *own = figure;
}

/* The GPUs themselves: their number and versions. */
static void share_describe(const struct sample *samples, size_t n, struct world *world,
                           struct world_population *population)
{
    population->gpus = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct inventory *from = samples[i].from;
        for (size_t k = 0; k < inventory_measured_by_count(from); k++) {
            char word[WORLD_PROGRAM_MAX];
            world_program(inventory_measured_by(from, k), from->backend, word);
            world_add_word(&population->programs, word);
        }
        world_add_word(&population->drivers, samples[i].driver);
        world_add_month(world, from->generated);
    }
}

static void share_sketch_population(const struct share *share, const struct sample *samples,
                                    size_t count, struct world *world)
{
    struct world_model *model = world_have_model(world, samples[0].name, samples[0].key);
    struct world_population *population = world_have_population(model, samples[0].part);
    double clock = usual_clock(share, samples, count);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(samples[i + n].metric, samples[i].metric) == 0;)
            n++;
        if (*samples[i].metric)
            share_sketch_figure(share, samples + i, n, clock, population);
        else
            share_describe(samples + i, n, world, population);
    }
}

static void share_sketch_all(struct share *share, struct world *world)
{
    size_t count = share->sample_count;
    share->values = mem_array(count, sizeof *share->values);
    share->spreads = mem_array(count, sizeof *share->spreads);
    share->scratch = mem_array(4 * count, sizeof *share->scratch);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count &&
                    sample_population_order(&share->samples[i], &share->samples[i + n]) == 0;)
            n++;
        share_sketch_population(share, share->samples + i, n, world);
    }
}

void report_share(const struct inventory *inventories, size_t count,
                  const struct judge_config *config, struct world *world)
{
    struct share share = {.config = config, .inventories = inventories, .count = count};
    struct world own = {0};
    share_find_left_out(&share);
    for (size_t i = 0; i < count; i++)
        share_add_inventory(&share, i);
    if (share.sample_count) {
        sort_stable(share.samples, share.sample_count, sizeof *share.samples, sample_order);
        share_drop_older(&share);
        share_sketch_all(&share, &own);
    }
    world_add(world, &own);
    world_fini(&own);
    free(share.left_out);
    free(share.samples);
    free(share.values);
    free(share.spreads);
    free(share.scratch);
}

static int share_files(const struct command_options *options, const struct judge_config *config,
                       struct world *world, struct err *err)
{
    struct inventory *inventories = mem_array((size_t)options->file_count, sizeof *inventories);
    size_t count = 0;
    int rc = 0;
    for (int i = 0; i < options->file_count && !rc; i++) {
        const bool is_world = world_is_file(options->files[i]);
        rc = is_world ? world_add_file(world, options->files[i], err)
                      : inventory_read_file(options->files[i], &inventories[count], err);
        count += !rc && !is_world;
    }
    if (!rc)
        report_share(inventories, count, config, world);
    for (size_t i = 0; i < count; i++)
        inventory_fini(&inventories[i]);
    free(inventories);
    return rc;
}

int command_share(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct world world = {0};
    struct strbuf text = {0};
    struct err err = {0};
    int rc = report_basis_load_config(options->config, &basis, &err);
    if (!rc)
        rc = share_files(options, &basis.config, &world, &err);
    int code = command_exit_code(rc);
    if (rc)
        log_failure(&err);
    else if (!world.model_count) {
        log_error("nothing to share: no file has a healthy GPU that was measured");
        code = EXIT_NO_REPORT;
    } else {
        world_print(&world, GPUMEMTOPO_VERSION, &text);
        code = command_write(&text, options->output);
    }
    world_fini(&world);
    report_basis_fini(&basis);
    return code;
}
