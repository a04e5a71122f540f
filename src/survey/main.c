/* gpumemtopo-survey: reads the options, starts MPI if a launcher is present, runs the survey,
 * returns the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "probes/probes.h"
#include "survey/comm/comm.h"
#include "survey/comm/comm_mpi.h"
#include "survey/comm/limits.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/start/exit_file.h"
#include "survey/start/hydra_job.h"
#include "survey/start/hydra_keeper.h"
#include "survey/start/last_out.h"
#include "survey/start/launcher.h"
#include "survey/start/mpi_start.h"
#include "survey/start/no_mpi.h"
#include "survey/start/nohup.h"
#include "survey/start/pmix_keeper.h"
#include "survey/start/stand_aside.h"
#include "survey/survey.h"
#include "survey/worker/request.h"
#include "survey/worker/worker.h"

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

/* Finds every error of the command line. Every rank finds the same ones. */
static int read_command(int argc, char **argv, struct survey_options *out_options, struct err *err)
{
    struct probe_selection selection = {0};
    int rc = survey_options_parse(argc, argv, out_options, err);
    if (!rc)
        rc = probes_select(out_options->profile, out_options->probes, &selection, err);
    free(selection.indices);
    return rc;
}

/* One process of a survey. */
struct process {
    struct launcher launcher;
    struct survey_options options;
    struct comm_place place;
    int argc;
    char **argv;
};

static struct survey_end run_alone(const struct process *self)
{
    struct survey_end end = {.code = SURVEY_EXIT_NO_REPORT};
    struct err err = {0};
    struct comm *comm = NULL;
    if (comm_alone_create(&self->place, &comm, &err))
        log_failure(&err);
    else
        end = survey_run(comm, &self->options, self->argc, self->argv);
    comm_destroy(comm);
    survey_end_fini(&end);
    return end;
}

static void set_prefix(const struct process *self)
{
    char prefix[64];
    if (!self->place.task)
        return;
    snprintf(prefix, sizeof prefix, "gpumemtopo-survey[%d]", self->place.task);
    log_set_prefix(prefix);
}

/* Returns the exit code of the process. The exit file says "lost": the wrapper need not wait for
 * the launcher, since other ranks may hang for ever. */
static int run_without_mpi(const struct process *self, double patience_s)
{
    set_prefix(self);
    const struct survey_end end =
        no_mpi_run(&self->place, &self->options, self->argc, self->argv, patience_s);
    /* A launcher ends all ranks when one of them returns a failure, so a process that failed
     * returns 0 while others may measure. Once an inventory without some ranks is made, all
     * return its code: the launcher returns the code of the process that it sees first. */
    bool speaks = end.reported || (end.code && !self->place.task);
    enum survey_exit code = speaks ? end.code : end.others_code;
    return code || speaks ? exit_file_write(code, true) : 0;
}

/* MPI did not start. The launcher's connection must stay open after this process ends: otherwise
 * Slurm would end the step, in which other ranks still measure. Ranks 0 and 1 both print the
 * warning, since rank 0 may be missing. */
static void give_up_mpi(void *user)
{
    const struct process *self = user;
    double patience_s = self->place.patience_s;
    if (self->launcher.slurm)
        pmix_keeper_start();
    if (self->place.task <= 1)
        log_warning("MPI did not start within %.0f s: a rank is missing or cannot be reached; the "
                    "others measure without MPI, and wait for it once more for the same time",
                    patience_s);
    _exit(run_without_mpi(self, patience_s));
}

/* Rank 0 is lost. If it had not yet assigned GPUs, the other ranks survey as if there were no MPI.
 * Otherwise the last of them makes the inventory from the spool. */
static void outlive_rank_0(const struct process *self, struct survey_end *end)
{
    const struct last_out last = {.folder = end->spool,
                                  .owner = end->owner,
                                  .rank = self->place.task,
                                  .options = &self->options,
                                  .orphans = true};
    struct err err = {0};
    double unheard_s = end->unheard_s;
    if (!end->assigned) {
        survey_end_fini(end);
        *end = no_mpi_run(&self->place, &self->options, self->argc, self->argv,
                          self->place.patience_s);
        end->lost_ranks = true;
        return;
    }
    int state = end->spool ? last_out_try(&last, &end->code, &err) : -ENOENT;
    if (state == LAST_OUT_OTHERS && !self->launcher.slurm)
        stand_aside_for_others(end->owner);
    end->reported = state == LAST_OUT_MADE;
    if (end->spool && state < 0) {
        log_failure(&err);
        end->code = SURVEY_EXIT_NO_REPORT;
        end->reported = true;
    } else if (end->reported)
        log_warning("rank 0 was not heard for %.0f s and seems to be lost: the inventory was made "
                    "from what the others had spooled",
                    unheard_s);
    else if ((state == LAST_OUT_RANK_0 || state < 0) &&
             exit_file_claim_loss(state >= 0 || self->place.task == 1))
        log_error("rank 0 was not heard for %.0f s and seems to be lost; results are in %s%s",
                  unheard_s, end->spool ? end->spool : "no spool",
                  end->spool ? ": make an inventory of them with gpumemtopo-report merge" : "");
}

/* Takes ownership of the comm. */
static struct survey_end run_rank(struct comm *comm, const struct process *self)
{
    if (self->launcher.slurm)
        pmix_keeper_start();
    set_prefix(self);
    struct survey_end end = survey_run(comm, &self->options, self->argc, self->argv);
    comm_destroy(comm);
    if (end.orphaned)
        outlive_rank_0(self, &end);
    survey_end_fini(&end);
    return end;
}

/* A wrapper may pass its stderr as a named pipe, because the launcher would mix its messages with
 * ours. A pipe that has no reader must not block the rank. */
static void speak_directly(void)
{
    const char *path = getenv("GPUMEMTOPO_STDERR");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_APPEND); /* writes block again */
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* The survey has printed everything. UCX, which MPICH uses, prints a warning for each message that
 * nobody has received to stdout, where the inventory may be. A wrapper that shows only the survey's
 * messages must not show what MPI prints when it ends. */
static void be_silent(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDOUT_FILENO);
    if (getenv("GPUMEMTOPO_STDERR"))
        dup2(fd, STDERR_FILENO);
    close(fd);
}

static volatile sig_atomic_t code_at_end;

static void leave_at_once(int number)
{
    (void)number;
    _exit(code_at_end);
}

/* MPI_Finalize waits for lost ranks. After some seconds the process exits without it. */
static void stop_mpi(bool lost_ranks, int code)
{
    struct err err = {0};
    be_silent();
    code_at_end = code;
    signal(SIGALRM, leave_at_once);
    alarm(lost_ranks ? LIMIT_FINALIZE_LOST_S : LIMIT_FINALIZE_S);
    if (comm_mpi_stop(&err))
        log_debug("%s", err.text);
    pmix_keeper_release();
    alarm(0);
}

static int refuse(const struct launcher *launcher, const struct err *err)
{
    if (launcher->rank)
        return 0;
    log_failure(err);
    return exit_file_write(SURVEY_EXIT_BAD_INPUT, false);
}

/* The survey with MPI. Returns the exit code of the process. */
static int run_mpi(struct process *self)
{
    struct survey_end end = {.code = SURVEY_EXIT_NO_REPORT, .lost_ranks = true};
    struct err err = {0};
    struct comm *comm = NULL;
    if (mpi_start(&self->argc, &self->argv, self->launcher.unfenced, self->place.patience_s,
                  give_up_mpi, self, &err)) {
        log_failure(&err);
        return self->place.task ? 0 : exit_file_write(SURVEY_EXIT_NO_REPORT, true);
    }
    int rc = comm_mpi_world(&self->place, &comm, &err);
    if (!rc && launcher_check_size(&self->launcher, comm_mpi_pmi(), comm->size, &err)) {
        comm_destroy(comm);
        int refused = refuse(&self->launcher, &err);
        stop_mpi(false, refused);
        return refused;
    }
    if (rc)
        log_failure(&err);
    else {
        self->place = comm->place;
        end = run_rank(comm, self);
    }
    int code = end.reported || !self->place.task ? exit_file_write(end.code, end.lost_ranks) : 0;
    stop_mpi(end.lost_ranks, code);
    return code;
}

/* A configuration that cannot be read is reported later, once. */
static double start_patience_s(const struct survey_options *options, int ranks)
{
    struct survey_config config = {0};
    struct err ignored = {0};
    if (survey_config_load(options->config, &config, &ignored))
        survey_config_defaults(&config);
    double patience_s = config.start.least_s + config.start.per_rank_s * ranks;
    survey_config_fini(&config);
    return patience_s;
}

int main(int argc, char **argv)
{
    struct process self = {.argc = argc, .argv = argv};
    struct err refusal = {0}, usage = {0};
    io_fill_standard();
    nohup_restore();
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0)
        return worker_main();
    if (argc == 2 && strcmp(argv[1], KEEPER_ARGUMENT) == 0)
        return pmix_keeper_main();
    if (argc == 2 && strcmp(argv[1], HYDRA_KEEPER_ARGUMENT) == 0)
        return hydra_keeper_main();
    speak_directly();
    log_set_prefix("gpumemtopo-survey");
    int refused = launcher_detect(getenv, comm_mpi_pmi(), &self.launcher, &refusal);
    if (self.launcher.present)
        stand_aside_when_exhausted();
    if (self.launcher.hydra)
        hydra_keeper_start();
    if (self.launcher.hydra && !*self.launcher.job)
        hydra_job_name(self.launcher.job, sizeof self.launcher.job);
    if (read_command(argc, argv, &self.options, &usage))
        return refuse(&self.launcher, &usage);
    const struct survey_options *options = &self.options;
    if (options->action != SURVEY_RUN)
        return self.launcher.rank ? 0 : exit_file_write(print_about(options->action), false);
    bool apart = options->no_mpi && self.launcher.size > 1;
    if (refused && !apart)
        return refuse(&self.launcher, &refusal);
    log_set_level(options->quiet ? LOG_ERROR : options->verbose ? LOG_DEBUG : LOG_INFO);
    self.place = (struct comm_place){.tasks = 1, .job = ""};
    if (!apart && (!self.launcher.present || options->no_mpi))
        return exit_file_write(run_alone(&self).code, false);
    self.place.job = self.launcher.job;
    self.place.task = self.launcher.rank;
    self.place.tasks = self.launcher.size > 1 ? self.launcher.size : 1;
    self.place.patience_s = start_patience_s(options, self.place.tasks);
    return apart ? run_without_mpi(&self, self.place.patience_s) : run_mpi(&self);
}
