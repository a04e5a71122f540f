/* The summary of an inventory: what needs action, the most severe first, then what the GPUs of each
 * model are like. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "markup/text.h"
#include "report/summary_parts.h"

/* Keeps the text short; `show --all` and the inventory have the rest. */
enum { CALLED_MAX = 20, UNMEASURED_MAX = 8, REMARKS_MAX = 8, WATCHED_MAX = 3, NAME_MAX = 24 };

/* What is to be done with the GPUs of a verdict in general. */
static const struct {
    const char *title, *next;
} headings[VERDICT_COUNT] = {
    [VERDICT_FAILING] = {"FAILING", "reset or replace the GPU"},
    [VERDICT_DEGRADED] = {"DEGRADED", "look at cooling, power and slot, then replace the GPU"},
    [VERDICT_MISCONFIGURED] = {"MISCONFIGURED", "give the GPU the settings of the others"},
    [VERDICT_MISMATCHED] = {"MISMATCHED", "compare the GPU with what was ordered"},
    [VERDICT_UNSTEADY] = {"UNSTEADY",
                          "look for other processes and for heat, then survey it again"},
    [VERDICT_BUILT_SLOWER] = {"BUILT SLOWER", "the GPU was built so"},
    [VERDICT_UNKNOWN] = {"UNKNOWN", "survey it again"},
};

/* What calls for an action: a GPU, or a node or model as a whole. */
struct entry {
    const struct inventory_outlier *gpu; /* NULL: a place */
    const struct inventory_node *place;
    enum verdict verdict;
    enum action action;
    double loss;
};

/* By severity; failures without a loss before those with one, places before GPUs. */
static int by_severity(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    double x = isfinite(left->loss) ? left->loss : 2, y = isfinite(right->loss) ? right->loss : 2;
    if (left->verdict != right->verdict)
        return left->verdict < right->verdict ? -1 : 1;
    if (left->action != right->action)
        return left->action > right->action ? -1 : 1;
    if (!left->gpu != !right->gpu)
        return left->gpu ? 1 : -1;
    return (x < y) - (x > y);
}

/* Freed with free(). */
static struct entry *collect_entries(const struct inventory *v, size_t *out_count)
{
    struct entry *entries =
        mem_array(v->outlier_count + v->node_finding_count + 1, sizeof *entries);
    size_t count = 0;
    for (size_t i = 0; i < v->outlier_count; i++) {
        const struct inventory_outlier *gpu = &v->outliers[i];
        entries[count++] = (struct entry){gpu, NULL, gpu->verdict, gpu->action, gpu->loss};
    }
    for (size_t i = 0; i < v->node_finding_count; i++) {
        const struct inventory_node *place = &v->node_findings[i];
        if (place->action >= ACTION_ALERT)
            entries[count++] =
                (struct entry){NULL, place, place->verdict, place->action, place->loss};
    }
    sort_stable(entries, count, sizeof *entries, by_severity);
    *out_count = count;
    return entries;
}

/* "demo2 1b:00.0": the domain 0000 is left out. The index of a GPU is no name: that of nvidia-smi
 * and that of the device file differ on some machines. An instance (MIG) has the UUID only. */
static void put_place(struct strbuf *out, const char *node, const char *pci, const char *uuid)
{
    enum { UUID_COLUMNS = 12 }; /* "MIG-0c607ca4", "0001:1b:00.0" */
    size_t zeros = pci ? strspn(pci, "0") : 0;
    text_put_clean(out, node, NAME_MAX);
    strbuf_puts(out, " ");
    if (uuid && (!pci || strncmp(uuid, "MIG-", 4) == 0)) {
        char *first = str_copy_n(uuid, strnlen(uuid, UUID_COLUMNS));
        text_put_clean(out, first, UUID_COLUMNS);
        free(first);
    } else if (pci)
        text_put_clean(out, zeros && pci[zeros] == ':' ? pci + zeros + 1 : pci, UUID_COLUMNS);
    else
        strbuf_puts(out, "unknown GPU");
}

/* Takes over the place and begins an entry with it; what follows begins at column `indent`. */
static void put_head(struct strbuf *out, struct strbuf *place, unsigned indent)
{
    const unsigned columns = indent - 4;
    strbuf_puts(out, "  ");
    if (text_columns(place->data, columns) > columns) {
        strbuf_puts(out, place->data);
        strbuf_printf(out, "\n%*s", (int)indent, "");
    } else {
        text_put_column(out, place->data, columns);
        strbuf_puts(out, "  ");
    }
    strbuf_fini(place);
}

static void put_gpu(struct strbuf *out, const struct report_style *style,
                    const struct inventory_outlier *gpu, unsigned indent)
{
    struct strbuf place = {0};
    put_place(&place, gpu->node, gpu->pci, gpu->uuid);
    put_head(out, &place, indent);
    report_put_outlier_briefly(out, style, gpu, indent);
}

static void put_whole(struct strbuf *out, const struct report_style *style,
                      const struct inventory_node *place, unsigned indent)
{
    struct strbuf name = {0}, line = {0};
    text_put_clean(&name, place->node ? place->node : "as a whole", NAME_MAX);
    put_head(out, &name, indent);
    text_put_clean(&line, place->finding, REPORT_SENTENCE_MAX);
    report_end_line(out, style, &line, indent, indent);
}

static void put_title(struct strbuf *out, const struct report_style *style, enum report_paint paint,
                      const char *title)
{
    strbuf_puts(out, "\n");
    report_put_painted(out, style, paint, title);
}

static void put_heading(struct strbuf *out, const struct report_style *style,
                        const struct entry *first, size_t count)
{
    const bool drain = first->action == ACTION_DRAIN;
    const char *title = headings[first->verdict].title;
    struct strbuf line = {0};
    put_title(out, style, drain ? REPORT_RED : REPORT_YELLOW, title);
    strbuf_printf(&line, " (%zu): %s; %s", count,
                  drain ? "drain the node" : "no node is drained for it",
                  headings[first->verdict].next);
    report_end_line(out, style, &line, (unsigned)strlen(title), 4);
}

/* A list for each verdict and action, the most severe first. */
static void put_called(struct strbuf *out, const struct report_style *style,
                       const struct inventory *v, unsigned indent)
{
    size_t count, shown = 0;
    struct entry *entries = collect_entries(v, &count);
    for (size_t first = 0, end; first < count; first = end) {
        size_t hidden = 0;
        for (end = first; end < count && entries[end].verdict == entries[first].verdict &&
                          entries[end].action == entries[first].action;)
            end++;
        put_heading(out, style, &entries[first], end - first);
        for (size_t i = first; i < end; i++)
            if (shown++ >= CALLED_MAX)
                hidden++;
            else if (entries[i].gpu)
                put_gpu(out, style, entries[i].gpu, indent);
            else
                put_whole(out, style, entries[i].place, indent);
        if (hidden)
            strbuf_printf(out, "  and %zu more\n", hidden);
    }
    free(entries);
}

static const char *pci_of(const struct inventory *v, const char *uuid)
{
    for (size_t i = 0; i < v->gpu_count; i++)
        if (str_equal(v->gpus[i].uuid, uuid))
            return v->gpus[i].pci;
    return NULL;
}

static void put_one_unmeasured(struct strbuf *out, const struct report_style *style,
                               const struct inventory *v, const struct inventory_unmeasured *gpu,
                               unsigned indent)
{
    struct strbuf place = {0}, line = {0};
    put_place(&place, gpu->node, gpu->uuid ? pci_of(v, gpu->uuid) : NULL, gpu->uuid);
    put_head(out, &place, indent);
    strbuf_puts(&line, gpu_status_name(gpu->status));
    if (gpu->reason) {
        strbuf_puts(&line, ": ");
        text_put_clean(&line, gpu->reason, REPORT_SENTENCE_MAX);
    }
    report_end_line(out, style, &line, indent, indent);
}

/* GPUs that are among the outliers have been listed with these. */
static void put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory *v, const struct uuid_set *outliers,
                           unsigned indent)
{
    size_t count = 0;
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        if (uuid_set_has(outliers, v->unmeasured[i].uuid))
            continue;
        if (!count)
            put_title(out, style, REPORT_BOLD, "NOT MEASURED\n");
        if (count++ < UNMEASURED_MAX)
            put_one_unmeasured(out, style, v, &v->unmeasured[i], indent);
    }
    if (count > UNMEASURED_MAX)
        strbuf_printf(out, "  and %zu more\n", count - UNMEASURED_MAX);
}

/* What is only told of nodes and models. */
static void put_remarks(struct strbuf *out, const struct report_style *style,
                        const struct inventory *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->node_finding_count; i++) {
        const struct inventory_node *place = &v->node_findings[i];
        struct strbuf line = {0};
        if (place->action >= ACTION_ALERT)
            continue;
        if (!count)
            put_title(out, style, REPORT_BOLD, "NODES AND MODELS\n");
        if (count++ >= REMARKS_MAX)
            continue;
        if (place->node) {
            text_put_clean(&line, place->node, NAME_MAX);
            strbuf_puts(&line, ": ");
        }
        text_put_clean(&line, place->finding, REPORT_SENTENCE_MAX);
        strbuf_puts(out, "  ");
        report_end_line(out, style, &line, 2, 4);
    }
    if (count > REMARKS_MAX)
        strbuf_printf(out, "  and %zu more\n", count - REMARKS_MAX);
}

/* GPUs that are among the outliers have been listed with these. */
static void put_watched(struct strbuf *out, const struct report_style *style,
                        const struct inventory *v, const struct uuid_set *outliers, unsigned indent)
{
    size_t count = 0;
    for (size_t i = 0; i < v->watch_count; i++) {
        if (uuid_set_has(outliers, v->watch[i].uuid))
            continue;
        if (!count) {
            put_title(out, style, REPORT_BOLD, "TO WATCH");
            strbuf_puts(out, ": nothing is to be done\n");
        }
        if (count++ < WATCHED_MAX)
            put_gpu(out, style, &v->watch[i], indent);
    }
    if (count > WATCHED_MAX)
        strbuf_printf(out, "  and %zu more\n", count - WATCHED_MAX);
}

/* The column at which the texts of all entries begin: behind the longest place, but not too far. */
static unsigned entries_indent(const struct inventory *v, const struct report_style *style)
{
    enum { PCI = 7, UUID = 12, AROUND = 5, LEAST = 12 }; /* "1b:00.0", "MIG-0c607ca4" */
    const unsigned most = (style ? style->width : REPORT_WIDTH) / 3;
    unsigned widest = 0, gpu = PCI;
    for (size_t i = 0; i < v->gpu_count; i++) {
        const char *node = v->gpus[i].node ? v->gpus[i].node : "-", *uuid = v->gpus[i].uuid;
        unsigned columns = text_columns(node, NAME_MAX);
        widest = columns > widest ? columns : widest;
        if (!v->gpus[i].pci || (uuid && strncmp(uuid, "MIG-", 4) == 0))
            gpu = UUID;
    }
    widest = (widest < NAME_MAX ? widest : NAME_MAX) + gpu + AROUND;
    return widest < LEAST ? LEAST : widest < most ? widest : most;
}

/* The path as one word of a shell; empty if it cannot be one that is easy to read. */
static void put_path(struct strbuf *out, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "/._-+,:@%=";
    enum { PATH_COLUMNS_MAX = 200 };
    struct strbuf clean = {0};
    text_put_clean(&clean, path, PATH_COLUMNS_MAX);
    if (str_equal(clean.data, path) && !strchr(path, '\'') && path[0] != '-')
        strbuf_printf(out, path[strspn(path, plain)] ? "'%s'" : "%s", path);
    strbuf_fini(&clean);
}

/* A command in a line, however long it is: it is to be copied. */
static void put_next(struct strbuf *out, const struct inventory *v, const char *file)
{
    struct strbuf path = {0};
    put_path(&path, file);
    if (path.length) {
        strbuf_printf(out, "\nNext: gpumemtopo-report show --all %s\n", path.data);
        if (summary_count_drained(v))
            strbuf_printf(out, "      gpumemtopo-report drain %s    # prints commands\n",
                          path.data);
    }
    strbuf_fini(&path);
}

void report_summary(const struct inventory *inventory, const char *file,
                    const struct report_style *style, struct strbuf *out_text)
{
    const struct inventory *v = inventory;
    const unsigned indent = entries_indent(v, style);
    struct uuid_set outliers = uuid_set_of(v->outliers, v->outlier_count);
    summary_put_head(out_text, style, v);
    put_called(out_text, style, v, indent);
    put_unmeasured(out_text, style, v, &outliers, indent);
    put_remarks(out_text, style, v);
    put_watched(out_text, style, v, &outliers, indent);
    summary_put_models(out_text, style, v);
    if (file && !v->anonymous) /* the path may be a name */
        put_next(out_text, v, file);
    uuid_set_fini(&outliers);
}
