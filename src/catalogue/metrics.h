/* The catalogue of metrics: how each figure that is kept of a GPU is judged, one row each. */
#ifndef GPUMEMTOPO_CATALOGUE_METRICS_H
#define GPUMEMTOPO_CATALOGUE_METRICS_H

#include <stdbool.h>
#include <stddef.h>

/* Conditions, besides the GPU's health, on which a figure can depend. */
enum judge_condition {
    JUDGE_SM_CLOCK,     /* clock.sm, measured */
    JUDGE_MEMORY_CLOCK, /* clock.memory */
    JUDGE_SMS,          /* reported hardware: sms, memory_bus_bits, l2_bytes */
    JUDGE_MEMORY_BUS,
    JUDGE_L2,
    JUDGE_PCIE, /* generation and width under load */
    JUDGE_POWER_LIMIT,
    JUDGE_CONDITION_COUNT
};

enum judge_worse { JUDGE_LOWER, JUDGE_HIGHER, JUDGE_ANY, JUDGE_NONE };

/* How one metric is judged. The configuration of a survey may change floor, accuse and few. */
struct metric_row {
    const char *key;
    enum judge_worse worse; /* direction that is a loss; JUDGE_NONE: kept, and not judged as others:
                               a rule checks it, or nothing does */
    double floor;           /* a deviation below this share is not reported */
    double accuse; /* a GPU with a deviation below this share is not an outlier; 0: the floor */
    double few;    /* among two to four GPUs, one with a deviation below is not watched; 0: 0.05 */
    const char *unless;       /* not judged on GPUs that have this figure; NULL: judged on all */
    const char *place_metric; /* says how SMs are placed, if the figure depends on it; else NULL */
    bool is_name; /* of an SM, a place in the memory or a program: two are equal or not, never more
                     or less */
    bool for_world;    /* in world files, although it is not judged as others */
    bool keep_notes;   /* findings tell what is noted beside it: inventories have it, too */
    double peak_share; /* share of a specified peak that healthy GPUs reach; 0: not compared */
    /* Share of the figure that follows a condition: 1 if it is proportional to it. sm_clock is used
     * to compare figures at equal SM clock; the others can explain a loss. */
    double follows[JUDGE_CONDITION_COUNT];
};

/* In the order in which inventories list them. */
extern const struct metric_row metric_rows[];
extern const size_t metric_row_count;

/* True if the numbers of a metric name something, by its row or by its unit "id" (NULL: unknown).
 * They have neither a median nor an axis. */
bool metric_is_name(const char *metric, const char *unit);

#endif
