/* A survey whose ranks do not communicate. */
#include "survey/start/no_mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "survey/comm/limits.h"
#include "survey/start/last_out.h"

/* Reports an error and returns false if the job has no name: the processes could not find each
 * other. */
static bool require_job_name(const struct comm_place *place)
{
    if (!*place->job && !place->task)
        log_error(
            "this launcher does not name the job, so its %d tasks cannot find each other without "
            "MPI: set GPUMEMTOPO_JOB to the same new name for all tasks of a survey",
            place->tasks);
    return *place->job;
}

/* Waits for the others, and makes the inventory if this process is the last. The wait is limited,
 * because a process that hangs keeps its lock. */
static void leave(const struct last_out *input, double begin_until_s, double end_until_s,
                  struct survey_end *end)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct last_out last = *input;
    struct clock_awake clock = {0};
    struct err err = {0};
    for (;;) {
        double now_s = clock_awake_tick(&clock, clock_monotonic_s());
        bool stop = survey_interrupted() || now_s > end_until_s;
        if (now_s >= begin_until_s || stop)
            last.tasks = 0;
        enum survey_exit code = SURVEY_EXIT_OK;
        int state = last_out_try(&last, &code, &err);
        /* If the last process fails, the survey has failed. If no process can know that it is the
         * last, rank 0 reports that. */
        end->reported = state == LAST_OUT_MADE || (state < 0 && state != -ENOLCK);
        if (state == LAST_OUT_MADE)
            end->code = code;
        end->others_code = state == LAST_OUT_DONE ? code : SURVEY_EXIT_OK;
        if (state < 0) {
            log_failure(&err);
            end->code = SURVEY_EXIT_NO_REPORT;
        }
        bool others = state >= 0 && state <= LAST_OUT_EARLY;
        if (others && stop)
            log_warning("other ranks still measure; results are in %s: make an inventory of them "
                        "with gpumemtopo-report merge",
                        last.folder);
        if (!others || stop)
            return;
        nanosleep(&pause, NULL);
    }
}

struct survey_end no_mpi_run(const struct comm_place *place, const struct survey_options *given,
                             int argc, char *const *argv, double patience_s)
{
    struct survey_end end = {.code = SURVEY_EXIT_NO_REPORT};
    struct survey_options options = *given;
    struct comm *comm = NULL;
    struct err err = {0};
    char *record = given->record ? str_format("%s.rank-%d", given->record, place->task) : NULL;
    bool room = record || !given->record;
    double begun_s = clock_monotonic_s();
    options.no_mpi = true;
    options.record = record;
    options.no_progress = true;
    if (!require_job_name(place))
        end.code = SURVEY_EXIT_BAD_INPUT;
    else if (room ? comm_alone_create(place, &comm, &err) : err_no_memory(&err))
        log_failure(&err);
    else
        end = survey_run(comm, &options, argc, argv);
    comm_destroy(comm);
    if (end.spool) {
        const struct last_out last = {
            .folder = end.spool,
            .owner = end.owner,
            .rank = place->task,
            .options = &options,
            .tasks = (size_t)place->tasks,
        };
        double taken_s = clock_monotonic_s() - begun_s;
        double measuring_s = LIMIT_TRIES * end.limit_s + LIMIT_GRACE_S;
        leave(&last, patience_s - taken_s, patience_s + measuring_s, &end);
    }
    survey_end_fini(&end);
    free(record);
    return end;
}
