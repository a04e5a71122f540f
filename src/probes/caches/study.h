/* What is learnt of one cache on the way to its attributes. Each stage is measured once, when it is
 * first needed, and shared by the probes of that cache. */
#ifndef GPUMEMTOPO_PROBES_CACHES_STUDY_H
#define GPUMEMTOPO_PROBES_CACHES_STUDY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct probe_context;

/* If the step of the timer is larger than this, memories that are no further apart look like one.
 */
enum { COARSE_CYCLES = 24 };

/* The caches that are studied this way. */
enum study_id {
    STUDY_L1_DATA,
    STUDY_TEXTURE,
    STUDY_READ_ONLY,
    STUDY_CONSTANT_L1,
    STUDY_CONSTANT_L15, /* behind constant L1 */
    STUDY_COUNT
};

enum study_stage {
    STUDY_NOTHING,
    STUDY_LEVEL,    /* hit and miss latency, threshold between them */
    STUDY_FETCH,    /* the fetch unit */
    STUDY_REGION,   /* the octave, then the narrow region in which misses begin */
    STUDY_RESIDENT, /* capacity by the resident share, and the line */
};

struct study {
    enum study_id id;
    enum study_stage stage; /* the last stage that is done */
    enum device_path path;
    uint64_t limit_bytes; /* arrays on this path must end here */
    bool
        loads_are_expensive; /* the device executes each load by itself (device_limits.loads_max) */
    uint64_t floor_bytes;    /* smaller arrays stay in the cache before this one */
    uint64_t shared_bytes;   /* shared memory that its jobs wish for */

    bool supported;       /* loads on this path are served by this cache */
    double hit_cycles;    /* means without spikes, timer overhead included */
    double miss_cycles;   /* served by the next level */
    double threshold;     /* a load above it is a miss */
    double penalty_error; /* standard error of their difference */
    uint32_t level_n;     /* loads behind them */
    double sigma_cycles;  /* scatter of hits, without spikes */
    double spike_share;   /* share of hits far beyond that scatter */
    double stray_share;   /* share of hits that look like misses: jitter and spikes */
    double slip_share;    /* share of misses that look like hits */

    uint64_t fetch_bytes;
    double fetch_contrast; /* share of misses where fetch units begin, less that elsewhere */

    uint32_t at_once; /* jobs in flight that do not disturb each other; 0: one per SM */
    bool alone;       /* at_once is 1 by decision, not by study_choose_at_once */

    bool unbounded; /* no miss up to region_high_bytes */
    bool hidden;    /* unbounded, but the cache before this one holds what is loaded */
    uint64_t region_low_bytes, region_high_bytes; /* fits; does not fit */

    double resident_bytes; /* capacity by the resident share */
    double resident_error; /* its standard error */
    uint32_t resident_n;   /* positions sampled */
    uint64_t line_bytes;
    double line_confidence;
    uint32_t line_n;      /* positions sampled for it */
    uint64_t guess_bytes; /* the presumed line before that; 0: not guessed */
    uint64_t touch_bytes; /* loads this far apart touch every line: the line, if it is certain */

    /* The stride in fetch units, and the elements, that show best that lines are skipped. */
    uint64_t contrast_units, contrast_elements;
    double contrast_tags; /* of these elements, resident at once */

    uint64_t reach_bytes; /* where misses begin in the sweep; 0: not swept */
    bool size_by_sweep;   /* reach_bytes is the size reported, else resident_bytes */

    uint64_t push_bytes; /* constant L1.5 only: pushes lines out of L1, but not out of L1.5 */
};

/* Brings the study of a cache to a stage. 0 also when !supported or unbounded ends it early. */
int study_reach(struct probe_context *context, enum study_id id, enum study_stage stage,
                struct err *err);

/* Takes the study back to before the region and measures from there on with one job at a time: for
 * a sweep that contradicts the region, as one that other SMs disturb does. */
void study_begin_alone(struct study *study);

/* The name in the inventory: "l1_data", ... */
const char *study_name(enum study_id id);

/* Whether another SM finds lines in this cache that SM 0 loaded. Jobs of both that load the same
 * lines at once then spare each other misses, which study_choose_at_once does not see. */
int study_find_sharing(struct probe_context *context, const struct study *study, bool *out_shared,
                       struct err *err);

/* Measures the capacity once more, with the wanted standard error as a share. touch_bytes and
 * resident_bytes must be known. */
int study_capacity_again(struct probe_context *context, const struct study *study, double precision,
                         double *out_bytes, double *out_error, struct err *err);

/* Measures only the capacity, at stage STUDY_REGION, with a standard error of about one per
 * cent. */
int study_capacity_quick(struct probe_context *context, struct study *study, double *out_bytes,
                         double *out_error, struct err *err);

#endif
