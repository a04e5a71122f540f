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
#include "inventory/wire/spool_trust.h"
#include "survey/start/stand_aside.h"

/* Chooses --spool, or a folder beside the output; NULL: none. A replay measures nothing that could
 * be lost. stdout, pipes and devices have no folder beside them. */
static int choose_folder(const struct survey_options *options, const char *beside,
                         char **out_folder)
{
    *out_folder = NULL;
    if (options->spool)
        return str_copy_to(out_folder, options->spool);
    if ((options->replay && !options->no_mpi) || out_file_in_place(beside))
        return 0;
    *out_folder = str_format("%s.spool", beside);
    return *out_folder ? 0 : -ENOMEM;
}

static void set_source(struct spooling *spooling, const struct survey_options *options)
{
    spooling->backend = options->simulate ? "sim" : options->replay ? "replay" : "cuda";
    spooling->seed = options->seed;
}

/* Other ranks may have other working directories. */
static char *absolute(const char *path)
{
    if (*path == '/' || out_file_in_place(path))
        return str_copy(path);
    char *folder = realpath(".", NULL);
    char *whole = folder ? str_format("%s/%s", folder, path) : str_copy(path);
    free(folder);
    return whole;
}

static int own_folder(struct spooling *spooling, const struct survey_options *options,
                      const struct comm_place *place, const char *output, const char *folder,
                      struct err *err)
{
    char host[HOST_NAME_MAX_BYTES], stamp[CLOCK_STAMP_MAX];
    char *aside = NULL, *whole = absolute(output);
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
    char *path;
    if (choose_folder(options, beside, &path))
        return err_no_memory(err);
    if (!path)
        return 0;
    set_source(spooling, options);
    int rc = own_folder(spooling, options, place, output, path, &why);
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
    if (rc && (needed || rc == -ENOMEM || rc == -EBUSY)) {
        *err = why;
        return rc;
    }
    if (rc)
        log_warning("no spool: %s: %s", why.file, why.text);
    return 0;
}

int spooling_join(struct spooling *spooling, const struct survey_options *options,
                  const char *folder, const char *survey, const char *owner, int rank)
{
    struct err ignored = {0}; /* without the lock, results are still spooled */
    spooling_fini(spooling);
    set_source(spooling, options);
    if (str_copy_to(&spooling->folder, folder) || str_copy_to(&spooling->survey, survey))
        return -ENOMEM;
    if (owner && !spool_owner_open(owner, rank, &spooling->owner, &ignored))
        stand_aside_watch(spooling->owner.fd, rank);
    return 0;
}

static struct spool_origin origin_of(const struct spooling *spooling)
{
    return (struct spool_origin){
        .survey = spooling->survey ? spooling->survey : (char *)"",
        .version = (char *)GPUMEMTOPO_VERSION,
        .backend = (char *)spooling->backend,
        .seed = spooling->seed,
        .time_ms = clock_utc_ms(),
    };
}

static void keep_failure(struct spooling *spooling, const struct err *err)
{
    if (!spooling->failed.code)
        spooling->failed = *err;
}

void spooling_gpu(struct spooling *spooling, const struct gpu_result *gpu)
{
    const struct spool_origin origin = origin_of(spooling);
    struct err err = {0};
    if (spooling->folder && spool_write_gpu(spooling->folder, &origin, gpu, &err))
        keep_failure(spooling, &err);
}

/* Adds the values of a second measurement to the spooled result of the first. */
static int add_again(const struct spooling *spooling, const struct gpu_result *again,
                     struct err *err)
{
    const struct spool_origin origin = origin_of(spooling);
    struct gpu_result first = {0};
    int rc = spool_read_gpu(spooling->folder, spooling->survey, again->uuid, &first);
    if (rc)
        return rc == -ENOMEM ? err_no_memory(err) : 0;
    facts_fini(&first.measured_again);
    if (gpu_result_second_values(again, &first.measured_again))
        rc = err_no_memory(err);
    if (!rc)
        rc = spool_write_gpu(spooling->folder, &origin, &first, err);
    gpu_result_fini(&first);
    return rc;
}

void spooling_gpu_again(struct spooling *spooling, const struct gpu_result *again)
{
    struct err err = {0};
    if (spooling->folder && again->status == GPU_OK && add_again(spooling, again, &err))
        keep_failure(spooling, &err);
}

void spooling_survey(struct spooling *spooling, const struct spool_survey *survey)
{
    const struct spool_origin origin = origin_of(spooling);
    struct err err = {0};
    if (spooling->folder && spool_write_survey(spooling->folder, &origin, survey, &err))
        keep_failure(spooling, &err);
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
