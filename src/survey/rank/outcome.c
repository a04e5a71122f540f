/* What a worker has sent so far, and the result of its GPU when the worker ends. */
#include "survey/rank/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "inventory/gpu_result.h"
#include "schema/wire.h"

void outcome_fini(struct outcome *outcome)
{
    free(outcome->probe);
    free(outcome->remark);
    gpu_result_fini(&outcome->result);
    announce_fini(&outcome->listing);
    memset(outcome, 0, sizeof *outcome);
}

static int outcome_take_fail(struct outcome *outcome, const struct frame *frame, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct err said = {0};
    message_get_err(&reader, &said);
    int rc = wire_end(&reader, "failure", err);
    if (rc)
        return rc;
    outcome->err = said;
    outcome->failed = true;
    return 0;
}

static int outcome_take_text(const struct frame *frame, char **out_text, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    char *text = wire_get_text(&reader);
    int rc = wire_end(&reader, "text", err);
    if (!rc && !text)
        rc = err_set(err, -EBADMSG, "a text is missing");
    if (rc)
        free(text);
    else
        *out_text = text;
    return rc;
}

static int listing_take_gpu(struct announce *listing, const struct frame *frame, struct err *err)
{
    struct gpu_result gpu = {0};
    int rc = message_decode(&message_identity, frame, &gpu, err);
    if (rc)
        return rc;
    listing->gpus = mem_grow(listing->gpus, &listing->gpu_capacity, listing->gpu_count + 1,
                             sizeof *listing->gpus);
    listing->gpus[listing->gpu_count++] = gpu;
    return 0;
}

static int listing_take_bare_node(struct announce *listing, const struct frame *frame,
                                  struct err *err)
{
    char *node = NULL;
    int rc = outcome_take_text(frame, &node, err);
    if (rc)
        return rc;
    listing->bare_nodes = mem_grow(listing->bare_nodes, &listing->bare_capacity,
                                   listing->bare_count + 1, sizeof *listing->bare_nodes);
    listing->bare_nodes[listing->bare_count++] = node;
    return 0;
}

static int listing_take_dead_node(struct announce *listing, const struct frame *frame,
                                  struct err *err)
{
    struct gpu_result node = {0};
    int rc = message_decode(&message_dead_node, frame, &node, err);
    if (rc)
        return rc;
    listing->dead = mem_grow(listing->dead, &listing->dead_capacity, listing->dead_count + 1,
                             sizeof *listing->dead);
    listing->dead[listing->dead_count++] = node;
    return 0;
}

static int outcome_refuse(const struct frame *frame, struct err *err)
{
    return err_set(err, -EBADMSG, "unexpected message of type %u", frame->type);
}

int outcome_take_listing(struct outcome *outcome, const struct frame *frame, struct err *err)
{
    if (outcome->done || outcome->failed)
        return outcome_refuse(frame, err);
    switch (frame->type) {
    case WORKER_INFO:
        return listing_take_gpu(&outcome->listing, frame, err);
    case WORKER_BARE:
        return listing_take_bare_node(&outcome->listing, frame, err);
    case WORKER_DEAD:
        return listing_take_dead_node(&outcome->listing, frame, err);
    case WORKER_DONE:
        outcome->done = true;
        return 0;
    case WORKER_FAIL:
        return outcome_take_fail(outcome, frame, err);
    default:
        return outcome_refuse(frame, err);
    }
}

/* The last partial result is kept and gets this status. */
static int outcome_take_ended(struct outcome *outcome, const struct frame *frame, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    uint32_t status = wire_get_enum(&reader, GPU_STATUS_COUNT);
    char *reason = wire_get_text(&reader);
    uint32_t first_status = wire_get_enum(&reader, GPU_STATUS_COUNT);
    char *first_reason = wire_get_text(&reader);
    int rc = wire_end(&reader, "ending", err);
    if (rc) {
        free(reason);
        free(first_reason);
        return rc;
    }
    free(outcome->result.reason);
    free(outcome->result.run.first_reason);
    outcome->result.run.first_status = (enum gpu_status)first_status;
    outcome->result.run.first_reason = first_reason;
    outcome->result.status = (enum gpu_status)status;
    outcome->result.reason = reason;
    outcome->done = true;
    return 0;
}

/* Replaces a text of the outcome. */
static int outcome_replace_text(char **kept, const struct frame *frame, struct err *err)
{
    char *text = NULL;
    int rc = outcome_take_text(frame, &text, err);
    if (rc)
        return rc;
    free(*kept);
    *kept = text;
    return 0;
}

int outcome_take_measuring(struct outcome *outcome, const struct frame *frame, struct err *err)
{
    struct gpu_result result = {0};
    int rc = 0;
    if (outcome->done || outcome->failed)
        return outcome_refuse(frame, err);
    switch (frame->type) {
    case WORKER_BEGIN:
        return outcome_replace_text(&outcome->probe, frame, err);
    case WORKER_REMARK:
        return outcome_replace_text(&outcome->remark, frame, err);
    case WORKER_ENDED:
        return outcome_take_ended(outcome, frame, err);
    case WORKER_PARTIAL:
    case WORKER_DONE:
        rc = gpu_result_decode(frame->payload, frame->length, &result, err);
        if (rc)
            return rc;
        gpu_result_fini(&outcome->result);
        outcome->result = result;
        outcome->done = frame->type == WORKER_DONE;
        return 0;
    case WORKER_FAIL:
        return outcome_take_fail(outcome, frame, err);
    default:
        return outcome_refuse(frame, err);
    }
}

/* Adds stderr as one line: the text goes into a YAML value and to terminals. */
static void outcome_add_stderr(struct strbuf *text, const char *tail)
{
    if (!tail || !*tail)
        return;
    strbuf_puts(text, "; stderr: ");
    size_t start = text->length;
    for (; *tail; tail++) {
        bool blank = (unsigned char)*tail <= ' ' || *tail == 0x7f;
        if (!blank)
            strbuf_append(text, tail, 1);
        else if (text->length > start && text->data[text->length - 1] != ' ')
            strbuf_append(text, " ", 1);
    }
    while (text->length && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
}

static enum gpu_status outcome_explain(const struct outcome *outcome, const struct ending *ending,
                                       struct strbuf *text)
{
    char buffer[ERR_LINE_MAX];
    if (ending->end == CHILD_TIME_LIMIT) {
        strbuf_printf(text, "no answer in %.3g s", ending->limit_s);
        return GPU_TIMED_OUT;
    }
    if (ending->end == CHILD_INTERRUPTED) {
        strbuf_puts(text, GPU_RESULT_INTERRUPTED);
        return GPU_FAILED;
    }
    if (ending->end == CHILD_GARBAGE) {
        strbuf_printf(text, "garbage on the worker's pipe (%s)",
                      ending->garbage ? ending->garbage : "");
        return GPU_CRASHED;
    }
    if (outcome->failed) {
        strbuf_puts(text, err_format(&outcome->err, buffer, sizeof buffer));
        return outcome->err.code == -EBUSY ? GPU_BUSY : GPU_FAILED;
    }
    if (ending->reaped && WIFSIGNALED(ending->wait_status)) {
        int number = WTERMSIG(ending->wait_status);
        strbuf_printf(text, "worker killed by signal %d (%s)", number, strsignal(number));
        return GPU_CRASHED;
    }
    if (ending->half_record) {
        strbuf_puts(text, "worker left half a record");
        return GPU_CRASHED;
    }
    if (ending->reaped)
        strbuf_printf(text, "worker exited with code %d without a result",
                      WEXITSTATUS(ending->wait_status));
    else
        strbuf_puts(text, "worker ended without a result");
    return GPU_FAILED;
}

enum gpu_status outcome_judge(const struct outcome *outcome, const struct ending *ending,
                              char **out_reason)
{
    struct strbuf text = {0};
    *out_reason = NULL;
    /* A complete answer is valid, even if the driver then fails to shut down. */
    if (outcome->done && ending->end != CHILD_GARBAGE)
        return GPU_OK;
    enum gpu_status status = outcome_explain(outcome, ending, &text);
    if (outcome->probe)
        strbuf_printf(&text, " during %s", outcome->probe);
    outcome_add_stderr(&text, ending->tail);
    *out_reason = text.data;
    return status;
}

void outcome_result(struct outcome *outcome, const struct ending *ending,
                    const struct gpu_result *identity, int32_t rank, struct gpu_result *out_result)
{
    char *reason = NULL;
    enum gpu_status status = outcome_judge(outcome, ending, &reason);
    struct gpu_result result = outcome->result;
    memset(&outcome->result, 0, sizeof outcome->result);
    gpu_result_set_identity(&result, identity);
    result.rank = rank;
    if (status != GPU_OK ||
        result.status == GPU_OK) { /* otherwise keep the status that the worker sent */
        free(result.reason);
        result.reason = reason;
        result.status = status;
    }
    *out_result = result;
}
