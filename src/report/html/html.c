/* The page: head, headline, sections in order, and the origin of the figures. */
#include "report/html/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "html_script.h"
#include "markup/html.h"
#include "report/html/sections.h"
#include "report/summary.h"

/* section: what a click leads to; NULL: nothing. */
static void headline_put_tile(struct strbuf *out, size_t count, const char *one, const char *many,
                              bool alarming, const char *section)
{
    bool link = section && count;
    strbuf_puts(out, "<li>");
    if (link)
        strbuf_printf(out, "<a href=#%s>", section);
    strbuf_printf(out, "<b%s>%zu</b>%s%s</li>", alarming && count ? " class=bad" : "", count,
                  count == 1 ? one : many, link ? "</a>" : "");
}

/* The verdict in one sentence. */
static void page_put_verdict(struct strbuf *out, const struct inventory *v)
{
    struct strbuf text = {0};
    report_verdict(v, &text);
    strbuf_puts(out, "<p class=verdict>Of ");
    html_count(out, v->total_gpus, "GPU", "GPUs");
    strbuf_puts(out, " on ");
    html_count(out, v->total_nodes, "node", "nodes");
    strbuf_puts(out, ": ");
    html_text(out, text.data, HTML_SENTENCE);
    strbuf_puts(out, ".</p>\n");
    strbuf_fini(&text);
}

static void page_put_headline(struct strbuf *out, const struct inventory *v)
{
    strbuf_puts(out, "<header><h1>GPU memory survey</h1>\n");
    if (str_equal(v->backend, "sim"))
        strbuf_puts(out, "<p class=note>These GPUs are simulated.</p>\n");
    page_put_verdict(out, v);
    strbuf_puts(out, "<ul class=tiles>");
    headline_put_tile(out, v->total_gpus, "GPU", "GPUs", false, "gpus");
    headline_put_tile(out, v->total_nodes, "node", "nodes", false, v->gpu_count ? "map" : NULL);
    headline_put_tile(out, v->model_count, "model", "models", false, "m0");
    headline_put_tile(out, v->total_outliers, "outlier", "outliers",
                      inventory_action(v) == ACTION_DRAIN, "outliers");
    headline_put_tile(out, v->watch_count, "to watch", "to watch", false, "watch");
    headline_put_tile(out, v->total_unmeasured, "unmeasured", "unmeasured", true,
                      v->unmeasured_count ? "unmeasured" : NULL);
    if (v->total_lost_ranks)
        headline_put_tile(out, v->total_lost_ranks, "rank lost", "ranks lost", true, NULL);
    if (v->total_unplanned)
        headline_put_tile(out, v->total_unplanned, "GPU without a plan", "GPUs without a plan",
                          true, NULL);
    if (v->unread_files)
        headline_put_tile(out, v->unread_files, "file not read", "files not read", true, NULL);
    strbuf_puts(out, "<li class=when><b>");
    html_text(out, v->generated, HTML_NAME);
    strbuf_puts(out, "</b>");
    if (isfinite(v->wall_s))
        strbuf_printf(out, "took %.1f s", v->wall_s);
    strbuf_puts(out, "</li></ul>\n");
}

static void page_put_navigation(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    strbuf_puts(out, "<nav>");
    if (v->gpu_count)
        strbuf_puts(out, "<a href=#map>Map</a>");
    strbuf_puts(out, "<a href=#outliers>Outliers</a>");
    if (v->node_finding_count)
        strbuf_puts(out, "<a href=#places>Places</a>");
    if (data->racks)
        strbuf_puts(out, "<a href=#racks>Racks</a>");
    if (v->unmeasured_count)
        strbuf_puts(out, "<a href=#unmeasured>Unmeasured</a>");
    if (v->watch_count)
        strbuf_puts(out, "<a href=#watch>To watch</a>");
    for (size_t i = 0; i < v->model_count; i++) {
        strbuf_printf(out, "<a href=#m%zu>", i);
        html_text(out, v->models[i].name ? v->models[i].name : v->models[i].id, HTML_NAME);
        strbuf_puts(out, "</a>");
    }
    if (v->gpu_count)
        strbuf_puts(out, "<a href=#gpus>GPUs</a>");
    strbuf_puts(out, "<a href=#provenance>Provenance</a></nav></header>\n<main>\n");
}

/* The different values of a board fact, each with its number of GPUs. */
static void provenance_put_versions(struct strbuf *out, const struct inventory *v,
                                    const char *title, const char *key)
{
    struct version {
        const char *text;
        size_t count;
    } *versions = NULL;
    size_t known = 0, capacity = 0;
    for (size_t i = 0; i < v->gpu_count; i++) {
        const char *text = facts_text(&v->gpus[i].board, key);
        size_t at = 0;
        while (text && at < known && strcmp(versions[at].text, text) != 0)
            at++;
        if (text && at == known) {
            versions = mem_grow(versions, &capacity, known + 1, sizeof *versions);
            versions[known++] = (struct version){text, 0};
        }
        if (text)
            versions[at].count++;
    }
    if (known)
        strbuf_printf(out, "<tr><th>%s<td>", title);
    for (size_t i = 0; i < known; i++) {
        strbuf_puts(out, i ? ", " : "");
        html_text(out, versions[i].text, HTML_NAME);
        strbuf_puts(out, " (");
        html_count(out, versions[i].count, "GPU)", "GPUs)");
    }
    free(versions);
}

static const char *exit_code_text(int code)
{
    static const char *const texts[] = {"done; nothing to drain", "no report, or no record",
                                        "bad usage or input", "at least one node is to be drained",
                                        "some GPUs could not be measured or ranks were lost"};
    return code >= 0 && code < 5 ? texts[code] : "unknown";
}

static void page_put_provenance(struct strbuf *out, const struct inventory *v)
{
    strbuf_puts(out, "<section id=provenance><h2>Provenance</h2>\n<table><tbody>"
                     "<tr><th>program<td>gpumemtopo ");
    html_text(out, v->version, HTML_NAME);
    if (v->measured_by_count)
        strbuf_puts(out, ", merged; measured by gpumemtopo ");
    for (size_t i = 0; i < v->measured_by_count; i++) {
        strbuf_puts(out, i ? ", " : "");
        html_text(out, v->measured_by[i], HTML_NAME);
    }
    strbuf_puts(out, "<tr><th>command<td class=t><code>");
    for (size_t i = 0; i < v->command_count; i++) {
        strbuf_puts(out, i ? " " : "");
        html_text(out, v->command[i], HTML_SENTENCE);
    }
    strbuf_puts(out, "</code><tr><th>measured by<td>");
    html_text(out, v->backend, HTML_NAME);
    strbuf_printf(
        out, "<tr><th>seed<td>%" PRIu64 "<tr><th>ranks<td>%" PRIu32 "<tr><th>exit code<td>%d: %s",
        v->seed, v->total_ranks, v->exit_code, exit_code_text(v->exit_code));
    provenance_put_versions(out, v, "driver", "driver");
    provenance_put_versions(out, v, "CUDA of the driver", "cuda");
    provenance_put_versions(out, v, "VBIOS", "vbios");
    strbuf_puts(out, "</tbody></table></section>\n");
}

void report_html(const struct inventory *inventory, const struct judge_references *references,
                 const struct racks *racks, struct strbuf *out_page)
{
    struct html_data data;
    html_data_init(&data, inventory);
    data.racks = racks;
    html_page_begin(out_page, "GPU memory survey", html_script_hash);
    page_put_headline(out_page, inventory);
    page_put_navigation(out_page, &data);
    html_heat(out_page, &data);
    html_outliers(out_page, &data);
    html_places(out_page, &data);
    html_racks(out_page, &data);
    html_unmeasured(out_page, &data);
    html_watch(out_page, &data);
    html_links(out_page, &data);
    for (size_t i = 0; i < inventory->model_count; i++)
        html_model_section(out_page, &data, &data.models[i], references);
    html_differences(out_page, &data);
    html_gpus(out_page, &data);
    page_put_provenance(out_page, inventory);
    strbuf_puts(out_page, "</main>\n");
    html_page_end(out_page, html_script);
    html_data_fini(&data);
}
