/* Reads and prints world files, and adds them to a world, each once. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/yaml.h"
#include "inventory/measure.h"
#include "judge/world.h"
#include "schema/scalar.h"

static const char HEAD[] = "gpumemtopo_world";

/* Room for thousands of models. */
static const struct yaml_limits limits = {
    .bytes_max = 64 * 1024 * 1024, .nodes_max = 10000000, .depth_max = 16};

#define COUNT_MAX 1e9
#define LARGEST 1e30 /* a constant expression for the tables */

bool world_is_file(const char *path)
{
    char line[256];
    struct stat info;
    bool found = false;
    /* What is read from a pipe is gone. */
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        found = strncmp(line, HEAD, sizeof HEAD - 1) == 0 && line[sizeof HEAD - 1] == ':';
        if (line[0] != '#' && line[0] != '\n')
            break;
    }
    if (file)
        fclose(file);
    return found;
}

static bool world_text_is_month(const char *text)
{
    static const char pattern[] = "dddd-dd";
    for (size_t i = 0; i < sizeof pattern; i++)
        if (pattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
            return false;
    return true;
}

static int world_read_head(const struct yaml_node *node, struct world *world, struct err *err)
{
    struct head {
        uint32_t schema;
        const char *version, *first, *last;
    } head = {0};
    static const struct yaml_field fields[] = {
        {"schema", YAML_U32, offsetof(struct head, schema), true, 1, 1e6},
        {"version", YAML_STRING, offsetof(struct head, version), true},
        {"first", YAML_STRING, offsetof(struct head, first), true},
        {"last", YAML_STRING, offsetof(struct head, last), true},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &head, err);
    if (rc)
        return rc;
    if (head.schema > WORLD_SCHEMA)
        return yaml_error(node, err,
                          "the file has schema %u, newer than the %d that this program knows: read "
                          "it with a newer gpumemtopo",
                          head.schema, WORLD_SCHEMA);
    if (head.schema < WORLD_SCHEMA)
        return yaml_error(node, err,
                          "the file has schema %u, older than the %d that this program knows: "
                          "convert it with tools/convert-inventory",
                          head.schema, WORLD_SCHEMA);
    if (!world_text_is_month(head.first) || !world_text_is_month(head.last) ||
        strcmp(head.first, head.last) > 0)
        return yaml_error(node, err, "expected two months as first and last: \"2026-11\"");
    world_add_month(world, head.first);
    world_add_month(world, head.last);
    return 0;
}

static int world_read_quantiles(const struct yaml_node *node, double *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (yaml_count(node) != WORLD_QUANTILES)
        return yaml_error(node, err, "expected %d quantiles, found %zu", WORLD_QUANTILES,
                          yaml_count(node));
    for (size_t i = 0; i < WORLD_QUANTILES; i++) {
        rc = yaml_as_f64(yaml_at(node, i), -LARGEST, LARGEST, &out[i], err);
        if (rc)
            return rc;
        if (i && out[i] < out[i - 1])
            return yaml_error(yaml_at(node, i), err, "expected at least the quantile before it");
    }
    return 0;
}

static int world_read_figure(const struct yaml_node *node, struct world_figure *out,
                             struct err *err)
{
    struct fields {
        uint32_t n;
        double median, scatter, spread;
        const struct yaml_node *quantiles;
    } read = {0};
    static const struct yaml_field fields[] = {
        {"n", YAML_U32, offsetof(struct fields, n), true, 1, COUNT_MAX},
        {"median", YAML_F64, offsetof(struct fields, median), true, -LARGEST, LARGEST},
        {"scatter", YAML_F64, offsetof(struct fields, scatter), true, 0, LARGEST},
        {"spread", YAML_F64, offsetof(struct fields, spread), true, 0, LARGEST},
        {"quantiles", YAML_NODE, offsetof(struct fields, quantiles), true},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    rc = world_read_quantiles(read.quantiles, out->quantiles, err);
    if (rc)
        return rc;
    if (read.median < out->quantiles[0] || read.median > out->quantiles[WORLD_QUANTILES - 1])
        return yaml_error(node, err, "the median lies outside of the quantiles");
    out->n = read.n;
    out->median = read.median;
    out->scatter = read.scatter;
    out->spread = read.spread;
    return 0;
}

static int world_read_words(const struct yaml_node *node, struct world_words *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        const char *word = NULL;
        rc = yaml_as_text(yaml_at(node, i), &word, err);
        if (!rc)
            world_add_word(out, word);
    }
    return rc;
}

static int world_read_figures(const struct yaml_node *node, struct world_population *population,
                              struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        struct world_figure *figure = world_have_figure(population, yaml_key(node, i));
        rc = world_read_figure(yaml_at(node, i), figure, err);
        if (!rc && figure->n > population->gpus)
            rc = yaml_error(yaml_at(node, i), err, "n is %u, but there are %u GPUs", figure->n,
                            population->gpus);
    }
    return rc;
}

static int world_read_population(const struct yaml_node *node, struct world_model *model,
                                 struct err *err)
{
    struct fields {
        uint32_t gpus;
        const struct yaml_node *part, *programs, *drivers, *figures;
    } read = {0};
    static const struct yaml_field fields[] = {
        {"part", YAML_NODE, offsetof(struct fields, part), true},
        {"gpus", YAML_U32, offsetof(struct fields, gpus), true, 1, COUNT_MAX},
        {"programs", YAML_NODE, offsetof(struct fields, programs), true},
        {"drivers", YAML_NODE, offsetof(struct fields, drivers), true},
        {"figures", YAML_NODE, offsetof(struct fields, figures), true},
    };
    const char *part = NULL;
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    rc = yaml_is_null(read.part) ? 0 : yaml_as_text(read.part, &part, err);
    if (rc)
        return rc;
    struct world_population *population = world_have_population(model, part);
    if (population->gpus)
        return yaml_error(node, err, "a second population with this part");
    population->gpus = read.gpus;
    rc = world_read_words(read.programs, &population->programs, err);
    if (rc)
        return rc;
    rc = world_read_words(read.drivers, &population->drivers, err);
    return rc ? rc : world_read_figures(read.figures, population, err);
}

static int world_read_model(const struct yaml_node *node, struct world *world, struct err *err)
{
    struct fields {
        const char *name, *key;
        const struct yaml_node *populations;
    } read = {0};
    static const struct yaml_field fields[] = {
        {"name", YAML_STRING, offsetof(struct fields, name), true},
        {"key", YAML_STRING, offsetof(struct fields, key), true},
        {"populations", YAML_NODE, offsetof(struct fields, populations), true},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    if (world_find_model(world, read.key))
        return yaml_error(node, err, "a second model with this key");
    rc = yaml_expect(read.populations, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    struct world_model *model = world_have_model(world, read.name, read.key);
    for (size_t i = 0; i < yaml_count(read.populations) && !rc; i++)
        rc = world_read_population(yaml_at(read.populations, i), model, err);
    return rc;
}

static int world_read_root(const struct yaml_node *root, struct world *world, struct err *err)
{
    struct fields {
        const struct yaml_node *head, *models;
    } read = {0};
    if (yaml_get(root, "gpumemtopo"))
        return yaml_error(root, err,
                          "is an inventory: gpumemtopo-report share makes a world file of it");
    static const struct yaml_field fields[] = {
        {HEAD, YAML_NODE, offsetof(struct fields, head), true},
        {"models", YAML_NODE, offsetof(struct fields, models), true},
    };
    int rc = yaml_read_fields(root, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    rc = world_read_head(read.head, world, err);
    if (rc)
        return rc;
    rc = yaml_expect(read.models, YAML_SEQUENCE, err);
    for (size_t i = 0; i < yaml_count(read.models) && !rc; i++)
        rc = world_read_model(yaml_at(read.models, i), world, err);
    return rc;
}

/* Destroys the document. */
static int world_read_document(struct yaml_doc *doc, struct world *out_world, struct err *err)
{
    struct world world = {0};
    int rc = world_read_root(yaml_root(doc), &world, err);
    yaml_destroy(doc);
    if (rc)
        world_fini(&world);
    else
        *out_world = world;
    return rc;
}

int world_read_file(const char *path, struct world *out_world, struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_file(path, &limits, &doc, err);
    return rc ? rc : world_read_document(doc, out_world, err);
}

int world_read_text(const char *text, size_t length, const char *name, struct world *out_world,
                    struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text, length, name, &limits, &doc, err);
    return rc ? rc : world_read_document(doc, out_world, err);
}

/* Files are compared as they would be printed: comments and line breaks do not matter. */
int world_add_file(struct world *into, const char *path, struct err *err)
{
    struct world read = {0};
    struct strbuf text = {0};
    int rc = world_read_file(path, &read, err);
    if (rc)
        return rc;
    world_print(&read, "", &text);
    uint64_t hash = str_hash(text.data);
    strbuf_fini(&text);
    for (size_t i = 0; i < into->source_count && !rc; i++)
        if (into->sources[i].hash == hash)
            rc = err_set(err, -EINVAL, "%s: has the same figures as %s: its GPUs would count twice",
                         path, into->sources[i].path);
    if (!rc) {
        into->sources = mem_grow(into->sources, &into->source_room, into->source_count + 1,
                                 sizeof *into->sources);
        into->sources[into->source_count++] =
            (struct world_source){.path = str_copy(path), .hash = hash};
        world_add(into, &read);
    }
    world_fini(&read);
    return rc;
}

static void world_put_words(struct strbuf *out, const char *lead, const struct world_words *words)
{
    strbuf_puts(out, lead);
    for (size_t i = 0; i < words->count; i++) {
        strbuf_puts(out, i ? ", " : "");
        scalar_put_text(out, words->items[i]);
    }
    strbuf_puts(out, "]\n");
}

static void world_put_number(struct strbuf *out, const char *lead, double value, int digits)
{
    strbuf_puts(out, lead);
    scalar_put_number(out, measure_digits(value, digits));
}

static void world_put_figure(struct strbuf *out, const struct world_figure *figure)
{
    enum { DIGITS = 6, SPREAD_DIGITS = 3 };
    strbuf_puts(out, "          ");
    scalar_put_text(out, figure->metric);
    strbuf_printf(out, ": {n: %u", figure->n);
    world_put_number(out, ", median: ", figure->median, DIGITS);
    world_put_number(out, ", scatter: ", figure->scatter, SPREAD_DIGITS);
    world_put_number(out, ", spread: ", figure->spread, SPREAD_DIGITS);
    strbuf_puts(out, ", quantiles: [");
    for (int i = 0; i < WORLD_QUANTILES; i++)
        world_put_number(out, i ? ", " : "", figure->quantiles[i], DIGITS);
    strbuf_puts(out, "]}\n");
}

static void world_put_population(struct strbuf *out, const struct world_population *population)
{
    strbuf_puts(out, "      - part: ");
    scalar_put_text(out, population->part);
    strbuf_printf(out, "\n        gpus: %u\n", population->gpus);
    world_put_words(out, "        programs: [", &population->programs);
    world_put_words(out, "        drivers: [", &population->drivers);
    strbuf_puts(out, population->figure_count ? "        figures:\n" : "        figures: {}\n");
    for (size_t i = 0; i < population->figure_count; i++)
        world_put_figure(out, &population->figures[i]);
}

void world_print(const struct world *world, const char *version, struct strbuf *out_text)
{
    strbuf_printf(out_text, "%s: {schema: %d, version: ", HEAD, WORLD_SCHEMA);
    scalar_put_text(out_text, version);
    strbuf_puts(out_text, ", first: ");
    scalar_put_text(out_text, world->first);
    strbuf_puts(out_text, ", last: ");
    scalar_put_text(out_text, world->last);
    strbuf_puts(out_text, world->model_count ? "}\nmodels:\n" : "}\nmodels: []\n");
    for (size_t i = 0; i < world->model_count; i++) {
        const struct world_model *model = &world->models[i];
        strbuf_puts(out_text, "  - name: ");
        scalar_put_text(out_text, model->name);
        strbuf_puts(out_text, "\n    key: ");
        scalar_put_text(out_text, model->key);
        strbuf_puts(out_text, "\n    populations:");
        strbuf_puts(out_text, model->population_count ? "\n" : " []\n");
        for (size_t p = 0; p < model->population_count; p++)
            world_put_population(out_text, &model->populations[p]);
    }
}
