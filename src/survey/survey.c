/* One rank's run of the survey: the loop over workers and messages, and what rank 0 adds. */
#include "survey/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "report/basis.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/rank/rank.h"
#include "survey/rank/spooling.h"
#include "survey/root/emit.h"
#include "survey/root/inputs.h"
#include "survey/root/progress.h"
#include "survey/root/recording.h"
#include "survey/root/resources.h"
#include "survey/root/root.h"
#include "survey/start/exit_file.h"

/* MPI has no descriptor to poll, so messages are polled at intervals: short ones while something
 * happens, long ones otherwise. With these, 64 idle ranks use under three per cent of two cores. */
enum { SLEEP_MIN_MS = 1, SLEEP_MAX_MS = 32 };

struct run {
    struct comm *comm;
    const struct survey_options *options;
    int argc;
    char *const *argv;
    double started_s; /* clock_monotonic_s */
    struct clock_awake clock;
    struct rank *rank;
    struct root *root;     /* rank 0 only */
    struct record *record; /* the replayed record; NULL: none */
    struct progress progress;
    int sleep_ms;
    bool receive_failed;           /* the warning that nothing can be received was printed */
    double measured_s, reported_s; /* seconds since the start, for --verbose */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static void catch_signals(void)
{
    static const struct {
        int number;
        void (*handler)(int);
    } table[] = {
        {SIGINT, on_signal}, {SIGTERM, on_signal}, {SIGHUP, on_signal}, /* the session ends */
        {SIGPIPE, SIG_IGN},  {SIGCHLD, SIG_DFL}, /* if inherited as ignored, waitpid could not tell
                                                    how workers end */
        {SIGXFSZ, SIG_IGN}, /* exceeding a file size limit then fails the write instead of killing
                               the process */
    };
    struct sigaction was;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct sigaction action = {.sa_handler = table[i].handler};
        sigemptyset(&action.sa_mask);
        bool nohup = table[i].number == SIGHUP && sigaction(SIGHUP, NULL, &was) == 0 &&
                     was.sa_handler == SIG_IGN;
        if (!nohup)
            sigaction(table[i].number, &action, NULL);
    }
}

bool survey_interrupted(void)
{
    return interrupted;
}

/* Passes a message on and releases it. An invalid message is dropped with a warning; its sender
 * will miss its deadline. */
static int run_deliver(struct run *run, struct comm_message *message, struct err *err)
{
    uint32_t type = message->frame.type;
    bool for_root = type == MESSAGE_ANNOUNCE || type == MESSAGE_RESULT || type == MESSAGE_BEAT;
    struct err odd = {0};
    int rc = for_root && run->root ? root_take(run->root, message, &odd)
                                   : rank_take(run->rank, message, &odd);
    if (rc == -EBADMSG)
        log_warning("message of rank %d dropped: %s", message->from, odd.text);
    else if (rc)
        *err = odd;
    comm_message_fini(message);
    return rc == -EBADMSG ? 0 : rc;
}

/* Delivers all messages that have arrived. Returns 1 if there was any, 0 if none, or an error that
 * ends the run. */
static int run_receive(struct run *run, struct err *err)
{
    struct comm_message message;
    for (int any = 0;; any = 1) {
        struct err odd = {0};
        int rc = comm_receive(run->comm, &message, &odd);
        if (rc > 0) {
            rc = run_deliver(run, &message, err);
            if (rc)
                return rc;
        } else if (rc == -EBADMSG) {
            log_warning("message dropped: %s", odd.text);
        } else {
            /* What this rank has, and what has arrived so far, is still reported. */
            if (rc && !run->receive_failed)
                log_warning("messages cannot be received: %s", odd.text);
            run->receive_failed |= rc != 0;
            return any;
        }
    }
}

static double run_now_s(struct run *run)
{
    return clock_awake_tick(&run->clock, clock_monotonic_s());
}

/* Runs until rank 0 has everything (on rank 0) or says QUIT (on the others). */
static int run_loop(struct run *run, struct err *err)
{
    for (;;) {
        double now_s = run_now_s(run);
        if (interrupted) {
            rank_stop(run->rank, now_s);
            if (run->root)
                root_stop(run->root, now_s);
        }
        rank_step(run->rank, now_s);
        int any = run_receive(run, err);
        if (any < 0)
            return any;
        int rc = run->root ? root_step(run->root, now_s, err) : 0;
        if (rc)
            return rc;
        if (run->root && progress_due(&run->progress, now_s) && root_view(run->root).assigned)
            progress_show(&run->progress, run->root, now_s);
        if (run->root ? root_complete(run->root) : rank_may_leave(run->rank))
            return 0;
        /* Until a worker writes, or for a while. */
        size_t count = 0;
        struct pollfd *fds = rank_poll(run->rank, &count);
        run->sleep_ms = any > 0 ? SLEEP_MIN_MS : run->sleep_ms * 2;
        if (run->sleep_ms > SLEEP_MAX_MS)
            run->sleep_ms = SLEEP_MAX_MS;
        if (poll(fds, count, run->sleep_ms) > 0)
            run->sleep_ms = SLEEP_MIN_MS;
    }
}

/* A record that cannot be written does not prevent the report. without_names: a process without MPI
 * does not make the inventory, whose pseudonyms a record with --anonymous would get. */
static bool run_end_recording(const struct run *run, const struct inputs *prepared,
                              bool without_names)
{
    const struct root_view view = root_view(run->root);
    struct err err = {0};
    if (!prepared->recording)
        return true;
    int rc = recording_end(prepared->recording, &view, &err);
    if (!rc && without_names)
        rc = recording_anonymise(prepared->recording, NULL, &err);
    if (rc)
        log_failure(&err);
    return rc == 0;
}

/* Spooled results are removed only if all of them are in the inventory. A lost rank may have
 * spooled more than it could send. */
static void run_end_spool(struct run *run, struct spooling *spooling, bool written,
                          enum survey_exit code)
{
    const struct root_view view = root_view(run->root);
    if (view.unspooled)
        log_warning("%zu results could not be spooled: %s", view.unspooled, view.unspooled_why);
    if (spooling->failed.code)
        log_warning("the spool is not complete: %s", spooling->failed.text);
    if (!spooling->folder)
        return;
    bool done = written && !view.lost_ranks;
    bool nothing = view.unspooled && view.unspooled == view.gpu_done && !view.lost_ranks;
    if (!done && !nothing && spool_has_files(spooling->folder))
        log_warning(
            "results are kept in %s: make an inventory of them with gpumemtopo-report merge",
            spooling->folder);
    struct spool_count count;
    /* If this rank is killed while it removes them, no other makes the inventory again. Lost ranks
     * may have spooled results that it does not have: then only the code says that it was made. */
    if (written && !spool_count(spooling->folder, spooling->survey, &count))
        spool_owner_set_merged(&spooling->owner, done ? count.files : 0, (int)code);
    if (done && !run->options->spool)
        spool_remove_files(spooling->folder);
    if (done && run->options->spool)
        spool_owner_remove(&spooling->owner);
    else
        spooling_remove_folder(spooling);
}

/* True if results were measured that are not in the spool, or there is no spool. A replay measures
 * nothing. */
static bool spool_is_incomplete(const struct run *run, const struct spooling *spooling)
{
    return !run->options->replay &&
           (!spooling->folder || spooling->failed.code || root_view(run->root).unspooled ||
            access(spooling->folder, F_OK));
}

static enum survey_exit run_report(struct run *run, struct inputs *prepared)
{
    enum survey_exit code = SURVEY_EXIT_NO_REPORT;
    struct err err = {0};
    bool recorded = run_end_recording(run, prepared, false);
    const struct emit_input input = {
        .target = {.options = run->options,
                   .output = prepared->output,
                   .references = prepared->judge_basis.references,
                   .slowest = &prepared->judging.slowest,
                   .unrecorded = !recorded,
                   .unspooled = spool_is_incomplete(run, &prepared->spooling)},
        .argc = run->argc,
        .argv = run->argv,
        .ranks = run->comm->size,
        .wall_s = clock_monotonic_s() - run->started_s,
        .view = root_view(run->root),
        .judging = &prepared->judging,
        .replayed = run->record,
        .recording = recorded ? prepared->recording : NULL,
    };
    size_t idle = input.view.idle_ranks;
    if (idle && !run->options->quiet)
        log_info(idle == 1 ? "%zu rank had no GPU to measure" : "%zu ranks had no GPU to measure",
                 idle);
    bool written = emit_inventory(&input, &code, &err) == 0;
    if (!written)
        log_failure(&err);
    run_end_spool(run, &prepared->spooling, written, code);
    return code;
}

/* Copies the paths of the spool: `end` outlives `prepared`. */
static void end_set_spool(struct survey_end *end, const char *folder, const char *owner)
{
    if (!folder || !owner)
        return;
    end->spool = str_copy(folder);
    end->owner = str_copy(owner);
}

/* A process without MPI leaves its results in the spool, for the last process. If the spool does
 * not have all of them, the process makes a separate inventory. */
static enum survey_exit run_leave_in_spool(struct run *run, struct inputs *prepared,
                                           struct survey_end *end)
{
    end_set_spool(end, prepared->spooling.folder, prepared->spooling.owner.path);
    if (!spool_is_incomplete(run, &prepared->spooling)) {
        bool recorded = run_end_recording(run, prepared, true);
        return recorded && end->spool ? SURVEY_EXIT_OK : SURVEY_EXIT_NO_REPORT;
    }
    char *own = str_format("%s.rank-%d", prepared->output, run->comm->place.task);
    prepared->output = own;
    enum survey_exit code = run_report(run, prepared);
    free(own);
    return code == SURVEY_EXIT_OK || code == SURVEY_EXIT_OUTLIERS ? SURVEY_EXIT_INCOMPLETE : code;
}

void survey_end_fini(struct survey_end *end)
{
    free(end->spool);
    free(end->owner);
    end->spool = end->owner = NULL;
}

/* Measures GPUs that look bad again. A process without MPI knows only its own GPUs, so it cannot
 * tell which look bad. */
static int measure_suspects_again(struct run *run, struct inputs *prepared, struct err *err)
{
    const struct root_view view = root_view(run->root);
    if (interrupted || comm_is_standalone(run->comm))
        return 0;
    int rc = judging_compare(&prepared->judging, view.unmeasured, view.unmeasured_count, err);
    if (rc)
        return rc;
    size_t suspects = judging_measure_again(&prepared->judging, run->root);
    if (!suspects)
        return 0;
    progress_clear(&run->progress);
    if (!run->options->quiet)
        log_info("%zu GPU%s measured again: %s", suspects, suspects == 1 ? " is" : "s are",
                 suspects == 1 ? "it looks bad" : "they look bad");
    rc = run_loop(run, err);
    bool could = !run->record || record_has_repeats(run->record);
    if (!rc && could)
        judge_end_again(prepared->judging.judge);
    return rc;
}

/* From listing the GPUs to the last result. */
static int run_survey(struct run *run, struct inputs *prepared, double limit_s, struct err *err)
{
    const struct survey_options *options = run->options;
    bool standalone = comm_is_standalone(run->comm);
    struct err why = {0};
    if (!standalone && resources_for_ranks(run->comm->size, &why))
        log_warning("%s", why.text);
    world_program(GPUMEMTOPO_VERSION,
                  run->record         ? record_provenance(run->record)->backend
                  : options->simulate ? "sim"
                                      : "cuda",
                  prepared->basis.program);
    prepared->judge_basis = report_basis_view(&prepared->basis, &prepared->config.judge);
    prepared->judging.basis = &prepared->judge_basis;
    prepared->judging.replayed = run->record;
    const struct root_settings settings = {
        .simulated = options->simulate || options->replay,
        .time_limit_s = limit_s,
        .stagger_s = prepared->config.load_stagger_s,
        .region_bytes = prepared->config.region_bytes,
        .standalone_job = standalone ? run->comm->place.job : NULL,
        .take_result = judging_take,
        .user = &prepared->judging,
        .recording = prepared->recording,
        .spooling = prepared->spooling.folder ? &prepared->spooling : NULL,
        .config_name = str_last_part(prepared->config.name),
        .config_text = prepared->config.text,
        .command = run->argv,
        .command_count = (size_t)run->argc,
    };
    run->root = root_create(run->comm, &settings, run_now_s(run));
    run->rank = rank_create(run->comm, options, run_now_s(run));
    int rc = run_loop(run, err);
    if (!rc)
        rc = root_recover(run->root, err);
    if (!rc)
        rc = measure_suspects_again(run, prepared, err);
    run->measured_s = clock_monotonic_s() - run->started_s;
    progress_clear(&run->progress);
    return rc;
}

/* A load that was asked for is not part of the usual limit. */
static double time_limit_for_gpu(const struct survey_options *options,
                                 const struct survey_config *config)
{
    if (options->time_limit_s > 0)
        return options->time_limit_s;
    double load_s = options->load_s > 0 ? options->load_s + config->load_stagger_s : 0;
    return config->time_limit_s[options->profile] + load_s;
}

/* On a terminal: a person who did not expect it can still stop it. */
static void run_print_load_notice(const struct survey_options *options)
{
    enum { FULL_LOAD_S = 10 };
    bool by_profile = options->profile == PROFILE_FULL && !options->probes;
    double load_s = options->load_s < 0 && by_profile ? FULL_LOAD_S : options->load_s;
    if (load_s > 0 && !options->quiet && !options->simulate && !options->replay &&
        isatty(STDERR_FILENO))
        fprintf(stderr, "At the end each GPU is put under full load for %g s, %s.\n", load_s,
                options->load_one ? "one GPU of a node after the other"
                                  : "all GPUs of a node together");
}

static enum survey_exit run_rank_0(struct run *run, struct survey_end *end)
{
    struct inputs prepared = {0};
    struct err err = {0};
    const struct survey_options *options = run->options;
    const struct inputs_request input = {
        .options = options,
        .record = run->record,
        .argc = run->argc,
        .argv = run->argv,
        .comm = run->comm,
    };
    enum survey_exit code = SURVEY_EXIT_BAD_INPUT;
    int rc = inputs_begin(&input, &prepared, &err);
    if (!rc) {
        if (prepared.spooling.folder)
            exit_file_name_spool(prepared.spooling.folder, prepared.spooling.owner.identity.output);
        end->limit_s = time_limit_for_gpu(options, &prepared.config);
        run_print_load_notice(options);
        rc = run_survey(run, &prepared, end->limit_s, &err);
        code = rc == -EINVAL ? SURVEY_EXIT_BAD_INPUT : SURVEY_EXIT_NO_REPORT;
    }
    if (rc) {
        log_failure(&err);
        if (spool_owner_leave(&prepared.spooling.owner) == SPOOL_NOBODY)
            spooling_remove_folder(&prepared.spooling); /* only if it is empty */
    } else if (comm_is_standalone(run->comm)) {
        code = run_leave_in_spool(run, &prepared, end);
    } else {
        end->lost_ranks = root_view(run->root).lost_ranks || root_quiet_ranks(run->root);
        end->reported = true;
        code = run_report(run, &prepared);
    }
    inputs_fini(&prepared);
    return code;
}

/* Tells all other ranks to leave. */
static void run_send_quit(struct comm *comm, bool lost_ranks)
{
    for (int rank = 1; rank < comm->size; rank++) {
        struct err ignored = {0};
        struct strbuf payload = {0};
        message_quit_encode(lost_ranks, &payload);
        comm_send_payload(comm, rank, MESSAGE_QUIT, &payload, &ignored);
    }
    comm_flush(comm, LIMIT_FINALIZE_LOST_S);
}

static void run_other_rank(struct run *run, struct survey_end *end)
{
    struct err err = {0};
    run->rank = rank_create(run->comm, run->options, run_now_s(run));
    int rc = run_loop(run, &err);
    if (rc)
        log_failure(&err);
    const struct rank_end left = rank_end(run->rank);
    end->lost_ranks = left.saw_loss;
    end->lost_rank_0 = !rc && left.lost_rank_0;
    end->rank_0_silent_s = left.silent_s;
    end->assigned = left.assigned;
    end_set_spool(end, left.spool, left.owner);
}

/* CPU seconds that this process has used, without its workers. */
static double cpu_used_s(struct rusage *out_usage)
{
    getrusage(RUSAGE_SELF, out_usage);
    return (double)(out_usage->ru_utime.tv_sec + out_usage->ru_stime.tv_sec) +
           1e-6 * (double)(out_usage->ru_utime.tv_usec + out_usage->ru_stime.tv_usec);
}

struct survey_end survey_run(struct comm *comm, const struct survey_options *given, int argc,
                             char *const *argv)
{
    struct survey_end end = {.code = SURVEY_EXIT_BAD_INPUT};
    struct survey_options options = *given;
    struct err err = {0};
    struct run run = {.comm = comm,
                      .options = &options,
                      .argc = argc,
                      .argv = argv,
                      .started_s = clock_monotonic_s(),
                      .sleep_ms = SLEEP_MIN_MS};
    struct rusage usage;
    double used_before_s = cpu_used_s(&usage);
    catch_signals();
    progress_init(&run.progress, !options.quiet && !options.no_progress, run_now_s(&run));
    /* Any other rank that cannot read the record announces that to rank 0. */
    int rc = options.replay ? inputs_open_record(&options, &run.record, &err) : 0;
    if (comm->rank) {
        end.code = SURVEY_EXIT_OK;
        run_other_rank(&run, &end);
    } else {
        if (rc)
            log_failure(&err);
        else
            end.code = run_rank_0(&run, &end);
        run.reported_s = clock_monotonic_s() - run.started_s;
        run_send_quit(comm, end.lost_ranks);
        double taken_s = cpu_used_s(&usage) - used_before_s;
        log_debug("rank %d: %.3f s of CPU, %ld MiB, %" PRIu64 " bytes in %" PRIu64 " messages",
                  comm->rank, taken_s, usage.ru_maxrss / 1024, comm->bytes, comm->messages);
    }
    if (run.rank)
        rank_wait_for_workers(run.rank, &run.clock);
    if (run.rank && !comm->rank)
        log_debug("rank %d: GPUs listed in %.3f s; results after %.3f s, report after %.3f s, "
                  "workers gone after %.3f s",
                  comm->rank, rank_end(run.rank).listing_s, run.measured_s, run.reported_s,
                  clock_monotonic_s() - run.started_s);
    rank_destroy(run.rank);
    root_destroy(run.root);
    record_close(run.record);
    return end;
}
