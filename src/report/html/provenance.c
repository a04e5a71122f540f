/* Origin of the figures: program, command, software of the GPUs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

/* The different values of a board fact, each with its number of GPUs. */
static void put_versions(struct strbuf *out, const struct inventory *v, const char *title,
                         const char *key)
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
            struct version *grown = mem_grow(versions, &capacity, known + 1, sizeof *versions);
            if (!grown) {
                out->failed = true;
                break;
            }
            versions = grown;
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
