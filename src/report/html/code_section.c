/* The caches of instructions of a model: a row for each level. */
#include <stdio.h>

#include "markup/html_text.h"
#include "report/html/sections.h"

enum { LEVELS_MAX = 8, NAME_MAX_BYTES = 64 };

static const struct measure *find(const struct inventory_model *model, const char *level,
                                  const char *what)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "instruction_cache.%s.%s", level, what);
    return measures_get(&model->memory, metric);
}

/* The reason if there is no value; empty if nothing is known. */
static void put_figure(struct strbuf *out, const struct measure *m)
{
    strbuf_puts(out, "<td class=n>");
    if (m && measure_status_valued(m->status))
        html_quantity(out, m->value, m->unit);
    else if (m)
        html_text(out, m->reason, HTML_SENTENCE);
    if (m && m->status == MEASURE_NOISY)
        strbuf_puts(out, " <span class=warn>noisy</span>");
}

static void put_note(struct strbuf *out, const struct measure *m, const char *note)
{
    strbuf_puts(out, "<td class=n>");
    if (m && facts_get(&m->notes, note))
        html_fact(out, facts_get(&m->notes, note));
}

static void put_level(struct strbuf *out, const struct inventory_model *model, const char *level,
                      const char *title)
{
    const struct measure *cycles = find(model, level, "cycles"),
                         *shared = find(model, level, "shared_by");
    strbuf_printf(out, "<tr><td>%s", title);
    put_figure(out, find(model, level, "size"));
    put_figure(out, cycles);
    put_note(out, cycles, "least");
    put_note(out, cycles, "most");
    put_figure(out, shared);
    put_note(out, shared, "scope");
    strbuf_puts(out, "\n");
}

void html_code(struct strbuf *out, const struct inventory_model *model)
{
    double levels = 0;
    if (!measures_value(&model->memory, "instruction_cache.levels", &levels))
        return;
    strbuf_puts(out, "<details class=code open><summary>Caches of instructions</summary><table>"
                     "<thead><tr><th>code in<th class=n>size<th class=n>per instruction<th "
                     "class=n>fastest SM<th class=n>slowest SM<th class=n>SMs that share it<th "
                     "class=n>they are</thead><tbody>\n");
    for (int i = 1; i <= levels && i <= LEVELS_MAX; i++) {
        char level[NAME_MAX_BYTES], title[NAME_MAX_BYTES];
        snprintf(level, sizeof level, "level%d", i);
        snprintf(title, sizeof title, "level %d", i);
        put_level(out, model, level, title);
    }
    put_level(out, model, "beyond", "no level");
    strbuf_puts(out, "</tbody></table></details>\n");
}
