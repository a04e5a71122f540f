/* One GPU's result: its members, names and binary form. */
#include "inventory/gpu_result.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"
#include "inventory/wire/frame.h"

const char *const gpu_status_names[] = {"ok",     "outlier", "timed_out", "crashed",
                                        "failed", "lost",    "busy",      NULL};

const char *gpu_status_name(enum gpu_status status)
{
    return gpu_status_names[status];
}

static const struct schema_field first_try_fields[] = {
    {"status", FIELD_ENUM(struct gpu_run, first_status, gpu_status_names), .min = GPU_TIMED_OUT,
     .max = GPU_FAILED},
    {"reason", FIELD_TEXT(struct gpu_run, first_reason), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
};
const struct schema gpu_first_try_schema = {
    .name = "first_try",
    .size = sizeof(struct gpu_run),
    SCHEMA_FIELDS(first_try_fields),
    .style = WRITER_FLOW,
    .words = "How the first worker of a GPU that was tried again ended."};

struct gpu_run_alone {
    struct gpu_run run;
};
static const struct schema_field gpu_run_fields[] = {GPU_RUN_ROWS(struct gpu_run_alone)};
const struct schema gpu_run_schema = {
    .name = "gpu_run", .size = sizeof(struct gpu_run), SCHEMA_FIELDS(gpu_run_fields)};

#define GPU_IDENTITY_ROWS                                                                          \
    {"uuid", FIELD_TEXT(struct gpu_result, uuid), .flags = SCHEMA_NULL},                           \
        {"node", FIELD_TEXT(struct gpu_result, node), .flags = SCHEMA_NULL},                       \
        {"pci", FIELD_TEXT(struct gpu_result, pci), .flags = SCHEMA_NULL},                         \
        {"index", FIELD_I32(struct gpu_result, index), .flags = SCHEMA_NULL},                      \
        {"rank", FIELD_I32(struct gpu_result, rank), .flags = SCHEMA_NULL},                        \
        {"name", FIELD_TEXT(struct gpu_result, name), .flags = SCHEMA_NULL},                       \
        {"model_key", FIELD_TEXT(struct gpu_result, model_key), .flags = SCHEMA_NULL},             \
        {"status", FIELD_ENUM(struct gpu_result, status, gpu_status_names)},                       \
    {                                                                                              \
        "reason", FIELD_TEXT(struct gpu_result, reason), .flags = SCHEMA_NULL                      \
    }

static const struct schema_field gpu_plan_fields[] = {
    GPU_IDENTITY_ROWS, {"gpus_allocated", FIELD_U32(struct gpu_result, run.gpus_allocated)}};
const struct schema gpu_plan_schema = {
    .name = "gpu_plan", .size = sizeof(struct gpu_result), SCHEMA_FIELDS(gpu_plan_fields)};

static const struct schema_field gpu_figure_fields[] = {
    {"hardware", FIELD_FACTS(struct gpu_result, hardware)},
    {"board", FIELD_FACTS(struct gpu_result, board)},
    {"config", FIELD_FACTS(struct gpu_result, config)},
    {"health", FIELD_FACTS(struct gpu_result, health)},
    {"timings", FIELD_FACTS(struct gpu_result, timings)},
    {"measures", FIELD_MEASURES(struct gpu_result, measures), .max = WIRE_ITEMS_MAX},
    {"measured_again", FIELD_FACTS(struct gpu_result, measured_again)},
};
static const struct schema gpu_figures_schema = {
    .name = "gpu_figures", .size = sizeof(struct gpu_result), SCHEMA_FIELDS(gpu_figure_fields)};

static const struct schema_field gpu_result_fields[] = {
    GPU_IDENTITY_ROWS,
    GPU_RUN_ROWS(struct gpu_result),
    {"elapsed_s", FIELD_F64(struct gpu_result, elapsed_s), .max = DBL_MAX},
    {"figures", FIELD_PART(&gpu_figures_schema)},
};
const struct schema gpu_result_schema = {
    .name = "gpu_result", .size = sizeof(struct gpu_result), SCHEMA_FIELDS(gpu_result_fields)};

static void gpu_result_release(const struct schema *schema, struct gpu_result *result)
{
    if (result->in_message)
        schema_fini_lists(schema, result);
    else
        schema_fini(schema, result);
}

void gpu_result_drop_figures(struct gpu_result *result)
{
    gpu_result_release(&gpu_figures_schema, result);
}

void gpu_result_fini(struct gpu_result *result)
{
    gpu_result_release(&gpu_result_schema, result);
    memset(result, 0, sizeof *result);
}

void gpu_result_set_identity(struct gpu_result *to, const struct gpu_result *from)
{
    char **const places[] = {&to->uuid, &to->node, &to->pci, &to->name, &to->model_key};
    const char *const texts[] = {from->uuid, from->node, from->pci, from->name, from->model_key};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        char *copy = str_copy(texts[i]);
        free(*places[i]);
        *places[i] = copy;
    }
    to->index = from->index;
}

void gpu_result_copy(struct gpu_result *to, const struct gpu_result *from)
{
    schema_copy(&gpu_result_schema, to, from);
    to->in_message = false;
}

/* The binary form: version, CRC-32, then the members. The version follows from the rows. */

void gpu_result_encode(const struct gpu_result *result, struct strbuf *buffer)
{
    struct strbuf body = {0};
    schema_encode(&gpu_result_schema, result, &body);
    wire_put_u32(buffer, schema_wire_version(&gpu_result_schema));
    wire_put_u32(buffer, frame_crc32(body.data, body.length));
    strbuf_append(buffer, body.data, body.length);
    buffer->failed |= body.failed;
    strbuf_fini(&body);
}

static int decode_result(const void *data, size_t length, bool framed,
                         struct gpu_result *out_result, struct err *err)
{
    struct wire_reader reader = {.data = data, .length = length, .in_place = framed};
    uint32_t version = wire_get_u32(&reader);
    uint32_t sum = wire_get_u32(&reader);
    if (reader.bad)
        return err_set(err, -EBADMSG, "a GPU's result is cut off after %zu bytes", length);
    if (version != schema_wire_version(&gpu_result_schema))
        return err_set(err, -EBADMSG, "a GPU's result was written by another version");
    const char *body = (const char *)data + reader.position;
    if (!framed && sum != frame_crc32(body, length - reader.position))
        return err_set(err, -EBADMSG, "a GPU's result is damaged: wrong checksum");
    struct gpu_result result = {.in_message = framed};
    schema_decode(&gpu_result_schema, &reader, &result);
    if (reader.bad || reader.position != length) {
        gpu_result_fini(&result);
        return err_set(err, -EBADMSG, "a GPU's result is malformed at byte %zu of %zu",
                       reader.position, length);
    }
    *out_result = result;
    return 0;
}

int gpu_result_decode(const void *data, size_t length, struct gpu_result *out_result,
                      struct err *err)
{
    return decode_result(data, length, false, out_result, err);
}

int gpu_result_decode_framed(void *data, size_t length, struct gpu_result *out_result,
                             struct err *err)
{
    return decode_result(data, length, true, out_result, err);
}

void gpu_result_second_values(const struct gpu_result *again, struct facts *out_values)
{
    const char *throttle = facts_text(&again->health, "throttle");
    measures_numbers(&again->measures, out_values);
    if (throttle)
        facts_set_real(out_values, GPU_RESULT_THROTTLED, strcmp(throttle, "none") != 0);
}

/* Moves a note of any measure to the facts of the board. */
static void take_note(struct gpu_result *result, const char *key)
{
    for (size_t i = 0; i < result->measures.count; i++) {
        struct facts *notes = &result->measures.items[i].notes;
        const struct fact *note = facts_get(notes, key);
        if (!note || note->kind == FACT_UNKNOWN)
            continue;
        facts_set(&result->board, note);
        facts_remove(notes, key);
    }
}

void gpu_result_take_fingerprint(struct gpu_result *result)
{
    for (size_t i = 0; i < FINGERPRINT_KEYS; i++)
        take_note(result, fingerprint_keys[i]);
    for (size_t i = 0; i < SM_RATES_KEYS; i++)
        take_note(result, sm_rates_keys[i]);
}
