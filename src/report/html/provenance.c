/* Origin of the figures: program, command, software of the GPUs. */
#include <inttypes.h>
#include <string.h>

#include "markup/html_text.h"
#include "report/html/sections.h"

/* The different values of a board fact, each with its number of GPUs. */
static void put_versions(struct strbuf *out, const struct inventory *v, const char *title,
                         const char *key)
{
    enum { VERSIONS_MAX = 8 };
    const char *texts[VERSIONS_MAX];
    size_t counts[VERSIONS_MAX] = {0}, known = 0, others = 0;
    for (size_t i = 0; i < v->gpu_count; i++) {
        const char *text = facts_text(&v->gpus[i].board, key);
        size_t at = 0;
        while (text && at < known && strcmp(texts[at], text) != 0)
            at++;
        if (text && at == known && known < VERSIONS_MAX)
            texts[known++] = text;
        if (text && at < known)
            counts[at]++;
        else
            others += text != NULL;
    }
    if (!known)
        return;
    strbuf_printf(out, "<tr><th>%s<td>", title);
    for (size_t i = 0; i < known; i++) {
        strbuf_puts(out, i ? ", " : "");
        html_text(out, texts[i], HTML_NAME);
        strbuf_puts(out, " (");
        html_count(out, counts[i], "GPU)", "GPUs)");
    }
    if (others)
        strbuf_printf(out, " and others (%zu GPUs)", others);
}

static const char *exit_text(int code)
{
    static const char *const texts[] = {"done; no outliers", "no report, or no record",
                                        "bad usage or input", "at least one GPU is an outlier",
                                        "some GPUs could not be measured or ranks were lost"};
    return code >= 0 && code < 5 ? texts[code] : "unknown";
}

void html_provenance(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
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
        v->seed, v->total_ranks, v->exit_code, exit_text(v->exit_code));
    put_versions(out, v, "driver", "driver");
    put_versions(out, v, "CUDA of the driver", "cuda");
    put_versions(out, v, "VBIOS", "vbios");
    strbuf_puts(out, "</tbody></table></section>\n");
}
