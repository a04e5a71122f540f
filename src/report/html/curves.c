/* The stored sweeps of a model, with their change points. */
#include <stdio.h>

#include "report/html/sections.h"
#include "report/sweep_chart.h"

void html_curves(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; sweep_chart_memories[i]; i++) {
        struct sweep_chart plot;
        if (!sweep_chart_memory(&model->memory, sweep_chart_memories[i], &plot))
            continue;
        if (!begun)
            strbuf_puts(out, "<details open><summary>Sweeps and their change points</summary>"
                             "<div class=curves>\n");
        begun = true;
        snprintf(plot.title, sizeof plot.title, "%s", sweep_chart_memories[i]);
        strbuf_puts(out, "<div class=wide>");
        sweep_chart_put_svg(out, &plot, false);
        strbuf_puts(out, "</div>\n");
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}
