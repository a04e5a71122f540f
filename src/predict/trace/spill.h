/* Sorted runs in a temporary file, and their merge. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_SPILL_H
#define GPUMEMTOPO_PREDICT_TRACE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct spill;

struct spill_record {
    uint32_t block, warp, length; /* length: at most TRACE_ACCESS_BYTES_MAX */
    const uint8_t *bytes;
};

/* The file is in the folder of `beside`, without a name. */
int spill_create(const char *beside, struct spill **out_spill, struct err *err);
void spill_destroy(struct spill *spill); /* accepts NULL */

/* Records of a run are added in order. */
int spill_begin_run(struct spill *spill, struct err *err);
int spill_add(struct spill *spill, const struct spill_record *record, struct err *err);

/* Ends the last run. Then spill_next gives all records in order of block and warp, those of earlier
 * runs first: 1, 0 at the end, or an error. A record is valid until the next call. */
int spill_merge(struct spill *spill, struct err *err);
int spill_next(struct spill *spill, struct spill_record *out_record, struct err *err);

#endif
