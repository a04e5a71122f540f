/* Inside the probes: the descriptor of a probe, and what a running probe works with. */
#ifndef GPUMEMTOPO_PROBES_PROBE_H
#define GPUMEMTOPO_PROBES_PROBE_H

#include "probes/probes.h"

#include "probes/caches/l2_study.h"
#include "probes/caches/study.h"
#include "probes/streams/bandwidth.h"

/* Memory for main.latency that L2 does not hold; all 0 before its first round. */
struct cold_area {
    uint64_t offset_bytes, bytes;
    uint64_t footprint_bytes; /* of a job: within the reach of the TLBs, as far as seen */
    uint64_t jobs;            /* jobs that loaded some of it */
};

/* What a probe sees while it runs. */
struct probe_context {
    struct device *device;
    const struct probe_options *options;
    struct measures *measures; /* results so far, and where new ones go */
    struct study studies[STUDY_COUNT];
    struct l2_study l2;
    struct bandwidth_choice bandwidths[BANDWIDTH_CHOICES_MAX];
    const char *probe; /* the one that runs now */
    uint32_t round;    /* 0 at first, then how often it was repeated */
    uint64_t jobs_drawn, analyses_drawn;
    uint64_t fresh_bytes; /* given out by probe_fresh */
    struct cold_area cold_area;
    double timer_overheads[DEVICE_PATH_COUNT]; /* timer.h */
    struct device_link
        link;        /* conditions of the current probe of the host link (probe_begin_link) */
    bool repeating;  /* this is a further round: judged figures were measured before */
    size_t worst_sm; /* the slowest SM of the first round, to L1 */
};

/* Begins a probe: from here on, seeds and requests belong to its name. */
void probe_begin(struct probe_context *context, const char *probe, uint32_t round);

/* How often a probe repeats its measurement: usually `first` times; once in a further round, and in
 * the profile quick, which has only short rounds. */
size_t probe_repeats(const struct probe_context *context, size_t first);

/* Seconds until the time limit of the GPU; INFINITY: there is none. */
double probe_left_s(const struct probe_context *context);

/* A new seed for a job: the same sequence for the same options, probe and round. It does not depend
 * on other probes or the analysis, so that a replayed probe makes the same requests and finds them
 * in the record. */
uint64_t probe_seed(struct probe_context *context);

/* A seed for the analysis, such as permutations. */
uint64_t probe_analysis_seed(struct probe_context *context);

/* Offset of global memory that no job has loaded yet (or not for long, if there is little memory):
 * it is cold in every cache, whatever a flush does. */
uint64_t probe_fresh(struct probe_context *context, uint64_t bytes);

/* The same memory in every call: the end of what lies before all that probe_fresh gives out. Only
 * large arrays of the probes of L2 that come later reach it. */
uint64_t probe_fresh_apart(const struct probe_context *context, uint64_t bytes);

/* Turns at the host link, around each stream or batch that uses it. What was not obtained even once
 * is kept in context->link. */
void probe_begin_link(struct probe_context *context);
void probe_end_link(struct probe_context *context);

/* Marks the metric, if it exists, as noisy or adds a note, depending on context->link. */
void probe_remark_link(struct probe_context *context, const char *metric);

enum { PROBE_LIST_MAX = 128 };

/* One row of the table. A probe is in one file, and the other files know only this of it. */
struct probe {
    struct probe_description description;
    const char *depends[PROBE_LIST_MAX]; /* probes whose results it reads; NULL-terminated */
    /* What it reports: marked failed when run fails. "x.*" stands for all that begin with "x.": the
     * probe itself marks which of them failed. */
    const char *metrics[PROBE_LIST_MAX];

    /* Judged: measured again in the middle and at the end of the run, with as little work as
     * confirms it, and merged. If the half range of these rounds is above `within`, as a share, the
     * result is noisy. */
    bool again;
    double within;
    bool highest; /* disturbances only lower it: the highest round counts, not the median */

    /* Runs after all rounds, in the order of the table: it heats the GPU, or uses other GPUs, whose
     * workers must have finished, or takes all memory. Not together with `again`. */
    bool last;

    /* Adds its metrics. -EIO: the device is unusable; other errors fail only this probe. One of the
     * two is set; run_study is called with the cache of the row. */
    int (*run)(struct probe_context *context, struct err *err);
    int (*run_study)(struct probe_context *context, enum study_id study, struct err *err);
    enum study_id study;
};

/* Whether an entry of `metrics` stands for this metric, and whether it stands for many. */
bool probe_entry_is(const char *entry, const char *metric);
bool probe_entry_is_group(const char *entry);

/* Why GPUs of this kind (`config` of probe_options) cannot measure what an entry of `metrics`
 * stands for; NULL: they can. What they would measure is something else. */
const char *probe_unmeasurable(const struct facts *config, const char *entry);

/* Calls run, or run_study. */
int probe_run(const struct probe *probe, struct probe_context *context, struct err *err);

/* The table, NULL-terminated (table.c). */
extern const struct probe *const probe_table[];

/* The probes of each cache that is studied (caches/cache_report.c). */
enum cache_probe { CACHE_LINE, CACHE_SIZE, CACHE_LATENCY, CACHE_PROBES };
extern const struct probe probe_caches[STUDY_COUNT][CACHE_PROBES];

/* The structure of each of them (caches/structure.c). */
extern const struct probe probe_structures[STUDY_COUNT];
extern const struct probe probe_structure_l2;

extern const struct probe probe_l1_data_global;
extern const struct probe probe_cache_shared;
extern const struct probe probe_cache_per_sm;
extern const struct probe probe_shared_carveout, probe_shared_carveouts;
extern const struct probe probe_main_latency;
extern const struct probe probe_main_size;
extern const struct probe probe_memory_march, probe_memory_whole;
extern const struct probe probe_compute_check;
extern const struct probe probe_compute_screen, probe_compute_pulse;
extern const struct probe probe_load;
extern const struct probe probe_instructions;
extern const struct probe probe_tlb, probe_spectrum;
extern const struct probe probe_instruction_cache;
extern const struct probe probe_jumping_code;
extern const struct probe probe_code_and_constants;
extern const struct probe probe_main_bandwidth_read, probe_main_bandwidth_write;
extern const struct probe probe_main_bandwidth_copy;
extern const struct probe probe_main_equal_read, probe_main_equal_write, probe_main_equal_copy;
extern const struct probe probe_l2_bandwidth_read, probe_l2_bandwidth_write;
extern const struct probe probe_l2_bandwidth_copy;
extern const struct probe probe_l2_equal_read, probe_l2_equal_write;
extern const struct probe probe_main_first_end, probe_l2_first_end;
extern const struct probe probe_l2_latency;
extern const struct probe probe_l2_line, probe_l2_part_sms, probe_l2_way;
extern const struct probe probe_main_latency_loaded, probe_l2_latency_loaded;
extern const struct probe probe_l2_size;
extern const struct probe probe_l2_prefetch;
extern const struct probe probe_l1_data_bandwidth_read, probe_l1_data_bandwidth_write;
extern const struct probe probe_texture_bandwidth_read, probe_read_only_bandwidth_read;
extern const struct probe probe_constant_bandwidth_read, probe_bandwidth_widths;
extern const struct probe probe_shared_size;
extern const struct probe probe_shared_latency;
extern const struct probe probe_shared_bandwidth_read, probe_shared_bandwidth_write;
extern const struct probe probe_shared_banks;
extern const struct probe probe_surfaces;
extern const struct probe probe_host_latency;
extern const struct probe probe_host_bandwidth_h2d;
extern const struct probe probe_host_bandwidth_d2h;
extern const struct probe probe_host_bandwidth_both;
extern const struct probe probe_clock_sm;
extern const struct probe probe_clock_memory;
extern const struct probe probe_sm_groups;
extern const struct probe probe_sm_l1_latency;
extern const struct probe probe_sm_l2_latency;
extern const struct probe probe_host_together, probe_links;
extern const struct probe probe_cluster_groups, probe_cluster_latency, probe_cluster_bandwidth;
extern const struct probe probe_bulk_copy_latency, probe_bulk_copy_bandwidth;
extern const struct probe probe_die_map;
extern const struct probe probe_die_bandwidth;
extern const struct probe probe_die_memory;

#endif
