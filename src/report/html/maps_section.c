/* Maps of a model: its SMs and the regions of its memory, each with its figure, and its die. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/fingerprint.h"
#include "markup/html.h"
#include "report/html/sections.h"

/* What a map shows. Its numbers are a note of a measure. */
struct place_map {
    const char *metric; /* or the part before the dot */
    const char *note;
    const char *place; /* what each number belongs to */
    const char *unit;
};
static const struct place_map sm_maps[] = {{"sm", "map", "SM", "cycles"},
                                           {"l2", "map", "SM", "cycles"}};
static const struct place_map bandwidth_maps[] = {
    {"die.bandwidth.alone", "map", "SM", "GB/s, each SM alone"},
    {"die.bandwidth.together", "map", "SM", "GB/s, all SMs together"},
    {"die.bandwidth.group", "map", "group", "GB/s, the SMs of a group together"},
};
static const struct place_map cluster_maps[] = {
    {"cluster.latency", "map", "SM", "cycles to an SM of the usual distance"}};
static const struct place_map memory_maps[] = {
    {"main.whole.latency", "map", "region", "cycles"},
    {"main.whole.slow_regions", "read_map", "region", "GB/s read"},
    {"main.whole.slow_regions", "write_map", "region", "GB/s written"},
};

/* Shades of one colour, since nothing is wrong with an SM that is farther away than another one. */
enum { SHADES = 5 };

/* Figures that differ by less stand for the same. */
static const double ALIKE = 0.01;

static int place_map_shade(double low, double high, double value)
{
    if (high <= low * (1 + ALIKE))
        return 0;
    return (int)fmin(SHADES * (value - low) / (high - low), SHADES - 1);
}

static void place_map_put_key(struct strbuf *out, const struct place_map *map, double low,
                              double high)
{
    if (high <= low * (1 + ALIKE)) {
        strbuf_puts(out, "<p class=key>alike within 1&nbsp;%</p>\n");
        return;
    }
    strbuf_printf(out, "<p class=key>%.1f", low);
    for (int shade = 0; shade < SHADES; shade++)
        strbuf_printf(out, "<i class=d%d></i>", shade);
    strbuf_printf(out, "%.1f %s</p>\n", high, map->unit);
}

static void place_map_put(struct strbuf *out, const struct place_map *map, const char *metric,
                          const double *values, size_t count)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low = isnan(values[i]) ? 0 : fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (!count || low <= 0)
        return;
    strbuf_puts(out, "<h4>");
    html_text(out, metric, HTML_NAME);
    strbuf_printf(out, ": %.1f to %.1f %s</h4>", low, high, map->unit);
    place_map_put_key(out, map, low, high);
    strbuf_puts(out, "<div class=map>");
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "<i class=d%d title=\"%s %zu: %.1f\"></i>",
                      place_map_shade(low, high, values[i]), map->place, i, values[i]);
    strbuf_puts(out, "</div>\n");
}

static bool place_map_is_of(const struct place_map *map, const struct measure *m)
{
    size_t length = strlen(map->metric);
    return strncmp(m->metric, map->metric, length) == 0 &&
           (!m->metric[length] || m->metric[length] == '.');
}

/* The maps of the list that the model has, folded under one title. */
static void place_maps_put(struct strbuf *out, const struct inventory_model *model,
                           const char *title, const struct place_map *maps, size_t count)
{
    bool begun = false;
    for (size_t i = 0; i < count * model->memory.count; i++) {
        const struct place_map *map = &maps[i / model->memory.count];
        const struct measure *m = &model->memory.items[i % model->memory.count];
        size_t places = 0;
        const double *values =
            place_map_is_of(map, m) ? facts_numbers(&m->notes, map->note, &places) : NULL;
        bool groups =
            values && strncmp(map->unit, "cycles", 6) == 0 && !str_equal(m->unit, "cycles");
        if (!values || groups) /* groups of SMs have a map too, of another kind */
            continue;
        if (!begun)
            strbuf_printf(out, "<details><summary>Map of the %s</summary>\n", title);
        begun = true;
        place_map_put(out, map, m->metric, values, places);
    }
    if (begun)
        strbuf_puts(out, "</details>\n");
}

/* The maps of the die as small pictures: how far each SM is from each group of slices of L2, and
 * from each region of the memory. */
enum { LEVELS = 8, SMS_MAX = 1024, GROUPS_MAX = 128, CELL_PX = 5 };

/* Rows of SMs: their latencies to each group. */
struct die_map {
    const double *cycles;
    size_t sms, groups;
    double low, high;
};

/* False if it is not a map. */
static bool die_map_read(const struct measure *m, const char *key, struct die_map *out_map)
{
    struct die_map map = {.low = INFINITY, .high = -INFINITY};
    map.cycles = m ? facts_rows(&m->notes, key, &map.sms, &map.groups) : NULL;
    if (!map.cycles || map.sms > SMS_MAX || map.groups > GROUPS_MAX)
        return false;
    for (size_t i = 0; i < map.sms * map.groups; i++) {
        if (!(map.cycles[i] > 0))
            return false;
        map.low = fmin(map.low, map.cycles[i]);
        map.high = fmax(map.high, map.cycles[i]);
    }
    *out_map = map;
    return map.high > map.low && isfinite(map.high);
}

static int die_map_level(const struct die_map *map, size_t sm, size_t group)
{
    double cycles = map->cycles[sm * map->groups + group];
    return (int)((cycles - map->low) * (LEVELS - 1) / (map->high - map->low));
}

/* All cells of one level, as one path: a stroke for each run of neighbours. */
static void die_map_put_level(struct strbuf *out, const struct die_map *map, int level)
{
    strbuf_printf(out, "<path stroke-opacity=\"%.2f\" d=\"", (level + 1.0) / LEVELS);
    for (size_t g = 0; g < map->groups; g++)
        for (size_t sm = 0; sm < map->sms;) {
            size_t end = sm;
            while (end < map->sms && die_map_level(map, end, g) == level)
                end++;
            if (end > sm)
                strbuf_printf(out, "M%zu %zu.5h%zu", sm, g, end - sm);
            sm = end > sm ? end : sm + 1;
        }
    strbuf_puts(out, "\"/>");
}

/* what: the rows of the picture. */
static void die_map_put(struct strbuf *out, const struct die_map *map, const char *what)
{
    strbuf_printf(out,
                  "<svg class=die role=img aria-label=\"latency of each SM to each %s\" "
                  "width=\"%zu\" height=\"%zu\" viewBox=\"0 0 %zu %zu\" "
                  "preserveAspectRatio=none stroke=\"#06c\">",
                  what, map->sms * CELL_PX, map->groups * CELL_PX, map->sms, map->groups);
    for (int level = 0; level < LEVELS; level++)
        die_map_put_level(out, map, level);
    strbuf_puts(out, "</svg></details>\n");
}

static void die_put_slices(struct strbuf *out, const struct inventory_model *model)
{
    struct die_map map;
    if (!die_map_read(measures_get(&model->memory, "die.fingerprint"), FINGERPRINT_MAP, &map))
        return;
    strbuf_printf(out,
                  "<details><summary>Map of the die</summary><p>Latency of %zu SMs (columns) to "
                  "%zu groups of L2 slices (rows), %.0f (faint) to %.0f cycles (strong)</p>\n",
                  map.sms, map.groups, map.low, map.high);
    die_map_put(out, &map, "group of slices");
}

static void die_put_regions(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "die.memory_latency");
    struct die_map map;
    if (!die_map_read(m, FINGERPRINT_REGIONS, &map))
        return;
    strbuf_printf(
        out,
        "<details><summary>Map of SMs and memory</summary><p>Latency of %zu SMs (columns) "
        "to %zu regions of the memory (rows, %.1f GiB apart), %.0f (faint) to %.0f cycles "
        "(strong)%s</p>\n",
        map.sms, map.groups, fact_number(facts_get(&m->notes, "region_bytes")) / (1 << 30), map.low,
        map.high, model->count > 1 ? "; of the GPU with the median latency" : "");
    die_map_put(out, &map, "region of the memory");
}

void html_maps(struct strbuf *out, const struct inventory_model *model)
{
    place_maps_put(out, model, "SMs", sm_maps, COUNT_OF(sm_maps));
    place_maps_put(out, model, "bandwidth from L2, by SM", bandwidth_maps,
                   COUNT_OF(bandwidth_maps));
    place_maps_put(out, model, "clusters, by SM", cluster_maps, COUNT_OF(cluster_maps));
    die_put_slices(out, model);
    die_put_regions(out, model);
    place_maps_put(out, model,
                   model->count > 1 ? "memory, by region, of the median GPU" : "memory, by region",
                   memory_maps, COUNT_OF(memory_maps));
}
