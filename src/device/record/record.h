/* Recording a survey: what a device was asked and answered, and the file that keeps it, written and
 * read. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_RECORD_H
#define GPUMEMTOPO_DEVICE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "device/source.h"
#include "inventory/gpu_result.h"
#include "schema/schema.h"

struct pseudonyms; /* inventory/pseudonyms.h */

/* Limits of one GPU's record and of the jobs of one batch. After a call that exceeds them, calls
 * are still made but not recorded. */
enum { RECORD_BODY_MAX = 60 * 1024 * 1024, RECORD_JOBS_MAX = 1 << 16 };

/* A source that writes to `fd` every call of its devices before it is made and every answer after
 * it, so that everything is there up to the point where a process dies. Takes over the inner
 * source. One device at a time. */
struct device_source *device_source_record(struct device_source *inner, int fd);

/* How many of the bytes written to the descriptor form whole entries, and whether nothing is
 * missing. */
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
    char *probes;     /* as given; NULL: those of the profile */
    bool measure_busy;
    char *config; /* name of the configuration file */
    char *config_text;
    uint32_t ranks;
};
void record_provenance_fini(struct record_provenance *provenance);

/* The head of one GPU; its body of body_bytes follows. */
struct record_gpu {
    struct gpu_result gpu; /* identity, rank, status, reason */
    uint32_t session;      /* as device_source.session */
    bool closed;           /* all calls are there */
    uint64_t body_offset;  /* in the file */
    uint64_t body_bytes;
};

/* One GPU's part of the file: identity, rank, status and reason of `gpu`, and what its worker
 * wrote, cut to whole entries by the caller. session: see device_source. closed: nothing is
 * missing. */
void record_put_gpu(struct strbuf *buffer, const struct gpu_result *gpu, uint32_t session,
                    const char *body, size_t body_bytes, bool closed);

/* What a survey knows apart from its GPUs. */
struct record_survey {
    uint32_t nodes, lost_ranks;
    char **bare_nodes;
    size_t bare_count;
    struct gpu_result *unknown; /* ranks without known GPUs: node, rank, status, reason */
    size_t unknown_count;
};
void record_survey_fini(struct record_survey *survey); /* only for one that was read */

/* The parts of the file: struct record_provenance, record_gpu and record_survey. */
extern const struct schema record_provenance_schema, record_gpu_schema, record_survey_schema;

struct record_file;

/* Begins a record under a temporary name beside `path`. Freed with record_file_destroy, which
 * removes an unfinished file. */
int record_file_create(const char *path, const struct record_provenance *provenance,
                       struct record_file **out_file, struct err *err);

/* Appends the part of one GPU. After a failure, further calls do nothing and return the same
 * error. */
int record_file_append(struct record_file *file, const char *part, size_t length, struct err *err);

/* Writes the end and renames the file to its final name. */
int record_file_finish(struct record_file *file, const struct record_survey *survey,
                       struct err *err);
void record_file_destroy(struct record_file *file); /* accepts NULL */

/* A record that is read: all parts at once, the body of a GPU on request. */
struct record;

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

/* Copies the record `from` to `to`, with pseudonyms for all names; comments of the configuration
 * are left out. It replays as before. The names are sealed; those of the record that they do not
 * have are added. Errors as record_open and record_file_create. */
int record_anonymous_copy(const char *from, const char *to, struct pseudonyms *names,
                          struct err *err);

#endif
