/* What became of the GPUs of an earlier inventory: newly accused, no longer accused, no longer
 * measured. */
#ifndef GPUMEMTOPO_REPORT_DIFF_STATUS_H
#define GPUMEMTOPO_REPORT_DIFF_STATUS_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* Appends a list for each of them, unless it is empty. *out_missing: GPUs that were measured
 * before, and are now gone or not measured. 0 or -ENOMEM. */
int diff_status_put(struct strbuf *out, const struct inventory *before,
                    const struct inventory *after, size_t *out_missing, struct err *err);

#endif
