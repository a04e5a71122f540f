/* The binary form of facts: every value is checked; keys and counts are limited. */
#include "inventory/wire/facts_wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Limits the cost of a damaged worker: looking up a key is linear. With every character escaped, a
 * key must still fit into the 1024 characters that YAML allows. */
enum { KEY_MAX = 160, FACT_BYTES = 32 };

/* True if the fact has a value of its kind. */
static bool is_sound(const struct fact *fact)
{
    if (fact->kind == FACT_REAL)
        return isfinite(fact->real);
    return fact->kind != FACT_TEXT || fact->text;
}

static void put_fact(struct strbuf *buffer, const struct fact *fact)
{
    bool sound = is_sound(fact);
    wire_put_text(buffer, fact->key);
    wire_put_u32(buffer, (uint32_t)(sound ? fact->kind : FACT_UNKNOWN));
    wire_put_u32(buffer, fact->flag);
    wire_put_u64(buffer, (uint64_t)fact->integer);
    wire_put_f64(buffer, fact->real);
    wire_put_text(buffer, sound ? fact->text : "no value");
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

static uint32_t hash(const char *text)
{
    uint32_t value = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
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
        uint32_t mark = hash(keys[i]) % MARKS;
        if (marks[mark / 64] >> mark % 64 & 1 && stands_before(keys, i))
            return true;
        marks[mark / 64] |= (uint64_t)1 << mark % 64;
    }
    return false;
}

static struct fact get_fact(struct wire_reader *reader)
{
    struct fact fact = {.key = wire_get_key(reader)};
    fact.kind = (enum fact_kind)wire_get_enum(reader, FACT_TEXT + 1);
    fact.flag = wire_get_enum(reader, 2);
    fact.integer = (int64_t)wire_get_u64(reader);
    fact.real = wire_get_f64(reader);
    fact.text = wire_get_text(reader);
    reader->bad |= !is_sound(&fact);
    return fact;
}

static void append(struct wire_reader *reader, struct facts *facts, uint32_t count)
{
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        const struct fact fact = get_fact(reader);
        if (!reader->bad) {
            facts->items[facts->count++] = fact;
            continue;
        }
        if (!reader->in_place) {
            free(fact.key);
            free(fact.text);
        }
    }
}

/* The strings were allocated for this list, so they are not copied. */
void wire_get_facts(struct wire_reader *reader, struct facts *facts)
{
    const char *keys[WIRE_ITEMS_MAX];
    uint32_t count = wire_get_items(reader, FACT_BYTES);
    if (!count)
        return;
    facts->items = mem_array(count, sizeof *facts->items);
    if (!facts->items) {
        wire_no_memory(reader);
        return;
    }
    facts->capacity = count;
    append(reader, facts, count);
    for (size_t i = 0; i < facts->count; i++)
        keys[i] = facts->items[i].key;
    reader->bad |= wire_repeats(keys, facts->count);
}
