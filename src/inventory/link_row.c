/* The lists in which the links of a GPU are kept. */
#include "inventory/link_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const link_row_keys[LINK_ROW_KEYS] = {"gpus",    "state",      "read",     "write",
                                                  "both",    "sm_read",    "sm_write", "sm_both",
                                                  "latency", "latency_ns", "why"};

bool link_row_word(const char **at, size_t *out_length)
{
    *at += strspn(*at, " ");
    *out_length = strcspn(*at, " ");
    return *out_length > 0;
}

double link_row_number(const char *word, size_t length)
{
    char *end;
    double value = strtod(word, &end);
    return end == word + length && isfinite(value) && value >= 0 ? value : NAN;
}
