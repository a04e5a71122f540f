/* Writes a record from the words of export.c: import OUT.gmr < WORDS. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/record/entry.h"
#include "device/record/record.h"
#include "device/record/replay.h"

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* The next word, of any length; NULL at the end. */
static char *word(void)
{
    static struct strbuf buffer;
    int c = getchar();
    buffer.length = 0;
    while (c == ' ' || c == '\n')
        c = getchar();
    if (c == EOF)
        return NULL;
    for (; c != ' ' && c != '\n' && c != EOF; c = getchar()) {
        char letter = (char)c;
        strbuf_append(&buffer, &letter, 1);
    }
    return buffer.data;
}

static uint64_t number(void)
{
    const char *text = word();
    if (!text)
        give_up("the words end too early");
    return strtoull(text, NULL, 10);
}

static int32_t small(void)
{
    const char *text = word();
    return text ? (int32_t)strtol(text, NULL, 10) : 0;
}

static void bytes(struct strbuf *out)
{
    const char *text = word();
    unsigned byte;
    if (!text || *text != 'x')
        give_up("expected bytes");
    for (text++; sscanf(text, "%2x", &byte) == 1; text += 2) {
        char letter = (char)byte;
        strbuf_append(out, &letter, 1);
    }
}

static char *text(void)
{
    struct strbuf out = {0};
    const char *at = word();
    unsigned byte;
    if (!at || *at == '-')
        return NULL;
    for (at++; sscanf(at, "%2x", &byte) == 1; at += 2) {
        char letter = (char)byte;
        strbuf_append(&out, &letter, 1);
    }
    return out.data ? out.data : str_copy("");
}

static char **texts(size_t *out_count)
{
    *out_count = (size_t)number();
    char **all = mem_array(*out_count + 1, sizeof *all);
    for (size_t i = 0; i < *out_count; i++)
        all[i] = text();
    return all;
}

static size_t bytes_of(enum field_type type)
{
    return type == FIELD_BOOL                       ? sizeof(bool)
           : type == FIELD_U16                      ? 2
           : type == FIELD_U64 || type == FIELD_F64 ? 8
                                                    : 4;
}

static void take_number(const struct field *field, char *at)
{
    uint64_t value = number();
    bool flag = value;
    if (field->type == FIELD_BOOL)
        memcpy(at, &flag, sizeof flag);
    else
        memcpy(at, &value, bytes_of(field->type)); /* little-endian */
}

/* The members in the order of the rows. */
static void take_object(const struct fields *fields, void *object)
{
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        char *at = (char *)object + field->offset;
        uint64_t count = field->length ? field->length : 1;
        if (field->place >= FIELD_ARRAY) {
            count = 0;
            memcpy(&count, (char *)object + field->count_offset, field->count_bytes);
        }
        size_t size = field->of ? field->of->size : bytes_of(field->type);
        if (field->place == FIELD_LIST) {
            char *items = count ? mem_array((size_t)count, size) : NULL;
            memcpy(at, &items, sizeof items);
            at = items;
        }
        if (field->type == FIELD_FACTS) {
            struct strbuf packed = {0};
            bytes(&packed);
            struct wire_reader reader = {.data = (const unsigned char *)packed.data,
                                         .length = packed.length};
            wire_get_facts(&reader, (struct facts *)(void *)at);
            if (reader.bad)
                give_up("malformed facts");
            strbuf_fini(&packed);
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (field->of)
                take_object(field->of, at + i * size);
            else
                take_number(field, at + i * size);
        }
    }
}

struct importing {
    struct strbuf body;
    struct asked last[DEVICE_CALL_COUNT];
    enum device_call call;
    size_t items;
    union device_call_room *asked;
    uint32_t sm_count;
};

static void put(struct importing *it, enum entry_type type, struct strbuf *payload)
{
    entry_write(&it->body, type, payload);
    strbuf_fini(payload);
}

static void take_request(struct importing *it)
{
    struct strbuf payload = {0};
    it->call = (enum device_call)number(); /* the numbers are the same as in version 2 */
    it->items = (size_t)number();
    const struct device_call_row *row = device_call_row(it->call);
    it->asked = realloc(it->asked, (it->items + 1) * sizeof *it->asked);
    wire_put_varint(&payload, (uint64_t)it->call);
    if (row->count)
        wire_put_varint(&payload, it->items);
    for (size_t i = 0; row->asked && i < it->items; i++) {
        struct asked asked = {0};
        memset(&it->asked[i], 0, sizeof it->asked[i]);
        for (size_t k = 0; k < fields_number_count(row->asked); k++)
            asked.numbers[k] = number();
        if (!fields_from_numbers(row->asked, asked.numbers, &it->asked[i]))
            give_up("malformed request");
        asked_put(&payload, it->call, &asked, &it->last[it->call]);
    }
    put(it, ENTRY_ASK, &payload);
}

static void take_answer(struct importing *it)
{
    const struct device_call_row *row = device_call_row(it->call);
    struct strbuf payload = {0};
    int rc = small();
    char *said = text();
    if (rc)
        asked_put_err(&payload, rc, said);
    else
        wire_put_signed(&payload, 0);
    for (size_t i = 0; i < it->items && (!rc || row->keeps_facts); i++) {
        union device_call_room answer = {0};
        if (row->expect)
            row->expect(&it->asked[i], &answer);
        take_object(row->answer, &answer);
        if (it->call == DEVICE_CALL_OPEN)
            it->sm_count = ((struct device_limits *)(void *)&answer)->sm_count;
        if (row->fits && !row->fits(&it->asked[i], &answer, it->sm_count))
            give_up("an answer that does not fit its request");
        asked_put_answer(&payload, it->call, &it->asked[i], &answer);
        fields_fini(row->answer, &answer);
    }
    put(it, ENTRY_ANSWER, &payload);
    free(said);
}

static void take_gpu(struct record_file *file)
{
    struct importing it = {0};
    struct gpu_result gpu = {0};
    struct strbuf part = {0};
    struct err err = {0};
    uint32_t session = (uint32_t)number();
    bool closed = number();
    gpu.uuid = text();
    gpu.node = text();
    gpu.pci = text();
    gpu.index = small();
    gpu.name = text();
    gpu.model_key = text();
    gpu.rank = small();
    gpu.status = (enum gpu_status)number();
    gpu.reason = text();
    gpu.run.first_status = (enum gpu_status)number();
    gpu.run.first_reason = text();
    gpu.run.gpus_allocated = (uint32_t)number();
    for (const char *what; (what = word()) && *what != 'E';) {
        struct strbuf payload = {0};
        if (*what == 'M') {
            char *mark = text();
            wire_put_text(&payload, mark);
            put(&it, ENTRY_MARK, &payload);
            free(mark);
        } else if (*what == 'Q') {
            take_request(&it);
        } else if (*what == 'A') {
            take_answer(&it);
        } else if (*what == 'C') {
            put(&it, ENTRY_CLOSE, &payload);
        } else {
            give_up("an unknown word");
        }
    }
    record_put_gpu(&part, &gpu, session, it.body.data, it.body.length, closed);
    if (record_file_append(file, part.data, part.length, &err))
        give_up(err.text);
    gpu_result_fini(&gpu);
    strbuf_fini(&part);
    strbuf_fini(&it.body);
    free(it.asked);
}

static void take_survey(struct record_file *file)
{
    struct record_survey survey = {.nodes = (uint32_t)number()};
    struct err err = {0};
    survey.lost_ranks = (uint32_t)number();
    survey.bare_nodes = texts(&survey.bare_count);
    survey.unknown_count = (size_t)number();
    survey.unknown = mem_array(survey.unknown_count + 1, sizeof *survey.unknown);
    for (size_t i = 0; i < survey.unknown_count; i++) {
        survey.unknown[i].node = text();
        survey.unknown[i].rank = small();
        survey.unknown[i].status = (enum gpu_status)number();
        survey.unknown[i].reason = text();
        survey.unknown[i].run.gpus_allocated = (uint32_t)number();
    }
    if (record_file_finish(file, &survey, &err))
        give_up(err.text);
    record_survey_fini(&survey);
}

static struct record_file *take_provenance(const char *path)
{
    struct record_provenance p = {0};
    struct record_file *file = NULL;
    struct err err = {0};
    const char *what = word();
    if (!what || *what != 'P')
        give_up("not the words of a record");
    p.version = text();
    p.date = text();
    p.host = text();
    p.backend = text();
    p.command = texts(&p.command_count);
    p.seed = number();
    p.profile = (uint32_t)number();
    p.probes = text();
    p.measure_busy = number();
    p.config = text();
    p.config_text = text();
    p.ranks = (uint32_t)number();
    if (record_file_create(path, &p, &file, &err))
        give_up(err.text);
    record_provenance_fini(&p);
    return file;
}

int main(int argc, char **argv)
{
    struct device_source *source = NULL;
    struct err err = {0};
    if (argc != 2)
        give_up("usage: import OUT.gmr < WORDS");
    struct record_file *file = take_provenance(argv[1]);
    for (const char *what; (what = word());) {
        if (*what == 'G')
            take_gpu(file);
        else if (*what == 'S')
            take_survey(file);
        else
            give_up("an unknown word");
    }
    record_file_destroy(file);
    if (device_source_replay(argv[1], 0, 1, &source, &err) || replay_check(source, &err))
        give_up(err.text);
    device_source_destroy(source);
    return 0;
}
