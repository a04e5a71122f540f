/* Spool files: what is known of one GPU, or of a survey as a whole, each alone in a small checked
 * file, so that it outlives the survey that found it. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/gpu_result.h"

enum { SPOOL_SCHEMA = 1 };

/* Replaces what is not fit for every file name, in place. */
void spool_plain_name(char *name);

/* Which survey a file belongs to, and from when it is. Strings are owned when read. */
struct spool_origin {
    char *survey; /* the same in all files of one survey; "" while nobody had told the rank */
    char *version;
    char *backend;
    uint64_t seed;
    uint64_t time_ms; /* since 1970, UTC */
};

/* The survey as it was planned when the GPUs were assigned, by rank 0 or, without MPI, by each rank
 * for itself. Strings and arrays are owned when read. */
struct spool_survey {
    char **command;
    size_t command_count;
    char *config_name, *config_text;
    uint32_t ranks, nodes, lost_ranks;
    bool apart;    /* a survey without MPI: this is the plan of one rank alone, */
    uint32_t rank; /* namely of this one */
    char **bare_nodes;
    size_t bare_count;
    struct gpu_result *expected; /* every assigned GPU: identity and rank only */
    size_t expected_count;
    struct gpu_result *unknown; /* ranks of whose GPUs nothing is known: rank, status, reason */
    size_t unknown_count;
};

enum spool_kind { SPOOL_GPU, SPOOL_SURVEY };

/* One file. Zero-initialised is empty. */
struct spool_file {
    enum spool_kind kind;
    struct spool_origin origin;
    struct gpu_result gpu;      /* SPOOL_GPU */
    struct spool_survey survey; /* SPOOL_SURVEY */
};
void spool_file_fini(struct spool_file *file);

/* Written under a temporary name and renamed: a reader never sees half of one, and writers of
 * different GPUs never meet, nor do two surveys that plan into one folder. */
int spool_write_gpu(const char *folder, const struct spool_origin *origin,
                    const struct gpu_result *gpu, struct err *err);
int spool_write_survey(const char *folder, const struct spool_origin *origin,
                       const struct spool_survey *survey, struct err *err);

/* Whether a file of this name in a spool folder is one of these. */
bool spool_is_name(const char *name);
bool spool_has_files(const char *folder);

/* Removes all of them. */
void spool_remove_files(const char *folder);

/* Whether these first bytes are a spool file's. */
bool spool_begins(const void *data, size_t length);

/* Reads one back. -EBADMSG when it is damaged, -ENOTSUP when a newer program wrote it, -ENOMEM;
 * name: for messages. out_file untouched on failure. */
int spool_read(const void *data, size_t length, const char *name, struct spool_file *out_file,
               struct err *err);

/* The GPU's file in `folder`; NULL when out of memory. Any UUID gives a name that is fit for a
 * file, and different ones different names. Freed with free(). */
char *spool_gpu_path(const char *folder, const char *uuid);

/* Reads the GPU's file in `folder`, if it is of this survey. 0 or a negative errno; out_gpu
 * untouched on failure. */
int spool_read_gpu(const char *folder, const char *survey, const char *uuid,
                   struct gpu_result *out_gpu);

/* How many files there are, and how many of them are plans of single ranks of this survey. A folder
 * that is not there has none. 0 or a negative errno. */
struct spool_count {
    size_t files, plans;
};
int spool_count(const char *folder, const char *survey, struct spool_count *out_count);

#endif
