/* What is derived from the description of a request or an answer. */
#include "device/fields.h"

#include <stdlib.h>
#include <string.h>

#include "schema/facts.h"
#include "schema/wire.h"

/* Elements of a list of which several take one byte, at most: a damaged record must not ask for
 * much memory. Other lists are as long as their bytes allow. */
enum { LIST_MAX = 1 << 20 };

/* Lists of two values, 0 and the largest one, begin with this instead of their first value. */
enum { RUNS = -1 };

static bool field_is_number(const struct field *field)
{
    return field->type <= FIELD_F64;
}

/* Whether it is one of the numbers that have a bit. */
static bool field_has_bits(const struct field *field)
{
    return field_is_number(field) && field->place <= FIELD_FIXED;
}

static bool fields_have_bits(const struct fields *fields)
{
    bool any = false;
    for (size_t r = 0; r < fields->count; r++)
        any |= field_has_bits(&fields->rows[r]);
    return any && !fields->whole;
}

static size_t field_bytes(const struct field *field)
{
    static const size_t bytes[] = {
        [FIELD_BOOL] = sizeof(bool),
        [FIELD_U16] = 2,
        [FIELD_U32] = 4,
        [FIELD_I32] = 4,
        [FIELD_U64] = 8,
        [FIELD_ENUM] = 4,
        [FIELD_WORD] = 4,
        [FIELD_F64] = 8,
        [FIELD_FACTS] = sizeof(struct facts),
    };
    return field->type == FIELD_STRUCT ? field->of->size : bytes[field->type];
}

static size_t field_count(const struct field *field, const void *object)
{
    const char *at = (const char *)object + field->count_offset;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    if (field->place == FIELD_SINGLE)
        return 1;
    if (field->place == FIELD_FIXED)
        return field->length;
    if (field->count_bytes == sizeof wide)
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&narrow, at, sizeof narrow);
    return narrow ? narrow : (size_t)wide;
}

/* The first element; NULL: a list that is not there. */
static char *field_first(const struct field *field, const void *object)
{
    char *at = (char *)object + field->offset, *first;
    if (field->place != FIELD_LIST)
        return at;
    memcpy((void *)&first, at, sizeof first);
    return first;
}

static uint64_t number_load(const struct field *field, const char *at)
{
    bool flag;
    uint16_t u16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    switch (field->type) {
    case FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        return flag;
    case FIELD_U16:
        memcpy(&u16, at, sizeof u16);
        return u16;
    case FIELD_I32:
        memcpy(&i32, at, sizeof i32);
        return (uint64_t)(int64_t)i32;
    case FIELD_U64:
    case FIELD_F64:
        memcpy(&u64, at, sizeof u64);
        return u64;
    case FIELD_WORD:
        memcpy(&u32, at, sizeof u32);
        return field->word(u32) ? str_hash(field->word(u32)) : 0;
    default:
        memcpy(&u32, at, sizeof u32);
        return u32;
    }
}

/* False for a value that the type does not hold. */
static bool number_store(const struct field *field, char *at, uint64_t value)
{
    bool flag = value != 0;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    switch (field->type) {
    case FIELD_BOOL:
        memcpy(at, &flag, sizeof flag);
        return value <= 1;
    case FIELD_U16:
        memcpy(at, &u16, sizeof u16);
        return value == u16;
    case FIELD_I32:
        memcpy(at, &u32, sizeof u32);
        return value == (uint64_t)(int64_t)(int32_t)u32;
    case FIELD_U64:
    case FIELD_F64:
        memcpy(at, &value, sizeof value);
        return true;
    case FIELD_WORD:
        u32 = 0;
        while (field->word(u32) && str_hash(field->word(u32)) != value)
            u32++;
        memcpy(at, &u32, sizeof u32);
        return true;
    case FIELD_ENUM:
        memcpy(at, &u32, sizeof u32);
        return value < field->name_count;
    default:
        memcpy(at, &u32, sizeof u32);
        return value == u32;
    }
}

void fields_fini(const struct fields *fields, void *object)
{
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        char *first = field_first(field, object);
        size_t count = field_count(field, object);
        if (field->place == FIELD_ARRAY && count > field->length)
            count = field->length;
        for (size_t i = 0; first && i < count && !field_is_number(field); i++) {
            if (field->type == FIELD_STRUCT)
                fields_fini(field->of, first + i * field->of->size);
            else
                facts_fini((struct facts *)(void *)first);
        }
        if (field->place == FIELD_LIST)
            free(first);
    }
    memset(object, 0, fields->size);
}

/* What is written or read: the struct, what is expected, and the element before it in its list. */
struct field_view {
    char *object;
    const char *expected, *before; /* NULL: none */
};

/* A number of a struct, and the value that needs no bit. */
static uint64_t number_base(const struct field *field, const struct field_view *view, size_t i)
{
    size_t at = field->offset + i * field_bytes(field);
    if (field->form != FIELD_PLAIN && view->before)
        return number_load(field, view->before + at);
    return view->expected ? number_load(field, view->expected + at) : 0;
}

static void number_put(struct strbuf *buffer, const struct field *field, bool first, uint64_t value,
                       uint64_t base)
{
    if (field->type == FIELD_F64)
        wire_put_u64(buffer, value);
    else if (field->form == FIELD_NEAR && !first)
        wire_put_signed(buffer, (int64_t)(value - base));
    else if (field->form == FIELD_RISES && !first)
        wire_put_varint(buffer, value - base);
    else
        wire_put_varint(buffer, field->type == FIELD_I32 ? value & UINT32_MAX : value);
}

static uint64_t number_get(struct wire_reader *reader, const struct field *field, bool first,
                           uint64_t base)
{
    if (field->type == FIELD_F64)
        return wire_get_u64(reader);
    if (field->form == FIELD_NEAR && !first)
        return base + (uint64_t)wire_get_signed(reader);
    uint64_t value = wire_get_varint(reader);
    if (field->form == FIELD_RISES && !first) {
        if (!value || base + value < base)
            reader->bad = true;
        return base + value;
    }
    return field->type == FIELD_I32 && value <= UINT32_MAX ? (uint64_t)(int64_t)(int32_t)value
                                                           : value;
}

static uint64_t bits_of(const struct fields *fields, const struct field_view *view)
{
    uint64_t bits = 0, bit = 1;
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        size_t count = field_has_bits(field) ? field_count(field, view->object) : 0;
        for (size_t i = 0; i < count; i++, bit <<= 1) {
            const char *at = view->object + field->offset + i * field_bytes(field);
            if (fields->whole || number_load(field, at) != number_base(field, view, i))
                bits |= bit;
        }
    }
    return bits;
}

static void struct_put(const struct fields *fields, const struct field_view *view, uint64_t bits,
                       struct strbuf *buffer);

/* Elements without lists of their own: runs of those that are as expected take two bytes. */
static bool fields_are_flat(const struct fields *fields)
{
    for (size_t r = 0; r < fields->count; r++)
        if (!field_has_bits(&fields->rows[r]))
            return false;
    return true;
}

static struct field_view view_of_element(const struct field *field, const struct field_view *view,
                                         size_t i, size_t back)
{
    char *first = field_first(field, view->object);
    const char *expected =
        view->expected && field->place != FIELD_LIST ? view->expected + field->offset : NULL;
    size_t size = field_bytes(field);
    return (struct field_view){.object = first + i * size,
                               .expected = expected ? expected + i * size : NULL,
                               .before = i >= back ? first + (i - back) * size : NULL};
}

static void structs_put(const struct field *field, const struct field_view *view,
                        struct strbuf *buffer)
{
    size_t count = field_count(field, view->object);
    bool runs = fields_are_flat(field->of) && !field->of->whole && field->place != FIELD_SINGLE;
    for (size_t i = 0; i < count;) {
        const struct field_view element = view_of_element(field, view, i++, 1);
        uint64_t bits = bits_of(field->of, &element);
        if (fields_have_bits(field->of))
            wire_put_varint(buffer, bits);
        size_t begin = i;
        while (runs && !bits && i < count) {
            const struct field_view next = view_of_element(field, view, i, 1);
            if (bits_of(field->of, &next))
                break;
            i++;
        }
        if (runs && !bits)
            wire_put_varint(buffer, i - begin);
        struct_put(field->of, &element, bits, buffer);
    }
}

/* Lengths of the runs of zeros, of the largest value, of zeros, ... */
static void runs_put(const struct field *field, const char *first, size_t count,
                     struct strbuf *buffer)
{
    bool high = false;
    wire_put_signed(buffer, RUNS);
    for (size_t i = 0; i < count; high = !high) {
        size_t begin = i;
        while (i < count && (number_load(field, first + i * field_bytes(field)) != 0) == high)
            i++;
        wire_put_varint(buffer, i - begin);
    }
}

static bool has_runs(const struct field *field, const char *first, size_t count)
{
    bool two = count > 0 && field->form == FIELD_NEAR && field->type == FIELD_U32;
    for (size_t i = 0; two && i < count; i++) {
        uint64_t value = number_load(field, first + i * field_bytes(field));
        two = value == 0 || value == UINT32_MAX;
    }
    return two;
}

static void numbers_put(const struct field *field, const void *object, struct strbuf *buffer)
{
    const char *first = field_first(field, object);
    size_t count = field_count(field, object), bytes = field_bytes(field);
    size_t lag = field->lag ? field->lag : 1;
    if (has_runs(field, first, count)) {
        runs_put(field, first, count, buffer);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t base = i >= lag ? number_load(field, first + (i - lag) * bytes) : 0;
        number_put(buffer, field, false, number_load(field, first + i * bytes), base);
    }
}

static void struct_put(const struct fields *fields, const struct field_view *view, uint64_t bits,
                       struct strbuf *buffer)
{
    uint64_t bit = 1;
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        size_t count = field_has_bits(field) ? field_count(field, view->object) : 0;
        for (size_t i = 0; i < count; i++, bit <<= 1) {
            const char *at = view->object + field->offset + i * field_bytes(field);
            if (bits & bit)
                number_put(buffer, field, !view->before, number_load(field, at),
                           number_base(field, view, i));
        }
    }
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        if (field->type == FIELD_STRUCT)
            structs_put(field, view, buffer);
        else if (field->type == FIELD_FACTS)
            wire_put_facts(buffer,
                           (const struct facts *)(const void *)(view->object + field->offset));
        else if (!field_has_bits(field))
            numbers_put(field, view->object, buffer);
    }
}

void fields_put(const struct fields *fields, const void *object, const void *expected,
                struct strbuf *buffer)
{
    const struct field_view view = {.object = (char *)object, .expected = expected};
    uint64_t bits = bits_of(fields, &view);
    if (fields_have_bits(fields))
        wire_put_varint(buffer, bits);
    struct_put(fields, &view, bits, buffer);
}

static void struct_get(const struct fields *fields, const struct field_view *view, uint64_t bits,
                       struct wire_reader *reader);

/* Makes room for a list of `count` elements; NULL: there are none, or they cannot be there. */
static char *list_allocate(const struct field *field, void *object, size_t count, bool dense,
                           struct wire_reader *reader)
{
    size_t most = dense ? reader->length - reader->position : LIST_MAX;
    if (count > most)
        reader->bad = true;
    if (reader->bad || !count)
        return NULL;
    char *first = mem_array(count, field_bytes(field));
    memcpy((char *)object + field->offset, &first, sizeof first);
    return first;
}

static void structs_get(const struct field *field, const struct field_view *view,
                        struct wire_reader *reader)
{
    size_t count = field_count(field, view->object);
    bool flat = fields_are_flat(field->of) && !field->of->whole;
    bool has_bits = fields_have_bits(field->of);
    uint64_t same = 0; /* further elements that are as expected */
    if (field->place == FIELD_ARRAY && count > field->length)
        reader->bad = true;
    if (field->place == FIELD_LIST && !list_allocate(field, view->object, count, !flat, reader))
        return;
    for (size_t i = 0; i < count && !reader->bad; i++) {
        const struct field_view element = view_of_element(field, view, i, 1);
        uint64_t bits = same || !has_bits ? 0 : wire_get_varint(reader);
        if (same)
            same--;
        else if (flat && !bits && field->place != FIELD_SINGLE)
            same = wire_get_varint(reader);
        struct_get(field->of, &element, bits, reader);
    }
    if (same)
        reader->bad = true;
}

static void runs_get(uint32_t *items, size_t count, struct wire_reader *reader)
{
    size_t at = 0;
    for (bool high = false; at < count && !reader->bad; high = !high) {
        uint64_t run = wire_get_varint(reader);
        if (run > count - at || (at && !run))
            reader->bad = true;
        else if (high)
            memset(items + at, 0xff, (size_t)run * sizeof *items); /* else it is 0 already */
        at += reader->bad ? 0 : (size_t)run;
    }
}

/* The usual list, and by far the longest. */
static void u32_near_get(uint32_t *items, size_t count, struct wire_reader *reader)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count && !reader->bad; i++) {
        value += (uint64_t)wire_get_signed(reader);
        if (value > UINT32_MAX)
            reader->bad = true;
        items[i] = (uint32_t)value;
    }
}

static void numbers_get(const struct field *field, void *object, struct wire_reader *reader)
{
    size_t count = field_count(field, object), bytes = field_bytes(field);
    size_t lag = field->lag ? field->lag : 1;
    bool near = field->form == FIELD_NEAR && field->type == FIELD_U32 && lag == 1;
    struct wire_reader ahead = *reader;
    bool runs = count && near && wire_get_signed(&ahead) == RUNS;
    if (runs)
        *reader = ahead;
    char *first = list_allocate(field, object, count, !runs, reader);
    if (!first)
        return;
    if (near) {
        if (runs)
            runs_get((uint32_t *)(void *)first, count, reader);
        else
            u32_near_get((uint32_t *)(void *)first, count, reader);
        return;
    }
    for (size_t i = 0; i < count && !reader->bad; i++) {
        uint64_t base = i >= lag ? number_load(field, first + (i - lag) * bytes) : 0;
        if (!number_store(field, first + i * bytes, number_get(reader, field, false, base)))
            reader->bad = true;
    }
}

/* Sets every fact that is recorded. */
static void facts_take(struct facts *facts, struct wire_reader *reader)
{
    struct facts recorded = {0};
    wire_get_facts(reader, &recorded);
    for (size_t i = 0; i < recorded.count && !reader->bad; i++)
        facts_set(facts, &recorded.items[i]);
    facts_fini(&recorded);
}

static void struct_get(const struct fields *fields, const struct field_view *view, uint64_t bits,
                       struct wire_reader *reader)
{
    size_t bit = 0;
    for (size_t r = 0; r < fields->count && !reader->bad; r++) {
        const struct field *field = &fields->rows[r];
        size_t count = field_has_bits(field) ? field_count(field, view->object) : 0;
        bool follows = field->form != FIELD_PLAIN && view->before;
        for (size_t i = 0; i < count && !reader->bad; i++, bit++) {
            char *at = view->object + field->offset + i * field_bytes(field);
            bool written = fields->whole || bits >> bit & 1;
            if (!written && !follows)
                continue; /* it holds what is expected */
            const struct field_view based = {.expected = view->object, .before = view->before};
            uint64_t value = number_base(field, &based, i);
            if (written)
                value = number_get(reader, field, !view->before, value);
            if (!number_store(field, at, value))
                reader->bad = true;
        }
    }
    if (bit < 64 && bits >> bit)
        reader->bad = true; /* of a row that is not known here */
    for (size_t r = 0; r < fields->count && !reader->bad; r++) {
        const struct field *field = &fields->rows[r];
        if (field->type == FIELD_STRUCT)
            structs_get(field, view, reader);
        else if (field->type == FIELD_FACTS)
            facts_take((struct facts *)(void *)(view->object + field->offset), reader);
        else if (!field_has_bits(field))
            numbers_get(field, view->object, reader);
    }
}

void fields_get(const struct fields *fields, struct wire_reader *reader, void *object)
{
    const struct field_view view = {.object = object};
    struct_get(fields, &view, fields_have_bits(fields) ? wire_get_varint(reader) : 0, reader);
}

size_t fields_number_count(const struct fields *fields)
{
    size_t count = 0;
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        size_t length = field->length ? field->length : 1;
        count += length * (field->type == FIELD_STRUCT ? fields_number_count(field->of) : 1);
    }
    return count;
}

static uint64_t *numbers_append(const struct fields *fields, const void *object, uint64_t *numbers)
{
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        size_t length = field->length ? field->length : 1, used = field_count(field, object);
        for (size_t i = 0; i < length; i++) {
            const char *at = (const char *)object + field->offset + i * field_bytes(field);
            if (i >= used) {
                size_t skipped = field->type == FIELD_STRUCT ? fields_number_count(field->of) : 1;
                memset(numbers, 0, skipped * sizeof *numbers);
                numbers += skipped;
            } else if (field->type == FIELD_STRUCT) {
                numbers = numbers_append(field->of, at, numbers);
            } else {
                *numbers++ = number_load(field, at);
            }
        }
    }
    return numbers;
}

void fields_to_numbers(const struct fields *fields, const void *object, uint64_t *numbers)
{
    numbers_append(fields, object, numbers);
}

static const uint64_t *numbers_take(const struct fields *fields, const uint64_t *numbers,
                                    void *object, bool *good)
{
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        size_t length = field->length ? field->length : 1;
        *good = *good && field_count(field, object) <= length;
        for (size_t i = 0; i < length; i++) {
            char *at = (char *)object + field->offset + i * field_bytes(field);
            if (field->type == FIELD_STRUCT)
                numbers = numbers_take(field->of, numbers, at, good);
            else
                *good = number_store(field, at, *numbers++) && *good;
        }
    }
    return numbers;
}

bool fields_from_numbers(const struct fields *fields, const uint64_t *numbers, void *object)
{
    bool good = true;
    numbers_take(fields, numbers, object, &good);
    return good;
}

static void number_describe(const struct field *field, const char *at, struct strbuf *text)
{
    uint64_t value = number_load(field, at);
    uint32_t index = 0;
    size_t key = strlen(field->key);
    if (field->type == FIELD_WORD)
        memcpy(&index, at, sizeof index);
    if (field->type == FIELD_WORD)
        strbuf_puts(text, field->word(index) ? field->word(index) : "?");
    else if (field->type == FIELD_ENUM)
        strbuf_puts(text, value < field->name_count ? field->names[value] : "?");
    else if (key > 5 && strcmp(field->key + key - 5, "bytes") == 0 && value % 1024 == 0)
        strbuf_printf(text, "%llu KiB", (unsigned long long)value / 1024);
    else
        strbuf_printf(text, "%lld", (long long)value);
}

void fields_describe(const struct fields *fields, const void *object, struct strbuf *out_text)
{
    const char *comma = "";
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        for (size_t i = 0; i < field_count(field, object); i++) {
            const char *at = (const char *)object + field->offset + i * field_bytes(field);
            bool zero = field_is_number(field) && field->type != FIELD_ENUM &&
                        field->type != FIELD_WORD && number_load(field, at) == 0;
            if (zero)
                continue;
            strbuf_printf(out_text, "%s%s ", comma, field->key);
            if (field->type == FIELD_STRUCT) {
                strbuf_puts(out_text, "(");
                fields_describe(field->of, at, out_text);
                strbuf_puts(out_text, ")");
            } else {
                number_describe(field, at, out_text);
            }
            comma = ", ";
        }
    }
}

void fields_document(const struct fields *fields, struct strbuf *out_text)
{
    static const char *const types[FIELD_FACTS + 1] = {
        [FIELD_BOOL] = " yes/no",
        [FIELD_WORD] = " hash of a name",
        [FIELD_F64] = " real",
        [FIELD_FACTS] = " facts",
    };
    static const char *const forms[] = {"", " (same)", " (near)", " (rises)"};
    for (size_t r = 0; r < fields->count; r++) {
        const struct field *field = &fields->rows[r];
        strbuf_printf(out_text, "%s`%s`", r ? ", " : "", field->key);
        if (field->place == FIELD_FIXED || field->place == FIELD_ARRAY)
            strbuf_printf(out_text, "[%zu]", field->length);
        if (field->place == FIELD_LIST)
            strbuf_puts(out_text, "[]");
        for (uint32_t i = 0; field->type == FIELD_ENUM && i < field->name_count; i++)
            strbuf_printf(out_text, "%s%s", i ? "/" : " ", field->names[i]);
        strbuf_puts(out_text, types[field->type] ? types[field->type] : "");
        strbuf_puts(out_text, field->lag == 2 ? " (near the last but one)" : forms[field->form]);
        if (field->type != FIELD_STRUCT)
            continue;
        strbuf_puts(out_text, field->of->whole ? " {whole: " : " {");
        fields_document(field->of, out_text);
        strbuf_puts(out_text, "}");
    }
}

void fields_visit_facts(const struct fields *fields, void *object,
                        void (*visit)(struct facts *facts, void *user), void *user)
{
    for (size_t r = 0; r < fields->count; r++)
        if (fields->rows[r].type == FIELD_FACTS)
            visit((struct facts *)(void *)((char *)object + fields->rows[r].offset), user);
}
