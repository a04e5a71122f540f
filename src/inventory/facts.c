/* Named facts, kept in the order in which they were first set. */
#include "inventory/facts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void fact_fini(struct fact *fact)
{
    free(fact->key);
    free(fact->text);
}

static struct fact *find(const struct facts *facts, const char *key)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].key, key) == 0)
            return &facts->items[i];
    return NULL;
}

int facts_set(struct facts *facts, const struct fact *fact)
{
    struct fact copy = *fact;
    copy.key = copy.text = NULL;
    if (str_copy_to(&copy.key, fact->key) || str_copy_to(&copy.text, fact->text))
        goto no_memory;
    struct fact *slot = find(facts, copy.key);
    if (slot) {
        fact_fini(slot);
    } else {
        struct fact *grown =
            mem_grow(facts->items, &facts->capacity, facts->count + 1, sizeof *grown);
        if (!grown)
            goto no_memory;
        facts->items = grown;
        slot = &grown[facts->count++];
    }
    *slot = copy;
    return 0;

no_memory:
    fact_fini(&copy);
    return -ENOMEM;
}

/* facts_set copies the strings and does not change them, so these casts are safe. */
int facts_set_bool(struct facts *facts, const char *key, bool value)
{
    return facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_BOOL, .flag = value});
}

int facts_set_int(struct facts *facts, const char *key, int64_t value)
{
    return facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_INT, .integer = value});
}

int facts_set_real(struct facts *facts, const char *key, double value)
{
    return facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_REAL, .real = value});
}

int facts_set_text(struct facts *facts, const char *key, const char *value)
{
    return facts_set(facts,
                     &(struct fact){.key = (char *)key, .kind = FACT_TEXT, .text = (char *)value});
}

int facts_set_unknown(struct facts *facts, const char *key, const char *reason)
{
    return facts_set(
        facts, &(struct fact){.key = (char *)key, .kind = FACT_UNKNOWN, .text = (char *)reason});
}

void facts_remove(struct facts *facts, const char *key)
{
    size_t kept = 0;
    for (size_t i = 0; i < facts->count; i++) {
        if (strcmp(facts->items[i].key, key) != 0) {
            facts->items[kept++] = facts->items[i];
            continue;
        }
        free(facts->items[i].key);
        free(facts->items[i].text);
    }
    facts->count = kept;
}

const struct fact *facts_get(const struct facts *facts, const char *key)
{
    return find(facts, key);
}

const char *facts_text(const struct facts *facts, const char *key)
{
    const struct fact *fact = find(facts, key);
    return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

int64_t facts_int(const struct facts *facts, const char *key, int64_t otherwise)
{
    const struct fact *fact = find(facts, key);
    return fact && fact->kind == FACT_INT ? fact->integer : otherwise;
}

static bool is_number(const struct fact *fact)
{
    return fact->kind == FACT_INT || fact->kind == FACT_REAL;
}

static double number(const struct fact *fact)
{
    return fact->kind == FACT_INT ? (double)fact->integer : fact->real;
}

bool fact_equal(const struct fact *a, const struct fact *b)
{
    if (!str_equal(a->key, b->key))
        return false;
    if (a->kind == FACT_INT && b->kind == FACT_INT)
        return a->integer == b->integer;
    if (is_number(a) && is_number(b))
        return number(a) == number(b) || (isnan(number(a)) && isnan(number(b)));
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case FACT_BOOL:
        return a->flag == b->flag;
    case FACT_TEXT:
        return str_equal(a->text, b->text);
    default:
        return true;
    }
}

double fact_number(const struct fact *fact)
{
    if (!fact || (fact->kind != FACT_INT && fact->kind != FACT_REAL))
        return NAN;
    return fact->kind == FACT_INT ? (double)fact->integer : fact->real;
}

int facts_copy(struct facts *to, const struct facts *from)
{
    if (!from->count)
        return 0;
    to->items = mem_array(from->count, sizeof *to->items);
    if (!to->items)
        return -ENOMEM;
    to->capacity = from->count;
    for (size_t i = 0; i < from->count; i++) {
        struct fact *copy = &to->items[to->count++];
        *copy = from->items[i];
        copy->key = copy->text = NULL;
        if (str_copy_to(&copy->key, from->items[i].key) ||
            str_copy_to(&copy->text, from->items[i].text)) {
            facts_fini(to);
            return -ENOMEM;
        }
    }
    return 0;
}

void facts_fini(struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++)
        fact_fini(&facts->items[i]);
    free(facts->items);
    memset(facts, 0, sizeof *facts);
}

void facts_fini_list(struct facts *facts)
{
    free(facts->items);
    memset(facts, 0, sizeof *facts);
}
