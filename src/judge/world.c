/* Sketches of figures: lists that stay sorted, and how two sketches are combined. */
#include "judge/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const double world_shares[WORLD_QUANTILES] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

static void world_words_fini(struct world_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}

static void world_population_fini(struct world_population *population)
{
    free(population->part);
    world_words_fini(&population->programs);
    world_words_fini(&population->drivers);
    for (size_t i = 0; i < population->figure_count; i++)
        free(population->figures[i].metric);
    free(population->figures);
}

void world_fini(struct world *world)
{
    for (size_t i = 0; i < world->model_count; i++) {
        struct world_model *model = &world->models[i];
        for (size_t p = 0; p < model->population_count; p++)
            world_population_fini(&model->populations[p]);
        free(model->populations);
        free(model->name);
        free(model->key);
    }
    for (size_t i = 0; i < world->source_count; i++)
        free(world->sources[i].path);
    free(world->sources);
    free(world->models);
    free(world->first);
    free(world->last);
    memset(world, 0, sizeof *world);
}

/* A list of structs of `size` bytes, sorted by the text at `offset`; NULL sorts first. The place of
 * a text: that of its entry, or where it would be. */
static size_t sorted_find(const void *list, size_t count, size_t size, size_t offset,
                          const char *text, bool *out_found)
{
    size_t low = 0, high = count;
    *out_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        char *const *own =
            (char *const *)(const void *)((const char *)list + middle * size + offset);
        int order = !*own || !text ? (*own != NULL) - (text != NULL) : strcmp(*own, text);
        *out_found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The entry with this text; NULL: none. */
static const void *sorted_at(const void *list, size_t count, size_t size, size_t offset,
                             const char *text)
{
    bool found;
    size_t place = sorted_find(list, count, size, offset, text, &found);
    return found ? (const char *)list + place * size : NULL;
}

/* Adds a zeroed entry with a copy of this text, if there is none. Returns the list, which may have
 * moved; *out_place: where the entry is. */
static void *sorted_have(void *list, size_t *count, size_t size, size_t offset, const char *text,
                         size_t *out_place)
{
    bool found;
    size_t place = *out_place = sorted_find(list, *count, size, offset, text, &found);
    if (found)
        return list;
    char *grown = mem_resize(list, *count, *count + 1, size), *entry = grown + place * size;
    memmove(entry + size, entry, (*count - place) * size);
    memset(entry, 0, size);
    *(char **)(entry + offset) = str_copy(text);
    (*count)++;
    return grown;
}

struct world_model *world_have_model(struct world *world, const char *name, const char *key)
{
    size_t place;
    world->models = sorted_have(world->models, &world->model_count, sizeof *world->models,
                                offsetof(struct world_model, key), key, &place);
    if (!world->models[place].name)
        world->models[place].name = str_copy(name);
    return &world->models[place];
}

struct world_population *world_have_population(struct world_model *model, const char *part)
{
    size_t place;
    model->populations =
        sorted_have(model->populations, &model->population_count, sizeof *model->populations,
                    offsetof(struct world_population, part), part, &place);
    return &model->populations[place];
}

struct world_figure *world_have_figure(struct world_population *population, const char *metric)
{
    size_t place;
    population->figures =
        sorted_have(population->figures, &population->figure_count, sizeof *population->figures,
                    offsetof(struct world_figure, metric), metric, &place);
    return &population->figures[place];
}

const struct world_model *world_find_model(const struct world *world, const char *key)
{
    return world ? sorted_at(world->models, world->model_count, sizeof *world->models,
                             offsetof(struct world_model, key), key)
                 : NULL;
}

const struct world_population *world_find_population(const struct world_model *model,
                                                     const char *part)
{
    return sorted_at(model->populations, model->population_count, sizeof *model->populations,
                     offsetof(struct world_population, part), part);
}

const struct world_figure *world_find_figure(const struct world_population *population,
                                             const char *metric)
{
    return sorted_at(population->figures, population->figure_count, sizeof *population->figures,
                     offsetof(struct world_figure, metric), metric);
}

void world_add_word(struct world_words *words, const char *word)
{
    size_t place;
    if (word)
        words->items =
            sorted_have(words->items, &words->count, sizeof *words->items, 0, word, &place);
}

void world_add_month(struct world *world, const char *time)
{
    enum { MONTH = 7 }; /* "2026-11" */
    if (!time || strlen(time) < MONTH)
        return;
    if (!world->first || strncmp(time, world->first, MONTH) < 0) {
        free(world->first);
        world->first = str_copy_n(time, MONTH);
    }
    if (!world->last || strncmp(time, world->last, MONTH) > 0) {
        free(world->last);
        world->last = str_copy_n(time, MONTH);
    }
}

/* The share of GPUs with a figure up to x, as far as the sketch tells: linear between quantiles. */
static double share_below(const struct world_figure *figure, double x)
{
    const double *q = figure->quantiles;
    if (x < q[0])
        return 0;
    for (int i = 1; i < WORLD_QUANTILES; i++)
        if (x < q[i])
            return world_shares[i - 1] +
                   (world_shares[i] - world_shares[i - 1]) * (x - q[i - 1]) / (q[i] - q[i - 1]);
    return x > q[WORLD_QUANTILES - 1] ? 1 : world_shares[WORLD_QUANTILES - 1];
}

/* The quantile of the GPUs of both sketches together. */
static double common_quantile(const struct world_figure *a, const struct world_figure *b,
                              double share)
{
    enum { STEPS = 200 }; /* halvings; the interval no longer changes long before */
    double low = fmin(a->quantiles[0], b->quantiles[0]);
    double high = fmax(a->quantiles[WORLD_QUANTILES - 1], b->quantiles[WORLD_QUANTILES - 1]);
    double weight = (double)a->n / ((double)a->n + (double)b->n);
    for (int i = 0; i < STEPS && low < high; i++) {
        double middle = low + (high - low) / 2;
        double below = weight * share_below(a, middle) + (1 - weight) * share_below(b, middle);
        if (below < share)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void world_figure_combine(struct world_figure *into, const struct world_figure *from)
{
    struct world_figure sum = *into;
    double n = (double)into->n + (double)from->n, a = (double)into->n / n, b = (double)from->n / n;
    for (int i = 0; i < WORLD_QUANTILES; i++)
        sum.quantiles[i] = common_quantile(into, from, world_shares[i]);
    sum.median = sum.quantiles[WORLD_QUANTILES / 2];
    double apart_a = into->median - sum.median, apart_b = from->median - sum.median;
    /* Sites that differ widen the scatter. */
    sum.scatter = sqrt(a * (into->scatter * into->scatter + apart_a * apart_a) +
                       b * (from->scatter * from->scatter + apart_b * apart_b));
    sum.spread = a * into->spread + b * from->spread;
    sum.n = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    *into = sum;
}

static void world_add_words(struct world_words *into, const struct world_words *from)
{
    for (size_t i = 0; i < from->count; i++)
        world_add_word(into, from->items[i]);
}

static void world_add_population(struct world_population *into, const struct world_population *from)
{
    into->gpus = from->gpus < UINT32_MAX - into->gpus ? into->gpus + from->gpus : UINT32_MAX;
    for (size_t i = 0; i < from->figure_count; i++) {
        const struct world_figure *figure = &from->figures[i];
        struct world_figure *own = world_have_figure(into, figure->metric);
        if (own->n) {
            world_figure_combine(own, figure);
            continue;
        }
        char *metric = own->metric;
        *own = *figure;
        own->metric = metric;
    }
    world_add_words(&into->programs, &from->programs);
    world_add_words(&into->drivers, &from->drivers);
}

void world_add(struct world *into, const struct world *from)
{
    world_add_month(into, from->first);
    world_add_month(into, from->last);
    for (size_t i = 0; i < from->model_count; i++) {
        const struct world_model *model = &from->models[i];
        struct world_model *own = world_have_model(into, model->name, model->key);
        for (size_t p = 0; p < model->population_count; p++)
            world_add_population(world_have_population(own, model->populations[p].part),
                                 &model->populations[p]);
    }
}

void world_program(const char *version, const char *backend, char out_word[WORLD_PROGRAM_MAX])
{
    bool simulated = backend && strcmp(backend, "cuda") != 0;
    snprintf(out_word, WORLD_PROGRAM_MAX, "%.40s%s%.16s", version ? version : "",
             simulated ? " " : "", simulated ? backend : "");
}

/* The length up to the second dot. */
static size_t release_length(const char *word)
{
    size_t length = strcspn(word, ". ");
    return word[length] == '.' ? length + 1 + strcspn(word + length + 1, ". ") : length;
}

bool world_program_alike(const char *a, const char *b)
{
    size_t length = release_length(a);
    const char *backend_a = strchr(a, ' '), *backend_b = strchr(b, ' ');
    return length == release_length(b) && strncmp(a, b, length) == 0 &&
           strcmp(backend_a ? backend_a : "", backend_b ? backend_b : "") == 0;
}
