/* Sweeps that others measured: the analysis of the survey on files of MT4G.
 *
 * A file is named "<GPU> - <memory> <figure>.txt". Each line is one chase: numbers separated by
 * commas. The figures:
 *   Size               array bytes, latencies                 where misses begin
 *   Line Size          stride, array bytes, latencies         the line
 *   Fetch Granularity  stride of a cold chase, latencies      the fetch unit
 *   Latency            one latency per line                   latency of a hit, timer included */
#ifndef GPUMEMTOPO_PROBES_CACHES_SWEEP_FILES_H
#define GPUMEMTOPO_PROBES_CACHES_SWEEP_FILES_H

#include "base/err.h"
#include "base/str.h"

/* Appends one line of YAML for each sweep of a file, or of a folder and its folders. Files that are
 * not such sweeps are left out; a sweep that cannot be read or decided gets a line that says so.
 * -ENOENT and the like if the path cannot be read, -ENODATA if there is no sweep. */
int sweep_files_report(const char *path, struct strbuf *out_text, struct err *err);

#endif
