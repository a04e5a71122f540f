/* Messages between ranks and rank 0: the binary form. */
#include "survey/comm/message.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/names.h"
#include "schema/wire.h"

void message_put_identity(struct strbuf *buffer, const struct gpu_result *gpu)
{
    wire_put_text(buffer, gpu->uuid);
    wire_put_text(buffer, gpu->node);
    wire_put_text(buffer, gpu->pci);
    wire_put_u32(buffer, (uint32_t)gpu->index);
    wire_put_text(buffer, gpu->name);
    wire_put_text(buffer, gpu->model_key);
}

void message_get_identity(struct wire_reader *reader, struct gpu_result *out_gpu)
{
    out_gpu->uuid = wire_get_text(reader);
    out_gpu->node = wire_get_text(reader);
    out_gpu->pci = wire_get_text(reader);
    out_gpu->index = (int32_t)wire_get_u32(reader);
    out_gpu->name = wire_get_text(reader);
    out_gpu->model_key = wire_get_text(reader);
    if (!out_gpu->uuid)
        reader->bad = true; /* a GPU is identified by its UUID */
}

void message_put_err(struct strbuf *buffer, const struct err *err)
{
    wire_put_u32(buffer, (uint32_t)err->code);
    wire_put_u32(buffer, (uint32_t)err->line);
    wire_put_u32(buffer, (uint32_t)err->column);
    wire_put_text(buffer, err->file);
    wire_put_text(buffer, err->text);
}

void message_get_err(struct wire_reader *reader, struct err *out_err)
{
    out_err->code = (int)wire_get_u32(reader);
    out_err->line = (int)wire_get_u32(reader);
    out_err->column = (int)wire_get_u32(reader);
    char *file = wire_get_text(reader);
    char *text = wire_get_text(reader);
    snprintf(out_err->file, sizeof out_err->file, "%s", file ? file : "");
    snprintf(out_err->text, sizeof out_err->text, "%s", text ? text : "");
    free(file);
    free(text);
}

void announce_encode(const struct announce *announce, struct strbuf *buffer)
{
    wire_put_text(buffer, announce->host);
    wire_put_text(buffer, announce->boot_id);
    wire_put_u32(buffer, announce->at_once);
    wire_put_u32(buffer, announce->listing);
    wire_put_u32(buffer, announce->failed_as);
    message_put_err(buffer, &announce->err);
    wire_put_u32(buffer, announce->gpus_given);
    wire_put_u32(buffer, (uint32_t)announce->gpu_count);
    for (size_t i = 0; i < announce->gpu_count; i++)
        message_put_identity(buffer, &announce->gpus[i]);
    wire_put_u32(buffer, (uint32_t)announce->bare_count);
    for (size_t i = 0; i < announce->bare_count; i++)
        wire_put_text(buffer, announce->bare_nodes[i]);
    wire_put_u32(buffer, (uint32_t)announce->dead_count);
    for (size_t i = 0; i < announce->dead_count; i++) {
        wire_put_text(buffer, announce->dead[i].node);
        wire_put_text(buffer, announce->dead[i].reason);
        wire_put_u32(buffer, announce->dead[i].gpus_given);
    }
}

void message_get_dead(struct wire_reader *reader, struct gpu_result *out_node)
{
    out_node->index = -1;
    out_node->status = GPU_FAILED;
    out_node->node = wire_get_text(reader);
    out_node->reason = wire_get_text(reader);
    out_node->gpus_given = wire_get_u32(reader);
    reader->bad |= !out_node->node;
}

int announce_decode(const struct frame *frame, struct announce *out_announce, struct err *err)
{
    enum { TEXT_BYTES_MIN = 4 };
    struct wire_reader values = frame_values(frame), *reader = &values;
    struct announce announce = {0}, *out = &announce;
    out->host = wire_get_text(reader);
    out->boot_id = wire_get_text(reader);
    out->at_once = wire_get_u32(reader);
    out->listing = (enum listing_status)wire_get_enum(reader, LISTING_FAILED + 1);
    out->failed_as = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
    reader->bad |= !out->host;
    message_get_err(reader, &out->err);
    out->gpus_given = wire_get_u32(reader);
    uint32_t gpus = wire_get_count(reader, 6 * TEXT_BYTES_MIN);
    out->gpus = mem_array(gpus, sizeof *out->gpus);
    for (; out->gpu_count < gpus && !reader->bad; out->gpu_count++)
        message_get_identity(reader, &out->gpus[out->gpu_count]);
    uint32_t bare = wire_get_count(reader, TEXT_BYTES_MIN);
    out->bare_nodes = mem_array(bare, sizeof *out->bare_nodes);
    for (; out->bare_count < bare && !reader->bad; out->bare_count++)
        if (!(out->bare_nodes[out->bare_count] = wire_get_text(reader)))
            reader->bad = true;
    uint32_t dead = wire_get_count(reader, 3 * TEXT_BYTES_MIN);
    out->dead = mem_array(dead, sizeof *out->dead);
    for (; out->dead_count < dead && !reader->bad; out->dead_count++)
        message_get_dead(reader, &out->dead[out->dead_count]);
    int rc = wire_end(reader, "announcement", err);
    if (rc)
        announce_fini(&announce);
    else
        *out_announce = announce;
    return rc;
}

void announce_fini(struct announce *announce)
{
    free(announce->host);
    free(announce->boot_id);
    for (size_t i = 0; i < announce->gpu_count; i++)
        gpu_result_fini(&announce->gpus[i]);
    free(announce->gpus);
    for (size_t i = 0; i < announce->bare_count; i++)
        free(announce->bare_nodes[i]);
    free(announce->bare_nodes);
    for (size_t i = 0; i < announce->dead_count; i++)
        gpu_result_fini(&announce->dead[i]);
    free(announce->dead);
    memset(announce, 0, sizeof *announce);
}

void assignment_encode(const struct assignment *assignment, struct strbuf *buffer)
{
    wire_put_f64(buffer, assignment->time_limit_s);
    wire_put_f64(buffer, assignment->stagger_s);
    wire_put_u64(buffer, assignment->region_bytes);
    wire_put_u32(buffer, (uint32_t)assignment->count);
    for (size_t i = 0; i < assignment->count; i++)
        wire_put_u32(buffer, assignment->positions[i]);
    wire_put_text(buffer, assignment->spool);
    wire_put_text(buffer, assignment->survey);
    wire_put_text(buffer, assignment->owner);
}

int assignment_decode(const struct frame *frame, struct assignment *out_assignment, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct assignment assignment = {0};
    assignment.time_limit_s = wire_get_f64(&reader);
    assignment.stagger_s = wire_get_f64(&reader);
    assignment.region_bytes = wire_get_u64(&reader);
    assignment.count = wire_get_count(&reader, sizeof *assignment.positions);
    if (!isfinite(assignment.time_limit_s) || !isfinite(assignment.stagger_s))
        reader.bad = true;
    assignment.positions = mem_array(assignment.count, sizeof *assignment.positions);
    for (size_t i = 0; i < assignment.count; i++)
        assignment.positions[i] = wire_get_u32(&reader);
    assignment.spool = wire_get_text(&reader);
    assignment.survey = wire_get_text(&reader);
    assignment.owner = wire_get_text(&reader);
    int rc = wire_end(&reader, "assignment", err);
    if (rc)
        assignment_fini(&assignment);
    else
        *out_assignment = assignment;
    return rc;
}

void assignment_fini(struct assignment *assignment)
{
    free(assignment->positions);
    free(assignment->spool);
    free(assignment->survey);
    free(assignment->owner);
    memset(assignment, 0, sizeof *assignment);
}

void message_result_encode(const struct result_message *message, struct strbuf *buffer)
{
    wire_put_u32(buffer, message->position);
    wire_put_u32(buffer, message->session);
    wire_put_text(buffer, message->unspooled);
    wire_put_u32(buffer, (uint32_t)message->record_bytes);
    strbuf_append(buffer, message->record, message->record_bytes);
    gpu_result_encode(&message->result, buffer);
}

int message_result_decode(const struct frame *frame, struct result_message *out_message,
                          struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct result_message message = {.position = wire_get_u32(&reader)};
    message.session = wire_get_u32(&reader);
    message.unspooled = wire_get_text(&reader);
    message.record_bytes = wire_get_count(&reader, 1);
    if (reader.bad) {
        free(message.unspooled);
        return err_set(err, -EBADMSG, "malformed result");
    }
    message.record = frame->payload + reader.position;
    size_t behind = reader.position + message.record_bytes;
    /* The payload lies in the buffer of a frame_reader, which may be changed. */
    int rc = gpu_result_decode_framed((char *)frame->payload + behind, frame->length - behind,
                                      &message.result, err);
    if (rc)
        free(message.unspooled);
    else
        *out_message = message;
    return rc;
}

void message_result_fini(struct result_message *message)
{
    gpu_result_fini(&message->result);
    free(message->unspooled);
    memset(message, 0, sizeof *message);
}

void again_encode(const struct again *again, struct strbuf *buffer)
{
    wire_put_u32(buffer, again->position);
    wire_put_text(buffer, again->probes);
}

int again_decode(const struct frame *frame, struct again *out_again, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct again again = {.position = wire_get_u32(&reader)};
    again.probes = wire_get_text(&reader);
    reader.bad |= !again.probes;
    int rc = wire_end(&reader, "request to measure again", err);
    if (rc)
        again_fini(&again);
    else
        *out_again = again;
    return rc;
}

void again_fini(struct again *again)
{
    free(again->probes);
    memset(again, 0, sizeof *again);
}

void message_quit_encode(bool lost_ranks, struct strbuf *buffer)
{
    wire_put_u32(buffer, lost_ranks);
}

int message_quit_decode(const struct frame *frame, bool *out_lost_ranks, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    bool lost_ranks = wire_get_u32(&reader);
    int rc = wire_end(&reader, "dismissal", err);
    if (!rc)
        *out_lost_ranks = lost_ranks;
    return rc;
}

void doing_encode(const struct doing *doing, struct strbuf *buffer)
{
    wire_put_u32(buffer, doing->position);
    wire_put_f64(buffer, doing->since_s);
    wire_put_text(buffer, doing->probe);
}

int doing_decode(const struct frame *frame, struct doing *out_doing, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    if (!frame->length) {
        *out_doing = (struct doing){0};
        return 0;
    }
    struct doing doing = {.position = wire_get_u32(&reader), .since_s = wire_get_f64(&reader)};
    char *probe = wire_get_text(&reader);
    snprintf(doing.probe, sizeof doing.probe, "%s", probe ? probe : "");
    free(probe);
    if (!isfinite(doing.since_s) || doing.since_s < 0)
        doing.since_s = 0;
    int rc = wire_end(&reader, "heartbeat", err);
    if (!rc)
        *out_doing = doing;
    return rc;
}
