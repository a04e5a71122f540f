/* The table of device calls: every call's requests and answers, filled with all kinds of numbers,
 * come back. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/calls.h"
#include "schema/facts.h"

static struct rng rng;

/* Often 0 or small, sometimes as large as the type allows. */
static uint64_t some_number(uint64_t most)
{
    switch (rng_below(&rng, 4)) {
    case 0:
        return 0;
    case 1:
        return most;
    case 2:
        return rng_below(&rng, 3) % (most + (most < UINT64_MAX));
    default:
        return most == UINT64_MAX ? rng_next(&rng) : rng_below(&rng, most + 1);
    }
}

static void fill(const struct fields *fields, void *object, const void *before);

static void fill_number(const struct field *field, char *at, uint64_t before)
{
    const uint64_t most = field->type == FIELD_BOOL   ? 1
                          : field->type == FIELD_U16  ? UINT16_MAX
                          : field->type == FIELD_ENUM ? field->name_count - 1
                          : field->type == FIELD_WORD ? 3
                          : field->type == FIELD_U64  ? UINT64_MAX
                                                      : UINT32_MAX;
    uint64_t value = some_number(most);
    if (field->form == FIELD_RISES)
        value = before + 1 + rng_below(&rng, 200);
    if (field->type == FIELD_F64) {
        double real = rng_below(&rng, 3) ? rng_normal(&rng) : 0;
        memcpy(at, &real, sizeof real);
    } else if (field->type == FIELD_BOOL) {
        bool flag = value;
        memcpy(at, &flag, sizeof flag);
    } else { /* little-endian, as all machines that this runs on */
        memcpy(at, &value, field->type == FIELD_U64 ? 8 : field->type == FIELD_U16 ? 2 : 4);
    }
}

/* Counts are filled before their lists: small ones. */
static size_t fill_count(const struct field *field, char *object)
{
    uint64_t count = rng_below(&rng, field->place == FIELD_ARRAY ? field->length + 1 : 40);
    memcpy(object + field->count_offset, &count, field->count_bytes);
    return (size_t)count;
}

static size_t number_bytes(enum field_type type)
{
    return type == FIELD_BOOL                       ? sizeof(bool)
           : type == FIELD_U16                      ? 2
           : type == FIELD_U64 || type == FIELD_F64 ? 8
                                                    : 4;
}

static void fill_list(const struct field *field, char *object)
{
    size_t count = fill_count(field, object);
    size_t bytes = field->of ? field->of->size : number_bytes(field->type);
    char *first = object + field->offset;
    bool two_values = rng_below(&rng, 2);
    if (field->place == FIELD_LIST) {
        first = count ? mem_array(count, bytes) : NULL;
        memcpy(object + field->offset, &first, sizeof first);
    }
    for (size_t i = 0; i < count; i++) {
        if (field->of)
            fill(field->of, first + i * bytes, i ? first + (i - 1) * bytes : NULL);
        else if (two_values && field->type == FIELD_U32)
            memset(first + i * bytes, rng_below(&rng, 5) ? 0 : 0xff, bytes);
        else
            fill_number(field, first + i * bytes, 0);
    }
}

static void fill(const struct fields *fields, void *object, const void *before)
{
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        char *at = (char *)object + field->offset;
        uint16_t last = 0;
        if (before && field->form == FIELD_RISES)
            memcpy(&last, (const char *)before + field->offset, sizeof last);
        if (before && field->form && rng_below(&rng, 3) && field->place == FIELD_SINGLE &&
            field->form != FIELD_RISES)
            memcpy(at, (const char *)before + field->offset, number_bytes(field->type));
        else if (field->type == FIELD_FACTS)
            facts_set_int((struct facts *)(void *)at, "fact", (int64_t)rng_below(&rng, 9));
        else if (field->place >= FIELD_ARRAY)
            fill_list(field, object);
        else if (field->type == FIELD_STRUCT)
            fill(field->of, at, NULL);
        else
            for (size_t i = 0; i < (field->length ? field->length : 1); i++)
                fill_number(field, at + i * number_bytes(field->type), last);
    }
}

static void answers_come_back(void **state)
{
    (void)state;
    enum { ROUNDS = 60 };
    rng_init(&rng, 1, "answers");
    for (int call = 0; call < DEVICE_CALL_COUNT; call++)
        for (int round = 0; round < ROUNDS; round++) {
            const struct fields *fields = device_call_row((enum device_call)call)->answer;
            union device_call_room object = {0}, back = {0};
            struct strbuf bytes = {0}, again = {0};
            assert_in_range(fields->size, 1, sizeof object);
            fill(fields, &object, NULL);
            if (call == DEVICE_CALL_BATCH) { /* its count follows from the job */
                ((struct device_answer *)(void *)&back)->sample_count =
                    ((struct device_answer *)(void *)&object)->sample_count;
            }
            fields_put(fields, &object, NULL, &bytes);
            struct wire_reader reader = {.data =
                                             (const unsigned char *)(bytes.data ? bytes.data : ""),
                                         .length = bytes.length};
            fields_get(fields, &reader, &back);
            if (reader.bad || reader.position != reader.length)
                fail_msg("%s, round %d: cannot be read",
                         device_call_row((enum device_call)call)->name, round);
            fields_put(fields, &back, NULL, &again);
            assert_int_equal(again.length, bytes.length);
            if (bytes.length)
                assert_memory_equal(again.data, bytes.data, bytes.length);
            /* Every byte that is missing at the end is noticed. */
            for (size_t length = 0; length < bytes.length && round < 4; length++) {
                union device_call_room cut = {0};
                struct wire_reader less = {.data = reader.data, .length = length};
                if (call == DEVICE_CALL_BATCH)
                    ((struct device_answer *)(void *)&cut)->sample_count =
                        ((struct device_answer *)(void *)&object)->sample_count;
                fields_get(fields, &less, &cut);
                assert_true(less.bad);
                fields_fini(fields, &cut);
            }
            fields_fini(fields, &object);
            fields_fini(fields, &back);
            strbuf_fini(&bytes);
            strbuf_fini(&again);
        }
}

static void requests_come_back(void **state)
{
    (void)state;
    rng_init(&rng, 1, "requests");
    for (int call = 0; call < DEVICE_CALL_COUNT; call++)
        for (int round = 0; round < 60; round++) {
            const struct fields *fields = device_call_row((enum device_call)call)->asked;
            union device_call_room object = {0}, back = {0};
            uint64_t numbers[FIELDS_NUMBERS_MAX], again[FIELDS_NUMBERS_MAX];
            struct strbuf text = {0};
            if (!fields)
                continue;
            assert_in_range(fields->size, 1, sizeof object);
            assert_in_range(fields_number_count(fields), 1, FIELDS_NUMBERS_MAX);
            fill(fields, &object, NULL);
            fields_to_numbers(fields, &object, numbers);
            assert_true(fields_from_numbers(fields, numbers, &back));
            fields_to_numbers(fields, &back, again);
            assert_memory_equal(numbers, again, fields_number_count(fields) * sizeof *numbers);
            device_call_describe((enum device_call)call, &back, &text);
            assert_true(text.length > 0);
            strbuf_fini(&text);
        }
}

/* A value that the type does not hold: no recorder wrote it. */
static void numbers_out_of_range(void **state)
{
    (void)state;
    const struct fields *fields = device_call_row(DEVICE_CALL_STREAM)->asked;
    const struct device_stream stream = {.kind = DEVICE_STREAM_TRIAD, .threads = UINT32_MAX};
    struct device_stream back;
    uint64_t numbers[FIELDS_NUMBERS_MAX];
    fields_to_numbers(fields, &stream, numbers);
    assert_true(fields_from_numbers(fields, numbers, &back));
    numbers[0]++; /* no such kind */
    assert_false(fields_from_numbers(fields, numbers, &back));
    numbers[0] = 0;
    numbers[5]++; /* more than 32 bits of threads */
    assert_false(fields_from_numbers(fields, numbers, &back));
}

/* A row that is added at the end of a table is 0 in older records; a newer record is refused. */
static void rows_can_be_added(void **state)
{
    (void)state;
    static const struct field rows[] = {{FIELD(struct device_code_answer, cycles, U64)},
                                        {FIELD(struct device_code_answer, machine, U64)},
                                        {FIELD(struct device_code_answer, most, U64)}};
    const struct fields older = {
        .size = sizeof(struct device_code_answer), .rows = rows, .count = 2};
    const struct fields newer = {FIELDS(struct device_code_answer, rows)};
    const struct device_code_answer answer = {5, 6, 7};
    for (int grown = 0; grown < 2; grown++) {
        struct device_code_answer back = {0};
        struct strbuf bytes = {0};
        fields_put(grown ? &older : &newer, &answer, NULL, &bytes);
        struct wire_reader reader = {.data = (const unsigned char *)bytes.data,
                                     .length = bytes.length};
        fields_get(grown ? &newer : &older, &reader, &back);
        assert_int_equal(reader.bad, !grown);
        if (grown)
            assert_true(back.cycles == 5 && back.machine == 6 && back.most == 0);
        strbuf_fini(&bytes);
    }
}

/* A list that says it is long takes no memory before its bytes are there. */
static void counts_are_checked(void **state)
{
    (void)state;
    static const enum device_call calls[] = {DEVICE_CALL_MEMORY, DEVICE_CALL_CHECK,
                                             DEVICE_CALL_SM_MAP, DEVICE_CALL_CLUSTER,
                                             DEVICE_CALL_LOAD};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const struct fields *fields = device_call_row(calls[i])->answer;
        union device_call_room answer = {0};
        struct strbuf bytes = {0};
        wire_put_varint(&bytes, 0x3f); /* the first six numbers, or as many as there are */
        for (int k = 0; k < 6; k++)
            wire_put_varint(&bytes, k < 3 ? UINT64_C(1) << 31 : 0);
        struct wire_reader reader = {.data = (const unsigned char *)bytes.data,
                                     .length = bytes.length};
        fields_get(fields, &reader, &answer);
        assert_true(reader.bad);
        fields_fini(fields, &answer);
        strbuf_fini(&bytes);
    }
}

/* docs/records.md has the table as it is. */
static void the_document_is_right(void **state)
{
    (void)state;
    struct strbuf table = {0}, text = {0};
    char block[4096];
    FILE *file = fopen(RECORDS_DOC, "r");
    assert_non_null(file);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
        strbuf_append(&text, block, n);
    fclose(file);
    device_call_document(&table);
    if (!strstr(text.data, table.data)) {
        fputs(table.data, stderr);
        fail_msg("docs/records.md does not have this table");
    }
    strbuf_fini(&table);
    strbuf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_back),    cmocka_unit_test(requests_come_back),
        cmocka_unit_test(numbers_out_of_range), cmocka_unit_test(rows_can_be_added),
        cmocka_unit_test(counts_are_checked),   cmocka_unit_test(the_document_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
