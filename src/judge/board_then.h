/* Facts of a GPU's board beside those of the same GPU in the baseline. */
#ifndef GPUMEMTOPO_JUDGE_BOARD_THEN_H
#define GPUMEMTOPO_JUDGE_BOARD_THEN_H

#include "judge/stages.h"

/* A fact of one GPU: its text in the baseline, and now. */
struct board_then {
    uint32_t gpu;
    const struct inventory_gpu *then;
    const char *was, *is;
};

/* Calls `compare` for every judged GPU that has the fact now and had it in the baseline. Returns
 * the first result that is not 0, or -ENOMEM. */
int board_then_compare(struct judge *judge, const char *fact,
                       int (*compare)(struct judge *judge, const struct board_then *fact));

#endif
