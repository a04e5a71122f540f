/* The SMs of a model and the regions of its memory, each with its figure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

enum { PLACES_MAX = 1024 };

/* What a map shows. Its numbers are a note of a measure. */
struct map {
    const char *metric; /* or the part before the dot */
    const char *note;
    const char *place; /* what each number belongs to */
    const char *unit;
    bool rates; /* higher is better */
};
static const struct map sm_maps[] = {{"sm", "map", "SM", "cycles", false},
                                     {"l2", "map", "SM", "cycles", false}};
static const struct map bandwidth_maps[] = {
    {"die.bandwidth.alone", "map", "SM", "GB/s, each SM alone", true},
    {"die.bandwidth.together", "map", "SM", "GB/s, all SMs together", true},
    {"die.bandwidth.group", "map", "group", "GB/s, the SMs of a group together", true},
};
static const struct map cluster_maps[] = {
    {"cluster.latency", "map", "SM", "cycles to an SM of the usual distance", false}};
static const struct map memory_maps[] = {
    {"main.whole.latency", "map", "region", "cycles", false},
    {"main.whole.slow_regions", "read_map", "region", "GB/s read", true},
    {"main.whole.slow_regions", "write_map", "region", "GB/s written", true},
};

/* Reads the numbers of a map; 0 if the text is not one. */
static size_t read_map(const char *text, double values[PLACES_MAX])
{
    size_t count = 0;
    while (count < PLACES_MAX) {
        char *end;
        double value = strtod(text, &end);
        if (end == text)
            break;
        if (!isfinite(value))
            return 0;
        values[count++] = value;
        text = end;
    }
    return *text ? 0 : count;
}

static const char *class_of(double share)
{
    static const double steps[] = {0.01, 0.03, 0.1, 0.3};
    static const char *const classes[] = {"", " class=w", " class=a", " class=b", " class=c"};
    size_t i = 0;
    while (i < 4 && share > steps[i])
        i++;
    return classes[i];
}

static void put_map(struct strbuf *out, const struct map *map, const char *metric, const char *text)
{
    double values[PLACES_MAX];
    size_t count = read_map(text, values);
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (!count || low <= 0)
        return;
    strbuf_puts(out, "<h4>");
    html_text(out, metric, HTML_NAME);
    strbuf_printf(out, ": %.1f to %.1f %s</h4><div class=map>", low, high, map->unit);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "<i%s title=\"%s %zu: %.1f\"></i>",
                      class_of(map->rates ? high / values[i] - 1 : values[i] / low - 1), map->place,
                      i, values[i]);
    strbuf_puts(out, "</div>\n");
}

static bool is_of(const struct map *map, const struct measure *m)
{
    size_t length = strlen(map->metric);
    return strncmp(m->metric, map->metric, length) == 0 &&
           (!m->metric[length] || m->metric[length] == '.');
}

/* The maps of the list that the model has, folded under one title. */
static void put_maps(struct strbuf *out, const struct inventory_model *model, const char *title,
                     const struct map *maps, size_t count)
{
    bool begun = false;
    for (size_t i = 0; i < count * model->memory.count; i++) {
        const struct map *map = &maps[i / model->memory.count];
        const struct measure *m = &model->memory.items[i % model->memory.count];
        const char *text = is_of(map, m) ? facts_text(&m->notes, map->note) : NULL;
        bool groups = text && !map->rates && (!m->unit || strcmp(m->unit, "cycles") != 0);
        if (!text || groups) /* groups of SMs have a map too, of another kind */
            continue;
        if (!begun)
            strbuf_printf(out,
                          "<details><summary>Map of the %s</summary><p class=key>Slower than the "
                          "fastest one by:<i></i>up to 1&nbsp;%%<i class=w></i>3&nbsp;%%"
                          "<i class=a></i>10&nbsp;%%<i class=b></i>30&nbsp;%%<i class=c></i>more"
                          "</p>\n",
                          title);
        begun = true;
        put_map(out, map, m->metric, text);
    }
    if (begun)
        strbuf_puts(out, "</details>\n");
}

void html_maps(struct strbuf *out, const struct inventory_model *model)
{
    put_maps(out, model, "SMs", sm_maps, COUNT_OF(sm_maps));
    put_maps(out, model, "bandwidth from L2, by SM", bandwidth_maps, COUNT_OF(bandwidth_maps));
    put_maps(out, model, "clusters, by SM", cluster_maps, COUNT_OF(cluster_maps));
    html_die_map(out, model);
    put_maps(out, model,
             model->count > 1 ? "memory, by region, of the median GPU" : "memory, by region",
             memory_maps, COUNT_OF(memory_maps));
}
