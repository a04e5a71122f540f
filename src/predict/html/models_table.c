/* Models side by side: one kernel in detail, and all kernels by their bounds. */
#include <math.h>
#include <string.h>

#include "markup/html_text.h"
#include "predict/html/sections.h"
#include "predict/quantity.h"

static void put_cell(struct strbuf *out, const char *text)
{
    strbuf_printf(out, "<td class=n>%s", text);
}

static void put_compared(struct strbuf *out, double seconds, double shortest)
{
    if (seconds == shortest)
        strbuf_puts(out, "<b class=good>shortest</b>");
    else if (shortest > 0)
        strbuf_printf(out, "%.3g &times;", seconds / shortest);
    else
        strbuf_puts(out, "-");
}

static void put_row(struct strbuf *out, const struct prediction *p, double shortest, bool with_file)
{
    const struct model_counts *c = &p->counts;
    uint64_t main = c->l2.main_reads + c->l2.main_writes;
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<tr><th>");
    section_model(out, p, with_file);
    put_cell(out, quantity_percent(prediction_l1_hits(p), text));
    put_cell(out, quantity_percent(prediction_l2_hits(&c->l2), text));
    put_cell(out, quantity_percent(prediction_l2_hits(&c->l2_bypassed), text));
    put_cell(out, quantity_short(prediction_l1_transactions(p), "", text));
    put_cell(out, quantity_short((double)(c->l2.reads + c->l2.writes), "", text));
    put_cell(out, quantity_short((double)main, "", text));
    put_cell(out, quantity_short((double)(main * p->machine.config.l1.sector), "B", text));
    put_cell(out, quantity_seconds(p->bound.longest, text));
    strbuf_puts(out, "<td class=n>");
    put_compared(out, p->bound.longest, shortest);
    strbuf_printf(out, "<td>%s</tr>\n", bound_limit_name(p->bound.limit));
}

static void put_limits(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<details class=limits><summary>The time that each limit allows</summary>"
                     "<div class=wide><table><thead><tr><th>Model");
    for (int i = 0; i < BOUND_LIMITS; i++)
        strbuf_printf(out, "<th class=n>%s", bound_limit_name((enum bound_limit)i));
    strbuf_puts(out, "</tr></thead>\n<tbody>");
    for (size_t i = 0; i < kernel->count; i++) {
        const struct prediction *p = &kernel->predictions[i];
        if (!section_is_plain(p))
            continue;
        strbuf_puts(out, "<tr><th>");
        section_model(out, p, with_file);
        for (int k = 0; k < BOUND_LIMITS; k++)
            put_cell(out, quantity_seconds(p->bound.seconds[k], text));
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

static bool has_plain(const struct section_kernel *kernel)
{
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            return true;
    return false;
}

void section_models(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    double shortest = section_shortest(kernel);
    if (!has_plain(kernel)) {
        strbuf_puts(out, "<p>Not predicted; see the <a href=#absent>reasons</a>.</p>\n");
        return;
    }
    strbuf_puts(out, "<h3>Models side by side</h3>\n<div class=wide><table class=models><thead><tr>"
                     "<th>Model<th class=n>L1 hits %<th class=n>L2 hits %"
                     "<th class=n>L2 hits %<br>without L1<th class=n>L1 trans-<br>actions"
                     "<th class=n>L2 trans-<br>actions<th class=n>main trans-<br>actions"
                     "<th class=n>main<br>bytes<th class=n>Time<br>at least<th class=n>Compared"
                     "<th>Limited by</tr></thead>\n<tbody>");
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            put_row(out, &kernel->predictions[i], shortest, with_file);
    strbuf_puts(out, "</tbody></table></div>\n");
    put_limits(out, kernel, with_file);
}

/* The plain prediction of the same model for another kernel; NULL: not made. */
static const struct prediction *find_same(const struct section_kernel *kernel,
                                          const struct prediction *model)
{
    for (size_t i = 0; i < kernel->count; i++) {
        const struct prediction *p = &kernel->predictions[i];
        if (section_is_plain(p) && strcmp(p->model, model->model) == 0 &&
            strcmp(p->inventory, model->inventory) == 0)
            return p;
    }
    return NULL;
}

static void put_times(struct strbuf *out, const struct section_kernel *kernel,
                      const struct section_kernel *first)
{
    double shortest = section_shortest(kernel);
    char text[QUANTITY_MAX];
    strbuf_printf(out, "<tr><th><a href=#k%zu>", kernel->number);
    html_text(out, kernel->predictions->kernel, HTML_NAME);
    strbuf_puts(out, "</a>");
    for (size_t i = 0; i < first->count; i++) {
        if (first->predictions[i].what_if)
            continue;
        const struct prediction *p = find_same(kernel, &first->predictions[i]);
        strbuf_puts(out, "<td class=n>");
        if (!p) {
            strbuf_puts(out, "-");
            continue;
        }
        strbuf_printf(out, "%s<br>", quantity_seconds(p->bound.longest, text));
        put_compared(out, p->bound.longest, shortest);
    }
    strbuf_puts(out, "</tr>\n");
}

/* The geometric mean of a model's times, each compared with the shortest of its kernel. NaN: one is
 * missing, so that the mean could not be compared. */
static double mean_ratio(const struct prediction *predictions, size_t count,
                         const struct prediction *model)
{
    struct section_kernel kernel;
    double sum = 0;
    size_t kernels = 0;
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);) {
        const struct prediction *p = find_same(&kernel, model);
        if (!has_plain(&kernel))
            continue; /* no model has it: the others can be compared without it */
        kernels++;
        sum += p ? log(p->bound.longest / section_shortest(&kernel)) : NAN;
    }
    return exp(sum / (double)kernels);
}

static void put_means(struct strbuf *out, const struct prediction *predictions, size_t count,
                      const struct section_kernel *first)
{
    strbuf_puts(out, "<tr class=mean><th>Geometric mean");
    for (size_t i = 0; i < first->count; i++) {
        if (first->predictions[i].what_if)
            continue;
        double ratio = mean_ratio(predictions, count, &first->predictions[i]);
        if (isfinite(ratio))
            strbuf_printf(out, "<td class=n>%.3g &times;", ratio);
        else
            strbuf_puts(out, "<td class=n>-");
    }
    strbuf_puts(out, "</tr>\n");
}

void section_all_kernels(struct strbuf *out, const struct prediction *predictions, size_t count,
                         bool with_file)
{
    struct section_kernel kernel, first;
    size_t at = 0, models = 0;
    section_next(predictions, count, &at, &first);
    for (size_t i = 0; i < first.count; i++)
        models += !first.predictions[i].what_if;
    if (models < 2 || first.count == count)
        return;
    strbuf_puts(out,
                "<section id=all><h2>All kernels</h2>\n<p class=dim>The shortest possible time "
                "of each kernel, and how many times the shortest of all models that is."
                "</p>\n<div class=wide><table class=times><thead><tr><th>Kernel");
    for (size_t i = 0; i < first.count; i++) {
        if (first.predictions[i].what_if)
            continue;
        strbuf_puts(out, "<th class=n>");
        section_model(out, &first.predictions[i], with_file);
    }
    strbuf_puts(out, "</tr></thead>\n<tbody>");
    for (at = 0; section_next(predictions, count, &at, &kernel);)
        put_times(out, &kernel, &first);
    put_means(out, predictions, count, &first);
    strbuf_puts(out, "</tbody></table></div></section>\n");
}
