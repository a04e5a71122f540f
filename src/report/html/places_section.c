/* Findings of whole nodes, slots and models: accused ones as cards, others as a table. */
#include "markup/html_text.h"
#include "report/html/sections.h"

/* GPUs of a card that are not folded. */
enum { GPUS_MAX = 16 };

static void put_gpus(struct strbuf *out, const struct inventory_node *place)
{
    strbuf_puts(out, "<p class=dim>");
    html_count(out, place->gpu_count, "GPU", "GPUs");
    for (size_t i = 0; i < place->gpu_count; i++) {
        if (i == GPUS_MAX)
            strbuf_puts(out, "</p>\n<details><summary>all others</summary><p class=dim>");
        strbuf_puts(out, !i ? ": <code>" : i == GPUS_MAX ? "<code>" : ", <code>");
        html_text(out, place->gpus[i], HTML_NAME);
        strbuf_puts(out, "</code>");
    }
    strbuf_puts(out, place->gpu_count > GPUS_MAX ? "</p></details>\n" : "</p>\n");
}

static void put_card(struct strbuf *out, const struct html_data *data,
                     const struct inventory_node *place)
{
    strbuf_printf(out, "<article class=card id=p%td><h3>", place - data->inventory->node_findings);
    html_text(out, place->node ? place->node : "Several nodes", HTML_NAME);
    html_rack(out, data, place->node);
    strbuf_printf(out, " <span class=kind>%s</span></h3>\n<p>", inventory_kind_name(place->kind));
    html_text(out, place->finding, HTML_SENTENCE);
    strbuf_puts(out, "</p>\n");
    put_gpus(out, place);
    html_drain(out, data, drain_line_of_place(place));
    strbuf_puts(out, "</article>\n");
}

static void put_row(struct strbuf *out, const struct inventory_node *place)
{
    strbuf_puts(out, "<tr><td>");
    html_text(out, place->node, HTML_NAME);
    strbuf_printf(out, "<td>%s<td class=n>%zu<td class=t>",
                  place->accused ? inventory_kind_name(place->kind) : "note", place->gpu_count);
    html_text(out, place->finding, HTML_SENTENCE);
    strbuf_puts(out, "\n");
}

/* Notes, and the accused places for which there are too many cards. */
static void put_table(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    size_t carded = data->place_count < HTML_CARDS_MAX ? data->place_count : HTML_CARDS_MAX;
    if (v->node_finding_count == carded)
        return;
    strbuf_puts(out, "<div class=wide><table class=\"sort filter\"><thead><tr><th>node<th>kind"
                     "<th>GPUs<th>finding</thead><tbody>\n");
    for (size_t i = carded; i < data->place_count; i++)
        put_row(out, data->places[i]);
    for (size_t i = 0; i < v->node_finding_count; i++)
        if (!v->node_findings[i].accused)
            put_row(out, &v->node_findings[i]);
    strbuf_puts(out, "</tbody></table></div>\n");
}

void html_places(struct strbuf *out, const struct html_data *data)
{
    if (!data->inventory->node_finding_count)
        return;
    strbuf_puts(out, "<section id=places><h2>Nodes, slots and models as a whole</h2>\n");
    for (size_t i = 0; i < data->place_count && i < HTML_CARDS_MAX; i++)
        put_card(out, data, data->places[i]);
    put_table(out, data);
    strbuf_puts(out, "</section>\n");
}
