/* Recognises records by their bytes. */
#ifndef GPUMEMTOPO_REPORT_RECORD_BYTES_H
#define GPUMEMTOPO_REPORT_RECORD_BYTES_H

#include <stdbool.h>

#include "base/str.h"

/* Whether these are the bytes of a record, complete or not. */
bool report_record_begins(const struct strbuf *bytes);

/* A complete record ends with an entry that has its own position: type, length, position as 8
 * bytes, checksum. */
bool report_record_is_complete(const struct strbuf *record);

#endif
