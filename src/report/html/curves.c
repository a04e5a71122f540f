/* The sweeps that a model kept, with their change points. */
#include <stdio.h>

#include "report/html/parts.h"
#include "report/sweep.h"

void html_curves(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; plot_memories[i]; i++) {
        struct plot plot;
        if (!plot_memory(&model->memory, plot_memories[i], &plot))
            continue;
        if (!begun)
            strbuf_puts(out, "<details open><summary>Sweeps and their change points</summary>"
                             "<div class=curves>\n");
        begun = true;
        snprintf(plot.title, sizeof plot.title, "%s", plot_memories[i]);
        strbuf_puts(out, "<div class=wide>");
        plot_put_svg(out, &plot, false);
        strbuf_puts(out, "</div>\n");
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}
