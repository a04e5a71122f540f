/* What is learnt of L2 on the way to its attributes. Each stage is measured once, when it is first
 * needed, and shared by the probes of L2.
 *
 * All SMs share L2, so its jobs run one at a time. Loads use .cg and bypass L1. */
#ifndef GPUMEMTOPO_PROBES_CACHES_L2_STUDY_H
#define GPUMEMTOPO_PROBES_CACHES_L2_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct probe_context;

enum l2_stage {
    L2_NOTHING,
    L2_LEVEL,    /* latencies of near, far and missed loads, thresholds between them, parts */
    L2_FETCH,    /* the fetch unit */
    L2_CAPACITY, /* bytes that stay resident of an oversized array */
    L2_LINE,     /* the unit of tags */
};

enum {
    L2_PARTS_MAX = 4,
    L2_MAP_MAX = 512,
    L2_DOUBT_MAX = 120,
    L2_PAGE_MIN_BYTES = 4096, /* no page is smaller */
};

/* A latency of single timed loads, timer overhead included. */
struct l2_latency {
    double cycles;
    double spread; /* half the range of three repetitions */
};

/* The step of the latency over the array size: main memory begins to serve loads. */
struct l2_step {
    bool found;
    double bytes;       /* where the rise begins, traced back */
    double spread;      /* half the distance of the quartiles of the repetitions */
    double width_bytes; /* from the first slower loads to nine tenths of the rise */
    double confidence;  /* of the change point, calibrated */
    uint32_t n;         /* sizes looked at */

    /* To measure it once more: sizes that enclose its foot, the share of slower loads before it,
     * and which line the rise follows. */
    double low_bytes, high_bytes, base;
    bool exponential;
};

struct l2_study {
    enum l2_stage stage; /* the last stage that is done */

    uint32_t parts;                 /* 1 to L2_PARTS_MAX */
    double parts_confidence;        /* NaN: nothing is known */
    char doubt[L2_DOUBT_MAX];       /* why parts and far latencies are uncertain; empty: not */
    bool copies;                    /* the near part keeps copies of far lines */
    int32_t part_sms[L2_PARTS_MAX]; /* one SM near each part, SM 0 first */
    uint8_t seen_part[L2_MAP_MAX];  /* by SM: its part + 1; 0: not looked at */
    int32_t other_sm;               /* near another part than SM 0, if there is one */
    struct l2_latency near, far;    /* near: the median SM's mean; far: mean of all far loads */
    struct l2_latency main;         /* mean cold load */
    struct l2_latency penalty;      /* of a miss: cold load less hit at the line's home, means */
    double levels[L2_PARTS_MAX];    /* near, and each level of far loads */
    uint32_t level_count;
    double map[L2_MAP_MAX]; /* near latency of each SM */
    uint32_t map_count;
    double average_cycles;     /* per load of a long chase that always hits, all SMs */
    double single_cycles;      /* mean of their single loads, compared with the average */
    double cycles_per_ns;      /* 0 where the device has no real-time clock */
    uint32_t level_n;          /* timed loads behind each latency */
    double far_threshold;      /* a load above it was not served by the near part */
    double miss_threshold;     /* a load above it was served by main memory */
    double far_miss_threshold; /* the same behind the far part, with copies; else miss_threshold */
    double near_stray;         /* share of near hits above the far threshold */
    double far_slip;           /* share of far hits below it, with copies */
    double hit_stray;          /* share of hits above the miss threshold */
    double miss_slip;          /* share of misses below it */
    bool blurred;              /* hits and misses overlap: there is no miss threshold */

    uint64_t fetch_bytes;
    double fetch_agreement; /* share of the distances between misses that equal it */
    uint32_t fetch_n;       /* distances */

    bool unbounded;    /* no miss up to resident_bytes */
    double near_bytes; /* capacity of what SM 0 searches first: its part, or all of L2 */
    double part_bytes[L2_PARTS_MAX]; /* of each part, with copies; 0: not known */
    double resident_bytes;           /* capacity by the resident share, all parts */
    double resident_error;           /* its standard error */
    uint32_t resident_n;

    /* Share of loads that are slow although L2 holds their lines: where the capacity, and where the
     * tags, were counted. NaN: not known. */
    double slow_pages, slow_tag_pages;

    uint64_t line_bytes;
    double line_exact;     /* before rounding to a whole number of fetch units */
    uint64_t stride_bytes; /* distance of the elements that counted the tags */
    double tags;

    struct l2_step whole; /* where main memory begins to serve loads */
    bool step_confirms;   /* it agrees with resident_bytes, the size reported */
};

/* Brings the study to a stage. 0 also when unbounded ends it early. */
int l2_reach(struct probe_context *context, enum l2_stage stage, struct err *err);

#endif
