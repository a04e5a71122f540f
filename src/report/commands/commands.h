/* What the commands print and check, apart from their options and files: other commands and tests
 * use it. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_COMMANDS_H
#define GPUMEMTOPO_REPORT_COMMANDS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "inventory/results.h"
#include "judge/judge.h"
#include "judge/world.h"

/* csv.c: The figures of all GPUs in long form. */

/* Appends a line for each figure of each GPU, without the head. */
void report_csv(const struct inventory *inventory, struct strbuf *out);

/* diff.c: Compares two inventories of the same GPUs. */

struct report_diff {
    bool worse;   /* at least one GPU is worse than before */
    bool missing; /* at least one GPU is gone or no longer measured */
};

/* Appends the differences as text for people. */
int report_diff(const struct inventory *before, const struct inventory *after,
                const struct judge_config *config, struct strbuf *out_text,
                struct report_diff *out_diff, struct err *err);

/* nagios.c: The state of an inventory as one line of a monitoring plugin (Nagios, Icinga, Naemon).
 */

/* The exit codes of a plugin. */
enum nagios_state { NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL, NAGIOS_UNKNOWN };

struct nagios_limits {
    int64_t now_s;    /* seconds since 1970 */
    double max_age_s; /* an older inventory is UNKNOWN; 0: any age will do */
    bool warn_watch;  /* watched GPUs are a WARNING */
};

/* Appends "GPUMEMTOPO OK - text | performance data" and a line break.
 * CRITICAL: a GPU is failing or degraded. WARNING: one is misconfigured or mismatched, was not
 * measured or is gone. UNKNOWN: nothing was measured, or the inventory is too old or has a time in
 * the future. */
enum nagios_state report_nagios(const struct inventory *inventory,
                                const struct nagios_limits *limits, struct strbuf *out_line);

/* prometheus.c: An inventory as metrics for Prometheus. */

/* The text format that node_exporter's textfile collector reads, or OpenMetrics: one family per
 * attribute, labels UUID, hostname, gpu and model, base units (bytes, seconds, hertz). Only exact
 * values with status ok of judged GPUs have a sample. */
void report_prometheus(const struct inventory *inventory, bool openmetrics, bool old_labels,
                       struct strbuf *out_text);

/* rma.c: What a vendor needs to know about one GPU: identity, findings, figures beside its peers'.
 */

/* One figure of the GPU and of its peers. */
struct rma_figure {
    const struct inventory_value *value;
    const char *unit; /* NULL: unknown */
    size_t peers;     /* with this figure; of fewer than 2 the next three are NaN */
    double median, scatter;
    double deviation; /* share of the median */
    bool is_name;     /* of an SM, a program ...: it has the next two instead */
    double usual;     /* what more than half of the peers have; NaN: nothing, or it is not known */
    size_t usual_on;  /* how many of them */
};

/* Points into the inventory. */
struct rma {
    const struct inventory *inventory;
    const struct inventory_gpu *gpu;
    const struct inventory_model *model;        /* NULL: unknown */
    const struct inventory_outlier *outlier;    /* NULL: no outlier by itself */
    const struct inventory_outlier *watched;    /* NULL: not watched */
    const struct inventory_unmeasured *failure; /* NULL: measured */
    struct facts facts[INVENTORY_FACTS_COUNT];
    struct rma_figure *figures;
    size_t figure_count;
    size_t peers;    /* healthy GPUs that it is compared with, itself left out */
    bool same_board; /* the peers have its board part; otherwise they are all of its model */
    bool has_record, record_is_complete;
};

/* Finds the GPU by its UUID or the beginning of it, with or without "GPU-". -ENOENT or -ENOTUNIQ
 * with candidates. */
int rma_find_gpu(const struct inventory *inventory, const char *uuid,
                 const struct inventory_gpu **out_gpu, struct err *err);

/* Released with rma_fini. */
void rma_init(struct rma *rma, const struct inventory *inventory, const struct inventory_gpu *gpu);
void rma_fini(struct rma *rma);

/* Append the text for people, and the same for programs. */
void rma_put_readme(const struct rma *rma, struct strbuf *out_text);
void rma_put_json(const struct rma *rma, struct strbuf *out_text);

/* share.c: Sketches of the healthy GPUs of inventories, to be shared: no identity is in them. */

/* Adds the GPUs of these inventories to the world, each GPU once: of each of its figures the newest
 * counts. GPUs that are outliers or busy in one of the inventories, or that an entry of `nodes`
 * names, are left out. */
void report_share(const struct inventory *inventories, size_t count,
                  const struct judge_config *config, struct world *world);

/* undrain.c: Commands that return nodes to service which were drained for a bad GPU and are healthy
 * again. They are only printed, for an administrator to run. */

/* When the GPUs of several surveys were last measured. Zero-initialised is empty. */
struct undrain_times {
    struct undrain_time {
        char *uuid;
        int64_t measured_s; /* since 1970 */
    } * items;
    size_t count, capacity;
};

/* Adds the GPUs that a survey measured. An inventory made by merge is refused with -ESTALE: it does
 * not tell when each GPU was measured. */
int undrain_times_add(struct undrain_times *times, const struct inventory *inventory,
                      const char *path, struct err *err);
void undrain_times_fini(struct undrain_times *times);

/* list: a line "NODE|SECONDS|REASON" for each drained node; SECONDS since 1970. judged: all
 * surveys, judged together. Appends "scontrol update NodeName=n1 State=RESUME" for each node that a
 * reason of drain (drain.h) drained and that is healthy: all its GPUs were measured later,
 * none is failing or degraded, and the one that the reason names is among them. out_notes gets a
 * line for each other node that we drained. Sorts `times`. -EINVAL for a bad line. */
int report_undrain(const char *list, const char *list_name, const struct inventory *judged,
                   struct undrain_times *times, struct strbuf *out_lines, struct strbuf *out_notes,
                   struct err *err);

/* validate.c: Checks an inventory for contradictions. */

/* Checks what reading does not: model ids and UUIDs are unique, references have a target, counts
 * are correct, no figure is impossible, findings say truly how they were confirmed. 0 or
 * -EINVAL naming the first contradiction. */
int report_validate(const struct inventory *inventory, struct err *err);

#endif
