/* Compares two inventories of the same GPUs. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_DIFF_H
#define GPUMEMTOPO_REPORT_COMMANDS_DIFF_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "judge/judge.h"

struct report_diff {
    bool worse;   /* at least one GPU is worse than before */
    bool missing; /* at least one GPU is gone or no longer measured */
};

/* Appends the differences as text for people. */
int report_diff(const struct inventory *before, const struct inventory *after,
                const struct judge_config *config, struct strbuf *out_text,
                struct report_diff *out_diff, struct err *err);

#endif
