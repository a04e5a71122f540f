/* The lists in which the links of a GPU are kept. */
#include "inventory/link_row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

const char *const link_row_keys[LINK_ROW_KEYS] = {"gpus",    "state",      "read",     "write",
                                                  "both",    "sm_read",    "sm_write", "sm_both",
                                                  "latency", "latency_ns", "why"};

double link_row_number(const struct facts *row, const char *key, size_t place)
{
    size_t count = 0;
    const double *numbers = facts_numbers(row, key, &count);
    return numbers && place < count && numbers[place] >= 0 ? numbers[place] : NAN;
}

static bool link_is_state(const char *word)
{
    static const char *const states[] = {"ok", "host", "failed", "wrong", "unknown"};
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (strcmp(states[i], word) == 0)
            return true;
    return false;
}

/* Whether the fact is a list of the row, with `count` items that it can have. */
static bool link_is_list(const struct fact *fact, size_t count)
{
    size_t place = 0;
    while (place < LINK_ROW_LISTS && strcmp(link_row_keys[place], fact->key) != 0)
        place++;
    if (place == LINK_ROW_LISTS || fact->count != count || fact->columns ||
        fact->kind != (place < LINK_ROW_TEXTS ? FACT_TEXTS : FACT_NUMBERS))
        return false;
    for (size_t i = 0; i < count; i++)
        if (fact->kind == FACT_NUMBERS
                ? fact->numbers[i] < 0
                : strcmp(fact->key, "state") == 0 && !link_is_state(fact->texts[i]))
            return false;
    return true;
}

int link_row_check(const struct facts *row, struct err *err)
{
    size_t count = 0, state_count = 0;
    bool only_why = row->count == 1 && facts_text(row, "why");
    bool begun = facts_texts(row, "gpus", &count) && facts_texts(row, "state", &state_count);
    if (row->count && !only_why && !begun)
        return err_set(err, -EINVAL, "links: expected the lists gpus and state");
    for (size_t i = 0; i < row->count; i++) {
        const struct fact *fact = &row->items[i];
        if (strcmp(fact->key, "why") != 0 && !link_is_list(fact, count))
            return err_set(err, -EINVAL, "links: %.80s is not a list of %zu %s", fact->key, count,
                           fact->kind == FACT_TEXTS ? "words" : "numbers");
    }
    return 0;
}
