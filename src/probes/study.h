/* What is learnt of one cache on the way to its attributes: each stage is measured when it is
 * first asked for, once, and shared by the probes of that cache. */
#ifndef GPUMEMTOPO_PROBES_STUDY_H
#define GPUMEMTOPO_PROBES_STUDY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct probe_context;

enum study_stage {
    STUDY_NOTHING,
    STUDY_LEVEL,    /* hit and miss latency, threshold between them */
    STUDY_FETCH,    /* the fetch unit */
    STUDY_REGION,   /* the octave and then the narrow region in which misses begin */
    STUDY_RESIDENT, /* capacity by the resident share, and the line */
};

struct study {
    enum study_stage stage; /* the last stage that is done */
    enum device_path path;

    bool supported;      /* loads on this path are cached before L2 */
    double hit_cycles;   /* fine-grained medians, timer overhead included */
    double miss_cycles;  /* served by the next level */
    double threshold;    /* a load above it is a miss */
    double sigma_cycles; /* scatter of hits, spikes aside */
    double spike_share;  /* hits far beyond that scatter */
    double stray_share;  /* hits that look like misses: jitter and spikes */
    double slip_share;   /* misses that look like hits */

    uint64_t fetch_bytes;
    double fetch_agreement; /* share of miss distances that equal it */

    bool unbounded;                               /* no miss up to region_high_bytes */
    uint64_t region_low_bytes, region_high_bytes; /* fits; does not */

    double resident_bytes; /* capacity by the resident share */
    double resident_error; /* its standard error */
    uint32_t resident_n;   /* positions sampled */
    double tags;           /* lines that are resident when each holds one element */
    uint64_t line_bytes;
    double line_exact; /* before rounding to a whole number of fetch units */
};

/* Brings the study of a path to a stage. 0 also when !supported or unbounded ends it early. */
int study_reach(struct probe_context *context, enum device_path path, enum study_stage stage,
                struct err *err);

#endif
