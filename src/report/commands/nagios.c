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

enum { KIND_COUNT = KIND_MISMATCHED + 1, NAME_CHARS = 60, TEXT_CHARS = 160 };

/* How far the clock of the machine that made the inventory may be ahead. */
enum { AHEAD_MAX_S = 3600 };

struct counts {
    size_t kinds[KIND_COUNT]; /* accused GPUs by their most severe kind, and accused nodes without
                                 GPUs */
    size_t unmeasured, busy, lost_ranks;
    size_t absent; /* nodes without GPUs, GPUs that are gone */
    double age_s;  /* NaN: the inventory has no valid time */
};

/* A GPU (uuid NULL: a place) and its kind. */
struct accused {
    const char *uuid;
    enum inventory_kind kind;
};

static int accused_order(const void *left, const void *right)
{
    const struct accused *a = left, *b = right;
    int order = str_order(a->uuid, b->uuid);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

/* A GPU may be in `outliers` and in several entries of `nodes`: it counts once. */
static void nagios_count_kinds(const struct inventory *inventory, size_t *kinds)
{
    size_t room = inventory->outlier_count, count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        room += inventory->node_findings[i].gpu_count + 1;
    struct accused *accused = mem_array(room, sizeof *accused);
    for (size_t i = 0; i < inventory->outlier_count; i++)
        accused[count++] =
            (struct accused){inventory->outliers[i].uuid, inventory->outliers[i].kind};
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        for (size_t g = 0; place->accused && g < place->gpu_count; g++)
            accused[count++] = (struct accused){place->gpus[g], place->kind};
        if (place->accused && !place->gpu_count)
            accused[count++] = (struct accused){NULL, place->kind};
    }
    if (count)
        sort_stable(accused, count, sizeof *accused, accused_order);
    for (size_t i = 0; i < count; i++)
        if (!i || !accused[i].uuid || !str_equal(accused[i - 1].uuid, accused[i].uuid))
            kinds[accused[i].kind]++;
    free(accused);
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
    /* Without a GPU and not accused: a node that shows none, or a GPU that the baseline had. */
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        out->absent += inventory->node_findings[i].node && !inventory->node_findings[i].accused &&
                       !inventory->node_findings[i].gpu_count;
    nagios_count_kinds(inventory, out->kinds);
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
    if (counts->kinds[KIND_FAILING] || counts->kinds[KIND_DEGRADED])
        return NULL;
    return inventory->total_measured ? NULL : "no GPU was measured";
}

static enum nagios_state nagios_state_of(const struct inventory *inventory,
                                         const struct counts *counts,
                                         const struct nagios_limits *limits)
{
    if (counts->kinds[KIND_FAILING] || counts->kinds[KIND_DEGRADED])
        return NAGIOS_CRITICAL;
    bool warn = counts->kinds[KIND_MISCONFIGURED] || counts->kinds[KIND_MISMATCHED] ||
                inventory_is_incomplete(inventory) || counts->busy || counts->absent ||
                (limits->warn_watch && inventory->watch_count);
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
    for (int kind = 0; kind < KIND_COUNT; kind++)
        nagios_put_part(out, counts->kinds[kind], inventory_kind_name((enum inventory_kind)kind));
    nagios_put_part(out, counts->unmeasured, "not measured");
    nagios_put_part(out, counts->busy, "busy");
    nagios_put_part(out, counts->lost_ranks, counts->lost_ranks == 1 ? "rank lost" : "ranks lost");
    nagios_put_part(out, inventory->total_unplanned, "without a plan: others may be missing");
    nagios_put_part(out, inventory->unread_files,
                    inventory->unread_files == 1 ? "file not read" : "files not read");
    nagios_put_part(out, counts->absent, "missing");
    nagios_put_part(out, inventory->watch_count, "watched");
    strbuf_printf(out, "%u of %u GPUs measured", inventory->total_measured, inventory->total_gpus);
}

static double nagios_loss_of(const struct inventory_outlier *outlier)
{
    double deviation = outlier->finding_count ? outlier->findings[0].deviation : NAN;
    return isnan(deviation) ? 0 : fabs(deviation);
}

/* The most severe kind, then the largest deviation. NULL: no outlier. */
static const struct inventory_outlier *worst_outlier(const struct inventory *inventory)
{
    const struct inventory_outlier *worst = NULL;
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *other = &inventory->outliers[i];
        if (!worst || other->kind < worst->kind ||
            (other->kind == worst->kind && nagios_loss_of(other) > nagios_loss_of(worst)))
            worst = other;
    }
    return worst;
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
    const struct inventory_outlier *outlier = worst_outlier(inventory);
    const struct inventory_node *place = NULL;
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *other = &inventory->node_findings[i];
        if (other->accused && (!place || other->kind < place->kind))
            place = other;
    }
    if (place && (!outlier || place->kind < outlier->kind)) {
        nagios_put_gpu(out, place->node, NULL, inventory_kind_name(place->kind), place->finding);
    } else if (outlier) {
        nagios_put_gpu(out, outlier->node, outlier->uuid, inventory_kind_name(outlier->kind),
                       outlier->finding_count ? outlier->findings[0].cause : NULL);
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
    for (int kind = 0; kind < KIND_COUNT; kind++)
        strbuf_printf(out, " %s=%zu;%s;0", inventory_kind_name((enum inventory_kind)kind),
                      counts->kinds[kind], kind <= KIND_DEGRADED ? ";0" : "0;");
    strbuf_printf(out, " unmeasured=%zu;0;;0 busy=%zu;0;;0 lost_ranks=%zu;0;;0 missing=%zu;0;;0",
                  counts->unmeasured, counts->busy, counts->lost_ranks, counts->absent);
    strbuf_printf(out, " watched=%zu;%s;;0", inventory->watch_count, limits->warn_watch ? "0" : "");
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
