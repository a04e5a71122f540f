/* An inventory as metrics for Prometheus. */
#include "report/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/exposition.h"
#include "report/prometheus_parts.h"

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
        for (size_t k = 0; k < gpu->value_count && prometheus_was_judged(gpu); k++)
            /* A sample cannot say that it is noisy or a bound. */
            if (inventory_value_is_good(&gpu->values[k]) &&
                !add_family(families, inventory, gpu->values[k].metric))
                return false;
    }
    return true;
}

/* The unit at the end of the family's name; NULL: none, or another word follows it. */
static const char *unit_of(const struct family *family)
{
    size_t row = unit_row(family->unit);
    return row < COUNT_OF(units) && ends_with(family->name, units[row].suffix)
               ? units[row].suffix + 1
               : NULL;
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

static void put_family(const struct exposition *to, const struct inventory *inventory,
                       const struct family *family, size_t hint)
{
    size_t row = unit_row(family->unit);
    bool known = row < COUNT_OF(units);
    char *help =
        str_format("%s %s%s%s.", family->reported ? "As the driver reports it:" : "Measured",
                   family->metric, known ? " in " : "", known ? units[row].what : "");
    to->out->failed |= !help;
    exposition_gauge(to, family->name, unit_of(family), help ? help : "");
    free(help);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        double value = value_of(gpu, family->metric, hint);
        if (!prometheus_was_judged(gpu) || !isfinite(value))
            continue;
        prometheus_put_gpu(to, family->name, gpu);
        exposition_value(to, "} ", value * family->factor);
    }
}

/* NaN if the stamp is invalid. */
static double stamp_seconds(const char *stamp)
{
    int64_t seconds;
    return clock_parse_stamp(stamp, &seconds) ? NAN : (double)seconds;
}

static void put_survey(const struct exposition *to, const struct inventory *v)
{
    const struct {
        const char *name, *unit, *help;
        double value;
    } rows[] = {
        {"gpumemtopo_survey_gpus", NULL, "GPUs of the survey.", v->total_gpus},
        {"gpumemtopo_survey_nodes", NULL, "Nodes of the survey.", v->total_nodes},
        {"gpumemtopo_survey_measured_gpus", NULL, "GPUs that were measured.", v->total_measured},
        {"gpumemtopo_survey_unmeasured_gpus", NULL, "GPUs that could not be measured.",
         v->total_unmeasured},
        {"gpumemtopo_survey_outlier_gpus", NULL, "GPUs that differ from their peers.",
         v->total_outliers},
        {"gpumemtopo_survey_watched_gpus", NULL, "GPUs with a deviation too small to accuse them.",
         (double)v->watch_count},
        {"gpumemtopo_survey_lost_ranks", NULL, "Ranks that were lost.", v->total_lost_ranks},
        {"gpumemtopo_survey_duration_seconds", "seconds", "Wall time of the survey.", v->wall_s},
        {"gpumemtopo_survey_time_seconds", "seconds", "When the survey was written, since 1970.",
         stamp_seconds(v->generated)},
        {"gpumemtopo_survey_exit_code", NULL, "Exit code of the survey.", v->exit_code},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!isfinite(rows[i].value))
            continue;
        exposition_gauge(to, rows[i].name, rows[i].unit, rows[i].help);
        strbuf_puts(to->out, rows[i].name);
        exposition_value(to, " ", rows[i].value);
    }
}

void report_prometheus(const struct inventory *inventory, bool openmetrics, struct strbuf *out_text)
{
    const struct exposition to = {out_text, openmetrics};
    struct families families = {0};
    put_survey(&to, inventory);
    prometheus_put_states(&to, inventory);
    prometheus_put_health(&to, inventory);
    prometheus_put_nodes(&to, inventory);
    if (!collect(&families, inventory))
        out_text->failed = true;
    for (size_t i = 0; i < families.count; i++)
        put_family(&to, inventory, &families.items[i], i);
    for (size_t i = 0; i < families.count; i++)
        free(families.items[i].name);
    free(families.items);
    exposition_end(&to);
}
