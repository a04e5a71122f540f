/* Named facts: an ordered map of values, each of which may be unknown. */
#ifndef GPUMEMTOPO_SCHEMA_FACTS_H
#define GPUMEMTOPO_SCHEMA_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fact_kind {
    FACT_UNKNOWN,
    FACT_BOOL,
    FACT_INT,
    FACT_REAL,
    FACT_TEXT,
    FACT_NUMBERS, /* a list of numbers, or of rows of numbers; NaN: unknown */
    FACT_TEXTS,   /* a list of texts */
};

enum { FACT_COLUMNS_MAX = 0xffffff };

/* FACT_UNKNOWN: `text` says why the fact could not be read ("not supported", ...). */
struct fact {
    char *key; /* snake_case, unit at the end: memory_bytes, power_limit_w */
    enum fact_kind kind : 8;
    unsigned columns : 24; /* of a list of rows: numbers in each row; 0: a list without rows */
    uint32_t count;        /* of a list: all its numbers or texts */
    union {
        bool flag;
        int64_t integer;
        double real;
        double *numbers;
        char **texts;
    };
    char *text;
};

/* Ordered as set; zero-initialised is empty. */
struct facts {
    struct fact *items;
    size_t count;
    size_t capacity;
};

/* Set or replace. */
void facts_set_bool(struct facts *facts, const char *key, bool value);
void facts_set_int(struct facts *facts, const char *key, int64_t value);
void facts_set_real(struct facts *facts, const char *key, double value);
void facts_set_text(struct facts *facts, const char *key, const char *value);
void facts_set_unknown(struct facts *facts, const char *key, const char *reason);
void facts_set_numbers(struct facts *facts, const char *key, const double *values, size_t count);
/* Rows of `columns` numbers each: 1 to FACT_COLUMNS_MAX, and at least one row. */
void facts_set_rows(struct facts *facts, const char *key, const double *values, size_t rows,
                    size_t columns);
void facts_set_texts(struct facts *facts, const char *key, const char *const *texts, size_t count);
void facts_set(struct facts *facts, const struct fact *fact);

/* The same without a copy: the key, text or list of *fact then belong to the facts. facts_add: the
 * key is not there yet. */
void facts_move(struct facts *facts, const struct fact *fact);
void facts_add(struct facts *facts, const struct fact *fact);

void facts_remove(struct facts *facts, const char *key); /* if it is there */

const struct fact *facts_get(const struct facts *facts, const char *key); /* NULL: absent */
const char *facts_text(const struct facts *facts, const char *key); /* NULL: absent or no text */
/* The list of that name and its count; NULL: absent, or no such list. facts_numbers: without rows.
 */
const double *facts_numbers(const struct facts *facts, const char *key, size_t *out_count);
const double *facts_rows(const struct facts *facts, const char *key, size_t *out_rows,
                         size_t *out_columns);
char *const *facts_texts(const struct facts *facts, const char *key, size_t *out_count);
int64_t facts_int(const struct facts *facts, const char *key, int64_t otherwise);

/* A number of a list as it is kept there: with so many significant digits, or digits behind the
 * point; NaN if it is not finite. */
double facts_rounded(double value, int digits);
double facts_decimals(double value, int digits);

double fact_number(const struct fact *fact); /* NaN: absent or no number; fact may be NULL */

/* Compares key, kind and value. Numbers compare by value, since a file does not distinguish 5 from
 * 5.0; the reason why a fact is unknown is ignored. */
bool fact_equal(const struct fact *a, const struct fact *b);
void facts_copy(struct facts *to, const struct facts *from); /* to is empty */
void facts_fini(struct facts *facts);
void facts_fini_list(struct facts *facts); /* the texts lie elsewhere and stay */
void fact_clear(struct fact *fact);        /* makes it unknown, without a reason */

#endif
