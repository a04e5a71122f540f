/* What was predicted for one kernel on one GPU model, and how it is written. */
#ifndef GPUMEMTOPO_PREDICT_PREDICTION_H
#define GPUMEMTOPO_PREDICT_PREDICTION_H

#include "base/str.h"
#include "predict/bound.h"
#include "predict/machine.h"
#include "predict/model.h"

struct prediction {
    const char *kernel, *model;
    const struct machine_change *change; /* NULL: the GPU as it is */
    uint64_t size, footprint_bytes;
    uint32_t block_x, block_y;
    uint64_t l1_bytes; /* that the kernel's shared memory leaves */
    struct machine machine;
    struct model_counts counts;
    struct bound bound;
};

enum prediction_format { PREDICTION_TABLE, PREDICTION_YAML, PREDICTION_JSON };

/* Appends all of them. file: name of the inventory. */
void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, const char *file, struct strbuf *out_text);

/* Hits of L2 among all its transactions, 0..1; NaN if it has none. */
double prediction_l2_hits(const struct model_l2_counts *l2);

#endif
