/* One prediction: its shares, histograms and bounds of its time. */
#ifndef GPUMEMTOPO_PREDICT_PREDICTION_H
#define GPUMEMTOPO_PREDICT_PREDICTION_H

#include "base/str.h"
#include "predict/machine.h"
#include "predict/model.h"

enum bound_limit {
    BOUND_L1,
    BOUND_L2_READ,
    BOUND_L2_WRITE,
    BOUND_MAIN_READ,
    BOUND_MAIN_WRITE,
    BOUND_LATENCY,
    BOUND_LIMITS
};

/* Seconds that each part needs at least; NaN: the inventory lacks its figure. The kernel needs at
 * least the longest of them. Arithmetic is not modelled. */
struct bound {
    double seconds[BOUND_LIMITS];
    double longest;         /* NaN: all figures are lacking */
    enum bound_limit limit; /* which one that is; BOUND_LIMITS: unknown */
};

struct bound bound_of(const struct model_counts *counts, const struct machine *machine);
const char *bound_limit_name(enum bound_limit limit); /* also of BOUND_LIMITS */

struct prediction {
    size_t program; /* its number among the kernels and traces */
    const char *kernel, *summary, *model;
    const char *inventory;         /* file name */
    const struct what_if *what_if; /* NULL: the GPU as it is */
    char reason[ERR_TEXT_MAX];     /* why it could not be made; "" if it was */
    uint64_t size, footprint_bytes;
    uint32_t block_x, block_y;
    uint64_t l1_bytes; /* that the kernel's shared memory leaves */
    struct machine machine;
    struct model_counts counts;
    struct bound bound;
};

/* What is said of a model whose config.no_l1 is set. */
extern const char prediction_no_l1[];

/* NaN: nothing of nothing. */
double prediction_ratio(uint64_t part, uint64_t whole);

/* Shares from 0 to 1; NaN if there are none: of L1's loads, of all of L2's transactions. */
double prediction_l1_hits(const struct prediction *prediction);
double prediction_l1_transactions(const struct prediction *prediction); /* NaN: there is no L1 */
double prediction_l2_hits(const struct model_l2_counts *l2);

/* The histogram of reuse distances that belongs to a curve: 0, 1, 2 to 3, 4 to 7, ... lines. The
 * last bucket, with `to` 0, is what is farther away than the curve goes, or never came before. */
struct prediction_distance {
    uint64_t from, to, accesses;
};
enum { PREDICTION_DISTANCES_MAX = MODEL_CURVE_MAX + 1 };
size_t prediction_distances(const struct model_curve *curve,
                            struct prediction_distance out[PREDICTION_DISTANCES_MAX]);

/* Append predictions as a table for people; as JSON or YAML. */
void prediction_put_table(const struct prediction *predictions, size_t count, struct strbuf *out);
void prediction_put_data(const struct prediction *predictions, size_t count, bool json,
                         struct strbuf *out);

#endif
