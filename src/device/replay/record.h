/* Recording a survey: what a device was asked and answered, and the file that keeps it. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_RECORD_H
#define GPUMEMTOPO_DEVICE_REPLAY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "device/source.h"
#include "inventory/gpu_result.h"

/* What one GPU's record may take, and jobs of one batch; from a call beyond that on, calls are made
 * but not recorded. */
enum { RECORD_BODY_MAX = 60 * 1024 * 1024, RECORD_JOBS_MAX = 1 << 16 };

/* A source that writes every call of its devices and every answer to `fd`, before and after the
 * call: what a process that dies had done is there. Takes over the inner source, unless it fails.
 * One device at a time. */
int device_source_record(struct device_source *inner, int fd, struct device_source **out_source,
                         struct err *err);

/* How much of what was written to the descriptor is whole, and whether it is all there was. */
size_t record_body_whole(const char *data, size_t length, bool *out_closed);

/* How a survey was run. Zero-initialised is empty; strings are owned, NULL is not known. */
struct record_provenance {
    char *version; /* of the program */
    char *date;    /* UTC */
    char *host;    /* of rank 0 */
    char *backend; /* "sim", "cuda" */
    char **command;
    size_t command_count;
    uint64_t seed;
    uint32_t profile; /* enum probe_profile */
    char *probes;     /* as given; NULL: the profile's own */
    bool measure_busy;
    char *config; /* name of the configuration file */
    char *config_text;
    uint32_t ranks;
};
void record_provenance_fini(struct record_provenance *provenance);

/* One GPU's part of the file: identity, rank, status and reason of `gpu` and what its worker
 * wrote, cut to whole entries by the caller. closed: nothing is missing. */
void record_put_gpu(struct strbuf *buffer, const struct gpu_result *gpu, const char *body,
                    size_t body_bytes, bool closed);

/* What a survey knows beside its GPUs. */
struct record_survey {
    uint32_t nodes, lost_ranks;
    char **bare_nodes;
    size_t bare_count;
    struct gpu_result
        *unknown; /* ranks of whose GPUs nothing is known: node, rank, status, reason */
    size_t unknown_count;
};
void record_survey_fini(struct record_survey *survey); /* one that was read */

struct record_file;

/* Begins a record beside `path` under a temporary name. Freed with record_file_destroy, which
 * removes what was not finished. */
int record_file_create(const char *path, const struct record_provenance *provenance,
                       struct record_file **out_file, struct err *err);

/* Appends the part of one GPU. After a failure further calls do nothing and fail alike. */
int record_file_append(struct record_file *file, const char *part, size_t length, struct err *err);

/* Writes the end and puts the file in its place. */
int record_file_finish(struct record_file *file, const struct record_survey *survey,
                       struct err *err);
void record_file_destroy(struct record_file *file); /* accepts NULL */

#endif
