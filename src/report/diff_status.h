/* What became of the GPUs of an earlier inventory: newly accused, no longer accused, no longer
 * measured. */
#ifndef GPUMEMTOPO_REPORT_DIFF_STATUS_H
#define GPUMEMTOPO_REPORT_DIFF_STATUS_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* GPUs that were measured before. */
struct diff_counts {
    size_t missing; /* now gone or not measured */
    size_t worse;   /* now outliers, and not before */
};

/* Appends a list for each of them, unless it is empty. 0 or -ENOMEM. */
int diff_status_put(struct strbuf *out, const struct inventory *before,
                    const struct inventory *after, struct diff_counts *out_counts, struct err *err);

#endif
