/* Values inside a frame's payload: little-endian, every bound checked before use. */
#include "schema/wire.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

static const uint32_t TEXT_NULL = UINT32_MAX;

static void put_bytes(struct strbuf *buffer, uint64_t value, size_t count)
{
    char bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(unsigned char)(value >> (8 * i));
    strbuf_append(buffer, bytes, count);
}

void wire_put_u32(struct strbuf *buffer, uint32_t value)
{
    put_bytes(buffer, value, 4);
}

void wire_put_u64(struct strbuf *buffer, uint64_t value)
{
    put_bytes(buffer, value, 8);
}

void wire_put_f64(struct strbuf *buffer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_put_u64(buffer, bits);
}

void wire_put_text(struct strbuf *buffer, const char *text)
{
    if (!text) {
        wire_put_u32(buffer, TEXT_NULL);
        return;
    }
    size_t length = strlen(text);
    if (length > WIRE_TEXT_MAX) {
        buffer->failed = true;
        return;
    }
    wire_put_u32(buffer, (uint32_t)length);
    strbuf_append(buffer, text, length);
}

void wire_put_varint(struct strbuf *buffer, uint64_t value)
{
    char bytes[10];
    size_t count = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[count++] = (char)(unsigned char)(value | 0x80);
    bytes[count++] = (char)value;
    strbuf_append(buffer, bytes, count);
}

void wire_put_signed(struct strbuf *buffer, int64_t value)
{
    wire_put_varint(buffer, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

static uint64_t get_bytes(struct wire_reader *reader, size_t count)
{
    if (reader->bad || reader->length - reader->position < count) {
        reader->bad = true;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)reader->data[reader->position + i] << (8 * i);
    reader->position += count;
    return value;
}

/* The next bytes, or NULL if fewer are left. */
static const unsigned char *take_bytes(struct wire_reader *reader, size_t count)
{
    reader->bad |= reader->length - reader->position < count;
    if (reader->bad)
        return NULL;
    reader->position += count;
    return reader->data + reader->position - count;
}

static uint32_t load_u32(const unsigned char *data)
{
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

uint32_t wire_get_u32(struct wire_reader *reader)
{
    const unsigned char *data = take_bytes(reader, 4);
    return data ? load_u32(data) : 0;
}

uint64_t wire_get_u64(struct wire_reader *reader)
{
    const unsigned char *data = take_bytes(reader, 8);
    return data ? load_u32(data) | (uint64_t)load_u32(data + 4) << 32 : 0;
}

double wire_get_f64(struct wire_reader *reader)
{
    uint64_t bits = wire_get_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

char *wire_get_text(struct wire_reader *reader)
{
    uint32_t length = wire_get_u32(reader);
    if (reader->bad || length == TEXT_NULL)
        return NULL;
    const char *start = (const char *)reader->data + reader->position;
    if (reader->length - reader->position < length || memchr(start, '\0', length)) {
        reader->bad = true;
        return NULL;
    }
    if (reader->in_place) {
        /* Makes room for a NUL behind the text: moves it one byte, over the end of its length. */
        char *text = (char *)reader->data + reader->position - 1;
        memmove(text, text + 1, length);
        text[length] = '\0';
        reader->position += length;
        return text;
    }
    reader->position += length;
    return str_copy_n(start, length);
}

uint64_t wire_get_varint(struct wire_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = get_bytes(reader, 1);
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return reader->bad ? 0 : value;
    }
    reader->bad = true;
    return 0;
}

int64_t wire_get_signed(struct wire_reader *reader)
{
    uint64_t folded = wire_get_varint(reader);
    return (int64_t)((folded >> 1) ^ (folded & 1 ? UINT64_MAX : 0));
}

uint32_t wire_get_count(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = wire_get_u32(reader);
    if (!reader->bad && item_bytes && count > (reader->length - reader->position) / item_bytes)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

int wire_end(const struct wire_reader *reader, const char *what, struct err *err)
{
    if (reader->bad || reader->position != reader->length)
        return err_set(err, -EBADMSG, "malformed %s", what);
    return 0;
}

/* Limits the cost of a damaged worker: looking up a key is linear. With every character escaped, a
 * key must still fit into the 1024 characters that YAML allows. */
enum { KEY_MAX = 160, FACT_BYTES = 32 };

/* True if the fact has a value of its kind. */
static bool fact_is_sound(const struct fact *fact)
{
    if (fact->kind == FACT_REAL)
        return isfinite(fact->real);
    return fact->kind != FACT_TEXT || fact->text;
}

static void put_fact(struct strbuf *buffer, const struct fact *fact)
{
    bool sound = fact_is_sound(fact);
    enum fact_kind kind = sound ? fact->kind : FACT_UNKNOWN;
    wire_put_text(buffer, fact->key);
    wire_put_u32(buffer, (uint32_t)kind);
    wire_put_u32(buffer, kind == FACT_BOOL && fact->flag);
    wire_put_u64(buffer, kind == FACT_INT ? (uint64_t)fact->integer : 0);
    wire_put_f64(buffer, kind == FACT_REAL ? fact->real : 0);
    wire_put_text(buffer, sound ? fact->text : "no value");
    if (kind != FACT_NUMBERS && kind != FACT_TEXTS)
        return;
    wire_put_u32(buffer, fact->columns);
    wire_put_u32(buffer, fact->count);
    for (size_t i = 0; i < fact->count; i++)
        if (kind == FACT_NUMBERS)
            wire_put_f64(buffer, isinf(fact->numbers[i]) ? NAN : fact->numbers[i]); /* no value */
        else
            wire_put_text(buffer, fact->texts[i]);
}

void wire_put_facts(struct strbuf *buffer, const struct facts *facts)
{
    wire_put_u32(buffer, (uint32_t)facts->count);
    for (size_t i = 0; i < facts->count; i++)
        put_fact(buffer, &facts->items[i]);
}

unsigned wire_get_enum(struct wire_reader *reader, unsigned count)
{
    uint32_t value = wire_get_u32(reader);
    if (value >= count)
        reader->bad = true;
    return reader->bad ? 0 : value;
}

char *wire_get_key(struct wire_reader *reader)
{
    char *key = wire_get_text(reader);
    if (!key || !*key || strlen(key) > KEY_MAX)
        reader->bad = true;
    return key;
}

uint32_t wire_get_items(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = wire_get_count(reader, item_bytes);
    if (count > WIRE_ITEMS_MAX)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

static bool stands_before(const char *const *keys, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(keys[k], keys[i]) == 0)
            return true;
    return false;
}

/* A hash table of bits finds candidates; only if its bit is already set is a key compared with all
 * earlier ones. */
bool wire_repeats(const char *const *keys, size_t count)
{
    enum { MARKS = 4096 };
    uint64_t marks[MARKS / 64];
    if (count < 2)
        return false;
    memset(marks, 0, sizeof marks);
    for (size_t i = 0; i < count; i++) {
        size_t mark = str_hash(keys[i]) % MARKS;
        if (marks[mark / 64] >> mark % 64 & 1 && stands_before(keys, i))
            return true;
        marks[mark / 64] |= (uint64_t)1 << mark % 64;
    }
    return false;
}

/* The items that were read before a failure are in the fact. */
static void get_list(struct wire_reader *reader, struct fact *fact)
{
    bool numbers = fact->kind == FACT_NUMBERS;
    uint32_t columns = wire_get_u32(reader), count = wire_get_count(reader, numbers ? 8 : 4);
    if (columns && (!numbers || !count || columns > FACT_COLUMNS_MAX || count % columns))
        reader->bad = true;
    if (reader->bad)
        return;
    fact->columns = columns & FACT_COLUMNS_MAX;
    if (numbers)
        fact->numbers = mem_array(count, sizeof *fact->numbers);
    else
        fact->texts = mem_array(count, sizeof *fact->texts);
    for (; fact->count < count && !reader->bad; fact->count++)
        if (numbers) {
            fact->numbers[fact->count] = wire_get_f64(reader);
            reader->bad |= isinf(fact->numbers[fact->count]);
        } else {
            fact->texts[fact->count] = wire_get_text(reader);
            reader->bad |= !fact->texts[fact->count];
        }
}

static void get_fact(struct wire_reader *reader, struct fact *fact)
{
    fact->key = wire_get_key(reader);
    fact->kind = (enum fact_kind)wire_get_enum(reader, FACT_TEXTS + 1);
    bool flag = wire_get_enum(reader, 2);
    int64_t integer = (int64_t)wire_get_u64(reader);
    double real = wire_get_f64(reader);
    fact->text = wire_get_text(reader);
    if (fact->kind == FACT_BOOL)
        fact->flag = flag;
    else if (fact->kind == FACT_INT)
        fact->integer = integer;
    else if (fact->kind == FACT_REAL)
        fact->real = real;
    else if (fact->kind == FACT_NUMBERS || fact->kind == FACT_TEXTS)
        get_list(reader, fact);
    reader->bad |= !fact_is_sound(fact);
}

/* The strings were allocated for this list, so they are not copied. The count is raised before a
 * fact is read, so that a half-read one is released too. */
void wire_get_facts(struct wire_reader *reader, struct facts *facts)
{
    const char *keys[WIRE_ITEMS_MAX];
    uint32_t count = wire_get_items(reader, FACT_BYTES);
    if (!count)
        return;
    facts->items = mem_array(count, sizeof *facts->items);
    facts->capacity = count;
    while (facts->count < count && !reader->bad)
        get_fact(reader, &facts->items[facts->count++]);
    for (size_t i = 0; i < facts->count && !reader->bad; i++)
        keys[i] = facts->items[i].key;
    reader->bad |= !reader->bad && wire_repeats(keys, facts->count);
}
