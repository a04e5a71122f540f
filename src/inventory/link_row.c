/* The lists in which the links of a GPU are kept. */
#include "inventory/link_row.h"

#include <math.h>

const char *const link_row_keys[LINK_ROW_KEYS] = {"gpus",    "state",      "read",     "write",
                                                  "both",    "sm_read",    "sm_write", "sm_both",
                                                  "latency", "latency_ns", "why"};

double link_row_number(const struct facts *row, const char *key, size_t place)
{
    size_t count = 0;
    const double *numbers = facts_numbers(row, key, &count);
    return numbers && place < count && numbers[place] >= 0 ? numbers[place] : NAN;
}
