/* Ranks that come together without MPI. */
#include "survey/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "base/str.h"
#include "survey/comm_folder.h"
#include "survey/limits.h"

extern char **environ;

/* Tells the process that starts over when its launcher began, in milliseconds since 1970. */
#define BEGUN "GPUMEMTOPO_BEGUN_MS"

/* More descriptors than MPI has open. */
enum { DESCRIPTORS = 1024 };

/* For the signal handler. envp NULL: there is no way. */
static char **start_argv, **start_envp;

/* When the launcher began, since 1970; 0: not known. */
static uint64_t begun_ms;

/* The folder that this rank has closed; NULL: none. */
static char *closed;

unsigned meeting_patience_s(const struct launcher *launcher, const struct survey_options *options)
{
    unsigned least_s = LIMIT_START_MIN_S + (unsigned)launcher->size / LIMIT_START_RANKS_PER_S;
    double limit_s = options->time_limit_s;
    double wanted_s = limit_s > 0 ? limit_s / LIMIT_START_SHARE : LIMIT_START_USUAL_S;
    if (wanted_s < least_s)
        wanted_s = least_s;
    return wanted_s > LIMIT_START_MAX_S ? LIMIT_START_MAX_S : (unsigned)wanted_s;
}

/* The age of the process that started this one, in milliseconds; 0: not known. */
static uint64_t parent_age_ms(void)
{
    char path[48];
    char text[1024] = "";
    unsigned long long ticks = 0;
    struct timespec up;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)getppid());
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *rest = strrchr(text, ')'); /* the name may have anything in it */
    const char *fields = " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %*s %llu";
    if (!rest || sscanf(rest + 1, fields, &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &up))
        return 0;
    double age_s = (double)up.tv_sec + 1e-9 * (double)up.tv_nsec -
                   (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return age_s > 0 ? (uint64_t)(1e3 * age_s) : 0;
}

/* Not when this rank began: others may have met and reported before that. */
static uint64_t launched_ms(void)
{
    return clock_utc_ms() - parent_age_ms();
}

/* Once more the environment, with one variable more. It lives as long as the process. */
void meeting_prepare(const struct launcher *launcher, char **argv)
{
    static char begun[sizeof BEGUN + 24];
    size_t count = 0;
    if (launcher->size < 2 || !launcher->job[0])
        return;
    begun_ms = launched_ms();
    snprintf(begun, sizeof begun, BEGUN "=%llu", (unsigned long long)begun_ms);
    while (environ[count])
        count++;
    char **envp = mem_array(count + 2, sizeof *envp);
    if (!envp)
        return;
    memcpy(envp, environ, count * sizeof *envp);
    envp[count] = begun;
    start_argv = argv;
    start_envp = envp;
}

/* The connection to the launcher stays open: Slurm ends all ranks when one closes it. */
void meeting_start_over(void)
{
    if (!start_envp)
        return;
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
        fcntl(fd, F_SETFD, 0);
    execve("/proc/self/exe", start_argv, start_envp);
}

/* Beside what the survey writes: where that is, all ranks can write most probably. */
static char *folder_of(const struct launcher *launcher, const struct survey_options *options)
{
    const char *output =
        options->output && !out_file_in_place(options->output) ? options->output : "";
    int beside = (int)(str_last_part(output) - output);
    if (options->spool)
        return str_format("%s/.gpumemtopo-meeting-%s", options->spool, launcher->job);
    return str_format("%.*s.gpumemtopo-meeting-%s", beside, output, launcher->job);
}

bool meeting_called(const struct launcher *launcher, const struct survey_options *options)
{
    if (getenv(BEGUN))
        return true;
    char *folder = launcher->size > 1 && launcher->job[0] ? folder_of(launcher, options) : NULL;
    bool open = folder && comm_folder_open(folder);
    free(folder);
    return open;
}

/* Most surveys start at once, and no file is needed for this. Under Slurm a node may have MPI while
 * another one waits in vain. */
bool meeting_call_off(const struct launcher *launcher, const struct survey_options *options,
                      double took_s)
{
    const double hurry = 0.25;
    struct err err = {0};
    char *folder = start_envp ? folder_of(launcher, options) : NULL;
    bool fast = took_s < hurry * meeting_patience_s(launcher, options) && !launcher->loose;
    if (!folder)
        return true;
    int rc = fast ? comm_folder_open(folder) ? -EEXIST : 0 : comm_folder_close(folder, &err);
    if (rc == 1)
        closed = folder;
    else
        free(folder);
    return rc != -EEXIST;
}

void meeting_tidy(void)
{
    if (closed)
        comm_folder_remove_closed(closed);
    free(closed);
    closed = NULL;
}

bool meeting_reported(const struct survey_options *options)
{
    struct stat info;
    return begun_ms && options->output && !out_file_in_place(options->output) &&
           stat(options->output, &info) == 0 && (uint64_t)info.st_mtime > begun_ms / 1000;
}

/* A rank that stood still or was not there while the others met and reported must not put a report
 * of its own in the place of theirs. */
static bool is_over(const struct survey_options *options, const char *folder)
{
    const char *text = getenv(BEGUN);
    if (!text || str_parse_u64(text, &begun_ms))
        begun_ms = launched_ms();
    return !comm_folder_open(folder) && meeting_reported(options);
}

/* What is open is the launcher's connection: no business of the workers'. */
static void close_to_workers(void)
{
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int meeting_join(const struct launcher *launcher, const struct survey_options *options,
                 bool (*hurried)(void), struct comm **out_comm, struct err *err)
{
    /* The others waited in MPI_Init as long as this one, and began about the same time. */
    double patience_s = meeting_patience_s(launcher, options), begun_s = clock_monotonic_s();
    const double come_s = 0.4 * patience_s;
    struct comm *comm = NULL;
    char *folder = folder_of(launcher, options);
    close_to_workers();
    if (!folder)
        return err_no_memory(err);
    if (options->spool)
        mkdir(options->spool, 0777); /* what fails is told of the folder in it */
    int rc = is_over(options, folder)
                 ? err_set(err, -ESTALE, "rank %d came when the survey was over", launcher->rank)
                 : comm_folder_create(folder, launcher->rank, launcher->size, come_s / 2, hurried,
                                      &comm, err);
    if (!rc) {
        comm->come_s = come_s - (clock_monotonic_s() - begun_s);
        if (comm->come_s < come_s / 4)
            comm->come_s = come_s / 4;
        if (comm_leads(comm))
            log_warning("MPI did not start within %.0f s: a rank is missing or cannot be reached; "
                        "the others go on without MPI, by files in %s",
                        patience_s, folder);
        *out_comm = comm;
    }
    free(folder);
    return rc;
}

void meeting_outlast_root(const struct launcher *launcher, const struct survey_options *options)
{
    const struct timespec pause = {.tv_nsec = 50000000}, exit_time = {.tv_sec = 1};
    const double until_s = clock_monotonic_s() + LIMIT_FINALIZE_LOST_S + 1;
    char *folder = folder_of(launcher, options);
    while (folder && comm_folder_open(folder) && clock_monotonic_s() < until_s)
        nanosleep(&pause, NULL);
    nanosleep(&exit_time, NULL);
    free(folder);
}
