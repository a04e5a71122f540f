/* The list of a rank's GPUs. */
#include "survey/rank/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/str.h"
#include "survey/comm/limits.h"
#include "survey/rank/given_gpus.h"

/* Simulated and replayed GPUs compete for the CPUs; real ones do not. */
static uint32_t workers_at_once(const struct survey_options *options)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (!options->simulate && !options->replay)
        return 0;
    return cpus < 1 ? 1 : (uint32_t)cpus;
}

int listing_introduce(const struct survey_options *options, struct announce *out_announce,
                      struct err *err)
{
    char host[HOST_NAME_MAX_BYTES];
    host_name(host);
    char *copy = str_copy(host), *boot_id = NULL;
    if (!copy || host_boot_id(&boot_id)) {
        free(copy);
        return err_no_memory(err);
    }
    out_announce->host = copy;
    out_announce->boot_id = boot_id;
    out_announce->at_once = workers_at_once(options);
    return 0;
}

double listing_limit_s(const struct survey_options *options)
{
    double asked_s = options->time_limit_s;
    return asked_s > 0 && asked_s < LIMIT_LISTING_S ? asked_s : LIMIT_LISTING_S;
}

/* A bad input file is the user's error and ends the survey. Any other failure concerns only this
 * rank. */
static enum listing_status classify(const struct survey_options *options, const struct job *job)
{
    const struct err *err = &job->outcome.err;
    if (!job->outcome.failed || !job->child.pid)
        return LISTING_FAILED; /* the worker sent no error, or could not be started */
    if (options->simulate || options->replay)
        return err->code == -ENOMEM ? LISTING_FAILED : LISTING_BAD_INPUT;
    if (err->code == -ENODEV || err->code == -ENOTSUP)
        return LISTING_NO_DEVICE;
    return LISTING_FAILED;
}

/* A worker that could not be started, has no backend, or had less time than a driver may need, says
 * nothing about the GPUs. */
static uint32_t given_to(const struct job *job, const struct survey_options *options)
{
    const double least_s = 20;
    const struct given_environment environment = given_environment_read();
    bool told = job->child.pid && job->outcome.err.code != -ENOTSUP &&
                (job->child.end != CHILD_TIME_LIMIT || listing_limit_s(options) >= least_s);
    return told ? given_gpus(&environment, (uint32_t)job->outcome.listing.gpu_count) : 0;
}

bool listing_is_tried_again(const struct job *job, const struct survey_options *options)
{
    return !job->outcome.done && job->child.pid && !options->simulate && !options->replay &&
           job->outcome.err.code != -ENOTSUP && job->child.end != CHILD_TIME_LIMIT &&
           job->child.end != CHILD_INTERRUPTED;
}

int listing_adopt(struct job *job, const struct survey_options *options, struct announce *announce,
                  struct err *err)
{
    const struct outcome *outcome = &job->outcome;
    struct announce *heard = &job->outcome.listing;
    const struct ending ending = job_ending(job, listing_limit_s(options));
    char *reason = NULL;
    if (!options->simulate && !options->replay)
        announce->gpus_given = given_to(job, options);
    announce->failed_as = outcome_judge(outcome, &ending, &reason);
    if (announce->failed_as != GPU_OK) {
        announce->listing = classify(options, job);
        announce->err = outcome->err;
        if (!outcome->failed)
            err_set(&announce->err, -EIO, "listing the GPUs: %s", reason ? reason : "failed");
        free(reason);
        return 0;
    }
    announce->gpus = heard->gpus;
    announce->gpu_count = heard->gpu_count;
    announce->bare_nodes = heard->bare_nodes;
    announce->bare_count = heard->bare_count;
    announce->dead = heard->dead;
    announce->dead_count = heard->dead_count;
    memset(heard, 0, sizeof *heard);
    for (size_t i = 0; i < announce->gpu_count; i++)
        if (!announce->gpus[i].node && !(announce->gpus[i].node = str_copy(announce->host)))
            return err_no_memory(err);
    return 0;
}
