/* The first lines of a summary: what was measured, and the verdict in one sentence. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/drain.h"
#include "report/summary.h"
#include "report/summary_parts.h"

struct uuid_set uuid_set_of(const struct inventory_outlier *entries, size_t count)
{
    struct uuid_set set = {.items = mem_array(count + 1, sizeof *set.items), .count = count};
    for (size_t i = 0; i < count; i++)
        set.items[i] = entries[i].uuid ? entries[i].uuid : "";
    sort_stable(set.items, count, sizeof *set.items, str_item_order);
    return set;
}

bool uuid_set_has(const struct uuid_set *set, const char *uuid)
{
    return uuid && bsearch(&uuid, set->items, set->count, sizeof *set->items, str_item_order);
}

void uuid_set_fini(struct uuid_set *set)
{
    free(set->items);
    *set = (struct uuid_set){0};
}

size_t summary_count_drained(const struct inventory *inventory)
{
    struct strbuf refused = {0};
    struct drain_lines drains;
    drain_lines_init(&drains, inventory, &refused);
    size_t count = drains.count;
    drain_lines_fini(&drains);
    strbuf_fini(&refused);
    return count;
}

/* What calls for an action: GPUs, and nodes or models as a whole, also by verdict. */
struct called {
    size_t gpus, nodes, others; /* others: neither a GPU nor a node */
    size_t by_verdict[VERDICT_COUNT];
};

static struct called count_called(const struct inventory *v)
{
    struct called called = {.gpus = v->outlier_count};
    for (size_t i = 0; i < v->outlier_count; i++)
        called.by_verdict[v->outliers[i].verdict]++;
    for (size_t i = 0; i < v->node_finding_count; i++) {
        const struct inventory_node *place = &v->node_findings[i];
        if (place->action < ACTION_ALERT)
            continue;
        called.by_verdict[place->verdict]++;
        *(place->node ? &called.nodes : &called.others) += 1;
    }
    return called;
}

/* "9 GPUs and 1 node need action (2 failing, 8 degraded)". */
static void put_called(struct strbuf *out, const struct called *called)
{
    const size_t all = called->gpus + called->nodes + called->others;
    size_t ways = 0;
    if (called->gpus)
        report_put_count(out, called->gpus, "GPU", "GPUs");
    if (called->gpus && all > called->gpus)
        strbuf_puts(out, " and ");
    if (called->nodes)
        report_put_count(out, called->nodes, "node", "nodes");
    if (called->nodes && called->others)
        strbuf_puts(out, " and ");
    if (called->others)
        report_put_count(out, called->others, "slot or model", "slots or models");
    strbuf_puts(out, all == 1 ? " needs action" : " need action");
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        if (called->by_verdict[verdict])
            strbuf_printf(out, "%s%zu %s", ways++ ? ", " : " (", called->by_verdict[verdict],
                          verdict_name((enum verdict)verdict));
    strbuf_puts(out, ")");
}

void report_verdict(const struct inventory *inventory, struct strbuf *out_text)
{
    const struct inventory *v = inventory;
    const struct called called = count_called(v);
    struct uuid_set outliers = uuid_set_of(v->outliers, v->outlier_count);
    struct uuid_set watched = uuid_set_of(v->watch, v->watch_count);
    size_t to_watch = 0, others = 0, drained = summary_count_drained(v);
    for (size_t i = 0; i < v->watch_count; i++)
        to_watch += !uuid_set_has(&outliers, v->watch[i].uuid);
    for (size_t i = 0; i < v->gpu_count; i++)
        others += v->gpus[i].status == GPU_OK && !uuid_set_has(&watched, v->gpus[i].uuid);
    uuid_set_fini(&outliers);
    uuid_set_fini(&watched);
    if (called.gpus + called.nodes + called.others)
        put_called(out_text, &called);
    else
        strbuf_puts(out_text, v->total_measured ? "nothing needs action" : "nothing was judged");
    if (drained) {
        strbuf_puts(out_text, ", ");
        report_put_count(out_text, drained, "node to drain", "nodes to drain");
    }
    if (to_watch)
        strbuf_printf(out_text, "; %zu to watch", to_watch);
    strbuf_printf(out_text, "; %zu without findings", others);
}

static void put_measured(struct strbuf *out, const struct report_style *style,
                         const struct inventory *v)
{
    struct strbuf line = {0};
    size_t busy = 0;
    for (size_t i = 0; i < v->gpu_count; i++)
        busy += v->gpus[i].status == GPU_BUSY && v->gpus[i].value_count;
    report_put_count(&line, v->total_gpus, "GPU", "GPUs");
    strbuf_puts(&line, " on ");
    report_put_count(&line, v->total_nodes, "node", "nodes");
    strbuf_puts(&line, str_equal(v->backend, "sim") ? " (simulated)" : "");
    strbuf_printf(&line, ": %u measured", v->total_measured);
    if (busy)
        strbuf_printf(&line, " (%zu busy: not judged)", busy);
    if (v->total_unmeasured)
        strbuf_printf(&line, ", %u not measured", v->total_unmeasured);
    if (v->total_lost_ranks) {
        strbuf_puts(&line, ", ");
        report_put_count(&line, v->total_lost_ranks, "rank lost", "ranks lost");
    }
    if (isfinite(v->wall_s))
        strbuf_printf(&line, "; %.1f s", v->wall_s);
    report_end_line(out, style, &line, 0, 4);
}

void summary_put_head(struct strbuf *out, const struct report_style *style,
                      const struct inventory *inventory)
{
    const struct inventory *v = inventory;
    struct strbuf line = {0};
    put_measured(out, style, v);
    if (v->total_gpus || inventory_action(v) >= ACTION_ALERT) {
        report_verdict(v, &line);
        strbuf_puts(out, "  ");
        report_end_line(out, style, &line, 2, 4);
    }
    if (v->total_unplanned) {
        strbuf_printf(
            &line,
            "GPUs may be missing: the plan of the survey that measured %u of these was not there",
            v->total_unplanned);
        report_end_line(out, style, &line, 0, 4);
    }
    if (v->unread_files) {
        strbuf_puts(&line, "GPUs may be missing: ");
        report_put_count(&line, v->unread_files, "file", "files");
        strbuf_puts(&line, " could not be read when this inventory was merged");
        report_end_line(out, style, &line, 0, 4);
    }
}
