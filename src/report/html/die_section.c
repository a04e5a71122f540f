/* The maps of the die as small pictures: how far each SM is from each group of slices of L2, and
 * from each region of the memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inventory/fingerprint.h"
#include "report/html/sections.h"

enum { LEVELS = 8, SMS_MAX = 1024, GROUPS_MAX = 128, CELL_PX = 5 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The map as a text of letters: rows of SMs, a space between two. */
struct die_map {
    const char *rows;
    size_t sms, groups;
    int highest; /* number of the highest letter */
};

static int number_of(char letter)
{
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? (int)(found - letters) : -1;
}

/* False if the text is not a map. */
static bool read_map(const char *text, struct die_map *out_map)
{
    struct die_map map = {.rows = text, .groups = strcspn(text, " ")};
    size_t length = strlen(text);
    if (!map.groups || map.groups > GROUPS_MAX || (length + 1) % (map.groups + 1))
        return false;
    map.sms = (length + 1) / (map.groups + 1);
    for (size_t i = 0; i < length; i++) {
        bool gap = i % (map.groups + 1) == map.groups;
        int number = number_of(text[i]);
        if (gap ? text[i] != ' ' : number < 0)
            return false;
        map.highest = number > map.highest ? number : map.highest;
    }
    *out_map = map;
    return map.sms <= SMS_MAX && map.highest > 0;
}

static int level_of(const struct die_map *map, size_t sm, size_t group)
{
    return number_of(map->rows[sm * (map->groups + 1) + group]) * (LEVELS - 1) / map->highest;
}

/* All cells of one level, as one path: a stroke for each run of neighbours. */
static void put_level(struct strbuf *out, const struct die_map *map, int level)
{
    strbuf_printf(out, "<path stroke-opacity=\"%.2f\" d=\"", (level + 1.0) / LEVELS);
    for (size_t g = 0; g < map->groups; g++)
        for (size_t sm = 0; sm < map->sms;) {
            size_t end = sm;
            while (end < map->sms && level_of(map, end, g) == level)
                end++;
            if (end > sm)
                strbuf_printf(out, "M%zu %zu.5h%zu", sm, g, end - sm);
            sm = end > sm ? end : sm + 1;
        }
    strbuf_puts(out, "\"/>");
}

/* what: the rows of the picture. */
static void put_picture(struct strbuf *out, const struct die_map *map, const char *what)
{
    strbuf_printf(out,
                  "<svg class=die role=img aria-label=\"latency of each SM to each %s\" "
                  "width=\"%zu\" height=\"%zu\" viewBox=\"0 0 %zu %zu\" "
                  "preserveAspectRatio=none stroke=\"#06c\">",
                  what, map->sms * CELL_PX, map->groups * CELL_PX, map->sms, map->groups);
    for (int level = 0; level < LEVELS; level++)
        put_level(out, map, level);
    strbuf_puts(out, "</svg></details>\n");
}

static void put_slices(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "die.slice_groups");
    const char *text = m ? facts_text(&m->notes, FINGERPRINT_MAP) : NULL;
    double low = m ? fact_number(facts_get(&m->notes, "from_cycles")) : NAN;
    double step = m ? fact_number(facts_get(&m->notes, "step_cycles")) : NAN;
    struct die_map map;
    if (!text || !isfinite(low) || !isfinite(step) || !read_map(text, &map))
        return;
    strbuf_printf(out,
                  "<details><summary>Map of the die</summary><p>Latency of %zu SMs (columns) to "
                  "%zu groups of L2 slices (rows), %.0f (light) to %.0f cycles (dark)</p>\n",
                  map.sms, map.groups, low, low + step * map.highest);
    put_picture(out, &map, "group of slices");
}

/* The text begins with the lowest latency, the step between two letters, and the distance of two
 * regions. */
static void put_regions(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "die.memory_latency");
    const char *text = m ? facts_text(&m->notes, FINGERPRINT_REGIONS) : NULL;
    double numbers[3];
    struct die_map map;
    for (size_t i = 0; text && i < 3; i++) {
        char *end;
        numbers[i] = strtod(text, &end);
        text = end == text || *end != ' ' || !isfinite(numbers[i]) ? NULL : end;
    }
    if (!text || !read_map(text + 1, &map))
        return;
    strbuf_printf(
        out,
        "<details><summary>Map of SMs and memory</summary><p>Latency of %zu SMs (columns) "
        "to %zu regions of the memory (rows, %.1f GiB apart), %.0f (light) to %.0f cycles "
        "(dark)%s</p>\n",
        map.sms, map.groups, numbers[2] / (1 << 30), numbers[0],
        numbers[0] + numbers[1] * map.highest,
        model->count > 1 ? "; of the GPU with the median latency" : "");
    put_picture(out, &map, "region of the memory");
}

void html_die_map(struct strbuf *out, const struct inventory_model *model)
{
    put_slices(out, model);
    put_regions(out, model);
}
