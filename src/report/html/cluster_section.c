/* Clusters of a model: which SMs form them, and bulk copies by their size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

enum { SIZES_MAX = 32 };

/* The columns of the table of bulk copies: metrics with a note "256:359 512:364 ...". */
static const struct column {
    const char *metric, *title;
} columns[] = {
    {"bulk_copy.latency.l2", "from L2, cycles"},
    {"bulk_copy.latency.memory", "from memory, cycles"},
    {"bulk_copy.latency.cluster", "to another SM, cycles"},
    {"bulk_copy.bandwidth.l2", "from L2, all SMs, GB/s"},
    {"bulk_copy.bandwidth.memory", "from memory, all SMs, GB/s"},
};

struct curve {
    size_t count;
    double bytes[SIZES_MAX], values[SIZES_MAX];
};

static const struct measure *find(const struct inventory_model *model, const char *metric)
{
    const struct measure *m = measures_get(&model->memory, metric);
    return m && measure_status_valued(m->status) ? m : NULL;
}

/* Empty if there is none, or if the text is not one. */
static struct curve read_curve(const struct measure *m)
{
    struct curve curve = {0};
    const char *text = m ? facts_text(&m->notes, "by_bytes") : NULL;
    while (text && *text && curve.count < SIZES_MAX) {
        char *colon, *end;
        double bytes = strtod(text, &colon);
        double value = *colon == ':' ? strtod(colon + 1, &end) : NAN;
        if (!isfinite(bytes) || !isfinite(value))
            return (struct curve){0};
        curve.bytes[curve.count] = bytes;
        curve.values[curve.count++] = value;
        text = end + strspn(end, " ");
    }
    return curve;
}

static double value_at(const struct curve *curve, double bytes)
{
    for (size_t i = 0; i < curve->count; i++)
        if (curve->bytes[i] == bytes)
            return curve->values[i];
    return NAN;
}

static void put_copies(struct strbuf *out, const struct inventory_model *model)
{
    struct curve curves[COUNT_OF(columns)];
    const struct curve *longest = &curves[0];
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        curves[i] = read_curve(find(model, columns[i].metric));
        longest = curves[i].count > longest->count ? &curves[i] : longest;
    }
    if (!longest->count)
        return;
    strbuf_puts(out, "<h4>Bulk copies into shared memory, by size</h4><div class=wide><table>"
                     "<thead><tr><th class=n>bytes");
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        strbuf_printf(out, "<th class=n>%s", columns[i].title);
    strbuf_puts(out, "</thead><tbody>\n");
    for (size_t k = 0; k < longest->count; k++) {
        strbuf_printf(out, "<tr><td class=n>%.0f", longest->bytes[k]);
        for (size_t i = 0; i < COUNT_OF(columns); i++) {
            strbuf_puts(out, "<td class=n>");
            html_figure(out, value_at(&curves[i], longest->bytes[k]));
        }
        strbuf_puts(out, "\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n");
}

static void put_groups(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *size = find(model, "cluster.size_max");
    const struct measure *count = find(model, "cluster.count");
    const struct measure *groups = find(model, "cluster.groups");
    const char *sizes = groups ? facts_text(&groups->notes, "sizes") : NULL;
    if (!size || !count)
        return;
    strbuf_printf(out, "<p>Clusters of up to %.0f blocks; %.0f of them at once.", size->value,
                  count->value);
    if (sizes) {
        strbuf_puts(out, " SMs that can form one, in groups of: ");
        html_text(out, sizes, HTML_SENTENCE);
        strbuf_puts(out, ".");
    }
    strbuf_puts(out, "</p>\n");
}

void html_clusters(struct strbuf *out, const struct inventory_model *model)
{
    if (!find(model, "cluster.size_max") && !find(model, "bulk_copy.latency.l2"))
        return;
    strbuf_puts(out, "<details><summary>Clusters and bulk copies</summary>\n");
    put_groups(out, model);
    put_copies(out, model);
    strbuf_puts(out, "</details>\n");
}
