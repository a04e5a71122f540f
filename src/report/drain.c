/* Commands that drain bad nodes, and the reasons that they give. */
#include "report/drain.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/sort.h"
#include "inventory/results.h"
#include "markup/text.h"
#include "report/entries.h"

enum { UUID_CHARS = 48, CAUSE_CHARS = 96 };

static bool drain_is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Keeps letters, digits and a few harmless signs. ": " becomes ", " and any other ':' '-', because
 * ':' separates fields. Everything else becomes '_', also characters that a shell interprets inside
 * double quotes ($ ` \ " !). */
static char drain_safe_char(const char *at)
{
    static const char signs[] = " .,;/+-_()%=";
    if (*at == ':')
        return at[1] == ' ' ? ',' : '-';
    return drain_is_word_char(*at) || strchr(signs, *at) ? *at : '_';
}

/* Apostrophes, and the rest of a character of several bytes. */
static bool drain_is_left_out(char c)
{
    return c == '\'' || ((unsigned char)c & 0xc0) == 0x80;
}

/* The number of bytes to keep of `length`: up to the last whole word if there are several. */
static size_t drain_cut_at_word(const char *text, size_t length, size_t room)
{
    size_t end = room;
    if (length <= room)
        return length;
    while (end && text[end] != ' ')
        end--;
    while (end && !drain_is_word_char(text[end - 1]) && text[end - 1] != ')' &&
           text[end - 1] != '%')
        end--;
    return end ? end : room;
}

static void drain_put_field(struct strbuf *out, const char *text, size_t chars_max)
{
    static const char cut[] = "...";
    char safe[CAUSE_CHARS * 2];
    size_t length = 0;
    strbuf_puts(out, ":");
    for (; text && *text && length < sizeof safe; text++)
        if (!drain_is_left_out(*text))
            safe[length++] = drain_safe_char(text);
    if (length <= chars_max) {
        strbuf_append(out, length ? safe : "-", length ? length : 1);
        return;
    }
    strbuf_append(out, safe, drain_cut_at_word(safe, length, chars_max - (sizeof cut - 1)));
    strbuf_puts(out, cut);
}

void drain_reason_put(struct strbuf *out, const struct drain_reason *reason)
{
    strbuf_printf(out, "gpumemtopo:%s", verdict_name(reason->verdict));
    drain_put_field(out, reason->uuid, UUID_CHARS);
    drain_put_field(out, reason->cause, CAUSE_CHARS);
    drain_put_field(out, reason->metric, DRAIN_METRIC_CHARS);
    if (fabs(reason->deviation) < 1000) /* false for NaN */
        strbuf_printf(out, ":%+.1f%%", text_percent(reason->deviation));
    else
        strbuf_puts(out, ":-");
    if (reason->more_gpus)
        strbuf_printf(out, ":+%zu GPU%s", reason->more_gpus, reason->more_gpus == 1 ? "" : "s");
    else if (reason->more_findings)
        strbuf_printf(out, ":+%zu finding%s", reason->more_findings,
                      reason->more_findings == 1 ? "" : "s");
}

/* A metric: letters, digits, '.' and '_', with at least one '.'. */
static size_t metric_length(const char *text)
{
    size_t length = 0;
    bool dotted = false;
    for (; drain_is_word_char(text[length]) || text[length] == '_' || text[length] == '.'; length++)
        dotted |= text[length] == '.';
    return dotted && length <= DRAIN_METRIC_CHARS ? length : 0;
}

void drain_reason_split(const char *text, struct drain_reason *reason, char *out_metric)
{
    const char *scope_end = text ? strstr(text, ": ") : NULL;
    const char *metric = scope_end ? scope_end + 2 : "";
    size_t length = metric_length(metric);
    const char *cause = length ? strstr(metric + length, ": ") : NULL;
    reason->cause = text;
    reason->metric = NULL;
    reason->deviation = NAN;
    if (!cause)
        return;
    memcpy(out_metric, metric, length);
    out_metric[length] = '\0';
    reason->metric = out_metric;
    reason->cause = cause + 2;
    const char *share = strstr(metric + length, " (");
    double percent;
    if (share && share < cause && sscanf(share, " (%lf %%)", &percent) == 1)
        reason->deviation = percent / 100;
}

/* One bad GPU (uuid NULL: unknown, or the whole node) and its worst finding. */
struct suspect {
    const char *node, *uuid;
    enum verdict verdict;
    const struct inventory_evidence *finding; /* of an outlier */
    const char *place;                        /* otherwise: the text of a place finding */
    size_t more_findings;
};

struct suspects {
    struct suspect *items;
    size_t count, capacity;
};

static void drain_add_suspect(struct suspects *suspects, const struct suspect *suspect)
{
    suspects->items = mem_grow(suspects->items, &suspects->capacity, suspects->count + 1,
                               sizeof *suspects->items);
    suspects->items[suspects->count++] = *suspect;
}

/* A finding about a node, a slot or a model concerns every node with one of its GPUs. lookup: NULL
 * will do for a finding with a node. */
static void drain_add_place(const struct inventory_lookup *lookup,
                            const struct inventory_node *place, struct suspects *out)
{
    struct suspect suspect = {
        .node = place->node, .verdict = place->verdict, .place = place->finding};
    if (place->node && !place->gpu_count)
        drain_add_suspect(out, &suspect);
    for (size_t i = 0; i < place->gpu_count; i++) {
        const struct inventory_gpu *gpu =
            place->node ? NULL : inventory_find_gpu(lookup, place->gpus[i]);
        suspect.uuid = place->gpus[i];
        suspect.node = gpu ? gpu->node : place->node;
        if (suspect.node)
            drain_add_suspect(out, &suspect);
    }
}

static struct suspect suspect_of(const struct inventory_outlier *outlier)
{
    const size_t count = outlier->evidence_count;
    return (struct suspect){.node = outlier->node,
                            .uuid = outlier->uuid,
                            .verdict = outlier->verdict,
                            .finding = count ? &outlier->evidence[0] : NULL,
                            .more_findings = count ? count - 1 : 0};
}

/* The outliers: to be drained, and spared because the policy only alerts. */
static void drain_collect(const struct inventory *inventory, struct suspects *out,
                          struct suspects *spared)
{
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *outlier = &inventory->outliers[i];
        const struct suspect suspect = suspect_of(outlier);
        if (outlier->node)
            drain_add_suspect(outlier->action == ACTION_DRAIN ? out : spared, &suspect);
    }
    struct inventory_lookup *lookup = inventory_lookup_create(inventory);
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        if (place->action >= ACTION_ALERT)
            drain_add_place(lookup, place, place->action == ACTION_DRAIN ? out : spared);
    }
    inventory_lookup_destroy(lookup);
}

static struct drain_reason drain_reason_of(const struct suspect *suspect, char *metric)
{
    struct drain_reason reason = {.deviation = NAN};
    if (suspect->finding) {
        reason.cause = suspect->finding->cause;
        reason.metric = suspect->finding->metric;
        reason.deviation = suspect->finding->deviation;
    } else
        drain_reason_split(suspect->place, &reason, metric);
    reason.verdict = suspect->verdict;
    reason.uuid = suspect->uuid;
    reason.more_findings = suspect->more_findings;
    return reason;
}

static double drain_loss_of(const struct suspect *suspect)
{
    char metric[DRAIN_METRIC_CHARS + 1];
    double deviation = drain_reason_of(suspect, metric).deviation;
    return isnan(deviation) ? 0 : fabs(deviation);
}

/* By node; then the most severe verdict, then the largest deviation. */
static int suspect_order(const void *a, const void *b)
{
    const struct suspect *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    if (order)
        return order;
    if (left->verdict != right->verdict)
        return left->verdict < right->verdict ? -1 : 1;
    double left_loss = drain_loss_of(left), right_loss = drain_loss_of(right);
    if (left_loss != right_loss)
        return left_loss > right_loss ? -1 : 1;
    order = str_order(left->uuid, right->uuid);
    return order ? order : str_order(left->place, right->place);
}

/* Brackets and commas would mean several nodes. */
bool drain_is_node_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    enum { HOST_NAME_CHARS = 255 };
    size_t length = strlen(name);
    /* Words, in any case, that scontrol takes for other nodes: the whole cluster, or the local
     * node. */
    return length && length <= HOST_NAME_CHARS && strspn(name, allowed) == length &&
           name[0] != '-' && name[0] != '.' &&
           !(strcasecmp(name, "all") == 0 || strcasecmp(name, "default") == 0 ||
             strcasecmp(name, "localhost") == 0);
}

/* The different UUIDs among the suspects, sorted, freed with free(). */
static const char **drain_sort_uuids(const struct suspect *suspects, size_t count,
                                     size_t *out_different)
{
    const char **uuids = mem_array(count, sizeof *uuids);
    size_t known = 0, different = 0;
    for (size_t i = 0; i < count; i++)
        if (suspects[i].uuid)
            uuids[known++] = suspects[i].uuid;
    sort_stable(uuids, known, sizeof *uuids, str_item_order);
    for (size_t i = 0; i < known; i++)
        if (!i || strcmp(uuids[different - 1], uuids[i]) != 0)
            uuids[different++] = uuids[i];
    *out_different = different;
    return uuids;
}

/* The number of different GPUs that are spared and for which no node is drained. */
static size_t drain_count_spared(const struct suspects *spared, const struct suspects *suspects)
{
    size_t spared_count = 0, drained_count = 0, count = 0;
    const char **uuids = drain_sort_uuids(spared->items, spared->count, &spared_count);
    const char **drained = drain_sort_uuids(suspects->items, suspects->count, &drained_count);
    for (size_t i = 0; i < spared_count; i++)
        count += !bsearch(&uuids[i], drained, drained_count, sizeof *drained, str_item_order);
    free(uuids);
    free(drained);
    return count;
}

/* The line for all suspects of one node: the worst one, and how many more. */
static char *drain_line_of(const struct suspect *suspects, size_t count)
{
    char metric[DRAIN_METRIC_CHARS + 1];
    struct drain_reason reason = drain_reason_of(&suspects[0], metric);
    struct strbuf text = {0};
    size_t different = 0;
    free(drain_sort_uuids(suspects, count, &different));
    reason.more_gpus = different - (different && suspects[0].uuid);
    drain_reason_put(&text, &reason);
    char *line = str_format("scontrol update NodeName=%s State=DRAIN Reason=\"%s\"",
                            suspects[0].node, text.data);
    strbuf_fini(&text);
    return line;
}

void drain_lines_init(struct drain_lines *lines, const struct inventory *inventory,
                      struct strbuf *out_refused)
{
    struct suspects suspects = {0}, spared = {0};
    drain_collect(inventory, &suspects, &spared);
    if (suspects.count)
        sort_stable(suspects.items, suspects.count, sizeof *suspects.items, suspect_order);
    *lines = (struct drain_lines){.items = mem_array(suspects.count, sizeof *lines->items),
                                  .spared = drain_count_spared(&spared, &suspects)};
    for (size_t from = 0, to = 0; from < suspects.count; from = to) {
        const char *node = suspects.items[from].node;
        while (to < suspects.count && strcmp(suspects.items[to].node, node) == 0)
            to++;
        if (!drain_is_node_name(node)) {
            text_put_clean(out_refused, node, REPORT_WIDTH);
            strbuf_puts(out_refused, "\n");
            continue;
        }
        lines->items[lines->count++] =
            (struct drain_line){node, drain_line_of(&suspects.items[from], to - from)};
    }
    free(suspects.items);
    free(spared.items);
}

void drain_lines_fini(struct drain_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].text);
    free(lines->items);
    *lines = (struct drain_lines){0};
}

static int drain_line_order(const void *a, const void *b)
{
    const struct drain_line *left = a, *right = b;
    return strcmp(left->node, right->node);
}

const char *drain_lines_find(const struct drain_lines *lines, const char *node)
{
    const struct drain_line wanted = {.node = node};
    if (!node || !lines->count)
        return NULL;
    const struct drain_line *found =
        bsearch(&wanted, lines->items, lines->count, sizeof *lines->items, drain_line_order);
    return found ? found->text : NULL;
}

char *drain_line_of_gpu(const struct inventory_outlier *outlier)
{
    const struct suspect suspect = suspect_of(outlier);
    return outlier->action == ACTION_DRAIN && outlier->node && drain_is_node_name(outlier->node)
               ? drain_line_of(&suspect, 1)
               : NULL;
}

char *drain_line_of_place(const struct inventory_node *place)
{
    struct suspects suspects = {0};
    if (!place->node || place->action != ACTION_DRAIN || !drain_is_node_name(place->node))
        return NULL;
    drain_add_place(NULL, place, &suspects);
    sort_stable(suspects.items, suspects.count, sizeof *suspects.items, suspect_order);
    char *line = drain_line_of(suspects.items, suspects.count);
    free(suspects.items);
    return line;
}

size_t report_drain(const struct inventory *inventory, struct strbuf *out_lines,
                    struct strbuf *out_refused)
{
    struct drain_lines lines;
    drain_lines_init(&lines, inventory, out_refused);
    for (size_t i = 0; i < lines.count; i++)
        strbuf_printf(out_lines, "%s\n", lines.items[i].text);
    size_t spared = lines.spared;
    drain_lines_fini(&lines);
    return spared;
}

size_t report_exclude(const struct inventory *inventory, struct strbuf *out_list,
                      struct strbuf *out_refused)
{
    struct drain_lines lines;
    drain_lines_init(&lines, inventory, out_refused);
    for (size_t i = 0; i < lines.count; i++)
        strbuf_printf(out_list, "%s%s", i ? "," : "", lines.items[i].node);
    strbuf_puts(out_list, lines.count ? "\n" : "");
    size_t spared = lines.spared;
    drain_lines_fini(&lines);
    return spared;
}
