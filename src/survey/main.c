/* gpumemtopo-survey: options, MPI where a launcher is, the survey, the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "probes/probes.h"
#include "survey/comm.h"
#include "survey/comm_mpi.h"
#include "survey/exit_file.h"
#include "survey/keeper.h"
#include "survey/launcher.h"
#include "survey/limits.h"
#include "survey/meeting.h"
#include "survey/options.h"
#include "survey/request.h"
#include "survey/survey.h"
#include "survey/watchdog.h"
#include "survey/worker.h"

static const char *variable(const char *name)
{
    return getenv(name);
}

static int print_text(const struct strbuf *text)
{
    if (text->failed || fwrite(text->data, 1, text->length, stdout) != text->length ||
        fflush(stdout)) {
        log_error("cannot write to stdout");
        return SURVEY_EXIT_NO_REPORT;
    }
    return SURVEY_EXIT_OK;
}

static void put_version(struct strbuf *text)
{
    char mpi[256];
    strbuf_printf(text,
                  "gpumemtopo-survey %s\n"
                  "CUDA backend: %s\n"
                  "further backends: simulation, replay of records\n"
                  "MPI: %s\n"
                  "compiler: %s\n"
                  "inventory: schema %d\n",
                  GPUMEMTOPO_VERSION, GPUMEMTOPO_CUDA, comm_mpi_version(mpi, sizeof mpi),
                  GPUMEMTOPO_COMPILER, INVENTORY_SCHEMA);
}

static int print_about(enum survey_action action)
{
    static const char *const profiles[] = {"quick", "standard", "full"};
    struct strbuf text = {0};
    if (action == SURVEY_HELP)
        survey_options_help(&text);
    if (action == SURVEY_VERSION)
        put_version(&text);
    for (size_t i = 0; action == SURVEY_LIST_PROBES && i < probe_count(); i++) {
        const struct probe_description probe = probe_describe(i);
        strbuf_printf(&text, "%-24s %-9s %s\n", probe.name, profiles[probe.profile], probe.summary);
    }
    int code = print_text(&text);
    strbuf_fini(&text);
    return code;
}

/* All that can be wrong with the command line itself; every rank finds the same. */
static int read_command(int argc, char **argv, struct survey_options *out_options, struct err *err)
{
    struct probe_selection selection = {0};
    int rc = survey_options_parse(argc, argv, out_options, err);
    if (!rc)
        rc = probes_select(out_options->profile, out_options->probes, &selection, err);
    free(selection.indices);
    return rc;
}

static struct survey_end run_alone(const struct survey_options *options, int argc, char **argv)
{
    struct survey_end end = {.code = SURVEY_EXIT_NO_REPORT};
    struct err err = {0};
    struct comm *comm = NULL;
    if (comm_alone_create(&comm, &err))
        log_failure(&err);
    else
        end = survey_run(comm, options, argc, argv);
    comm_destroy(comm);
    return end;
}

/* Two ranks speak, since rank 0 may be the missing one. */
static bool speaks;

static void without_mpi(void)
{
    static const char missing[] = "gpumemtopo-survey: error: MPI did not start: a rank is missing "
                                  "or cannot be reached\n";
    meeting_start_over();
    if (!speaks)
        return;
    ssize_t written = write(STDERR_FILENO, missing, sizeof missing - 1);
    (void)written;
    exit_file_leave_loss();
}

static int start_mpi(const struct launcher *launcher, const struct survey_options *options,
                     int *argc, char ***argv, struct err *err)
{
    double begun_s = clock_monotonic_s();
    speaks = launcher->rank <= 1;
    meeting_prepare(launcher, *argv);
    watchdog_start(meeting_patience_s(launcher, options), NULL, without_mpi, SURVEY_EXIT_NO_REPORT);
    int rc = comm_mpi_start(argc, argv, err);
    watchdog_stop();
    if (!rc && !meeting_call_off(launcher, options, clock_monotonic_s() - begun_s)) {
        meeting_start_over();
        rc = err_set(err, -EIO, "the other ranks did not wait for MPI, and cannot be joined");
    }
    return rc;
}

/* Takes over the comm. */
static struct survey_end run_rank(struct comm *comm, const struct survey_options *options,
                                  const struct launcher *launcher, int argc, char **argv)
{
    if (launcher->slurm)
        keeper_start();
    if (!comm_leads(comm)) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "gpumemtopo-survey[%d]", comm->rank);
        log_set_prefix(prefix);
    }
    struct survey_end end = survey_run(comm, options, argc, argv);
    comm_destroy(comm);
    return end;
}

/* A wrapper that starts the survey under a launcher may name its own stderr: a launcher between
 * would mix its words with ours. A named pipe whose reader is gone must not hold the rank. */
static void speak_directly(void)
{
    const char *path = getenv("GPUMEMTOPO_STDERR");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_APPEND); /* to be waited for again */
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* The survey is over and has said what it had to say. A wrapper that shows the survey's words only
 * shall not show what MPI has to say about its own end. */
static void be_silent(void)
{
    int fd = getenv("GPUMEMTOPO_STDERR") ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* With lost ranks MPI_Finalize waits for somebody who will not come. */
static void stop_mpi(const struct survey_end *end, int code)
{
    unsigned finalize_s = LIMIT_FINALIZE_S + (unsigned)end->ranks / LIMIT_FINALIZE_RANKS_PER_S;
    struct err err = {0};
    be_silent();
    watchdog_start(end->lost_ranks || end->quiet_ranks ? LIMIT_FINALIZE_LOST_S : finalize_s, NULL,
                   NULL, code);
    int rc = comm_mpi_stop(&err);
    keeper_release();
    if (rc)
        log_debug("%s", err.text);
    watchdog_stop();
}

/* With MPI: what the process is to return. */
static int run_mpi(const struct survey_options *options, const struct launcher *launcher, int argc,
                   char **argv)
{
    struct survey_end end = {.code = SURVEY_EXIT_NO_REPORT};
    struct err err = {0};
    struct comm *comm = NULL;
    if (start_mpi(launcher, options, &argc, &argv, &err)) {
        log_failure(&err);
        return launcher->rank ? 0 : exit_file_write(SURVEY_EXIT_NO_REPORT, true);
    }
    if (comm_mpi_world(launcher->loose ? LIMIT_SETTLE_S : 0, &comm, &err))
        log_failure(&err);
    else
        end = run_rank(comm, options, launcher, argc, argv);
    bool still = end.lost_ranks || end.quiet_ranks;
    int code = launcher->rank || end.late ? 0 : exit_file_write(end.code, still);
    meeting_tidy();
    stop_mpi(&end, code);
    return code;
}

/* Without MPI, which did not start. Others may stay in MPI_Init for ever, so ranks count as lost in
 * any case. The keeper is not released: to Slurm a rank that leaves now has failed. */
static int run_meeting(const struct survey_options *options, const struct launcher *launcher,
                       int argc, char **argv)
{
    struct err err = {0};
    struct comm *comm = NULL;
    survey_catch_signals();
    int rc = meeting_join(launcher, options, survey_interrupted, &comm, &err);
    if (rc) {
        if (rc == -ESTALE || exit_file_claim_loss(true))
            log_failure(&err);
        return rc == -ESTALE ? 0 : SURVEY_EXIT_NO_REPORT;
    }
    bool leads = comm_leads(comm);
    struct survey_end end = run_rank(comm, options, launcher, argc, argv);
    if (!leads)
        meeting_outlast_root(launcher, options);
    return leads && !end.late ? exit_file_write(end.code, true) : 0;
}

static int refuse(const struct launcher *launcher, const struct err *err)
{
    if (launcher->rank)
        return 0;
    log_failure(err);
    return exit_file_write(SURVEY_EXIT_BAD_INPUT, false);
}

int main(int argc, char **argv)
{
    struct survey_options options;
    struct launcher launcher = {0};
    struct err err = {0};
    io_fill_standard();
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0)
        return worker_main();
    if (argc == 2 && strcmp(argv[1], KEEPER_ARGUMENT) == 0)
        return keeper_main();
    speak_directly();
    log_set_prefix("gpumemtopo-survey");
    int refused = launcher_detect(variable, &launcher, &err);
    struct err usage = {0};
    if (read_command(argc, argv, &options, &usage))
        return refuse(&launcher, &usage);
    if (options.action != SURVEY_RUN)
        return launcher.rank ? 0 : exit_file_write(print_about(options.action), false);
    if (refused)
        return refuse(&launcher, &err);
    log_set_level(options.quiet ? LOG_ERROR : options.verbose ? LOG_DEBUG : LOG_INFO);
    if (!launcher.present)
        return exit_file_write(run_alone(&options, argc, argv).code, false);
    return meeting_called(&launcher, &options) ? run_meeting(&options, &launcher, argc, argv)
                                               : run_mpi(&options, &launcher, argc, argv);
}
