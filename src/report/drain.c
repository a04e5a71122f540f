/* Commands that drain bad nodes. */
#include "report/drain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "report/text.h"

/* One bad GPU. */
struct suspect {
    const char *node;
    enum inventory_kind kind;
    const char *pci;
    const char *what; /* its first finding */
};

struct suspects {
    struct suspect *items;
    size_t count, capacity;
};

static bool is_bad(enum inventory_kind kind)
{
    return kind == KIND_FAILING || kind == KIND_DEGRADED;
}

static int add(struct suspects *suspects, const struct suspect *suspect)
{
    struct suspect *grown =
        mem_grow(suspects->items, &suspects->capacity, suspects->count + 1, sizeof *grown);
    if (!grown)
        return -1;
    suspects->items = grown;
    grown[suspects->count++] = *suspect;
    return 0;
}

static int gpu_order(const void *a, const void *b)
{
    const struct inventory_gpu *const *left = a, *const *right = b;
    return str_order((*left)->uuid, (*right)->uuid);
}

/* All GPUs sorted by UUID, freed with free(); NULL: out of memory. */
static const struct inventory_gpu **sort_gpus(const struct inventory *inventory)
{
    const struct inventory_gpu **gpus = mem_array(inventory->gpu_count, sizeof *gpus);
    for (size_t i = 0; gpus && i < inventory->gpu_count; i++)
        gpus[i] = &inventory->gpus[i];
    if (gpus && inventory->gpu_count)
        qsort(gpus, inventory->gpu_count, sizeof *gpus, gpu_order);
    return gpus;
}

/* A finding about a slot or a model concerns every node with one of its GPUs. */
static int add_nodes(const struct inventory *inventory, const struct inventory_node *place,
                     const struct inventory_gpu **gpus, struct suspects *out)
{
    for (size_t i = 0; i < place->gpu_count; i++) {
        const struct inventory_gpu wanted = {.uuid = place->gpus[i]}, *key = &wanted;
        const struct inventory_gpu **found =
            inventory->gpu_count
                ? bsearch(&key, gpus, inventory->gpu_count, sizeof *gpus, gpu_order)
                : NULL;
        const struct suspect suspect = {
            .node = found ? (*found)->node : NULL, .kind = place->kind, .what = place->finding};
        if (suspect.node && add(out, &suspect))
            return -1;
    }
    return 0;
}

static int collect_places(const struct inventory *inventory, struct suspects *out)
{
    const struct inventory_gpu **gpus = sort_gpus(inventory);
    int rc = gpus ? 0 : -1;
    for (size_t i = 0; i < inventory->node_finding_count && !rc; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        const struct suspect suspect = {
            .node = place->node, .kind = place->kind, .what = place->finding};
        if (!place->accused || !is_bad(place->kind))
            continue;
        rc = place->node ? add(out, &suspect) : add_nodes(inventory, place, gpus, out);
    }
    free(gpus);
    return rc;
}

static int collect(const struct inventory *inventory, struct suspects *out)
{
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *outlier = &inventory->outliers[i];
        const struct suspect suspect = {
            .node = outlier->node,
            .kind = outlier->kind,
            .pci = outlier->pci,
            .what = outlier->finding_count ? outlier->findings[0].metric : NULL,
        };
        if (is_bad(outlier->kind) && outlier->node && add(out, &suspect))
            return -1;
    }
    return collect_places(inventory, out);
}

static int suspect_order(const void *a, const void *b)
{
    const struct suspect *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    if (!order)
        order = (left->kind > right->kind) - (left->kind < right->kind);
    if (!order)
        order = str_order(left->pci, right->pci);
    return order ? order : str_order(left->what, right->what);
}

/* Words, in any case, that scontrol takes for other nodes: the whole cluster, or the local node. */
static bool is_keyword(const char *name)
{
    return strcasecmp(name, "all") == 0 || strcasecmp(name, "default") == 0 ||
           strcasecmp(name, "localhost") == 0;
}

/* A host name as RFC 1123 and Slurm define it. Brackets and commas would mean several nodes. */
static bool is_node_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    enum { HOST_NAME_CHARS = 255 };
    size_t length = strlen(name);
    return length && length <= HOST_NAME_CHARS && strspn(name, allowed) == length &&
           name[0] != '-' && name[0] != '.' && !is_keyword(name);
}

/* Keeps letters, digits and a few harmless signs. Everything else becomes '_', also characters that
 * a shell interprets inside double quotes ($ ` \ " !). */
static void put_safe(struct strbuf *out, const char *text, size_t length_max)
{
    static const char signs[] = " .,:;/+-_()%=";
    for (size_t i = 0; text[i] && i < length_max; i++) {
        unsigned char c = (unsigned char)text[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        strbuf_append(out, word || strchr(signs, c) ? text + i : "_", 1);
    }
}

/* The line for all suspects of one node: the worst kind and the findings. NULL: out of memory. */
static char *line_of(const struct suspect *suspects, size_t count)
{
    enum { WHAT_CHARS = 60, REASON_CHARS = 200 };
    struct strbuf reason = {0};
    strbuf_printf(&reason, "gpumemtopo: %s:", inventory_kind_name(suspects[0].kind));
    for (size_t i = 0; i < count && reason.length < REASON_CHARS - WHAT_CHARS; i++) {
        if (i && suspect_order(&suspects[i - 1], &suspects[i]) == 0)
            continue;
        strbuf_puts(&reason, i ? ", " : " ");
        if (suspects[i].pci)
            put_safe(&reason, suspects[i].pci, WHAT_CHARS / 3);
        if (suspects[i].pci && suspects[i].what)
            strbuf_puts(&reason, " ");
        if (suspects[i].what)
            put_safe(&reason, suspects[i].what, WHAT_CHARS);
    }
    char *line = reason.failed ? NULL
                               : str_format("scontrol update NodeName=%s State=DRAIN Reason=\"%s\"",
                                            suspects[0].node, reason.data);
    strbuf_fini(&reason);
    return line;
}

/* suspects must be sorted. 0 or -ENOMEM. */
static int fill_lines(struct drain_lines *lines, const struct suspects *suspects,
                      struct strbuf *out_refused)
{
    lines->items = mem_array(suspects->count, sizeof *lines->items);
    if (!lines->items)
        return -ENOMEM;
    for (size_t from = 0, to = 0; from < suspects->count; from = to) {
        const char *node = suspects->items[from].node;
        while (to < suspects->count && strcmp(suspects->items[to].node, node) == 0)
            to++;
        if (!is_node_name(node)) {
            report_put_clean(out_refused, node, REPORT_WIDTH);
            strbuf_puts(out_refused, "\n");
            continue;
        }
        char *text = line_of(&suspects->items[from], to - from);
        if (!text)
            return -ENOMEM;
        lines->items[lines->count++] = (struct drain_line){node, text};
    }
    return out_refused->failed ? -ENOMEM : 0;
}

int drain_lines_init(struct drain_lines *lines, const struct inventory *inventory,
                     struct strbuf *out_refused, struct err *err)
{
    struct suspects suspects = {0};
    *lines = (struct drain_lines){0};
    if (collect(inventory, &suspects))
        goto no_memory;
    if (suspects.count)
        qsort(suspects.items, suspects.count, sizeof *suspects.items, suspect_order);
    if (fill_lines(lines, &suspects, out_refused))
        goto no_memory;
    free(suspects.items);
    return 0;
no_memory:
    free(suspects.items);
    drain_lines_fini(lines);
    return err_no_memory(err);
}

void drain_lines_fini(struct drain_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].text);
    free(lines->items);
    *lines = (struct drain_lines){0};
}

static int line_order(const void *a, const void *b)
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
        bsearch(&wanted, lines->items, lines->count, sizeof *lines->items, line_order);
    return found ? found->text : NULL;
}

int report_drain(const struct inventory *inventory, struct strbuf *out_lines,
                 struct strbuf *out_refused, struct err *err)
{
    struct drain_lines lines;
    int rc = drain_lines_init(&lines, inventory, out_refused, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < lines.count; i++)
        strbuf_printf(out_lines, "%s\n", lines.items[i].text);
    drain_lines_fini(&lines);
    return out_lines->failed ? err_no_memory(err) : 0;
}

int report_exclude(const struct inventory *inventory, struct strbuf *out_list,
                   struct strbuf *out_refused, struct err *err)
{
    struct drain_lines lines;
    int rc = drain_lines_init(&lines, inventory, out_refused, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < lines.count; i++)
        strbuf_printf(out_list, "%s%s", i ? "," : "", lines.items[i].node);
    strbuf_puts(out_list, lines.count ? "\n" : "");
    drain_lines_fini(&lines);
    return out_list->failed ? err_no_memory(err) : 0;
}
