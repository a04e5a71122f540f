/* Reading a record: all parts at once, the body of a GPU on request. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_RECORD_READ_H
#define GPUMEMTOPO_DEVICE_RECORD_RECORD_READ_H

#include "device/record/record.h"
#include "schema/schema.h"

struct record;

/* The parts of the file: struct record_provenance, record_gpu and record_survey. */
extern const struct schema record_provenance_schema, record_gpu_schema, record_survey_schema;

/* Opens a file and reads everything except the bodies. -EINVAL, naming file and byte, if it is
 * damaged, cut off, no record or of another version; the system's error code if it cannot be read.
 * Freed with record_close. */
int record_open(const char *path, struct record **out_record, struct err *err);

/* Valid as long as the record. GPUs: those of the first session, each once. */
const struct record_provenance *record_provenance(const struct record *record);
const struct record_survey *record_survey(const struct record *record);
size_t record_gpu_count(const struct record *record);
const struct record_gpu *record_gpu(const struct record *record, size_t i);

/* Whether some GPU was measured again. */
bool record_has_repeats(const struct record *record);

/* The GPU of this UUID in this session; NULL: none. */
const struct record_gpu *record_find_gpu(const struct record *record, const char *uuid,
                                         uint32_t session);

/* Appends the body of a GPU, unchecked. */
int record_read_body(const struct record *record, const struct record_gpu *gpu,
                     struct strbuf *out_body, struct err *err);

/* Adds the record's file name to an error that names a byte of it; returns its code. */
int record_blame(const struct record *record, struct err *err);

void record_close(struct record *record); /* accepts NULL */

#endif
