/* Writes the results of a rank to disk as soon as they are known, so that they survive if the rank
 * or rank 0 dies. */
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
    char *folder; /* absolute on rank 0, which sends it to the others; NULL: none */
    char *survey; /* name of the survey, the same on all ranks */
    struct spool_owner owner;
    const char *backend;
    uint64_t seed;
    struct err failed; /* the first file that could not be written; code 0: none */
};

/* For rank 0 or a process without MPI. Creates the folder: the one that --spool names, otherwise
 * one beside the file `beside`. Becomes its owner, or joins the survey of the same job. Results of
 * an earlier survey in a default folder are renamed, with a warning. -EBUSY: another survey runs
 * with this output. If a default folder cannot be created, the survey continues without a spool,
 * with a warning; without MPI this is an error, since only the spool connects the ranks. */
int spooling_begin(struct spooling *spooling, const struct survey_options *options,
                   const struct comm_place *place, const char *output, const char *beside,
                   struct err *err);

/* For the other ranks: uses what rank 0 sent. folder NULL: no spool. */
void spooling_join(struct spooling *spooling, const struct survey_options *options,
                   const char *folder, const char *survey, const char *owner, int rank);

/* Each writes a file. A failure is kept in spooling->failed. */
void spooling_gpu(struct spooling *spooling, const struct gpu_result *gpu);
void spooling_gpu_again(struct spooling *spooling, const struct gpu_result *again);
void spooling_survey(struct spooling *spooling, const struct spool_survey *survey);

/* Removes the owner's file and the folder, if nothing else is in it. */
void spooling_remove_folder(const struct spooling *spooling);

void spooling_fini(struct spooling *spooling);

#endif
