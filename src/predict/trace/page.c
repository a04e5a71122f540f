/* Seals and checks pages. */
#include "predict/trace/page.h"

#include <errno.h>
#include <string.h>

#include "inventory/wire/frame.h"

enum { SUM_AT = 4, KIND_AT = 8, ZERO_AT = 9, USED_AT = 10, NUMBER_AT = 12 };

uint64_t trace_page_u64(const uint8_t *bytes)
{
    return trace_page_u32(bytes) | (uint64_t)trace_page_u32(bytes + 4) << 32;
}

uint32_t trace_page_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void trace_page_put_u32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

void trace_page_put_u64(uint8_t *bytes, uint64_t value)
{
    trace_page_put_u32(bytes, (uint32_t)value);
    trace_page_put_u32(bytes + 4, (uint32_t)(value >> 32));
}

static uint32_t sum_of(const uint8_t *bytes, uint32_t page_bytes)
{
    return frame_crc32(bytes + KIND_AT, page_bytes - KIND_AT);
}

void trace_page_seal(uint8_t *bytes, uint32_t page_bytes, struct trace_page page)
{
    memset(bytes + page.used, 0, page_bytes - page.used);
    trace_page_put_u32(bytes, TRACE_PAGE_MAGIC);
    bytes[KIND_AT] = (uint8_t)page.kind;
    bytes[ZERO_AT] = 0;
    bytes[USED_AT] = (uint8_t)page.used;
    bytes[USED_AT + 1] = (uint8_t)(page.used >> 8);
    trace_page_put_u32(bytes + NUMBER_AT, page.number);
    trace_page_put_u32(bytes + SUM_AT, sum_of(bytes, page_bytes));
}

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"?", "head", "data", "leaf", "root", "totals"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

int trace_page_check(const uint8_t *bytes, uint32_t page_bytes, struct trace_page expected,
                     const char *file, uint32_t *out_used, struct err *err)
{
    unsigned long long at = (unsigned long long)expected.number * page_bytes;
    uint32_t used = bytes[USED_AT] | (uint32_t)bytes[USED_AT + 1] << 8;
    uint32_t number = trace_page_u32(bytes + NUMBER_AT), sum = trace_page_u32(bytes + SUM_AT);
    if (trace_page_u32(bytes) != TRACE_PAGE_MAGIC)
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected a page (\"GMTP\")", at);
    if (sum != sum_of(bytes, page_bytes))
        return err_set_at(err, -EINVAL, file, 0, 0,
                          "byte %llu: expected a page with the sum %08x, its bytes have %08x: it "
                          "is damaged",
                          at, sum, sum_of(bytes, page_bytes));
    if (number != expected.number)
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected page %u, this is page %u",
                          at, expected.number, number);
    if (bytes[KIND_AT] != expected.kind || bytes[ZERO_AT])
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected a page of kind %s, not %s",
                          at, kind_name(expected.kind), kind_name(bytes[KIND_AT]));
    if (used < TRACE_PAGE_HEADER || used > page_bytes)
        return err_set_at(err, -EINVAL, file, 0, 0,
                          "byte %llu: expected %d to %u used bytes in a page, not %u", at,
                          TRACE_PAGE_HEADER, page_bytes, used);
    *out_used = used;
    return 0;
}
