/* Copies a record with pseudonyms instead of names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/record/entry.h"
#include "device/record/record.h"
#include "inventory/anonymous.h"
#include "inventory/pseudonyms.h"
#include "schema/wire.h"

/* Copies the text without its comments: a '#' at the start of a line or after a space, and not in
 * quotes. */
static char *without_comments(const char *text)
{
    struct strbuf out = {0};
    char quote = '\0', before = '\n';
    for (const char *at = text; *at; before = *at++) {
        if (!quote && *at == '#' && strchr("\n\t ", before)) {
            at += strcspn(at, "\n");
            if (!*at)
                break;
        }
        if (quote ? *at == quote : (*at == '"' || *at == '\''))
            quote = quote ? '\0' : *at;
        else if (*at == '\n')
            quote = '\0';
        strbuf_append(&out, at, 1);
    }
    return out.data ? out.data : str_copy("");
}

static int create_copy(const char *path, const struct record_provenance *from,
                       struct pseudonyms *names, struct record_file **out_file, struct err *err)
{
    struct record_provenance clean;
    schema_copy(&record_provenance_schema, &clean, from);
    anonymous_apply_to(names, &record_provenance_schema, &clean);
    anonymous_command(clean.command, &clean.command_count);
    free(clean.config_text);
    clean.config_text = without_comments(from->config_text);
    free(clean.config);
    clean.config = str_copy("survey.yaml"); /* a site may name its file as it likes */
    int rc = record_file_create(path, &clean, out_file, err);
    record_provenance_fini(&clean);
    return rc;
}

static void record_clean_facts(struct facts *facts, void *names)
{
    anonymous_facts(names, facts);
}

/* An answer with texts: the error of a call, or its facts. All others stay. */
static void copy_answer(struct wire_reader *values, enum device_call call, struct pseudonyms *names,
                        struct strbuf *out)
{
    const struct device_call_row *row = device_call_row(call);
    int64_t code = wire_get_signed(values);
    wire_put_signed(out, code);
    if (code) {
        char *text = wire_get_text(values);
        pseudonyms_clean(names, &text);
        wire_put_text(out, text);
        free(text);
    }
    if (values->bad || !row->keeps_facts)
        return;
    union device_call_room facts = {0};
    asked_get_answer(values, call, NULL, 0, &facts);
    fields_visit_facts(row->answer, &facts, record_clean_facts, names);
    asked_put_answer(out, call, NULL, &facts);
    fields_fini(row->answer, &facts);
}

/* What the entry before an answer asked, and for which probe. */
struct place {
    enum device_call call;
    bool identifies;
};

/* The answers to the probes die.* and cluster.latency identify the die. */
static bool mark_is_of_die(const struct wire_reader *values)
{
    struct wire_reader ahead = *values;
    char *mark = wire_get_text(&ahead);
    bool found = mark && (strncmp(mark, "die.", 4) == 0 || strcmp(mark, "cluster.latency") == 0);
    free(mark);
    return found;
}

static void copy_entry(struct record_entry *entry, struct place *place, struct pseudonyms *names,
                       struct strbuf *out)
{
    struct wire_reader *values = &entry->values;
    struct strbuf payload = {0};
    struct wire_reader ahead = *values;
    if (entry->type == ENTRY_ASK) {
        uint64_t call = wire_get_varint(&ahead);
        values->bad |= call >= DEVICE_CALL_COUNT;
        place->call = values->bad ? DEVICE_CALL_LOOK : (enum device_call)call;
    }
    if (entry->type == ENTRY_MARK)
        place->identifies = mark_is_of_die(values);
    bool failed = entry->type == ENTRY_ANSWER && wire_get_signed(&ahead) != 0;
    bool measured = place->call == DEVICE_CALL_BATCH || place->call == DEVICE_CALL_SM_MAP ||
                    place->call == DEVICE_CALL_CLUSTER;
    if (entry->type == ENTRY_ANSWER && place->identifies && measured && !failed) {
        /* The request stays: later ones are differences. */
        asked_put_err(&payload, -ENODATA, "left out of an anonymous record: it identifies the GPU");
        values->position = values->length;
    } else if (entry->type == ENTRY_ANSWER &&
               (failed || device_call_row(place->call)->keeps_facts)) {
        copy_answer(values, place->call, names, &payload);
    }
    strbuf_append(&payload, (const char *)values->data + values->position,
                  values->length - values->position);
    entry_write(out, (enum entry_type)entry->type, &payload);
    strbuf_fini(&payload);
}

static int copy_body(const struct strbuf *body, uint64_t offset, struct pseudonyms *names,
                     struct strbuf *out, struct err *err)
{
    struct record_entry entry = {0};
    size_t position = 0;
    struct place place = {.call = DEVICE_CALL_LOOK};
    int rc;
    while ((rc = entry_next(body->data ? body->data : "", body->length, offset, &position, &entry,
                            err)) > 0) {
        copy_entry(&entry, &place, names, out);
        if (entry.values.bad)
            return err_set(err, -EINVAL, "byte %llu: malformed answer",
                           (unsigned long long)(offset + entry.position));
    }
    return rc;
}

static int copy_gpu(const struct record *record, const struct record_gpu *gpu,
                    struct pseudonyms *names, struct record_file *file, struct err *err)
{
    struct strbuf body = {0}, clean_body = {0}, part = {0};
    struct record_gpu clean;
    schema_copy(&record_gpu_schema, &clean, gpu);
    anonymous_apply_to(names, &record_gpu_schema, &clean);
    int rc = record_read_body(record, gpu, &body, err);
    if (!rc)
        rc = copy_body(&body, gpu->body_offset, names, &clean_body, err);
    if (!rc) {
        record_put_gpu(&part, &clean.gpu, gpu->session, clean_body.data, clean_body.length,
                       gpu->closed);
        rc = record_file_append(file, part.data, part.length, err);
    }
    schema_fini(&record_gpu_schema, &clean);
    strbuf_fini(&body);
    strbuf_fini(&clean_body);
    strbuf_fini(&part);
    return rc;
}

int record_anonymous_copy(const char *from, const char *to, struct pseudonyms *names,
                          struct err *err)
{
    struct record *record = NULL;
    struct record_file *file = NULL;
    int rc = record_open(from, &record, err);
    if (rc)
        return rc;
    rc = create_copy(to, record_provenance(record), names, &file, err);
    for (size_t i = 0; i < record_gpu_count(record) && !rc; i++) {
        const struct record_gpu *gpu = record_gpu(record, i);
        const struct record_gpu *again = record_find_gpu(record, gpu->gpu.uuid, 1);
        rc = copy_gpu(record, gpu, names, file, err);
        if (!rc && again)
            rc = copy_gpu(record, again, names, file, err);
    }
    if (!rc) {
        struct record_survey survey;
        schema_copy(&record_survey_schema, &survey, record_survey(record));
        anonymous_apply_to(names, &record_survey_schema, &survey);
        rc = record_file_finish(file, &survey, err);
        record_survey_fini(&survey);
    }
    record_file_destroy(file);
    record_close(record);
    return rc;
}
