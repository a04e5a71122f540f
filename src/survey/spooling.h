/* A rank's results on disk the moment they are known: they outlive the rank, and rank 0. */
#ifndef GPUMEMTOPO_SURVEY_SPOOLING_H
#define GPUMEMTOPO_SURVEY_SPOOLING_H

#include <stdbool.h>

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "inventory/spool.h"
#include "survey/options.h"

/* Where a rank spools. Zero-initialised: nowhere. */
struct spooling {
    char *folder; /* absolute on rank 0, which tells the others; NULL: none */
    char *survey; /* which one: the same on all ranks */
    const char *backend;
    uint64_t seed;
    struct err failed; /* the first file that could not be written; code 0: none */
};

/* The folder that the options name: --spool, or beside the output. NULL when they name none (or
 * memory is out). Freed with free(). */
char *spooling_folder(const struct survey_options *options, const char *output);

/* Whether something is spooled there. */
bool spooling_has_results(const char *path);

/* Rank 0: makes the folder; a default one of an earlier survey gets another name, which is said. A
 * default one that cannot be made costs only itself and is said. */
int spooling_begin(struct spooling *spooling, const struct survey_options *options,
                   const char *output, struct err *err);

/* The other ranks: as rank 0 says. folder NULL: none. 0 or -ENOMEM. */
int spooling_join(struct spooling *spooling, const struct survey_options *options,
                  const char *folder, const char *survey);

/* Write a file; a failure is kept in spooling->failed. */
void spooling_gpu(struct spooling *spooling, const struct gpu_result *gpu);
/* The same, unless a file of this GPU was written since: by another rank that sees it too, on the
 * same node and so by the same clock. since_ms: clock_utc_ms. */
void spooling_lost(struct spooling *spooling, const struct gpu_result *gpu, uint64_t since_ms);
void spooling_survey(struct spooling *spooling, const struct spool_survey *survey);

/* Remove a GPU's file; the survey's own; the folder when it is empty. */
void spooling_remove_gpu(const struct spooling *spooling, const char *uuid);
void spooling_remove_survey(const struct spooling *spooling);
void spooling_remove_folder(const struct spooling *spooling);

void spooling_fini(struct spooling *spooling);

#endif
