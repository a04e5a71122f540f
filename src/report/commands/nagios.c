/* gpumemtopo-report nagios FILE: the state of a fleet as one line and the exit code of a monitoring
 * plugin. */
#include "report/commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/sort.h"
#include "markup/text.h"
#include "report/command.h"

enum { NAME_CHARS = 60, TEXT_CHARS = 160 };

/* How far the clock of the machine that made the inventory may be ahead. */
enum { AHEAD_MAX_S = 3600 };

struct counts {
    size_t actions[ACTION_COUNT]; /* outliers, and nodes without GPUs, by what is to be done */
    size_t unmeasured, busy, lost_ranks;
    size_t absent; /* nodes without GPUs, GPUs that are gone */
    double age_s;  /* NaN: the inventory has no valid time */
};

/* A GPU (uuid NULL: a place) and what is to be done with it. */
struct acted_on {
    const char *uuid;
    enum action action;
};

/* The strongest action of a GPU first. */
static int acted_on_order(const void *left, const void *right)
{
    const struct acted_on *a = left, *b = right;
    int order = str_order(a->uuid, b->uuid);
    return order ? order : (a->action < b->action) - (a->action > b->action);
}

/* A GPU may be in `outliers` and in several entries of `nodes`: it counts once. */
static void nagios_count_actions(const struct inventory *inventory, size_t *actions)
{
    size_t room = inventory->outlier_count, count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        room += inventory->node_findings[i].gpu_count + 1;
    struct acted_on *items = mem_array(room, sizeof *items);
    for (size_t i = 0; i < inventory->outlier_count; i++)
        items[count++] =
            (struct acted_on){inventory->outliers[i].uuid, inventory->outliers[i].action};
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        if (place->action < ACTION_ALERT)
            continue;
        for (size_t g = 0; g < place->gpu_count; g++)
            items[count++] = (struct acted_on){place->gpus[g], place->action};
        if (!place->gpu_count)
            items[count++] = (struct acted_on){NULL, place->action};
    }
    if (count)
        sort_stable(items, count, sizeof *items, acted_on_order);
    for (size_t i = 0; i < count; i++)
        if (!i || !items[i].uuid || !str_equal(items[i - 1].uuid, items[i].uuid))
            actions[items[i].action]++;
    free(items);
}

static void nagios_count_all(const struct inventory *inventory, int64_t now_s, struct counts *out)
{
    int64_t made_s;
    *out = (struct counts){.unmeasured = inventory->total_unmeasured,
                           .lost_ranks = inventory->total_lost_ranks,
                           .age_s = NAN};
    if (!clock_parse_stamp(inventory->generated, &made_s))
        out->age_s = (double)(now_s - made_s);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        out->busy += inventory->gpus[i].status == GPU_BUSY && inventory->gpus[i].value_count;
    /* Without a GPU and only told: a node that shows none, or a GPU that the baseline had. */
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        out->absent += inventory->node_findings[i].node && !inventory->node_findings[i].gpu_count &&
                       inventory->node_findings[i].action < ACTION_ALERT;
    nagios_count_actions(inventory, out->actions);
}

/* Why nothing can be said; NULL if it can. */
static const char *unknown_reason(const struct inventory *inventory, const struct counts *counts,
                                  const struct nagios_limits *limits)
{
    if (limits->max_age_s > 0 && isnan(counts->age_s))
        return "the inventory has no valid time";
    if (limits->max_age_s > 0 && counts->age_s > limits->max_age_s)
        return "the inventory is too old";
    if (limits->max_age_s > 0 && counts->age_s < -AHEAD_MAX_S)
        return "the time of the inventory is in the future";
    if (counts->actions[ACTION_DRAIN])
        return NULL;
    return inventory->total_measured ? NULL : "no GPU was measured";
}

static enum nagios_state nagios_state_of(const struct inventory *inventory,
                                         const struct counts *counts,
                                         const struct nagios_limits *limits)
{
    if (counts->actions[ACTION_DRAIN])
        return NAGIOS_CRITICAL;
    bool warn = counts->actions[ACTION_ALERT] || inventory_is_incomplete(inventory) ||
                counts->busy || counts->absent || (limits->warn_watch && inventory->watch_count);
    return warn ? NAGIOS_WARNING : NAGIOS_OK;
}

static void nagios_put_part(struct strbuf *out, size_t count, const char *what)
{
    if (count)
        strbuf_printf(out, "%zu %s, ", count, what);
}

static void nagios_put_counts(struct strbuf *out, const struct inventory *inventory,
                              const struct counts *counts)
{
    nagios_put_part(out, counts->actions[ACTION_DRAIN], "to drain");
    nagios_put_part(out, counts->actions[ACTION_ALERT], "alerted");
    nagios_put_part(out, counts->unmeasured, "not measured");
    nagios_put_part(out, counts->busy, "busy");
    nagios_put_part(out, counts->lost_ranks, counts->lost_ranks == 1 ? "rank lost" : "ranks lost");
    nagios_put_part(out, inventory->total_unplanned, "without a plan: others may be missing");
    nagios_put_part(out, inventory->unread_files,
                    inventory->unread_files == 1 ? "file not read" : "files not read");
    nagios_put_part(out, counts->absent, "missing");
    nagios_put_part(out, inventory->watch_count, "told");
    strbuf_printf(out, "%u of %u GPUs measured", inventory->total_measured, inventory->total_gpus);
}

static double nagios_loss_of(const struct inventory_outlier *outlier)
{
    return isnan(outlier->loss) ? 0 : outlier->loss;
}

static bool nagios_is_worse(const struct inventory_outlier *a, const struct inventory_outlier *b)
{
    if (a->action != b->action)
        return a->action > b->action;
    return a->verdict != b->verdict ? a->verdict < b->verdict
                                    : nagios_loss_of(a) > nagios_loss_of(b);
}

static void nagios_put_gpu(struct strbuf *out, const char *node, const char *uuid,
                           const char *state, const char *cause)
{
    strbuf_puts(out, "; ");
    text_put_clean(out, node, NAME_CHARS);
    strbuf_puts(out, " ");
    text_put_clean(out, uuid, NAME_CHARS);
    strbuf_printf(out, " %s: ", state);
    text_put_clean(out, cause, TEXT_CHARS);
}

/* The worst GPU or place by name. */
static void nagios_put_worst(struct strbuf *out, const struct inventory *inventory)
{
    const struct inventory_outlier *outlier = NULL;
    const struct inventory_node *place = NULL;
    for (size_t i = 0; i < inventory->outlier_count; i++)
        if (!outlier || nagios_is_worse(&inventory->outliers[i], outlier))
            outlier = &inventory->outliers[i];
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *other = &inventory->node_findings[i];
        if (other->action >= ACTION_ALERT &&
            (!place || other->action > place->action ||
             (other->action == place->action && other->verdict < place->verdict)))
            place = other;
    }
    if (place && (!outlier || place->action > outlier->action ||
                  (place->action == outlier->action && place->verdict < outlier->verdict))) {
        nagios_put_gpu(out, place->node, NULL, verdict_name(place->verdict), place->finding);
    } else if (outlier) {
        nagios_put_gpu(out, outlier->node, outlier->uuid, verdict_name(outlier->verdict),
                       outlier->evidence_count ? outlier->evidence[0].cause : NULL);
    } else if (inventory->unmeasured_count) {
        const struct inventory_unmeasured *first = &inventory->unmeasured[0];
        nagios_put_gpu(out, first->node, first->uuid, gpu_status_name(first->status),
                       first->reason);
    }
}

/* label=value;warn;crit;min, with the limits that nagios_state_of has. */
static void nagios_put_data(struct strbuf *out, const struct inventory *inventory,
                            const struct counts *counts, const struct nagios_limits *limits)
{
    strbuf_printf(out, " | gpus=%u;;;0 measured=%u;;;0", inventory->total_gpus,
                  inventory->total_measured);
    strbuf_printf(out, " drain=%zu;;0;0 alert=%zu;0;;0", counts->actions[ACTION_DRAIN],
                  counts->actions[ACTION_ALERT]);
    strbuf_printf(out, " unmeasured=%zu;0;;0 busy=%zu;0;;0 lost_ranks=%zu;0;;0 missing=%zu;0;;0",
                  counts->unmeasured, counts->busy, counts->lost_ranks, counts->absent);
    strbuf_printf(out, " tell=%zu;%s;;0", inventory->watch_count, limits->warn_watch ? "0" : "");
    if (limits->max_age_s > 0 && isfinite(counts->age_s))
        strbuf_printf(out, " age=%.0fs;;;0", counts->age_s);
    strbuf_puts(out, "\n");
}

enum nagios_state report_nagios(const struct inventory *inventory,
                                const struct nagios_limits *limits, struct strbuf *out_line)
{
    static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    struct counts counts;
    nagios_count_all(inventory, limits->now_s, &counts);
    const char *unknown = unknown_reason(inventory, &counts, limits);
    enum nagios_state state =
        unknown ? NAGIOS_UNKNOWN : nagios_state_of(inventory, &counts, limits);
    strbuf_printf(out_line, "GPUMEMTOPO %s - ", names[state]);
    if (unknown)
        strbuf_printf(out_line, "%s: ", unknown);
    nagios_put_counts(out_line, inventory, &counts);
    nagios_put_worst(out_line, inventory);
    for (size_t i = 0; i < out_line->length; i++) /* '|' begins the performance data */
        out_line->data[i] = out_line->data[i] == '|' ? '/' : out_line->data[i];
    nagios_put_data(out_line, inventory, &counts, limits);
    return state;
}

/* If nobody says otherwise: a daily survey may be late by a day. */
static const double default_max_age_h = 48;

/* Without allocation, since memory may be what is lacking. The answer belongs on stdout, where a
 * monitor looks for it. */
int command_nagios_failed(const struct err *err)
{
    char text[ERR_LINE_MAX], line[ERR_LINE_MAX + 32];
    int length = snprintf(line, sizeof line, "GPUMEMTOPO UNKNOWN - %s\n",
                          err_format(err, text, sizeof text));
    for (int i = 0; i < length; i++) /* '|' begins the performance data */
        line[i] = line[i] == '|' ? '/' : line[i];
    io_write_all(STDOUT_FILENO, line, (size_t)length);
    return NAGIOS_UNKNOWN;
}

static int nagios_read_limits(const struct command_options *options, struct nagios_limits *out,
                              struct err *err)
{
    double hours = default_max_age_h;
    if (options->max_age && (str_parse_f64(options->max_age, &hours) || hours < 0))
        return err_set(err, -EINVAL, "--max-age is a number of hours, not \"%.40s\"",
                       options->max_age);
    *out = (struct nagios_limits){.now_s = (int64_t)(clock_utc_ms() / 1000),
                                  .max_age_s = 3600 * hours,
                                  .warn_watch = options->warn_watch};
    return 0;
}

/* Also where memory ends the answer is UNKNOWN. */
static void nagios_exhausted(size_t bytes)
{
    (void)bytes;
    const struct err err = {.text = "out of memory"};
    _exit(command_nagios_failed(&err));
}

int command_nagios(const struct command_options *options)
{
    struct inventory inventory, *const given[] = {&inventory};
    struct nagios_limits limits;
    struct strbuf line = {0};
    struct err err = {0};
    mem_on_exhausted(nagios_exhausted);
    if (nagios_read_limits(options, &limits, &err) ||
        inventory_read_file(options->files[0], &inventory, &err))
        return command_nagios_failed(&err);
    command_anonymise(options, given, 1, NULL);
    enum nagios_state state = report_nagios(&inventory, &limits, &line);
    inventory_fini(&inventory);
    return command_write(&line, NULL) == EXIT_DONE ? (int)state : NAGIOS_UNKNOWN;
}
