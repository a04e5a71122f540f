/* Copies a record with pseudonyms instead of names. */
#include "device/replay/record_anonymous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/record_read.h"
#include "inventory/anonymous.h"
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
    if (!out.data && !out.failed)
        return str_copy("");
    if (out.failed)
        strbuf_fini(&out);
    return out.data;
}

/* The copy shares what it does not change; *command is an array of new texts. */
static int clean_command(const struct record_provenance *from, char ***out_command,
                         size_t *out_count)
{
    char **command = mem_array(from->command_count, sizeof *command);
    size_t count = 0;
    int rc = command ? 0 : -ENOMEM;
    for (; count < from->command_count && !rc; count += !rc)
        rc = str_copy_to(&command[count], from->command[count]);
    if (!rc)
        anonymous_command(command, &count);
    *out_command = command;
    *out_count = count;
    return rc;
}

static int create_copy(const char *path, const struct record_provenance *from,
                       struct pseudonyms *names, struct record_file **out_file, struct err *err)
{
    struct record_provenance clean = *from;
    int rc = -ENOMEM;
    clean.host = NULL;
    clean.config_text = without_comments(from->config_text);
    clean.config = str_copy("survey.yaml"); /* a site may name its file as it likes */
    if (clean_command(from, &clean.command, &clean.command_count) || !clean.config ||
        !clean.config_text || str_copy_to(&clean.host, from->host) ||
        pseudonyms_replace(names, PSEUDONYM_NODE, &clean.host))
        err_no_memory(err);
    else
        rc = record_file_create(path, &clean, out_file, err);
    for (size_t i = 0; i < clean.command_count; i++)
        free(clean.command[i]);
    free(clean.command);
    free(clean.host);
    free(clean.config);
    free(clean.config_text);
    return rc;
}

/* Copies tables of facts from an answer. */
static void copy_facts(struct wire_reader *values, size_t tables, struct pseudonyms *names,
                       struct strbuf *out)
{
    for (size_t i = 0; i < tables && !values->bad; i++) {
        struct facts facts = {0};
        wire_get_facts(values, &facts);
        if (!values->bad && anonymous_facts(names, &facts))
            wire_no_memory(values);
        wire_put_facts(out, &facts);
        facts_fini(&facts);
    }
}

/* An answer with texts: the error of a call, or its tables of facts. All others stay. */
static void copy_answer(struct wire_reader *values, enum ask_call call, struct pseudonyms *names,
                        struct strbuf *out)
{
    int64_t code = wire_get_signed(values);
    wire_put_signed(out, code);
    if (code) {
        char *text = wire_get_text(values);
        if (!values->bad && pseudonyms_clean(names, &text))
            wire_no_memory(values);
        wire_put_text(out, text);
        free(text);
    }
    copy_facts(values, ask_tables(call), names, out);
}

/* The answers to the probes die.* and cluster.latency identify the die. The requests stay: later
 * ones are differences.
 */
static void put_left_out(struct strbuf *out)
{
    wire_put_signed(out, -ENODATA);
    wire_put_text(out, "left out of an anonymous record: it identifies the GPU");
}

/* What the entry before an answer asked, and for which probe. */
struct place {
    enum ask_call call;
    bool identifies;
};

static bool is_of_die(const struct wire_reader *values)
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
    if (entry->type == ENTRY_ASK)
        place->call = (enum ask_call)wire_get_varint(&ahead);
    if (entry->type == ENTRY_MARK)
        place->identifies = is_of_die(values);
    bool failed = entry->type == ENTRY_ANSWER && wire_get_signed(&ahead) != 0;
    bool measured = place->call == ASK_BATCH || place->call == ASK_SM_MAP;
    if (entry->type == ENTRY_ANSWER && place->identifies && measured && !failed) {
        put_left_out(&payload);
        values->position = values->length;
    } else if (entry->type == ENTRY_ANSWER && (failed || ask_tables(place->call))) {
        copy_answer(values, place->call, names, &payload);
    }
    strbuf_append(&payload, (const char *)values->data + values->position,
                  values->length - values->position);
    values->bad |= payload.failed;
    entry_write(out, (enum entry_type)entry->type, &payload);
    strbuf_fini(&payload);
}

static int copy_body(const struct strbuf *body, uint64_t offset, struct pseudonyms *names,
                     struct strbuf *out, struct err *err)
{
    struct record_entry entry = {0};
    size_t position = 0;
    struct place place = {.call = ASK_LOOK};
    int rc;
    while ((rc = entry_next(body->data ? body->data : "", body->length, offset, &position, &entry,
                            err)) > 0) {
        copy_entry(&entry, &place, names, out);
        if (entry.values.no_memory || out->failed)
            return err_no_memory(err);
        if (entry.values.bad)
            return err_set(err, -EINVAL, "byte %llu: malformed answer",
                           (unsigned long long)(offset + entry.position));
    }
    return rc;
}

/* Fills `clean`, which must be empty, with a copy of `from` without names. */
static int clean_result(const struct gpu_result *from, struct pseudonyms *names,
                        struct gpu_result *clean)
{
    return gpu_result_copy(clean, from) || pseudonyms_replace(names, PSEUDONYM_GPU, &clean->uuid) ||
                   pseudonyms_replace(names, PSEUDONYM_NODE, &clean->node) ||
                   pseudonyms_replace(names, PSEUDONYM_SLOT, &clean->pci) ||
                   pseudonyms_clean(names, &clean->reason) ||
                   pseudonyms_clean(names, &clean->first_reason)
               ? -ENOMEM
               : 0;
}

static int copy_gpu(const struct record *record, const struct record_gpu *gpu,
                    struct pseudonyms *names, struct record_file *file, struct err *err)
{
    struct strbuf body = {0}, clean_body = {0}, part = {0};
    struct gpu_result clean = {0};
    int rc = clean_result(&gpu->gpu, names, &clean) ? err_no_memory(err)
                                                    : record_read_body(record, gpu, &body, err);
    if (rc)
        goto out;
    rc = copy_body(&body, gpu->body_offset, names, &clean_body, err);
    if (rc)
        goto out;
    record_put_gpu(&part, &clean, gpu->session, clean_body.data ? clean_body.data : "",
                   clean_body.length, gpu->closed);
    rc = part.failed ? err_no_memory(err) : record_file_append(file, part.data, part.length, err);
out:
    gpu_result_fini(&clean);
    strbuf_fini(&body);
    strbuf_fini(&clean_body);
    strbuf_fini(&part);
    return rc;
}

/* The GPU, and its second measurement if there is one. */
static int copy_sessions(const struct record *record, const struct record_gpu *gpu,
                         struct pseudonyms *names, struct record_file *file, struct err *err)
{
    const struct record_gpu *again = record_find_gpu(record, gpu->gpu.uuid, 1);
    int rc = copy_gpu(record, gpu, names, file, err);
    return rc || !again ? rc : copy_gpu(record, again, names, file, err);
}

static int finish_copy(const struct record_survey *from, struct pseudonyms *names,
                       struct record_file *file, struct err *err)
{
    struct record_survey clean = {.nodes = from->nodes, .lost_ranks = from->lost_ranks};
    clean.bare_nodes = mem_array(from->bare_count, sizeof *clean.bare_nodes);
    clean.unknown = mem_array(from->unknown_count, sizeof *clean.unknown);
    int rc = clean.bare_nodes && clean.unknown ? 0 : -ENOMEM;
    for (; clean.bare_count < from->bare_count && !rc; clean.bare_count++) {
        char **node = &clean.bare_nodes[clean.bare_count];
        rc = str_copy_to(node, from->bare_nodes[clean.bare_count]);
        if (!rc)
            rc = pseudonyms_replace(names, PSEUDONYM_NODE, node);
    }
    for (; clean.unknown_count < from->unknown_count && !rc; clean.unknown_count++)
        rc = clean_result(&from->unknown[clean.unknown_count], names,
                          &clean.unknown[clean.unknown_count]);
    rc = rc ? err_no_memory(err) : record_file_finish(file, &clean, err);
    record_survey_fini(&clean);
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
    for (size_t i = 0; i < record_gpu_count(record) && !rc; i++)
        rc = copy_sessions(record, record_gpu(record, i), names, file, err);
    if (!rc)
        rc = finish_copy(record_survey(record), names, file, err);
    record_file_destroy(file);
    record_close(record);
    return rc;
}
