/* What was assumed, what is uncertain, and what could not be predicted. */
#include <string.h>

#include "markup/html_text.h"
#include "predict/html/sections.h"

/* The first prediction of each model speaks for all. */
static bool is_first(const struct prediction *predictions, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (section_is_plain(&predictions[i]) &&
            strcmp(predictions[i].model, predictions[at].model) == 0 &&
            strcmp(predictions[i].inventory, predictions[at].inventory) == 0)
            return false;
    return section_is_plain(&predictions[at]);
}

void section_assumed(struct strbuf *out, const struct prediction *predictions, size_t count,
                     bool with_file)
{
    strbuf_puts(out,
                "<section id=assumed><h2>What was assumed</h2>\n"
                "<p>Arithmetic is not modelled: a kernel takes at least the time that is shown, "
                "and may take longer. Figures are those that the survey measured, except:</p>\n"
                "<div class=wide><table><thead><tr><th>Model<th>Not in the inventory, assumed"
                "<th>Uncertain in the inventory</tr></thead>\n<tbody>");
    for (size_t i = 0; i < count; i++) {
        const struct machine *machine = &predictions[i].machine;
        if (!is_first(predictions, i))
            continue;
        strbuf_puts(out, "<tr><th>");
        section_model(out, &predictions[i], with_file);
        strbuf_puts(out, "<td class=t>");
        html_text(out, machine->assumed[0] ? machine->assumed : "nothing", MACHINE_NOTE_MAX);
        if (machine->config.no_l1)
            strbuf_printf(out, "; %s", prediction_no_l1);
        strbuf_puts(out, "<td class=t>");
        html_text(out, machine->uncertain[0] ? machine->uncertain : "nothing", MACHINE_NOTE_MAX);
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div></section>\n");
}

static bool was_said(const struct prediction *predictions, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(predictions[i].reason, predictions[at].reason) == 0)
            return true;
    return false;
}

void section_absent(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (!predictions[i].reason[0] || was_said(predictions, i))
            continue;
        strbuf_puts(out, begun ? "" : "<section id=absent><h2>Not predicted</h2>\n<ul>");
        begun = true;
        strbuf_puts(out, "<li>");
        html_text(out, predictions[i].reason, ERR_TEXT_MAX);
        strbuf_puts(out, "</li>\n");
    }
    strbuf_puts(out, begun ? "</ul></section>\n" : "");
}
