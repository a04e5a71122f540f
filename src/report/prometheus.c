/* An inventory as metrics for Prometheus. */
#include "report/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "inventory/yaml/scalar.h"

/* A family: a metric of the inventory under a name that Prometheus allows. */
struct family {
    const char *metric;
    char *name;
    const char *unit; /* in the inventory; NULL: unknown */
    double factor;    /* to the base unit */
    bool reported;    /* by the driver, not measured */
};

struct families {
    struct family *items;
    size_t count, capacity;
};

/* Base units, as the naming rules of Prometheus require. */
static const struct {
    const char *unit, *suffix, *what;
    double factor;
} units[] = {
    {"B", "_bytes", "bytes", 1},     {"GB/s", "_bytes_per_second", "bytes per second", 1e9},
    {"MHz", "_hertz", "hertz", 1e6}, {"cycles", "_cycles", "SM clock cycles", 1},
    {"s", "_seconds", "seconds", 1}, {"ns", "_seconds", "seconds", 1e-9},
};

static size_t unit_row(const char *unit)
{
    size_t i = 0;
    while (i < COUNT_OF(units) && !str_equal(units[i].unit, unit))
        i++;
    return i;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Endings with a special meaning in Prometheus. */
static bool ends_reserved(const char *name)
{
    static const char *const ends[] = {"_count", "_sum", "_bucket", "_total", "_info"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static char *family_name(const char *metric, const char *suffix)
{
    struct strbuf name = {0};
    strbuf_puts(&name, "gpumemtopo_");
    for (const char *at = metric; *at; at++) {
        bool keep = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : keep ? *at : '_';
        strbuf_append(&name, &c, 1);
    }
    strbuf_puts(&name, suffix);
    if (!name.failed && ends_reserved(name.data))
        strbuf_puts(&name, "_value");
    if (name.failed) {
        strbuf_fini(&name);
        return NULL;
    }
    return name.data;
}

/* The measure of the first model that has this metric; NULL: none. */
static const struct measure *told_of(const struct inventory *inventory, const char *metric)
{
    for (size_t i = 0; i < inventory->model_count; i++) {
        const struct measure *m = measures_get(&inventory->models[i].memory, metric);
        if (m && m->unit)
            return m;
    }
    return NULL;
}

/* GPUs that were not completely measured, or were busy, were not judged. Their figures are left
 * out, because a sample cannot say so. */
static bool was_judged(const struct inventory_gpu *gpu)
{
    return gpu->uuid && (gpu->status == GPU_OK || gpu->status == GPU_OUTLIER);
}

/* Its worker crashed or hung twice: it was not measured, but it is accused. */
static bool is_dead(const struct inventory *inventory, const struct inventory_gpu *gpu)
{
    if (!gpu->uuid || was_judged(gpu) || gpu->first_status == GPU_OK)
        return false;
    for (size_t i = 0; i < inventory->outlier_count; i++)
        if (str_equal(inventory->outliers[i].uuid, gpu->uuid))
            return true;
    return false;
}

/* Two metrics with the same name ("a.b", "a_b") would give one family with duplicate samples. */
static void make_distinct(const struct families *families, struct family *family)
{
    for (size_t i = 0; i < families->count && family->name; i++) {
        if (strcmp(families->items[i].name, family->name) != 0)
            continue;
        char *longer = str_format("%s_x", family->name);
        free(family->name);
        family->name = longer;
        i = (size_t)-1;
    }
}

static bool add_family(struct families *families, const struct inventory *inventory,
                       const char *metric)
{
    for (size_t i = 0; i < families->count; i++)
        if (strcmp(families->items[i].metric, metric) == 0)
            return true;
    struct family *grown = mem_grow(families->items, &families->capacity, families->count + 1,
                                    sizeof *families->items);
    if (!grown)
        return false;
    families->items = grown;
    const struct measure *told = told_of(inventory, metric);
    struct family family = {.metric = metric,
                            .unit = told ? told->unit : NULL,
                            .factor = 1,
                            .reported = told && str_equal(told->method, "reported")};
    size_t row = unit_row(family.unit);
    if (row < COUNT_OF(units))
        family.factor = units[row].factor;
    family.name = family_name(metric, row < COUNT_OF(units) ? units[row].suffix : "");
    make_distinct(families, &family);
    if (!family.name)
        return false;
    families->items[families->count++] = family;
    return true;
}

static bool collect(struct families *families, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        for (size_t k = 0; k < gpu->value_count && was_judged(gpu); k++)
            /* A sample cannot say that it is noisy or a bound. */
            if (inventory_value_is_good(&gpu->values[k]) &&
                !add_family(families, inventory, gpu->values[k].metric))
                return false;
    }
    return true;
}

static void put_label(struct strbuf *out, const char *lead, const char *text)
{
    strbuf_puts(out, lead);
    for (text = text ? text : ""; *text; text++) {
        if (*text == '\n')
            strbuf_puts(out, "\\n");
        else if (*text == '"' || *text == '\\')
            strbuf_printf(out, "\\%c", *text);
        else
            strbuf_append(out, text, 1);
    }
    strbuf_puts(out, "\"");
}

static void put_gpu(struct strbuf *out, const char *name, const struct inventory_gpu *gpu)
{
    strbuf_puts(out, name);
    put_label(out, "{uuid=\"", gpu->uuid);
    put_label(out, ",node=\"", gpu->node);
    put_label(out, ",model=\"", gpu->model);
}

static void put_head(struct strbuf *out, const char *name, const char *help)
{
    strbuf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* NaN: no value to export. */
static double value_of(const struct inventory_gpu *gpu, const char *metric, size_t hint)
{
    size_t at = hint;
    if (hint >= gpu->value_count || strcmp(gpu->values[hint].metric, metric) != 0)
        for (at = 0; at < gpu->value_count && strcmp(gpu->values[at].metric, metric) != 0;)
            at++;
    return at < gpu->value_count && inventory_value_is_good(&gpu->values[at])
               ? gpu->values[at].value
               : NAN;
}

static void put_help_metric(struct strbuf *out, const char *metric)
{
    for (const char *at = metric; *at; at++)
        strbuf_append(out, *at == '\n' || *at == '\\' ? "?" : at, 1);
}

static void put_family(struct strbuf *out, const struct inventory *inventory,
                       const struct family *family, size_t hint)
{
    size_t row = unit_row(family->unit);
    strbuf_printf(out, "# HELP %s %s ", family->name,
                  family->reported ? "As the driver reports it:" : "Measured");
    put_help_metric(out, family->metric);
    if (row < COUNT_OF(units))
        strbuf_printf(out, " in %s", units[row].what);
    strbuf_printf(out, ".\n# TYPE %s gauge\n", family->name);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        double value = value_of(gpu, family->metric, hint);
        if (!was_judged(gpu) || !isfinite(value))
            continue;
        put_gpu(out, family->name, gpu);
        strbuf_puts(out, "} ");
        scalar_put_number(out, value * family->factor);
        strbuf_puts(out, "\n");
    }
}

/* NaN if the stamp is invalid. */
static double stamp_seconds(const char *stamp)
{
    int64_t seconds;
    return clock_parse_stamp(stamp, &seconds) ? NAN : (double)seconds;
}

static void put_survey(struct strbuf *out, const struct inventory *v)
{
    const struct {
        const char *name, *help;
        double value;
    } rows[] = {
        {"gpumemtopo_survey_gpus", "GPUs of the survey.", v->total_gpus},
        {"gpumemtopo_survey_nodes", "Nodes of the survey.", v->total_nodes},
        {"gpumemtopo_survey_measured_gpus", "GPUs that were measured.", v->total_measured},
        {"gpumemtopo_survey_unmeasured_gpus", "GPUs that could not be measured.",
         v->total_unmeasured},
        {"gpumemtopo_survey_outlier_gpus", "GPUs that differ from their peers.", v->total_outliers},
        {"gpumemtopo_survey_lost_ranks", "Ranks that were lost.", v->total_lost_ranks},
        {"gpumemtopo_survey_duration_seconds", "Wall time of the survey.", v->wall_s},
        {"gpumemtopo_survey_time_seconds", "When the survey was written, since 1970.",
         stamp_seconds(v->generated)},
        {"gpumemtopo_survey_exit_code", "Exit code of the survey.", v->exit_code},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!isfinite(rows[i].value))
            continue;
        put_head(out, rows[i].name, rows[i].help);
        strbuf_printf(out, "%s ", rows[i].name);
        scalar_put_number(out, rows[i].value);
        strbuf_puts(out, "\n");
    }
}

static void put_states(struct strbuf *out, const struct inventory *inventory)
{
    static const char info[] = "gpumemtopo_gpu_info", outlier[] = "gpumemtopo_gpu_outlier";
    static const struct {
        const char *fact, *lead;
    } boards[] = {{"serial", ",serial=\""}, {"vbios", ",vbios=\""}, {"driver", ",driver=\""}};
    put_head(out, info, "Where a GPU is, what it carries and how its survey ended.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!gpu->uuid)
            continue;
        put_gpu(out, info, gpu);
        put_label(out, ",pci=\"", gpu->pci);
        put_label(out, ",status=\"", gpu_status_name(gpu->status));
        for (size_t b = 0; b < COUNT_OF(boards); b++)
            put_label(out, boards[b].lead, facts_text(&gpu->board, boards[b].fact));
        strbuf_puts(out, "} 1\n");
    }
    put_head(out, outlier, "1 for a GPU that differs from its peers, 0 for one that does not.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        bool dead = is_dead(inventory, gpu);
        if (!was_judged(gpu) && !dead)
            continue;
        put_gpu(out, outlier, gpu);
        strbuf_printf(out, "} %d\n", dead || gpu->status == GPU_OUTLIER);
    }
}

void report_prometheus(const struct inventory *inventory, struct strbuf *out_text)
{
    struct families families = {0};
    put_survey(out_text, inventory);
    if (inventory->gpu_count)
        put_states(out_text, inventory);
    if (!collect(&families, inventory))
        out_text->failed = true;
    for (size_t i = 0; i < families.count; i++)
        put_family(out_text, inventory, &families.items[i], i);
    for (size_t i = 0; i < families.count; i++)
        free(families.items[i].name);
    free(families.items);
}
