/* One rank's run of the survey: the loop over workers and messages, and what rank 0 adds. */
#include "survey/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "report/basis.h"
#include "survey/emit.h"
#include "survey/exit_file.h"
#include "survey/limits.h"
#include "survey/meeting.h"
#include "survey/message.h"
#include "survey/preparation.h"
#include "survey/progress.h"
#include "survey/rank.h"
#include "survey/recording.h"
#include "survey/replaying.h"
#include "survey/root.h"
#include "survey/spooling.h"

/* MPI gives no descriptor to wait for, so messages are looked for at intervals: short ones while
 * something happens, long ones when not. 64 idle ranks then cost two cores under three per cent. */
enum { SLEEP_MIN_MS = 1, SLEEP_MAX_MS = 32 };

struct run {
    struct comm *comm;
    const struct survey_options *options;
    int argc;
    char *const *argv;
    double started_s;
    struct rank *rank;
    struct root *root;     /* rank 0 only */
    struct record *record; /* that is replayed; NULL: none */
    struct progress progress;
    int sleep_ms;
    bool deaf;       /* that nothing can be received was said */
    bool spool_done; /* rank 0: all that was spooled is in the inventory */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* A session that ends (SIGHUP) ends the survey too, unless nohup was asked for. */
static void catch_hangup(const struct sigaction *stop)
{
    struct sigaction was;
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, stop, NULL);
}

void survey_catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigemptyset(&usual.sa_mask);
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    catch_hangup(&stop);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGCHLD, &usual, NULL);  /* inherited as ignored it would hide how workers end */
    sigaction(SIGXFSZ, &ignore, NULL); /* a file size limit is an error of the write, no death */
}

bool survey_interrupted(void)
{
    return interrupted;
}

static bool for_root(const struct comm_message *message)
{
    return message->frame.type == MESSAGE_ANNOUNCE || message->frame.type == MESSAGE_RESULT ||
           message->frame.type == MESSAGE_BEAT;
}

/* One that makes no sense is dropped and said: its sender will miss its deadline. */
static int hand_out(struct run *run, struct comm_message *message, struct err *err)
{
    struct err odd = {0};
    int rc = for_root(message) && run->root ? root_take(run->root, message, &odd)
                                            : rank_take(run->rank, message, &odd);
    if (rc == -EBADMSG)
        log_warning("message of rank %d dropped: %s", message->from, odd.text);
    else if (rc)
        *err = odd;
    comm_message_fini(message);
    return rc == -EBADMSG ? 0 : rc;
}

/* Who cannot be heard is silent: what this rank has and what came is reported all the same. */
static void say_deaf(struct run *run, const struct err *err)
{
    if (!run->deaf)
        log_warning("messages cannot be received: %s", err->text);
    run->deaf = true;
}

/* Hands out all messages that have come. 1 when there was any, 0, or an error that ends the run. */
static int drain(struct run *run, struct err *err)
{
    struct comm_message message;
    for (int any = 0;; any = 1) {
        struct err odd = {0};
        int rc = comm_receive(run->comm, &message, &odd);
        if (rc > 0)
            rc = hand_out(run, &message, err);
        else if (rc == -EBADMSG) {
            log_warning("message dropped: %s", odd.text);
            rc = 0;
        } else if (rc == -ENOMEM)
            *err = odd;
        else {
            if (rc)
                say_deaf(run, &odd);
            return any;
        }
        if (rc)
            return rc;
    }
}

static int wait_a_little(struct run *run, bool busy, struct err *err)
{
    size_t count = 0;
    struct pollfd *fds = rank_poll(run->rank, &count);
    if (!fds)
        return err_no_memory(err);
    run->sleep_ms = busy ? SLEEP_MIN_MS : run->sleep_ms * 2;
    if (run->sleep_ms > SLEEP_MAX_MS)
        run->sleep_ms = SLEEP_MAX_MS;
    if (poll(fds, count, run->sleep_ms) > 0)
        run->sleep_ms = SLEEP_MIN_MS;
    return 0;
}

static void stop_if_asked(struct run *run, double now_s)
{
    if (!interrupted)
        return;
    rank_stop(run->rank, now_s);
    if (run->root)
        root_stop(run->root, now_s);
}

static void show_progress(struct run *run, double now_s)
{
    if (run->root && progress_due(&run->progress, now_s) && root_view(run->root).assigned)
        progress_show(&run->progress, run->root, now_s);
}

/* Until rank 0 has everything (rank 0) or says QUIT (the others). */
static int loop(struct run *run, struct err *err)
{
    for (;;) {
        double now_s = clock_monotonic_s();
        stop_if_asked(run, now_s);
        int rc = rank_step(run->rank, now_s, err);
        int any = rc ? rc : drain(run, err);
        if (any < 0)
            return any;
        rc = run->root ? root_step(run->root, now_s, err) : 0;
        if (rc)
            return rc;
        show_progress(run, now_s);
        if (run->root ? root_complete(run->root) : rank_may_leave(run->rank))
            return 0;
        rc = wait_a_little(run, any > 0, err);
        if (rc)
            return rc;
    }
}

static void say_summary(const struct run *run, const struct strbuf *summary, const char *output,
                        bool page)
{
    const struct root_view view = root_view(run->root);
    if (run->options->quiet)
        return;
    if (view.idle_ranks)
        log_info("%zu %s own and stayed idle", view.idle_ranks,
                 view.idle_ranks == 1 ? "rank had no GPU of its" : "ranks had no GPU of their");
    if (summary->data)
        fputs(summary->data, stderr);
    if (strcmp(output, "-") != 0)
        log_info("inventory written to %s", output);
    if (page)
        log_info("page written to %s", run->options->html);
}

static enum survey_exit code_of(int rc)
{
    return rc == -EINVAL ? SURVEY_EXIT_BAD_INPUT : SURVEY_EXIT_NO_REPORT;
}

/* A record that cannot be had does not cost the report. */
static bool end_recording(const struct run *run, const struct preparation *prepared)
{
    const struct root_view view = root_view(run->root);
    struct err err = {0};
    if (!prepared->recording)
        return true;
    if (recording_end(prepared->recording, &view, &err) == 0)
        return true;
    log_failure(&err);
    return false;
}

/* What was spooled goes only when it is all in the inventory: a rank that was lost may have left
 * more than it could say. */
static void end_spool(struct run *run, const struct preparation *prepared, bool written)
{
    const struct root_view view = root_view(run->root);
    const struct spooling *spooling = &prepared->spooling;
    if (view.unspooled)
        log_warning("%zu results could not be spooled: %s", view.unspooled, view.unspooled_why);
    if (spooling->failed.code)
        log_warning("the spool is not complete: %s", spooling->failed.text);
    run->spool_done = written && !view.lost_ranks;
    if (!spooling->folder)
        return;
    bool nothing = view.unspooled && view.unspooled == view.gpu_done && !view.lost_ranks;
    if (!run->spool_done && !nothing && spooling_has_results(spooling->folder))
        log_warning("results are kept in %s: gpumemtopo-report merge makes an inventory of them",
                    spooling->folder);
    if (!run->spool_done || run->options->spool)
        return;
    spooling_remove_survey(spooling);
    rank_unspool(run->rank);
    spooling_remove_folder(spooling); /* this rank may have had nothing to spool */
}

/* Something was measured that the spool, if there is one, has not. */
static bool spool_falls_short(const struct run *run, const struct spooling *spooling)
{
    return !run->options->replay &&
           (!spooling->folder || spooling->failed.code || root_view(run->root).unspooled ||
            access(spooling->folder, F_OK));
}

static enum survey_exit report(struct run *run, struct preparation *prepared, struct err *err)
{
    struct strbuf summary = {0};
    struct emit_result result = {.code = SURVEY_EXIT_NO_REPORT};
    progress_clear(&run->progress);
    bool recorded = end_recording(run, prepared);
    const struct emit_input input = {
        .options = run->options,
        .output = prepared->output,
        .argc = run->argc,
        .argv = run->argv,
        .ranks = run->comm->size,
        .wall_s = clock_monotonic_s() - run->started_s,
        .view = root_view(run->root),
        .judging = &prepared->judging,
        .replayed = run->record,
        .style = report_style_for(STDERR_FILENO),
        .unrecorded = !recorded,
        .unspooled = spool_falls_short(run, &prepared->spooling),
    };
    bool written = emit_inventory(&input, &summary, &result, err) == 0;
    if (written)
        say_summary(run, &summary, prepared->output, result.page);
    else
        log_failure(err);
    strbuf_fini(&summary);
    end_spool(run, prepared, written);
    return result.code;
}

static int judge_result(void *user, size_t gpu_total, struct gpu_result *result, struct err *err)
{
    return judging_take(user, gpu_total, result, err);
}

static void connect_root(struct run *run, struct preparation *prepared)
{
    const struct plan_spool spool = {
        .spooling = &prepared->spooling,
        .config_name = str_last_part(prepared->config.name),
        .config_text = prepared->config.text,
        .command = run->argv,
        .command_count = (size_t)run->argc,
    };
    prepared->judge_basis = report_basis_view(&prepared->basis, &prepared->config.judge);
    prepared->judging.basis = &prepared->judge_basis;
    prepared->judging.replayed = run->record;
    root_hand_on(run->root, judge_result, &prepared->judging);
    root_record(run->root, prepared->recording);
    if (prepared->spooling.folder)
        root_spool(run->root, &spool);
}

static enum survey_exit run_root(struct run *run, struct survey_end *end)
{
    struct preparation prepared = {0};
    struct err err = {0};
    enum survey_exit code = SURVEY_EXIT_BAD_INPUT;
    const struct survey_options *options = run->options;
    const struct preparation_input input = {
        .options = options,
        .record = run->record,
        .argc = run->argc,
        .argv = run->argv,
        .ranks = run->comm->size,
    };
    int rc = preparation_begin(&input, &prepared, &err);
    if (rc)
        goto fail;
    double limit_s = options->time_limit_s > 0 ? options->time_limit_s
                                               : prepared.config.time_limit_s[options->profile];
    rc = root_create(run->comm, options->simulate || options->replay, limit_s, run->started_s,
                     &run->root, &err);
    if (!rc)
        connect_root(run, &prepared);
    if (!rc)
        rc = rank_create(run->comm, options, &run->rank, &err);
    if (!rc)
        rc = loop(run, &err);
    if (rc) {
        code = code_of(rc);
        progress_clear(&run->progress);
        goto fail;
    }
    end->lost_ranks = root_view(run->root).lost_ranks;
    end->quiet_ranks = root_quiet_ranks(run->root);
    end->late = end->lost_ranks && end->lost_ranks + 1 == (size_t)run->comm->size &&
                meeting_reported(options);
    code = end->late ? SURVEY_EXIT_OK : report(run, &prepared, &err);
    if (end->late)
        log_error("rank %d came when the survey was over", run->comm->rank);
    goto out;
fail:
    log_failure(&err);
    spooling_remove_folder(&prepared.spooling); /* where nothing is in it */
out:
    preparation_fini(&prepared);
    return code;
}

static void dismiss(struct run *run, const struct survey_end *end)
{
    struct comm *comm = run->comm;
    const struct quit quit = {.lost_ranks = end->lost_ranks || end->quiet_ranks,
                              .spool_done = run->spool_done};
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank)
            continue;
        struct err ignored = {0};
        struct strbuf payload = {0};
        quit_encode(&quit, &payload);
        comm_send_payload(comm, rank, MESSAGE_QUIT, &payload, &ignored);
    }
    comm_flush(comm, LIMIT_FINALIZE_LOST_S);
}

static void say_orphaned(const struct run *run)
{
    const char *spool = NULL;
    double unheard_s = 0;
    /* In a meeting rank 1 may be the one that is missing: better said twice. */
    bool speaks = run->comm->rank == 1 || run->comm->come_s > 0;
    run->comm->rootless = rank_orphaned(run->rank, &unheard_s, &spool);
    if (!run->comm->rootless || !exit_file_claim_loss(speaks))
        return;
    if (spool)
        log_error(
            "it seems that rank %d is lost: it was not heard for %.0f s; what was measured is "
            "in %s: gpumemtopo-report merge makes an inventory of it",
            run->comm->root, unheard_s, spool);
    else
        log_error("it seems that rank %d is lost: it was not heard for %.0f s", run->comm->root,
                  unheard_s);
}

static void run_other(struct run *run)
{
    struct err err = {0};
    int rc = rank_create(run->comm, run->options, &run->rank, &err);
    if (!rc)
        rc = loop(run, &err);
    if (rc)
        log_failure(&err);
    if (!run->rank)
        return;
    if (!rc)
        rank_abandon(run->rank);
    say_orphaned(run);
    rank_unspool(run->rank);
}

/* For --verbose: what collecting cost this process alone, since MPI is up. */
static double used_s(struct rusage *out_usage)
{
    getrusage(RUSAGE_SELF, out_usage);
    return (double)(out_usage->ru_utime.tv_sec + out_usage->ru_stime.tv_sec) +
           1e-6 * (double)(out_usage->ru_utime.tv_usec + out_usage->ru_stime.tv_usec);
}

struct survey_end survey_run(struct comm *comm, const struct survey_options *given, int argc,
                             char *const *argv)
{
    struct survey_end end = {.code = SURVEY_EXIT_BAD_INPUT, .ranks = comm->size};
    struct survey_options options = *given;
    struct err err = {0};
    struct run run = {.comm = comm,
                      .options = &options,
                      .argc = argc,
                      .argv = argv,
                      .started_s = clock_monotonic_s(),
                      .sleep_ms = SLEEP_MIN_MS};
    struct rusage usage;
    double used_before_s = used_s(&usage);
    survey_catch_signals();
    progress_init(&run.progress, !options.quiet && !options.no_progress, run.started_s);
    /* Another rank that cannot read the record announces just that. */
    int rc = options.replay ? replaying_open(&options, &run.record, &err) : 0;
    if (!comm_leads(comm)) {
        end.code = SURVEY_EXIT_OK;
        run_other(&run);
        end.lost_ranks = run.rank && rank_saw_loss(run.rank);
    } else {
        if (rc)
            log_failure(&err);
        else
            end.code = run_root(&run, &end);
        dismiss(&run, &end);
        double taken_s = used_s(&usage) - used_before_s;
        log_debug("rank %d: %.3f s of CPU, %ld MiB, %" PRIu64 " bytes in %" PRIu64 " messages",
                  comm->rank, taken_s, usage.ru_maxrss / 1024, comm->bytes, comm->messages);
    }
    if (run.rank)
        rank_settle(run.rank);
    rank_destroy(run.rank);
    root_destroy(run.root);
    record_close(run.record);
    return end;
}
