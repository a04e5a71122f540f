/* Nodes times GPU index: where the odd ones are. */
#include <math.h>

#include "report/html/markup.h"
#include "report/html/parts.h"

/* By oddity: the class of the cell and the sign in it, so that colour is not all there is. */
static const struct {
    const char *class, *sign;
} cells[] = {{"", ""}, {"w", "~"}, {"a", "!"}, {"b", "!"}, {"c", "!"}, {"u", "?"}};

static void put_cell(struct strbuf *out, const struct html_data *data, const struct html_gpu *gpu)
{
    if (gpu->oddity == HTML_FINE) {
        strbuf_puts(out, "<i></i>");
        return;
    }
    strbuf_printf(out, "<i class=%s title=\"GPU %d: %s", cells[gpu->oddity].class,
                  (int)gpu->gpu->index, gpu_status_name(gpu->gpu->status));
    const struct inventory_outlier *odd = gpu->outlier ? gpu->outlier : gpu->watch;
    if (odd && odd->finding_count) {
        strbuf_puts(out, ", ");
        html_text(out, odd->findings[0].metric, HTML_NAME);
    }
    if (isfinite(gpu->score))
        strbuf_printf(out, ", score %.3g", gpu->score);
    strbuf_puts(out, "\">");
    if (gpu->outlier)
        strbuf_printf(out, "<a href=#o%zu>!</a></i>",
                      (size_t)(gpu->outlier - data->inventory->outliers));
    else
        strbuf_printf(out, "%s</i>", cells[gpu->oddity].sign);
}

void html_heat(struct strbuf *out, const struct html_data *data)
{
    enum { GAP_MAX = 16 };
    const char *node = NULL;
    int32_t next = 0;
    if (!data->inventory->gpu_count)
        return;
    strbuf_puts(out,
                "<section id=map><h2>Map</h2>\n<p class=key>One row per node, GPUs by index:"
                "<i></i>fine<i class=w>~</i>watched<i class=a>!</i>outlier<i class=b>!</i>score "
                "above 20<i class=c>!</i>above 100, or failing<i class=u>?</i>not measured or not "
                "judged</p>\n<div class=heat>\n");
    for (size_t i = 0; i < data->inventory->gpu_count; i++) {
        const struct html_gpu *gpu = &data->gpus[i];
        if (!i || !str_equal(node, gpu->gpu->node)) {
            node = gpu->gpu->node;
            next = 0;
            strbuf_puts(out, i ? "</div>\n<div><b title=\"" : "<div><b title=\"");
            html_text(out, node, HTML_NAME);
            strbuf_puts(out, "\">");
            html_text(out, node, HTML_NAME);
            strbuf_puts(out, "</b>");
        }
        /* A GPU stands in the column of its index; gaps are GPUs that nobody saw. */
        if (gpu->gpu->index - next <= GAP_MAX)
            for (; next < gpu->gpu->index; next++)
                strbuf_puts(out, "<i class=x></i>");
        put_cell(out, data, gpu);
        next++;
    }
    strbuf_puts(out, "</div>\n</div></section>\n");
}
