/* Inside the probes: a probe's descriptor and what a running probe works with. */
#ifndef GPUMEMTOPO_PROBES_PROBE_H
#define GPUMEMTOPO_PROBES_PROBE_H

#include "probes/probes.h"

#include "probes/l2/l2_study.h"
#include "probes/method/bandwidth.h"
#include "probes/method/study.h"

/* Where main.latency finds memory that L2 does not have; all 0 before its first round. */
struct cold_area {
    uint64_t offset_bytes, bytes;
    uint64_t footprint_bytes; /* of a job: within the TLBs' reach, as far as was seen */
    uint64_t jobs;            /* that loaded some of it */
};

/* What a probe sees while it runs. */
struct probe_context {
    struct device *device;
    const struct probe_options *options;
    struct measures *measures; /* results so far, and where new ones go */
    struct study studies[STUDY_COUNT];
    struct l2_study l2;
    struct bandwidth_choice bandwidths[BANDWIDTH_CHOICES_MAX];
    const char *probe; /* that runs now */
    uint32_t round;    /* 0 first, then how often it was repeated */
    uint64_t jobs_drawn, analyses_drawn;
    uint64_t fresh_bytes; /* given out by probe_fresh */
    struct cold_area cold_area;
    double timer_overheads[DEVICE_PATH_COUNT]; /* timer.h */
    struct device_link link; /* what the current probe of the host link ran under (host_link.h) */
    bool repeating;          /* judged figures were measured before; this is a further round */
    size_t worst_sms[2];     /* the slowest SM of the first round: to L1, to L2 */
};

/* From here on seeds are drawn and requests are made for this probe, by its name. */
void probe_begin(struct probe_context *context, const char *probe, uint32_t round);

/* How often a probe repeats its measurement, `first` times where nothing speaks against it: once in
 * a further round, and in the profile quick, which has nothing but short rounds. */
size_t probe_repeats(const struct probe_context *context, size_t first);

/* A fresh seed for a job: the same sequence for the same options, probe and round. Whatever other
 * probes and the analysis draw, a probe asks for the same again, and finds it in a record. */
uint64_t probe_seed(struct probe_context *context);

/* One for the analysis: permutations and the like. */
uint64_t probe_analysis_seed(struct probe_context *context);

/* Offset of global memory that no job has loaded yet (or not for long, where there is little): cold
 * in every cache. On Hopper lines that are loaded again and again outlast a flush of L2. */
uint64_t probe_fresh(struct probe_context *context, uint64_t bytes);

enum { PROBE_LIST_MAX = 4 };

/* One row of the table: a probe lives in one file, and this is all the others know of it. */
struct probe {
    struct probe_description description;
    const char *depends[PROBE_LIST_MAX]; /* probes whose results it reads; NULL-terminated */
    const char *metrics[PROBE_LIST_MAX]; /* what it reports: marked failed when run fails */

    /* Judged: measured again in the middle and at the end of the run, by as little as confirms it,
     * and merged. A half range of these rounds above `within`, as a share, is noisy. */
    bool again;
    double within;
    bool highest; /* what disturbs only lowers it: the highest round counts, not the median */

    /* Adds its metrics. -EIO: the device is beyond use; other errors fail this probe only. One of
     * the two is set; run_study is called with the cache that the row names. */
    int (*run)(struct probe_context *context, struct err *err);
    int (*run_study)(struct probe_context *context, enum study_id study, struct err *err);
    enum study_id study;
};

/* Calls run, or run_study. */
int probe_run(const struct probe *probe, struct probe_context *context, struct err *err);

/* The table, NULL-terminated (table.c). */
extern const struct probe *const probe_table[];

/* Of each cache that is studied (metrics/caches.c). */
enum cache_probe { CACHE_LINE, CACHE_SIZE, CACHE_LATENCY, CACHE_PROBES };
extern const struct probe probe_caches[STUDY_COUNT][CACHE_PROBES];

extern const struct probe probe_l1_data_global;
extern const struct probe probe_cache_shared;
extern const struct probe probe_cache_per_sm;
extern const struct probe probe_shared_carveout;
extern const struct probe probe_main_latency;
extern const struct probe probe_main_size;
extern const struct probe probe_main_bandwidth_read;
extern const struct probe probe_main_bandwidth_write;
extern const struct probe probe_main_bandwidth_copy;
extern const struct probe probe_l2_latency;
extern const struct probe probe_l2_line;
extern const struct probe probe_l2_size;
extern const struct probe probe_l2_bandwidth_read;
extern const struct probe probe_l2_bandwidth_write;
extern const struct probe probe_l1_data_bandwidth_read;
extern const struct probe probe_shared_size;
extern const struct probe probe_shared_latency;
extern const struct probe probe_shared_bandwidth_read;
extern const struct probe probe_host_latency;
extern const struct probe probe_host_bandwidth_h2d;
extern const struct probe probe_host_bandwidth_d2h;
extern const struct probe probe_host_bandwidth_both;
extern const struct probe probe_clock_sm;
extern const struct probe probe_clock_memory;
extern const struct probe probe_sm_groups;
extern const struct probe probe_sm_l1_latency;
extern const struct probe probe_sm_l2_latency;

#endif
