/* A rank's results on disk the moment they are known. */
#include "survey/spooling.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_file.h"
#include "base/yaml.h"

char *spooling_folder(const struct survey_options *options, const char *output)
{
    if (options->spool)
        return str_copy(options->spool);
    /* A replay measures nothing that could be lost; stdout, pipes and devices have no place beside
     * them. */
    if (options->replay || !output || out_file_in_place(output))
        return NULL;
    return str_format("%s.spool", output);
}

static void set_source(struct spooling *spooling, const struct survey_options *options)
{
    spooling->backend = options->simulate ? "sim" : options->replay ? "replay" : "cuda";
    spooling->seed = options->seed;
}

static int make_folder(const char *path, char **out_folder, struct err *err)
{
    struct stat info;
    if (mkdir(path, 0777) && errno != EEXIST)
        return err_set_at(err, -errno, path, 0, 0, "cannot make the spool folder: %s",
                          strerror(errno));
    if (stat(path, &info) || !S_ISDIR(info.st_mode))
        return err_set_at(err, -ENOTDIR, path, 0, 0, "is no folder; --spool names one");
    if (access(path, W_OK | X_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot be written: %s", strerror(errno));
    char *folder = realpath(path, NULL);
    if (!folder)
        return err_set_at(err, -errno, path, 0, 0, "cannot be found: %s", strerror(errno));
    *out_folder = folder;
    return 0;
}

bool spooling_has_results(const char *path)
{
    bool found = false;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = spool_is_name(entry->d_name);
    if (folder)
        closedir(folder);
    return found;
}

/* Results of an earlier survey that nobody merged are neither removed nor mixed with this one's. In
 * a folder that the user named they may be meant to be together. */
static int set_aside(const char *path, bool named, const char *stamp, struct err *err)
{
    if (!spooling_has_results(path))
        return 0;
    if (named) {
        log_warning("%s has results of an earlier survey too: merge takes them along", path);
        return 0;
    }
    char *aside = str_format("%s.before-%s", path, stamp);
    if (!aside)
        return err_no_memory(err);
    if (rename(path, aside))
        log_warning("%s has results of an earlier survey too, which cannot be moved: %s", path,
                    strerror(errno));
    else
        log_warning("%s had results of an earlier survey: they are in %s now", path, aside);
    free(aside);
    return 0;
}

int spooling_begin(struct spooling *spooling, const struct survey_options *options,
                   const char *output, struct err *err)
{
    struct err why = {0};
    char host[256] = "", stamp[CLOCK_STAMP_MAX];
    char *path = spooling_folder(options, output);
    if (!path)
        return 0;
    if (gethostname(host, sizeof host - 1))
        host[0] = '\0';
    clock_utc_stamp(1, stamp);
    set_source(spooling, options);
    int rc = set_aside(path, options->spool, stamp, &why);
    if (!rc)
        rc = make_folder(path, &spooling->folder, &why);
    if (!rc)
        spooling->survey = str_format("%s-%s-%ld", stamp, host, (long)getpid());
    if (!rc && !spooling->survey)
        rc = err_no_memory(&why);
    free(path);
    if (rc && (options->spool || rc == -ENOMEM)) {
        *err = why;
        return rc;
    }
    if (rc)
        log_warning("no spool: %s: %s", why.file, why.text);
    return 0;
}

int spooling_join(struct spooling *spooling, const struct survey_options *options,
                  const char *folder, const char *survey)
{
    spooling_fini(spooling);
    set_source(spooling, options);
    return str_copy_to(&spooling->folder, folder) || str_copy_to(&spooling->survey, survey)
               ? -ENOMEM
               : 0;
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

static bool came_since(const char *path, uint64_t since_ms)
{
    struct strbuf bytes = {0};
    struct spool_file file = {0};
    struct err ignored = {0};
    bool came = yaml_load_text(path, &yaml_limits_inventory, &bytes, &ignored) == 0 &&
                spool_read(bytes.data, bytes.length, path, &file, &ignored) == 0 &&
                file.origin.time_ms >= since_ms;
    spool_file_fini(&file);
    strbuf_fini(&bytes);
    return came;
}

void spooling_lost(struct spooling *spooling, const struct gpu_result *gpu, uint64_t since_ms)
{
    char *path = spooling->folder ? spool_gpu_path(spooling->folder, gpu->uuid) : NULL;
    if (path && !came_since(path, since_ms))
        spooling_gpu(spooling, gpu);
    free(path);
}

void spooling_survey(struct spooling *spooling, const struct spool_survey *survey)
{
    const struct spool_origin origin = origin_of(spooling);
    struct err err = {0};
    if (spooling->folder && spool_write_survey(spooling->folder, &origin, survey, &err))
        keep_failure(spooling, &err);
}

void spooling_remove_gpu(const struct spooling *spooling, const char *uuid)
{
    if (spooling->folder)
        spool_remove_gpu(spooling->folder, uuid);
}

void spooling_remove_survey(const struct spooling *spooling)
{
    if (spooling->folder)
        spool_remove_survey(spooling->folder, spooling->survey);
}

void spooling_remove_folder(const struct spooling *spooling)
{
    if (spooling->folder)
        rmdir(spooling->folder);
}

void spooling_fini(struct spooling *spooling)
{
    free(spooling->folder);
    free(spooling->survey);
    memset(spooling, 0, sizeof *spooling);
}
