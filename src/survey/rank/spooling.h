/* A rank's results on disk the moment they are known: they outlive the rank, and rank 0. */
#ifndef GPUMEMTOPO_SURVEY_RANK_SPOOLING_H
#define GPUMEMTOPO_SURVEY_RANK_SPOOLING_H

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_owner.h"
#include "survey/comm/comm.h"
#include "survey/options.h"

/* Where a rank spools. Zero-initialised: nowhere. */
struct spooling {
    char *folder; /* absolute on rank 0, which tells the others; NULL: none */
    char *survey; /* which one: the same on all ranks */
    struct spool_owner owner;
    const char *backend;
    uint64_t seed;
    struct err failed; /* the first file that could not be written; code 0: none */
};

/* Rank 0, or a process apart: makes the folder, beside the file `beside` unless --spool names one,
 * and becomes its owner, or joins the survey of the same job. What an earlier survey left in a
 * default folder gets another name, which is said. -EBUSY: another survey runs with this output. A
 * default folder that cannot be made costs only itself, and is said; without MPI, where only the
 * spool connects the ranks, it is an error. */
int spooling_begin(struct spooling *spooling, const struct survey_options *options,
                   const struct comm_place *place, const char *output, const char *beside,
                   struct err *err);

/* The other ranks: as rank 0 says. folder NULL: none. 0 or -ENOMEM. */
int spooling_join(struct spooling *spooling, const struct survey_options *options,
                  const char *folder, const char *survey, const char *owner, int rank);

/* Write a file; a failure is kept in spooling->failed. */
void spooling_gpu(struct spooling *spooling, const struct gpu_result *gpu);
void spooling_survey(struct spooling *spooling, const struct spool_survey *survey);

/* Removes the folder if it is empty but for its owner, who leaves. */
void spooling_remove_folder(const struct spooling *spooling);

void spooling_fini(struct spooling *spooling);

#endif
