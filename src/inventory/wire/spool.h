/* Spool files: the result of one GPU, or the plan of a survey, each in a small checked file that
 * outlives the survey. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/gpu_result.h"

enum { SPOOL_SCHEMA = 1 };

/* Replaces characters that some file systems do not allow in names, in place. */
void spool_plain_name(char *name);

/* Which survey a file belongs to, and when it was written. Strings are owned if the file was
 * read. */
struct spool_origin {
    char *survey; /* the same in all files of one survey; "" if the rank did not know it yet */
    char *version;
    char *backend;
    uint64_t seed;
    uint64_t time_ms; /* since 1970, UTC */
};

/* The plan of a survey, made when the GPUs were assigned: by rank 0 or, without MPI, by each rank
 * for itself. Strings and arrays are owned if the file was read. */
struct spool_survey {
    char **command;
    size_t command_count;
    char *config_name, *config_text;
    uint32_t ranks, nodes, lost_ranks;
    bool apart;    /* survey without MPI: this is the plan of one rank */
    uint32_t rank; /* that rank; only if apart */
    char **bare_nodes;
    size_t bare_count;
    struct gpu_result *expected; /* every assigned GPU: identity and rank only */
    size_t expected_count;
    struct gpu_result *unknown; /* ranks whose GPUs are not known: rank, status, reason */
    size_t unknown_count;
};

extern const struct schema spool_origin_schema, spool_plan_schema;

enum spool_kind { SPOOL_GPU, SPOOL_SURVEY };

/* One file. Zero-initialised is empty. */
struct spool_file {
    enum spool_kind kind;
    struct spool_origin origin;
    struct gpu_result gpu;      /* SPOOL_GPU */
    struct spool_survey survey; /* SPOOL_SURVEY */
};
void spool_file_fini(struct spool_file *file);

/* Writes to a temporary name and renames, so a reader never sees half a file. Different GPUs have
 * different files, and so have the plans of different surveys in one folder. */
int spool_write_gpu(const char *folder, const struct spool_origin *origin,
                    const struct gpu_result *gpu, struct err *err);
int spool_write_survey(const char *folder, const struct spool_origin *origin,
                       const struct spool_survey *survey, struct err *err);

/* True if this is the name of a spool file. */
bool spool_is_name(const char *name);
bool spool_has_files(const char *folder);

/* Removes all spool files in the folder. */
void spool_remove_files(const char *folder);

/* True if these are the first bytes of a spool file. */
bool spool_begins(const void *data, size_t length);

/* Reads a spool file. -EBADMSG: damaged; -ENOTSUP: written by a newer program. name: for
 * messages. out_file untouched on failure. */
int spool_read(const void *data, size_t length, const char *name, struct spool_file *out_file,
               struct err *err);

/* The path of the GPU's file in `folder`, freed with free(). Any UUID gives a
 * valid file name, and different ones give different names. */
char *spool_gpu_path(const char *folder, const char *uuid);

/* The same for the plan of a survey with a rank 0. */
char *spool_survey_path(const char *folder, const char *survey);

/* Reads the GPU's file in `folder` if it belongs to this survey. 0 or a negative errno; out_gpu
 * untouched on failure. */
int spool_read_gpu(const char *folder, const char *survey, const char *uuid,
                   struct gpu_result *out_gpu);

/* True if the plan of this single rank of a survey is there. */
bool spool_has_plan(const char *folder, const char *survey, uint32_t rank);

/* Counts the spool files, and the plans of single ranks of this survey among them. A folder that
 * does not exist has none. 0 or a negative errno. */
struct spool_count {
    size_t files, plans;
};
int spool_count(const char *folder, const char *survey, struct spool_count *out_count);

/* -EPERM: the file that was read is a link, belongs neither to this user nor to the owner of its
 * folder, may be written by others, or is no longer the one that `path` names; the text says which,
 * and what to do. read_info: of the opened file (fstat), so that no other one can be put in its
 * place between the check and the reading. A negative errno: it cannot be looked at. */
int spool_trust_file(const char *path, const struct stat *read_info, struct err *err);

/* The same for the folder, before results go there: it belongs to another user, or others may
 * replace its files. Root and the user of the program are no others. */
int spool_trust_folder(const char *path, struct err *err);

#endif
