/* gpumemtopo-survey: reads the options, starts MPI if a launcher is present, runs the survey,
 * returns the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "device/source.h"
#include "inventory/inventory.h"
#include "probes/caches/sweep_files.h"
#include "probes/probes.h"
#include "survey/comm/comm.h"
#include "survey/comm/comm_mpi.h"
#include "survey/comm/limits.h"
#include "survey/comm/mpi_library.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/start/exit_file.h"
#include "survey/start/keeper.h"
#include "survey/start/launcher.h"
#include "survey/start/slurm.h"
#include "survey/start/stand_aside.h"
#include "survey/start/standalone.h"
#include "survey/survey.h"
#include "survey/worker.h"

static void put_version(struct strbuf *text)
{
    static const char *const kernels[] = {GPUMEMTOPO_KERNELS NULL};
    strbuf_printf(text,
                  "gpumemtopo-survey %s\n"
                  "CUDA backend: %s\n",
                  GPUMEMTOPO_VERSION, GPUMEMTOPO_CUDA);
    for (size_t i = 0; kernels[i]; i++)
        strbuf_printf(text, "kernels of %s\n", kernels[i]);
    strbuf_puts(text, "further backends: simulation, replay of records\n");
    mpi_library_describe(text);
    strbuf_printf(text,
                  "compiler: %s\n"
                  "inventory: schema %d\n"
                  "licence: %s\n",
                  GPUMEMTOPO_COMPILER, INVENTORY_SCHEMA, GPUMEMTOPO_LICENCE);
}

static int print_about(const struct survey_options *options)
{
    static const char *const profiles[] = {"quick", "standard", "full", "named"};
    const enum survey_action action = options->action;
    struct strbuf text = {0};
    if (action == SURVEY_HELP)
        survey_options_help(options->help, &text);
    if (action == SURVEY_VERSION)
        put_version(&text);
    for (size_t i = 0; action == SURVEY_LIST_PROBES && i < probe_count(); i++) {
        const struct probe_description probe = probe_describe(i);
        strbuf_printf(&text, "%-24s %-9s %s\n", probe.name, profiles[probe.profile], probe.summary);
    }
    struct err err = {0};
    if (action == SURVEY_SWEEPS && sweep_files_report(options->sweeps, &text, &err)) {
        log_failure(&err);
        strbuf_fini(&text);
        return SURVEY_EXIT_BAD_INPUT;
    }
    bool printed = fwrite(text.data, 1, text.length, stdout) == text.length && !fflush(stdout);
    if (!printed)
        log_error("cannot write to stdout");
    strbuf_fini(&text);
    return printed ? SURVEY_EXIT_OK : SURVEY_EXIT_NO_REPORT;
}

/* Finds every error of the command line, and of variables for the backend. Every rank finds the
 * same ones. */
static int check_command_line(int argc, char **argv, struct survey_options *out_options,
                              struct err *err)
{
    struct probe_selection selection = {0};
    int rc = survey_options_parse(argc, argv, out_options, err);
    if (!rc)
        rc = probes_select(out_options->profile, out_options->probes, &selection, err);
    if (!rc && out_options->action == SURVEY_RUN)
        rc = device_cuda_check(err);
    free(selection.indices);
    return rc;
}

/* One process of a survey. */
struct process {
    struct launcher launcher;
    struct mpi_library mpi; /* loaded, if this process uses MPI */
    struct survey_options options;
    struct comm_place place;
    int argc;
    char **argv;
};

static void set_log_prefix(const struct process *self)
{
    char prefix[64];
    if (!self->place.task)
        return;
    snprintf(prefix, sizeof prefix, "gpumemtopo-survey[%d]", self->place.task);
    log_set_prefix(prefix);
}

/* Returns the exit code of the process. The exit file says "lost": the wrapper need not wait for
 * the launcher, since other ranks may hang for ever. */
static int run_without_mpi(const struct process *self)
{
    set_log_prefix(self);
    const struct survey_end end = standalone_run(&self->place, &self->options, self->argc,
                                                 self->argv, self->place.start_timeout_s);
    /* A launcher ends all ranks when one of them returns a failure, so a process that failed
     * returns 0 while others may measure. Once an inventory without some ranks is made, all
     * return its code: the launcher returns the code of the process that it sees first. */
    bool reports = end.reported || (end.code && !self->place.task);
    enum survey_exit code = reports ? end.code : end.others_code;
    return code || reports ? exit_file_write(code, true) : 0;
}

/* Slurm must not notice if this process dies. A folder named by --spool has another lock file. */
static void keep_connection(const struct process *self)
{
    const struct survey_options *options = &self->options;
    char *owner = options->output && !options->spool
                      ? str_format("%s.spool/.owner", options->output)
                      : str_copy("");
    keeper_pmix_start(owner);
    free(owner);
}

/* MPI did not start. The launcher's connection must stay open after this process ends: otherwise
 * Slurm would end the step, in which other ranks still measure. Ranks 0 and 1 both print the
 * warning, since rank 0 may be missing. */
static _Noreturn void give_up_mpi(const struct process *self)
{
    slurm_note_release();
    if (self->launcher.slurm)
        keep_connection(self);
    if (self->place.task <= 1)
        log_warning("MPI did not start within %.0f s: a rank is missing or cannot be reached; the "
                    "others measure without MPI, and wait for it once more for the same time",
                    self->place.start_timeout_s);
    int code = run_without_mpi(self);
    keeper_pmix_release(); /* the inventory is made, so the step may end */
    _exit(code);
}

/* MPI_Init returns only when every rank has entered it: a rank that died before would block all
 * others for ever. So a second thread watches it. */
struct mpi_watch {
    const struct process *process;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool started;  /* MPI is up */
    bool given_up; /* the time is over; only one of the two is ever set */
};

static void *watch_mpi_start(void *user)
{
    enum { LOOK_EVERY_NS = 200000000 };
    struct mpi_watch *watch = user;
    double limit_s = watch->process->place.start_timeout_s;
    struct clock_awake clock = {0};
    pthread_mutex_lock(&watch->mutex);
    while (!watch->started && !watch->given_up) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_EVERY_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
        watch->given_up =
            !watch->started && clock_awake_tick(&clock, clock_monotonic_s()) > limit_s;
    }
    pthread_mutex_unlock(&watch->mutex);
    if (watch->given_up)
        give_up_mpi(watch->process);
    return NULL;
}

/* Starts MPI. If that takes too long, the other thread surveys without it and ends the process;
 * this thread then stays in MPI_Init, which keeps the connection to the launcher open. */
static int start_mpi(struct process *self, struct err *err)
{
    struct mpi_watch watch = {
        .process = self, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    double begun_s = clock_monotonic_s();
    bool watched = pthread_create(&thread, NULL, watch_mpi_start, &watch) == 0;
    int rc = comm_mpi_start(self->mpi.plugin, &self->argc, &self->argv, err);
    pthread_mutex_lock(&watch.mutex);
    watch.started = !watch.given_up;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.mutex);
    while (watch.given_up)
        pause(); /* the other thread ends the process */
    if (watched)
        pthread_join(thread, NULL);
    if (!rc && self->launcher.unfenced) {
        /* Other ranks may still be in MPI_Init, and a message would kill them (Open MPI 4.1). So
         * this rank waits as long as its start took, and at least one second. */
        double wait_s = fmax(clock_monotonic_s() - begun_s, 1);
        struct timespec left = {.tv_sec = (time_t)wait_s,
                                .tv_nsec = (long)(1e9 * (wait_s - floor(wait_s)))};
        while (nanosleep(&left, &left))
            ;
    }
    return rc;
}

/* Rank 0 is lost. If it had not yet assigned GPUs, the other ranks survey as if there were no MPI.
 * Otherwise the last of them makes the inventory from the spool. */
static void finish_without_rank_0(const struct process *self, struct survey_end *end)
{
    const struct standalone_part part = {.folder = end->spool,
                                         .owner = end->owner,
                                         .rank = self->place.task,
                                         .options = &self->options,
                                         .rank_0_lost = true};
    struct err err = {0};
    double silent_s = end->rank_0_silent_s;
    if (!end->assigned) {
        survey_end_fini(end);
        *end = standalone_run(&self->place, &self->options, self->argc, self->argv,
                              self->place.start_timeout_s);
        end->lost_ranks = true;
        return;
    }
    int state = end->spool ? standalone_merge_if_last(&part, &end->code, &err) : -ENOENT;
    if (state == STANDALONE_OTHERS_RUN && !self->launcher.slurm)
        stand_aside_for_others(end->owner);
    end->reported = state == STANDALONE_MADE;
    if (end->spool && state < 0) {
        log_failure(&err);
        end->code = SURVEY_EXIT_NO_REPORT;
        end->reported = true;
    } else if (end->reported)
        log_warning("rank 0 was not heard for %.0f s and seems to be lost: the inventory was made "
                    "from what the others had spooled",
                    silent_s);
    else if ((state == STANDALONE_RANK_0_HANGS || state < 0) &&
             exit_file_claim_loss(state >= 0 || self->place.task == 1))
        log_error("rank 0 was not heard for %.0f s and seems to be lost; results are in %s%s",
                  silent_s, end->spool ? end->spool : "no spool",
                  end->spool ? ": make an inventory of them with gpumemtopo-report merge" : "");
}

/* A wrapper may pass its stderr as a named pipe, because the launcher would mix its messages with
 * ours. A pipe that has no reader must not block the rank. */
static void use_stderr_of_wrapper(void)
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
static void silence_mpi(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDOUT_FILENO);
    if (getenv("GPUMEMTOPO_STDERR"))
        dup2(fd, STDERR_FILENO);
    close(fd);
}

static volatile sig_atomic_t alarm_exit_code;

static void exit_on_alarm(int number)
{
    (void)number;
    _exit(alarm_exit_code);
}

/* MPI_Finalize waits for lost ranks. After some seconds the process exits without it. */
static void stop_mpi(const struct mpi_library *mpi, bool lost_ranks, int code)
{
    struct err err = {0};
    silence_mpi();
    alarm_exit_code = code;
    signal(SIGALRM, exit_on_alarm);
    alarm(lost_ranks ? LIMIT_FINALIZE_LOST_S : LIMIT_FINALIZE_S);
    if (comm_mpi_stop(mpi->plugin, &err))
        log_debug("%s", err.text);
    keeper_pmix_release();
    alarm(0);
}

static int report_refusal(const struct launcher *launcher, const struct err *err)
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
    int rc = start_mpi(self, &err);
    slurm_note_release();
    if (rc) {
        slurm_note_remove();
        log_failure(&err);
        return self->place.task ? 0 : exit_file_write(SURVEY_EXIT_NO_REPORT, true);
    }
    rc = comm_mpi_world(self->mpi.plugin, &self->place, &comm, &err);
    if (!rc && launcher_check_size(&self->launcher, self->mpi.pmi, comm->size, &err)) {
        comm_destroy(comm);
        slurm_note_remove();
        int refused = report_refusal(&self->launcher, &err);
        stop_mpi(&self->mpi, false, refused);
        return refused;
    }
    if (rc)
        log_failure(&err);
    else {
        self->place = comm->place;
        if (self->launcher.slurm)
            keep_connection(self);
        set_log_prefix(self);
        end = survey_run(comm, &self->options, self->argc, self->argv);
        comm_destroy(comm);
        if (end.lost_rank_0)
            finish_without_rank_0(self, &end);
        survey_end_fini(&end);
    }
    slurm_note_remove();
    int code = end.reported || !self->place.task ? exit_file_write(end.code, end.lost_ranks) : 0;
    stop_mpi(&self->mpi, end.lost_ranks, code);
    return code;
}

/* Loads the MPI that the launcher or the user asks for. If there is none, the survey goes on
 * without, unless this process cannot know how many others there are. */
static int load_mpi(struct process *self, struct err *err)
{
    const char *file = self->options.mpi_library;
    int rc = mpi_library_load(self->launcher.pmi, file, &self->mpi, err);
    if (rc == -ENOENT && !file && self->launcher.size > 0) {
        if (!self->launcher.rank && self->launcher.size > 1)
            log_warning("%s; surveying without MPI", err->text);
        self->options.no_mpi = true;
        return 0;
    }
    if (!rc)
        rc = launcher_check_mpi(&self->launcher, self->mpi.pmi, err);
    if (!rc && !self->launcher.rank) {
        char version[256];
        self->mpi.plugin->library_version(version, sizeof version);
        log_debug("MPI: %s, %s", version, self->mpi.path);
    }
    free(self->mpi.path);
    self->mpi.path = NULL;
    return rc;
}

/* Says once, before anything is measured, what Slurm may end and which command makes the inventory
 * then. With MPI, a note of the survey is left in the spool. */
static void begin_step(const struct process *self, const struct survey_config *config, bool mpi)
{
    const struct survey_options *options = &self->options;
    struct strbuf command = {0};
    if (self->place.task || !self->launcher.slurm || !options->output)
        return;
    slurm_way_back(options->output, options->spool, &command);
    if (command.length)
        log_info("if %s make the inventory with: %s",
                 mpi ? "a task is killed, Slurm may end this step (not with srun --mpi=none); then"
                     : "this step is killed,",
                 command.data);
    strbuf_fini(&command);
    if (mpi)
        slurm_note_write(&self->place, options, config, self->launcher.nodes, self->argc,
                         self->argv);
}

/* One of several processes. */
static int run_with_others(struct process *self, bool mpi)
{
    static char output[sizeof self->launcher.job + sizeof "gpumemtopo-.yaml"];
    struct survey_config config = {0};
    struct err ignored = {0};
    self->place = (struct comm_place){
        .job = self->launcher.job,
        .task = self->launcher.rank,
        .tasks = self->launcher.size > 1 ? self->launcher.size : 1,
        .node_ranks = mpi ? NULL : self->launcher.node_ranks,
    };
    /* A configuration that cannot be read is reported later, once. */
    if (survey_config_load(self->options.config, &config, &ignored))
        survey_config_defaults(&config);
    self->place.start_timeout_s =
        config.start_timeout.least_s + config.start_timeout.per_rank_s * self->place.tasks;
    /* Known before MPI is up, and the same with and without MPI. */
    if (self->launcher.slurm && *self->launcher.job && !self->options.output &&
        self->place.tasks > 1) {
        snprintf(output, sizeof output, "gpumemtopo-%s.yaml", self->launcher.job);
        self->options.output = output;
    }
    if (self->place.tasks > 1)
        begin_step(self, &config, mpi);
    survey_config_fini(&config);
    return mpi ? run_mpi(self) : run_without_mpi(self);
}

int main(int argc, char **argv)
{
    struct process self = {.argc = argc, .argv = argv};
    struct err refusal = {0}, usage = {0};
    io_fill_standard();
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0)
        return worker_main();
    if (argc == 4 && strcmp(argv[1], KEEPER_PMIX_ARGUMENT) == 0)
        return keeper_pmix_main(argv[2], argv[3]);
    if (argc == 2 && strcmp(argv[1], KEEPER_HYDRA_ARGUMENT) == 0)
        return keeper_hydra_main();
    use_stderr_of_wrapper();
    log_set_prefix("gpumemtopo-survey");
    launcher_detect(getenv, &self.launcher);
    if (self.launcher.hydra)
        keeper_hydra_start();
    if (self.launcher.pmi != LAUNCHER_NO_PMI)
        stand_aside_when_exhausted();
    if (check_command_line(argc, argv, &self.options, &usage))
        return report_refusal(&self.launcher, &usage);
    const struct survey_options *options = &self.options;
    if (options->action != SURVEY_RUN)
        return self.launcher.rank ? 0 : exit_file_write(print_about(options), false);
    log_set_level(options->quiet ? LOG_ERROR : options->verbose ? LOG_DEBUG : LOG_INFO);
    if (!options->no_mpi && self.launcher.pmi != LAUNCHER_NO_PMI && load_mpi(&self, &refusal))
        return report_refusal(&self.launcher, &refusal);
    if (options->mpi_library && self.launcher.pmi == LAUNCHER_NO_PMI && !self.launcher.rank)
        log_warning("--mpi-library is ignored: no launcher of MPI has started this process");
    /* Slurm's tasks without PMI would otherwise all survey the same GPUs. */
    bool apart = self.launcher.slurm && self.launcher.pmi == LAUNCHER_NO_PMI;
    bool standalone = (options->no_mpi || apart) && self.launcher.size > 1;
    self.place = (struct comm_place){.tasks = 1, .job = ""};
    if (!standalone && !self.mpi.plugin) {
        struct comm *comm = comm_alone_create(&self.place);
        struct survey_end end = survey_run(comm, options, argc, argv);
        comm_destroy(comm);
        survey_end_fini(&end);
        return exit_file_write(end.code, false);
    }
    return run_with_others(&self, !standalone);
}
