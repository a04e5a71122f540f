/* Named facts, kept in the order in which they were first set. */
#include "schema/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Releases a list; texts: also the texts in it. */
static void fact_fini_list(struct fact *fact, bool texts)
{
    if (fact->kind == FACT_TEXTS) {
        for (size_t i = 0; i < fact->count && texts; i++)
            free(fact->texts[i]);
        free(fact->texts);
    } else if (fact->kind == FACT_NUMBERS) {
        free(fact->numbers);
    }
}

static void fact_fini(struct fact *fact)
{
    fact_fini_list(fact, true);
    free(fact->key);
    free(fact->text);
}

void fact_clear(struct fact *fact)
{
    char *key = fact->key;
    fact->key = NULL;
    fact_fini(fact);
    *fact = (struct fact){.key = key};
}

/* A copy of a fact that owns its memory. */
static struct fact fact_copy(const struct fact *fact)
{
    struct fact copy = *fact;
    copy.key = str_copy(fact->key);
    copy.text = str_copy(fact->text);
    if (fact->kind == FACT_NUMBERS) {
        copy.numbers = mem_array(fact->count, sizeof *copy.numbers);
        if (fact->count)
            memcpy(copy.numbers, fact->numbers, fact->count * sizeof *copy.numbers);
    } else if (fact->kind == FACT_TEXTS) {
        copy.texts = mem_array(fact->count, sizeof *copy.texts);
        for (size_t i = 0; i < fact->count; i++)
            copy.texts[i] = str_copy(fact->texts[i]);
    }
    return copy;
}

static struct fact *find_fact(const struct facts *facts, const char *key)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].key, key) == 0)
            return &facts->items[i];
    return NULL;
}

void facts_add(struct facts *facts, const struct fact *fact)
{
    facts->items = mem_grow(facts->items, &facts->capacity, facts->count + 1, sizeof *facts->items);
    facts->items[facts->count++] = *fact;
}

void facts_move(struct facts *facts, const struct fact *fact)
{
    struct fact *slot = find_fact(facts, fact->key);
    if (!slot) {
        facts_add(facts, fact);
        return;
    }
    fact_fini(slot);
    *slot = *fact;
}

void facts_set(struct facts *facts, const struct fact *fact)
{
    struct fact copy = fact_copy(fact);
    facts_move(facts, &copy);
}

/* facts_set copies the strings and does not change them, so these casts are safe. */
void facts_set_bool(struct facts *facts, const char *key, bool value)
{
    facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_BOOL, .flag = value});
}

void facts_set_int(struct facts *facts, const char *key, int64_t value)
{
    facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_INT, .integer = value});
}

void facts_set_real(struct facts *facts, const char *key, double value)
{
    facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_REAL, .real = value});
}

void facts_set_text(struct facts *facts, const char *key, const char *value)
{
    facts_set(facts, &(struct fact){.key = (char *)key, .kind = FACT_TEXT, .text = (char *)value});
}

void facts_set_unknown(struct facts *facts, const char *key, const char *reason)
{
    facts_set(facts,
              &(struct fact){.key = (char *)key, .kind = FACT_UNKNOWN, .text = (char *)reason});
}

void facts_set_numbers(struct facts *facts, const char *key, const double *values, size_t count)
{
    facts_set(facts, &(struct fact){.key = (char *)key,
                                    .kind = FACT_NUMBERS,
                                    .count = (uint32_t)count,
                                    .numbers = (double *)values});
}

void facts_set_rows(struct facts *facts, const char *key, const double *values, size_t rows,
                    size_t columns)
{
    facts_set(facts, &(struct fact){.key = (char *)key,
                                    .kind = FACT_NUMBERS,
                                    .columns = columns & FACT_COLUMNS_MAX,
                                    .count = (uint32_t)(rows * columns),
                                    .numbers = (double *)values});
}

void facts_set_texts(struct facts *facts, const char *key, const char *const *texts, size_t count)
{
    facts_set(facts, &(struct fact){.key = (char *)key,
                                    .kind = FACT_TEXTS,
                                    .count = (uint32_t)count,
                                    .texts = (char **)texts});
}

void facts_remove(struct facts *facts, const char *key)
{
    size_t kept = 0;
    for (size_t i = 0; i < facts->count; i++) {
        if (strcmp(facts->items[i].key, key) != 0) {
            facts->items[kept++] = facts->items[i];
            continue;
        }
        fact_fini(&facts->items[i]);
    }
    facts->count = kept;
}

const struct fact *facts_get(const struct facts *facts, const char *key)
{
    return find_fact(facts, key);
}

const char *facts_text(const struct facts *facts, const char *key)
{
    const struct fact *fact = find_fact(facts, key);
    return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

const double *facts_numbers(const struct facts *facts, const char *key, size_t *out_count)
{
    const struct fact *fact = find_fact(facts, key);
    if (!fact || fact->kind != FACT_NUMBERS || fact->columns)
        return NULL;
    *out_count = fact->count;
    return fact->numbers;
}

const double *facts_rows(const struct facts *facts, const char *key, size_t *out_rows,
                         size_t *out_columns)
{
    const struct fact *fact = find_fact(facts, key);
    if (!fact || fact->kind != FACT_NUMBERS || !fact->columns)
        return NULL;
    *out_rows = fact->count / fact->columns;
    *out_columns = fact->columns;
    return fact->numbers;
}

char *const *facts_texts(const struct facts *facts, const char *key, size_t *out_count)
{
    const struct fact *fact = find_fact(facts, key);
    if (!fact || fact->kind != FACT_TEXTS)
        return NULL;
    *out_count = fact->count;
    return fact->texts;
}

int64_t facts_int(const struct facts *facts, const char *key, int64_t otherwise)
{
    const struct fact *fact = find_fact(facts, key);
    return fact && fact->kind == FACT_INT ? fact->integer : otherwise;
}

double facts_rounded(double value, int digits)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return isfinite(value) ? strtod(text, NULL) + 0.0 : NAN; /* never -0 */
}

double facts_decimals(double value, int digits)
{
    char text[400];
    snprintf(text, sizeof text, "%.*f", digits, value);
    return isfinite(value) ? strtod(text, NULL) + 0.0 : NAN; /* never -0 */
}

static bool is_number(const struct fact *fact)
{
    return fact->kind == FACT_INT || fact->kind == FACT_REAL;
}

double fact_number(const struct fact *fact)
{
    if (!fact || !is_number(fact))
        return NAN;
    return fact->kind == FACT_INT ? (double)fact->integer : fact->real;
}

static bool numbers_equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool lists_equal(const struct fact *a, const struct fact *b)
{
    if (a->count != b->count || a->columns != b->columns)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->kind == FACT_NUMBERS ? !numbers_equal(a->numbers[i], b->numbers[i])
                                    : !str_equal(a->texts[i], b->texts[i]))
            return false;
    return true;
}

bool fact_equal(const struct fact *a, const struct fact *b)
{
    if (!str_equal(a->key, b->key))
        return false;
    if (a->kind == FACT_INT && b->kind == FACT_INT)
        return a->integer == b->integer;
    if (is_number(a) && is_number(b))
        return numbers_equal(fact_number(a), fact_number(b));
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case FACT_BOOL:
        return a->flag == b->flag;
    case FACT_TEXT:
        return str_equal(a->text, b->text);
    case FACT_NUMBERS:
    case FACT_TEXTS:
        return lists_equal(a, b);
    default:
        return true;
    }
}

void facts_copy(struct facts *to, const struct facts *from)
{
    if (!from->count)
        return;
    to->items = mem_array(from->count, sizeof *to->items);
    to->capacity = to->count = from->count;
    for (size_t i = 0; i < from->count; i++)
        to->items[i] = fact_copy(&from->items[i]);
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
    for (size_t i = 0; i < facts->count; i++)
        fact_fini_list(&facts->items[i], false);
    free(facts->items);
    memset(facts, 0, sizeof *facts);
}
