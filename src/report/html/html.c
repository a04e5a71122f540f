/* The page: head, headline, and sections in order. */
#include "report/html/html.h"

#include <math.h>

#include "html_script.h"
#include "markup/html_text.h"
#include "markup/page.h"
#include "report/html/sections.h"

static void put_tile(struct strbuf *out, size_t count, const char *one, const char *many,
                     bool alarming)
{
    strbuf_printf(out, "<li><b%s>%zu</b>%s</li>", alarming && count ? " class=bad" : "", count,
                  count == 1 ? one : many);
}

static void put_headline(struct strbuf *out, const struct inventory *v)
{
    strbuf_puts(out, "<header><h1>GPU memory survey</h1>\n");
    if (str_equal(v->backend, "sim"))
        strbuf_puts(out, "<p class=note>These GPUs are simulated.</p>\n");
    strbuf_puts(out, "<ul class=tiles>");
    put_tile(out, v->total_gpus, "GPU", "GPUs", false);
    put_tile(out, v->total_nodes, "node", "nodes", false);
    put_tile(out, v->model_count, "model", "models", false);
    put_tile(out, v->total_outliers, "outlier", "outliers", true);
    put_tile(out, v->total_unmeasured, "unmeasured", "unmeasured", true);
    if (v->total_lost_ranks)
        put_tile(out, v->total_lost_ranks, "rank lost", "ranks lost", true);
    strbuf_puts(out, "<li class=when><b>");
    html_text(out, v->generated, HTML_NAME);
    strbuf_puts(out, "</b>");
    if (isfinite(v->wall_s))
        strbuf_printf(out, "took %.1f s", v->wall_s);
    strbuf_puts(out, "</li></ul>\n");
}

static void put_navigation(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    strbuf_puts(out, "<nav><a href=#outliers>Outliers</a>");
    if (v->node_finding_count)
        strbuf_puts(out, "<a href=#places>Places</a>");
    if (data->racks)
        strbuf_puts(out, "<a href=#racks>Racks</a>");
    if (v->gpu_count)
        strbuf_puts(out, "<a href=#map>Map</a>");
    if (v->unmeasured_count)
        strbuf_puts(out, "<a href=#unmeasured>Unmeasured</a>");
    for (size_t i = 0; i < v->model_count; i++) {
        strbuf_printf(out, "<a href=#m%zu>", i);
        html_text(out, v->models[i].name ? v->models[i].name : v->models[i].id, HTML_NAME);
        strbuf_puts(out, "</a>");
    }
    if (v->gpu_count)
        strbuf_puts(out, "<a href=#gpus>GPUs</a>");
    strbuf_puts(out, "<a href=#provenance>Provenance</a></nav></header>\n<main>\n");
}

void report_html(const struct inventory *inventory, const struct judge_references *references,
                 const struct racks *racks, struct strbuf *out_page)
{
    struct html_data data;
    if (html_data_init(&data, inventory)) {
        html_data_fini(&data);
        out_page->failed = true;
        return;
    }
    data.racks = racks;
    page_begin(out_page, "GPU memory survey", html_script_hash);
    put_headline(out_page, inventory);
    put_navigation(out_page, &data);
    html_outliers(out_page, &data);
    html_places(out_page, &data);
    html_racks(out_page, &data);
    html_heat(out_page, &data);
    html_unmeasured(out_page, &data);
    html_watch(out_page, &data);
    html_links(out_page, &data);
    for (size_t i = 0; i < inventory->model_count; i++)
        html_model_section(out_page, &data, &data.models[i], references);
    html_differences(out_page, &data);
    html_gpus(out_page, &data);
    html_provenance(out_page, &data);
    strbuf_puts(out_page, "</main>\n");
    page_end(out_page, html_script);
    html_data_fini(&data);
}
