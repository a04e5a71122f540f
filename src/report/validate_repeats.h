/* Checks what an inventory says about second tries and second measurements. */
#ifndef GPUMEMTOPO_REPORT_VALIDATE_REPEATS_H
#define GPUMEMTOPO_REPORT_VALIDATE_REPEATS_H

#include <stdbool.h>

#include "base/err.h"
#include "inventory/inventory.h"

/* first_try and measured_again of a GPU. 0 or -EINVAL. */
int report_validate_repeats(const struct inventory_gpu *gpu, struct err *err);

/* `confirmed` of each finding of a GPU. accused: the entry is in outliers. 0 or -EINVAL. */
int report_validate_confirmed(const struct inventory_outlier *entry, bool accused,
                              const struct inventory_gpu *gpu, struct err *err);

#endif
