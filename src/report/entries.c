/* Text for a terminal: its width and colours, and entries of the lists of an inventory. */
#include "report/entries.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "markup/text.h"
#include "report/advice.h"

static unsigned style_clamp_width(unsigned long columns)
{
    if (columns < REPORT_WIDTH_MIN)
        return REPORT_WIDTH_MIN;
    return columns > REPORT_WIDTH_MAX ? REPORT_WIDTH_MAX : (unsigned)columns;
}

static unsigned width_of(int fd, bool terminal)
{
    uint64_t columns = 0;
    if (str_parse_u64(getenv("COLUMNS"), &columns) == 0 && columns)
        return style_clamp_width(columns);
    columns = terminal ? io_columns(fd) : 0;
    return columns ? style_clamp_width(columns) : REPORT_WIDTH;
}

/* Depends on the environment (LC_ALL, ...) at run time. */
static bool style_has_boxes(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale)
        return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8;
}

struct report_style report_style_for(int fd)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(fd);
    bool dumb = !term || strcmp(term, "dumb") == 0;
    return (struct report_style){
        .width = width_of(fd, terminal),
        .colour = terminal && !dumb && !(no_colour && *no_colour),
        .boxes = style_has_boxes(),
    };
}

void report_begin_paint(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint)
{
    static const char *const codes[] = {"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[33m"};
    if (style && style->colour)
        strbuf_puts(buffer, codes[paint]);
}

void report_end_paint(struct strbuf *buffer, const struct report_style *style)
{
    if (style && style->colour)
        strbuf_puts(buffer, "\x1b[0m");
}

void report_put_painted(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint, const char *text)
{
    report_begin_paint(buffer, style, paint);
    strbuf_puts(buffer, text);
    report_end_paint(buffer, style);
}

enum { NAME_MAX = 40 };

void report_put_count(struct strbuf *out, size_t count, const char *one, const char *many)
{
    strbuf_printf(out, "%zu %s", count, count == 1 ? one : many);
}

void report_end_line(struct strbuf *out, const struct report_style *style, struct strbuf *line,
                     unsigned first, unsigned indent)
{
    text_put_wrapped(out, line->data ? line->data : "", first, indent,
                     style ? style->width : REPORT_WIDTH);
    strbuf_fini(line);
}

/* The cause of such a finding already has its value and expected value. */
static bool is_fact(const struct inventory_evidence *finding)
{
    static const char *const sets[] = {"hardware.", "board.", "config.", "health."};
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        if (strncmp(finding->metric, sets[i], strlen(sets[i])) == 0)
            return true;
    return false;
}

/* "seen 2 of 2": how the finding was confirmed. */
static void entry_put_confirmed(struct strbuf *out, const char *confirmed)
{
    if (str_equal(confirmed, "no")) {
        strbuf_puts(out, "not confirmed");
        return;
    }
    strbuf_puts(out, strncmp(confirmed, "by ", 3) == 0 ? "confirmed " : "seen ");
    text_put_clean(out, confirmed, NAME_MAX);
}

static void entry_put_figure(struct strbuf *out, const struct inventory_evidence *finding)
{
    text_put_clean(out, finding->metric, NAME_MAX);
    strbuf_puts(out, " ");
    text_put_quantity(out, finding->value, finding->unit);
    if (isfinite(finding->expected)) {
        strbuf_puts(out, ", expected ");
        text_put_quantity(out, finding->expected, finding->unit);
    }
    bool deviates = isfinite(finding->deviation);
    if (!deviates && !finding->confirmed)
        return;
    strbuf_puts(out, " (");
    if (deviates)
        strbuf_printf(out, "%+.1f %%%s", text_percent(finding->deviation),
                      finding->confirmed ? ", " : "");
    if (finding->confirmed)
        entry_put_confirmed(out, finding->confirmed);
    strbuf_puts(out, ")");
}

static bool same_cause(const struct inventory_evidence *a, const struct inventory_evidence *b)
{
    return str_equal(a->cause, b->cause) && is_fact(a) == is_fact(b);
}

static bool entry_has_cause_before(const struct inventory_outlier *outlier, size_t finding)
{
    for (size_t i = 0; i < finding; i++)
        if (same_cause(&outlier->evidence[i], &outlier->evidence[finding]))
            return true;
    return false;
}

/* One cause and all figures that it explains. */
static void entry_put_cause(struct strbuf *out, const struct report_style *style,
                            const struct inventory_outlier *outlier, size_t first)
{
    const struct inventory_evidence *finding = &outlier->evidence[first];
    struct strbuf line = {0};
    size_t together = 0;
    for (size_t i = first; i < outlier->evidence_count && !is_fact(finding); i++) {
        if (!same_cause(finding, &outlier->evidence[i]))
            continue;
        strbuf_puts(&line, together++ ? "; " : "");
        entry_put_figure(&line, &outlier->evidence[i]);
    }
    strbuf_puts(&line, together ? ": " : "");
    text_put_parts(&line, finding->cause ? finding->cause : "no cause known", REPORT_SENTENCE_MAX);
    strbuf_puts(out, "      ");
    report_end_line(out, style, &line, 6, 8);
}

static void entry_put_advice(struct strbuf *out, const struct report_style *style,
                             const struct advice *advice, unsigned indent)
{
    struct strbuf line = {0};
    strbuf_printf(&line, "next: %s; %s", advice->next, advice->vendor);
    strbuf_printf(out, "%*s", (int)indent, "");
    report_end_line(out, style, &line, indent, indent + 2);
}

void report_put_outlier(struct strbuf *out, const struct report_style *style,
                        const struct inventory_outlier *outlier)
{
    const bool acted_on = outlier->action >= ACTION_ALERT;
    struct strbuf line = {0};
    text_put_clean(&line, outlier->node, NAME_MAX);
    strbuf_puts(&line, " ");
    text_put_clean(&line, outlier->pci, 20);
    strbuf_puts(&line, " ");
    text_put_clean(&line, outlier->uuid, 50);
    if (acted_on || outlier->verdict != VERDICT_UNKNOWN) {
        strbuf_printf(&line, ": %s", verdict_name(outlier->verdict));
        if (isfinite(outlier->loss))
            strbuf_printf(&line, ", loss %.1f %%", text_percent(outlier->loss));
        strbuf_printf(&line, ", %s", action_name(outlier->action));
    }
    strbuf_puts(out, "  ");
    if (acted_on)
        report_begin_paint(out, style,
                           outlier->action == ACTION_DRAIN ? REPORT_RED : REPORT_YELLOW);
    report_end_line(out, style, &line, 2, 4);
    if (acted_on)
        report_end_paint(out, style);
    for (size_t i = 0; i < outlier->evidence_count; i++)
        if (!entry_has_cause_before(outlier, i))
            entry_put_cause(out, style, outlier, i);
    if (acted_on)
        entry_put_advice(out, style, advice_of_gpu(outlier), 6);
}

/* Of the figures with this cause, the one that deviates most. */
static const struct inventory_evidence *entry_worst(const struct inventory_outlier *outlier,
                                                    size_t first, size_t *out_count)
{
    const struct inventory_evidence *worst = &outlier->evidence[first];
    *out_count = 0;
    for (size_t i = first; i < outlier->evidence_count; i++) {
        const struct inventory_evidence *other = &outlier->evidence[i];
        if (!same_cause(&outlier->evidence[first], other))
            continue;
        ++*out_count;
        if (isnan(worst->deviation) || fabs(other->deviation) > fabs(worst->deviation))
            worst = other;
    }
    return worst;
}

/* "main.latency 682.3 of 593.7 cycles +14.9 %". */
static void entry_put_of(struct strbuf *out, const struct inventory_evidence *finding)
{
    bool bytes = str_equal(finding->unit, "B");
    text_put_clean(out, finding->metric, NAME_MAX);
    strbuf_puts(out, " ");
    text_put_quantity(out, finding->value,
                      bytes || !isfinite(finding->expected) ? finding->unit : "");
    if (isfinite(finding->expected)) {
        strbuf_puts(out, " of ");
        text_put_quantity(out, finding->expected, finding->unit);
    }
    if (isfinite(finding->deviation))
        strbuf_printf(out, " %+.1f %%", text_percent(finding->deviation));
}

void report_put_outlier_briefly(struct strbuf *out, const struct report_style *style,
                                const struct inventory_outlier *outlier, unsigned indent)
{
    enum { CAUSES_MAX = 2 };
    size_t causes = 0;
    for (size_t i = 0; i < outlier->evidence_count; i++) {
        struct strbuf line = {0};
        size_t together;
        const struct inventory_evidence *worst = entry_worst(outlier, i, &together);
        if (entry_has_cause_before(outlier, i) || causes++ >= CAUSES_MAX)
            continue;
        if (!is_fact(worst) && isfinite(worst->value)) {
            entry_put_of(&line, worst);
            if (together > 1)
                strbuf_printf(&line,
                              together == 2 ? " and %zu more figure" : " and %zu more figures",
                              together - 1);
        }
        strbuf_puts(&line, line.length ? ": " : "");
        text_put_parts(&line, worst->cause ? worst->cause : "no cause known", REPORT_SENTENCE_MAX);
        if (causes > 1)
            strbuf_printf(out, "%*s", (int)indent, "");
        report_end_line(out, style, &line, indent, indent);
    }
    if (causes > CAUSES_MAX)
        strbuf_printf(out, "%*sand %zu more %s\n", (int)indent, "", causes - CAUSES_MAX,
                      causes - CAUSES_MAX == 1 ? "cause" : "causes");
    if (!causes)
        strbuf_puts(out, "\n");
}

void report_put_node(struct strbuf *out, const struct report_style *style,
                     const struct inventory_node *node)
{
    struct strbuf line = {0};
    if (node->node) {
        text_put_clean(&line, node->node, NAME_MAX);
        strbuf_puts(&line, ": ");
    }
    text_put_clean(&line, node->finding, REPORT_SENTENCE_MAX);
    if (node->action >= ACTION_ALERT)
        strbuf_printf(&line, " [%s: %s]", verdict_name(node->verdict), action_name(node->action));
    strbuf_puts(out, "  ");
    report_end_line(out, style, &line, 2, 4);
    if (node->action >= ACTION_ALERT)
        entry_put_advice(out, style, advice_of_place(node), 6);
}

void report_put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory_unmeasured *unmeasured)
{
    struct strbuf line = {0};
    text_put_clean(&line, unmeasured->node, NAME_MAX);
    strbuf_puts(&line, " ");
    text_put_clean(&line, unmeasured->uuid ? unmeasured->uuid : "unknown GPU", 50);
    strbuf_printf(&line, ": %s", gpu_status_name(unmeasured->status));
    if (unmeasured->reason) {
        strbuf_puts(&line, ", ");
        text_put_clean(&line, unmeasured->reason, REPORT_SENTENCE_MAX);
    }
    strbuf_puts(out, "  ");
    report_end_line(out, style, &line, 2, 4);
}
