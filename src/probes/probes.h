/* What is measured: the table of probes, which of them to run, and running them in order. */
#ifndef GPUMEMTOPO_PROBES_PROBES_H
#define GPUMEMTOPO_PROBES_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"
#include "inventory/measure.h"

enum probe_profile { PROFILE_QUICK, PROFILE_STANDARD, PROFILE_FULL };

/* "quick", "standard", "full". -EINVAL for another word. */
int probe_profile_parse(const char *word, enum probe_profile *out_profile);

/* One row of the table, for --list-probes. */
struct probe_description {
    const char *name;           /* "l1_data.size" */
    const char *summary;        /* one line */
    enum probe_profile profile; /* the smallest profile that runs it */
};
size_t probe_count(void);
struct probe_description probe_describe(size_t i);

/* True when a probe reports the metric; else out_nearest is the nearest name that one reports, or
 * NULL. */
bool probe_reports(const char *metric, const char **out_nearest);

/* The name of the first probe that reports the metric; NULL: none does. */
const char *probe_of_metric(const char *metric);

/* The probes to run, dependencies included, in an order that respects them. list: NULL for the
 * profile's own set, or names and groups (the part before the dot), comma-separated. -EINVAL for an
 * unknown one, with the nearest name. Freed with free(). */
enum { PROBES_MAX = 128 };
struct probe_selection {
    size_t *indices; /* into the table */
    size_t count;
    bool named[PROBES_MAX]; /* by table index: named in a list, not chosen by a profile */
};
int probes_select(enum probe_profile profile, const char *list, struct probe_selection *out,
                  struct err *err);

/* Adds a probe without dependencies, or takes one out on which no other depends. */
void probes_add(struct probe_selection *selection, const char *name);
void probes_remove(struct probe_selection *selection, const char *name);

struct probe_options {
    enum probe_profile profile;
    uint64_t seed;
    uint64_t region_bytes; /* memory.whole: a power of two; 0: the usual size */
    double load_s;         /* how long the GPU is put under load; 0: the usual time */
    double load_wait_s;    /* before that */
    bool load_one;         /* one GPU of the node at a time */
    double ends_s;         /* by clock_monotonic_s: the time limit of the GPU; 0: none */
    /* The settings of the GPU, which say of what kind it is; NULL: a whole GPU of this node. */
    const struct facts *config;
};

/* Called before and after each probe; a worker uses it to report progress and partial results.
 * measures then holds all results so far. A non-zero return value stops the run. */
struct probe_observer {
    int (*begin)(void *user, const char *probe);
    int (*end)(void *user, const char *probe, const struct measures *measures, double elapsed_s);
    void *user;
};

/* Runs the selection on one device. If a probe fails, its metrics are reported as failed, with the
 * reason, and the run goes on. Only an observer or an unusable device (-EIO from the backend) ends
 * it early. */
int probes_run(struct device *device, const struct probe_selection *selection,
               const struct probe_options *options, const struct probe_observer *observer,
               struct measures *measures, struct err *err);

#endif
