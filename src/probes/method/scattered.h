/* Latency of a memory behind all caches: single loads in random order, no line twice. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SCATTERED_H
#define GPUMEMTOPO_PROBES_METHOD_SCATTERED_H

#include "probes/probe.h"

enum {
    SCATTERED_STRIDE_BYTES = 256, /* more than the line and the fetch of any L2 */
    SCATTERED_REPEATS = 3,
    SCATTERED_JOBS = 4, /* one after the other: nothing shares the memory with a timed load */
};

struct scattered_task {
    const char *metric;
    enum device_path path;
    uint64_t size_bytes;  /* of the array of one job */
    uint64_t apart_bytes; /* distance between the arrays of successive jobs; 0: the same array */
    uint64_t loads;       /* of one job */
};

/* Adds the metric in cycles, without timer overhead, with the notes `ns`, `mean`, `p50` and
 * `p95`. */
int scattered_report(struct probe_context *context, const struct scattered_task *task,
                     struct err *err);

#endif
