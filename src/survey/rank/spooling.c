/* Writes a rank's results to disk as soon as they are known. */
#include "survey/rank/spooling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/out_file.h"
#include "inventory/wire/spool.h"
#include "survey/start/stand_aside.h"

/* Chooses --spool, or a folder beside the output; NULL: none. A replay measures nothing that could
 * be lost. stdout, pipes and devices have no folder beside them. */
static char *spooling_choose_folder(const struct survey_options *options, const char *beside)
{
    if (options->spool)
        return str_copy(options->spool);
    if ((options->replay && !options->no_mpi) || out_file_in_place(beside))
        return NULL;
    return str_format("%s.spool", beside);
}

static void spooling_set_source(struct spooling *spooling, const struct survey_options *options)
{
    spooling->backend = options->simulate ? "sim" : options->replay ? "replay" : "cuda";
    spooling->seed = options->seed;
}

/* Other ranks may have other working directories. */
static char *spooling_absolute_path(const char *path)
{
    if (*path == '/' || out_file_in_place(path))
        return str_copy(path);
    char *folder = realpath(".", NULL);
    char *whole = folder ? str_format("%s/%s", folder, path) : str_copy(path);
    free(folder);
    return whole;
}

static int spooling_own_folder(struct spooling *spooling, const struct survey_options *options,
                               const struct comm_place *place, const char *output,
                               const char *folder, struct err *err)
{
    char host[HOST_NAME_MAX_BYTES], stamp[CLOCK_STAMP_MAX];
    char *aside = NULL, *whole = spooling_absolute_path(output);
    clock_utc_stamp(1, stamp);
    host_name(host);
    char *survey = str_format("%s-%s-%ld", stamp, host, (long)getpid());
    char *who = str_format("host %s, process %ld%s%s, since %s", host, (long)getpid(),
                           *place->job ? ", job " : "", place->job, stamp);
    spool_plain_name(survey);
    const struct spool_candidate candidate = {
        .folder = folder,
        .exclusive = !options->spool,
        .rank = place->task,
        .job = place->job,
        .output = whole,
        .who = who,
        .survey = survey,
    };
    int rc = spool_owner_join(&candidate, &spooling->owner, &aside, err);
    if (aside)
        log_warning("%s had results of an earlier survey: they are in %s now", folder, aside);
    if (!rc && spooling->owner.mixed)
        log_warning(
            "%s also has results of other surveys, and gpumemtopo-report merge includes them",
            folder);
    if (!rc && spooling->owner.unlocked)
        log_warning("%s: the file system has no locks: a second survey with this output would not "
                    "be noticed",
                    folder);
    free(aside);
    free(whole);
    free(survey);
    free(who);
    return rc;
}

int spooling_begin(struct spooling *spooling, const struct survey_options *options,
                   const struct comm_place *place, const char *output, const char *beside,
                   struct err *err)
{
    struct err why = {0};
    char *path = spooling_choose_folder(options, beside);
    if (!path)
        return 0;
    spooling_set_source(spooling, options);
    int rc = spooling_own_folder(spooling, options, place, output, path, &why);
    if (!rc) {
        spooling->folder = realpath(path, NULL);
        spooling->survey = str_copy(spooling->owner.identity.survey);
        stand_aside_watch(spooling->owner.fd, place->task);
        if (!spooling->folder)
            rc = err_set_at(&why, -errno, path, 0, 0, "cannot be found: %s", strerror(errno));
        else if (!place->task && spool_trust_folder(path, &why) == -EPERM)
            log_warning("%s: the folder %s", path, why.text);
    }
    free(path);
    bool needed = options->spool || options->no_mpi;
    if (rc && (needed || rc == -EBUSY)) {
        *err = why;
        return rc;
    }
    if (rc)
        log_warning("no spool: %s: %s", why.file, why.text);
    return 0;
}

void spooling_join(struct spooling *spooling, const struct survey_options *options,
                   const char *folder, const char *survey, const char *owner, int rank)
{
    struct err ignored = {0}; /* without the lock, results are still spooled */
    spooling_fini(spooling);
    spooling_set_source(spooling, options);
    spooling->folder = str_copy(folder);
    spooling->survey = str_copy(survey);
    if (owner && !spool_owner_open(owner, rank, &spooling->owner, &ignored))
        stand_aside_watch(spooling->owner.fd, rank);
}

static struct spool_origin spooling_origin(const struct spooling *spooling)
{
    return (struct spool_origin){
        .survey = spooling->survey ? spooling->survey : (char *)"",
        .version = (char *)GPUMEMTOPO_VERSION,
        .backend = (char *)spooling->backend,
        .seed = spooling->seed,
        .time_ms = clock_utc_ms(),
    };
}

static void spooling_keep_failure(struct spooling *spooling, const struct err *err)
{
    if (!spooling->failed.code)
        spooling->failed = *err;
}

void spooling_gpu(struct spooling *spooling, const struct gpu_result *gpu)
{
    const struct spool_origin origin = spooling_origin(spooling);
    struct err err = {0};
    if (spooling->folder && spool_write_gpu(spooling->folder, &origin, gpu, &err))
        spooling_keep_failure(spooling, &err);
}

/* Adds the values of a second measurement to the spooled result of the first. */
static int spooling_add_second_values(const struct spooling *spooling,
                                      const struct gpu_result *again, struct err *err)
{
    const struct spool_origin origin = spooling_origin(spooling);
    struct gpu_result first = {0};
    if (spool_read_gpu(spooling->folder, spooling->survey, again->uuid, &first))
        return 0;
    facts_fini(&first.measured_again);
    gpu_result_second_values(again, &first.measured_again);
    int rc = spool_write_gpu(spooling->folder, &origin, &first, err);
    gpu_result_fini(&first);
    return rc;
}

void spooling_gpu_again(struct spooling *spooling, const struct gpu_result *again)
{
    struct err err = {0};
    if (spooling->folder && again->status == GPU_OK &&
        spooling_add_second_values(spooling, again, &err))
        spooling_keep_failure(spooling, &err);
}

void spooling_survey(struct spooling *spooling, const struct spool_survey *survey)
{
    const struct spool_origin origin = spooling_origin(spooling);
    struct err err = {0};
    if (spooling->folder && spool_write_survey(spooling->folder, &origin, survey, &err))
        spooling_keep_failure(spooling, &err);
}

void spooling_remove_folder(const struct spooling *spooling)
{
    if (!spooling->folder || spool_has_files(spooling->folder))
        return;
    spool_owner_remove(&spooling->owner);
    rmdir(spooling->folder);
}

void spooling_fini(struct spooling *spooling)
{
    stand_aside_watch(-1, 0);
    free(spooling->folder);
    free(spooling->survey);
    spool_owner_fini(&spooling->owner);
    memset(spooling, 0, sizeof *spooling);
}
