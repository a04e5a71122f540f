/* Lists of numbers in few bytes. */
#include "schema/packed.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* A list of numbers as bytes: this head, then each number less the smallest one, in units of the
 * last decimal. Numbers with more than PACKED_DECIMALS decimals, and numbers too far apart, are
 * kept as they are. So maps and rates of SMs take one or two bytes per SM. */
enum { PACKED_DECIMALS = 3, PACKED_AS_IT_IS = 255 };
struct packed {
    int64_t smallest;
    uint32_t count;
    unsigned columns : 24, decimals : 8;
    uint32_t item_bytes;
};
static const double powers_of_ten[PACKED_DECIMALS + 1] = {1, 10, 100, 1000};

/* How many decimals all numbers have, and the smallest and largest in units of the last one. */
static uint8_t packed_decimals(const double *numbers, size_t count, double *out_least,
                               double *out_most)
{
    uint8_t decimals = 0;
    for (size_t i = 0; i < count; i++) {
        while (isfinite(numbers[i]) && decimals <= PACKED_DECIMALS &&
               round(numbers[i] * powers_of_ten[decimals]) / powers_of_ten[decimals] != numbers[i])
            decimals++;
        if (decimals > PACKED_DECIMALS)
            return PACKED_AS_IT_IS;
    }
    *out_least = INFINITY;
    *out_most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double unit = isfinite(numbers[i]) ? round(numbers[i] * powers_of_ten[decimals]) : NAN;
        *out_least = fmin(*out_least, unit);
        *out_most = fmax(*out_most, unit);
    }
    return fabs(*out_least) < 1e15 && *out_most - *out_least < UINT32_MAX ? decimals
                                                                          : PACKED_AS_IT_IS;
}

void packed_put(struct strbuf *out, const struct fact *fact)
{
    double least = 0, most = 0;
    struct packed head;
    memset(&head, 0, sizeof head);
    head.count = fact->count;
    head.columns = fact->columns;
    head.decimals = packed_decimals(fact->numbers, fact->count, &least, &most);
    bool packed = head.decimals != PACKED_AS_IT_IS;
    head.smallest = packed ? (int64_t)least : 0;
    head.item_bytes = !packed                     ? sizeof(double)
                      : most - least < UINT8_MAX  ? 1
                      : most - least < UINT16_MAX ? 2
                                                  : 4;
    strbuf_append(out, (const char *)&head, sizeof head);
    for (size_t i = 0; i < fact->count; i++) {
        double number = isfinite(fact->numbers[i]) ? fact->numbers[i] : NAN;
        uint32_t unit = UINT32_MAX; /* not known */
        if (packed && isfinite(number))
            unit = (uint32_t)(round(number * powers_of_ten[head.decimals]) - least);
        unsigned char bytes[4] = {unit & 0xff, unit >> 8 & 0xff, unit >> 16 & 0xff, unit >> 24};
        strbuf_append(out, packed ? (const char *)bytes : (const char *)&number, head.item_bytes);
    }
}

void packed_get(const char *data, struct fact *fact)
{
    struct packed head;
    memcpy(&head, data, sizeof head);
    data += sizeof head;
    fact->kind = FACT_NUMBERS;
    fact->count = head.count;
    fact->columns = head.columns;
    fact->numbers = mem_array(head.count, sizeof *fact->numbers);
    if (head.decimals == PACKED_AS_IT_IS && head.count) {
        memcpy(fact->numbers, data, head.count * sizeof *fact->numbers);
        return;
    }
    const uint64_t unknown = ((uint64_t)1 << 8 * (head.item_bytes % 8)) - 1;
    for (size_t i = 0; i < head.count; i++, data += head.item_bytes) {
        uint64_t unit = 0;
        for (size_t k = 0; k < head.item_bytes; k++)
            unit |= (uint64_t)(unsigned char)data[k] << 8 * k;
        fact->numbers[i] = unit == unknown ? NAN
                                           : (double)(head.smallest + (int64_t)unit) /
                                                 powers_of_ten[head.decimals];
    }
}
