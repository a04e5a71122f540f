/* Codes of facts: equal facts have equal codes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/fleet.h"

/* Kind and value of a fact as bytes. 5 and 5.0 have the same code, because a file does not
 * distinguish them. */
struct coded {
    char kind; /* u: unknown, b: flag, n: number, i: integer that no double holds, t: text */
    char bytes[sizeof(double)];
};

static const double whole_max = 0x1p53;

static int add_code(struct fleet *fleet, const void *data, size_t length, uint32_t guess,
                    uint32_t *out_code)
{
    uint32_t code = symbols_add_guessed(&fleet->symbols, data, length, guess);
    if (!code)
        return -ENOMEM;
    *out_code = code;
    return 0;
}

static int encode_text(struct fleet *fleet, const char *text, uint32_t guess, uint32_t *out_code)
{
    char small[256] = "t";
    size_t length = strlen(text);
    if (length < sizeof small) {
        memcpy(small + 1, text, length);
        return add_code(fleet, small, length + 1, guess, out_code);
    }
    char *large = str_format("t%s", text);
    int rc = large ? add_code(fleet, large, length + 1, guess, out_code) : -ENOMEM;
    free(large);
    return rc;
}

int fleet_encode(struct fleet *fleet, const struct fact *fact, uint32_t guess, uint32_t *out_code)
{
    struct coded coded = {.kind = 'n'};
    double number = fact->kind == FACT_BOOL  ? fact->flag
                    : fact->kind == FACT_INT ? (double)fact->integer
                                             : fact->real;
    if (fact->kind == FACT_UNKNOWN || (fact->kind == FACT_TEXT && !fact->text))
        return add_code(fleet, "u", 1, guess, out_code);
    if (fact->kind == FACT_TEXT)
        return encode_text(fleet, fact->text, guess, out_code);
    memcpy(coded.bytes, &number, sizeof number);
    if (fact->kind == FACT_BOOL)
        coded.kind = 'b';
    if (fact->kind == FACT_INT && fabs(number) > whole_max) {
        coded.kind = 'i';
        memcpy(coded.bytes, &fact->integer, sizeof fact->integer);
    }
    return add_code(fleet, &coded, sizeof coded, guess, out_code);
}

bool fleet_known(const struct fleet *fleet, uint32_t code)
{
    return code && fleet_text(fleet, code)[0] != 'u';
}

struct fact fleet_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code)
{
    const char *data = fleet_text(fleet, code);
    struct fact fact = {.key = (char *)fleet_text(fleet, column->head.name), .kind = FACT_UNKNOWN};
    double number = 0;
    if (!fleet_known(fleet, code))
        return fact;
    if (data[0] == 't') {
        fact.kind = FACT_TEXT;
        fact.text = (char *)data + 1;
        return fact;
    }
    memcpy(&number, data + 1, sizeof number);
    if (data[0] == 'b') {
        fact.kind = FACT_BOOL;
        fact.flag = number != 0;
    } else if (data[0] == 'i') {
        fact.kind = FACT_INT;
        memcpy(&fact.integer, data + 1, sizeof fact.integer);
    } else if (number == floor(number) && fabs(number) <= whole_max) {
        fact.kind = FACT_INT;
        fact.integer = (int64_t)number;
    } else {
        fact.kind = FACT_REAL;
        fact.real = number;
    }
    return fact;
}

const struct fact_column *fleet_facts(const struct fleet *fleet, enum fact_set set, const char *key)
{
    const struct fact_columns *columns = &fleet->facts[set];
    uint32_t symbol = symbols_find(&fleet->symbols, key);
    for (size_t i = 0; i < columns->count && symbol; i++)
        if (columns->items[i].head.name == symbol)
            return &columns->items[i];
    return NULL;
}

double fleet_code_number(const struct fleet *fleet, uint32_t code)
{
    const struct fact fact = fleet_fact(fleet, &(struct fact_column){0}, code);
    switch (fact.kind) {
    case FACT_BOOL:
        return fact.flag;
    case FACT_INT:
        return (double)fact.integer;
    case FACT_REAL:
        return fact.real;
    default:
        return NAN;
    }
}

double fleet_fact_number(const struct fleet *fleet, const struct fact_column *column, uint32_t gpu)
{
    return column ? fleet_code_number(fleet, column->codes[gpu]) : NAN;
}

const char *fleet_fact_text(const struct fleet *fleet, const struct fact_column *column,
                            uint32_t gpu)
{
    if (!column)
        return NULL;
    const struct fact fact = fleet_fact(fleet, column, column->codes[gpu]);
    return fact.kind == FACT_TEXT ? fact.text : NULL;
}
