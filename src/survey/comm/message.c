/* Messages between ranks and rank 0: the binary form. */
#include "survey/comm/message.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/gpu_result.h"
#include "schema/schema.h"
#include "schema/wire.h"

static const struct schema_field identity_fields[] = {
    {"uuid", FIELD_TEXT(struct gpu_result, uuid)}, /* a GPU is identified by it */
    {"node", FIELD_TEXT(struct gpu_result, node), .flags = SCHEMA_NULL},
    {"pci", FIELD_TEXT(struct gpu_result, pci), .flags = SCHEMA_NULL},
    {"index", FIELD_I32(struct gpu_result, index)},
    {"name", FIELD_TEXT(struct gpu_result, name), .flags = SCHEMA_NULL},
    {"model_key", FIELD_TEXT(struct gpu_result, model_key), .flags = SCHEMA_NULL},
};
const struct schema message_identity = {"identity", sizeof(struct gpu_result),
                                        SCHEMA_FIELDS(identity_fields)};

static const struct schema_field dead_node_fields[] = {
    {"node", FIELD_TEXT(struct gpu_result, node)},
    {"reason", FIELD_TEXT(struct gpu_result, reason), .flags = SCHEMA_NULL},
    {"gpus_allocated", FIELD_U32(struct gpu_result, run.gpus_allocated)},
};
const struct schema message_dead_node = {"node", sizeof(struct gpu_result),
                                         SCHEMA_FIELDS(dead_node_fields)};

/* Without its error, which follows. */
static const struct schema_field announce_fields[] = {
    {"host", FIELD_TEXT(struct announce, host)},
    {"boot_id", FIELD_TEXT(struct announce, boot_id), .flags = SCHEMA_NULL},
    {"at_once", FIELD_U32(struct announce, at_once)},
    {"listing", SCHEMA_ENUM, .offset = offsetof(struct announce, listing),
     .name_count = LISTING_FAILED + 1},
    {"failed_as", SCHEMA_ENUM, .offset = offsetof(struct announce, failed_as),
     .name_count = GPU_STATUS_COUNT},
    {"gpus_allocated", FIELD_U32(struct announce, gpus_allocated)},
    {"gpus", FIELD_LIST(struct announce, gpus, gpu_count, struct gpu_result, &message_identity)},
    {"bare_nodes", FIELD_TEXTS(struct announce, bare_nodes, bare_count)},
    {"dead", FIELD_LIST(struct announce, dead, dead_count, struct gpu_result, &message_dead_node)},
};
static const struct schema announce_schema = {"announcement", sizeof(struct announce),
                                              SCHEMA_FIELDS(announce_fields)};

static const struct schema_field assignment_fields[] = {
    {"time_limit_s", FIELD_F64(struct assignment, time_limit_s)},
    {"stagger_s", FIELD_F64(struct assignment, stagger_s)},
    {"region_bytes", FIELD_U64(struct assignment, region_bytes)},
    {"positions", FIELD_U32S(struct assignment, positions, count)},
    {"spool", FIELD_TEXT(struct assignment, spool), .flags = SCHEMA_NULL},
    {"survey", FIELD_TEXT(struct assignment, survey), .flags = SCHEMA_NULL},
    {"owner", FIELD_TEXT(struct assignment, owner), .flags = SCHEMA_NULL},
};
static const struct schema assignment_schema = {"assignment", sizeof(struct assignment),
                                                SCHEMA_FIELDS(assignment_fields)};

static const struct schema_field again_fields[] = {
    {"position", FIELD_U32(struct again, position)},
    {"probes", FIELD_TEXT(struct again, probes)},
};
static const struct schema again_schema = {"request to measure again", sizeof(struct again),
                                           SCHEMA_FIELDS(again_fields)};

int message_decode(const struct schema *schema, const struct frame *frame, void *out_object,
                   struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    schema_decode(schema, &reader, out_object);
    int rc = wire_end(&reader, schema->name, err);
    if (rc)
        schema_fini(schema, out_object);
    return rc;
}

/* The same behind the version of the schema: the programs of two nodes may differ. */
static int message_decode_versioned(const struct schema *schema, const struct frame *frame,
                                    void *out_object, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    int rc = schema_decode_versioned(schema, &reader, out_object, err);
    if (!rc)
        rc = wire_end(&reader, schema->name, err);
    if (rc)
        schema_fini(schema, out_object);
    return rc;
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
    schema_encode_versioned(&announce_schema, announce, buffer);
    message_put_err(buffer, &announce->err);
}

int announce_decode(const struct frame *frame, struct announce *out_announce, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct announce announce = {0};
    int rc = schema_decode_versioned(&announce_schema, &reader, &announce, err);
    if (!rc) {
        message_get_err(&reader, &announce.err);
        rc = wire_end(&reader, announce_schema.name, err);
    }
    if (rc) {
        announce_fini(&announce);
        return rc;
    }
    for (size_t i = 0; i < announce.dead_count; i++)
        announce.dead[i].index = -1;
    *out_announce = announce;
    return 0;
}

void announce_fini(struct announce *announce)
{
    schema_fini(&announce_schema, announce);
}

void assignment_encode(const struct assignment *assignment, struct strbuf *buffer)
{
    schema_encode_versioned(&assignment_schema, assignment, buffer);
}

int assignment_decode(const struct frame *frame, struct assignment *out_assignment, struct err *err)
{
    struct assignment assignment = {0};
    int rc = message_decode_versioned(&assignment_schema, frame, &assignment, err);
    if (!rc)
        *out_assignment = assignment;
    return rc;
}

void assignment_fini(struct assignment *assignment)
{
    schema_fini(&assignment_schema, assignment);
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
    schema_encode_versioned(&again_schema, again, buffer);
}

int again_decode(const struct frame *frame, struct again *out_again, struct err *err)
{
    struct again again = {0};
    int rc = message_decode_versioned(&again_schema, frame, &again, err);
    if (!rc)
        *out_again = again;
    return rc;
}

void again_fini(struct again *again)
{
    schema_fini(&again_schema, again);
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
