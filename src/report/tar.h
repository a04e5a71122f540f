/* Writes a tar archive (POSIX ustar). The same content gives the same bytes. */
#ifndef GPUMEMTOPO_REPORT_TAR_H
#define GPUMEMTOPO_REPORT_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Appends a file that everybody may read and root owns. name: at most 100 bytes; time_s: since
 * 1970. -ENAMETOOLONG or -EFBIG (8 GiB or more). */
int tar_add(struct strbuf *archive, const char *name, int64_t time_s, const char *data,
            size_t length, struct err *err);

/* Appends the end mark. To be called once, after the last file. */
void tar_end(struct strbuf *archive);

#endif
