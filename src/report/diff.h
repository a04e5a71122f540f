/* Two inventories of the same GPUs: what moved, came, went and changed. */
#ifndef GPUMEMTOPO_REPORT_DIFF_H
#define GPUMEMTOPO_REPORT_DIFF_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "judge/judge.h"

struct report_diff {
    bool worse;   /* at least one GPU is worse than it was */
    bool missing; /* GPUs are gone, or no longer measured */
};

/* Appends the differences for people; nothing but the headline where there are none. */
int report_diff(const struct inventory *before, const struct inventory *after,
                const struct judge_config *config, struct strbuf *out_text,
                struct report_diff *out_diff, struct err *err);

#endif
