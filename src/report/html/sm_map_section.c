/* The SMs of a model, each with its latency. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/html/markup.h"
#include "report/html/sections.h"

enum { SMS_MAX = 1024 };

/* Reads the numbers of a map; 0 if the text is not one. */
static size_t read_map(const char *text, double cycles[SMS_MAX])
{
    size_t count = 0;
    while (count < SMS_MAX) {
        char *end;
        double value = strtod(text, &end);
        if (end == text)
            break;
        if (!isfinite(value))
            return 0;
        cycles[count++] = value;
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

static void put_map(struct strbuf *out, const struct measure *m, const char *text)
{
    double cycles[SMS_MAX];
    size_t count = read_map(text, cycles);
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, cycles[i]);
        high = fmax(high, cycles[i]);
    }
    if (!count || low <= 0)
        return;
    strbuf_puts(out, "<h4>");
    html_text(out, m->metric, HTML_NAME);
    strbuf_printf(out, ": %.1f to %.1f ", low, high);
    html_text(out, m->unit, HTML_NAME);
    strbuf_puts(out, "</h4><div class=map>");
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "<i%s title=\"SM %zu: %.1f\"></i>", class_of(cycles[i] / low - 1), i,
                      cycles[i]);
    strbuf_puts(out, "</div>\n");
}

void html_sm_maps(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct measure *m = &model->memory.items[i];
        const char *text = facts_text(&m->notes, "map");
        if (!text || !m->unit || strcmp(m->unit, "cycles") != 0) /* groups of SMs have a map too */
            continue;
        if (!begun)
            strbuf_puts(out, "<details><summary>Map of the SMs</summary><p class=key>Latency above "
                             "that of the fastest SM:<i></i>up to 1&nbsp;%<i class=w></i>3&nbsp;%"
                             "<i class=a></i>10&nbsp;%<i class=b></i>30&nbsp;%<i class=c></i>more"
                             "</p>\n");
        begun = true;
        put_map(out, m, text);
    }
    if (begun)
        strbuf_puts(out, "</details>\n");
}
