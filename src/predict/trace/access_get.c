/* Reads accesses from bytes that may be anything. */
#include "predict/trace/access_bits.h"
#include "predict/trace/access_code.h"
#include "predict/trace/head.h"
#include "predict/trace/lanes.h"
#include "predict/trace/varint.h"

/* What is left to read; bad: it ended too early, or what was expected instead. */
struct cursor {
    const uint8_t *at, *end;
    const char *expected; /* NULL: all is well so far */
};

static void expect(struct cursor *cursor, const char *what)
{
    if (!cursor->expected)
        cursor->expected = what;
}

static uint64_t get_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    size_t length = trace_varint_get(cursor->at, cursor->end, &value);
    if (!length)
        expect(cursor, "a number of at most 64 bits within the page");
    cursor->at += length;
    return value;
}

static int64_t get_signed(struct cursor *cursor)
{
    uint64_t folded = get_varint(cursor);
    return (int64_t)((folded >> 1) ^ (folded & 1 ? UINT64_MAX : 0));
}

static uint8_t get_byte(struct cursor *cursor)
{
    if (cursor->at < cursor->end)
        return *cursor->at++;
    expect(cursor, "an access within the page");
    return 0;
}

static void get_instruction(struct cursor *cursor, struct trace_code *code, uint32_t number)
{
    uint8_t kind = get_byte(cursor), bytes_log2 = kind >> 1;
    uint64_t pc = code->last_pc + (uint64_t)get_signed(cursor);
    if (UINT32_C(1) << (bytes_log2 & 31) > TRACE_ELEMENT_MAX || bytes_log2 > 31)
        expect(cursor, "elements of 1 to 32 bytes");
    trace_code_begin_slot(code, number, pc, kind & 1, bytes_log2);
}

static void get_mask(struct cursor *cursor, struct trace_slot *slot)
{
    uint64_t mask = get_varint(cursor);
    if (!mask || mask > UINT32_MAX)
        expect(cursor, "a mask of 1 to 32 lanes");
    slot->mask = (uint32_t)mask;
}

static void get_lanes(struct cursor *cursor, struct trace_slot *slot)
{
    uint8_t layout = get_byte(cursor);
    slot->listed = layout == ACCESS_LISTED;
    slot->lanes_log2 = slot->listed ? 0 : layout - 1;
    slot->step_x = slot->step_y = 0;
    if (layout > ACCESS_LANES_LOG2 + 1) {
        expect(cursor, "a layout of lanes from 0 to 6");
        slot->lanes_log2 = 0;
    }
    if (slot->listed)
        return;
    slot->step_x = get_signed(cursor);
    if (slot->lanes_log2 != ACCESS_LANES_LOG2)
        slot->step_y = get_signed(cursor);
}

static void get_list(struct cursor *cursor, struct warp_access *access)
{
    uint64_t address = access->base;
    bool first = true;
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        address += first ? 0 : (uint64_t)get_signed(cursor);
        first = false;
        access->addresses[__builtin_ctz(rest)] = address;
        if (address >= TRACE_ADDRESS_END || address & (access->bytes - 1))
            expect(cursor, "addresses below 2^56 that are multiples of the element's size");
    }
}

static void get_addresses(struct cursor *cursor, const struct trace_slot *slot,
                          struct warp_access *access)
{
    access->store = slot->store;
    access->listed = slot->listed;
    access->mask = slot->mask;
    access->bytes = UINT32_C(1) << slot->bytes_log2;
    access->lanes_x = UINT32_C(1) << slot->lanes_log2;
    access->base = slot->base;
    access->step_x = slot->step_x;
    access->step_y = slot->step_y;
    if (slot->listed) {
        get_list(cursor, access);
        return;
    }
    struct trace_lanes lanes = {slot->base, slot->step_x, slot->step_y, access->lanes_x};
    if (!trace_lanes_fit(&lanes, access->bytes))
        expect(cursor, "addresses below 2^56 that are multiples of the element's size");
}

size_t trace_code_get(struct trace_code *code, const uint8_t *bytes, size_t length,
                      struct warp_access *out_access, uint64_t *out_pc, const char **out_expected)
{
    struct cursor cursor = {.at = bytes, .end = bytes + length};
    uint8_t head = get_byte(&cursor), number = head & ACCESS_SLOT;
    struct trace_slot *slot = &code->slots[number];
    if (head & ACCESS_NEW)
        get_instruction(&cursor, code, number);
    else if (!(code->used >> number & 1))
        expect(&cursor, "an instruction in a slot that has none");
    if (head & ACCESS_MASK)
        get_mask(&cursor, slot);
    if (head & ACCESS_LANES)
        get_lanes(&cursor, slot);
    else if (slot->listed)
        expect(&cursor, "the addresses of the lanes");
    if (head & ACCESS_MOVED)
        slot->delta = get_signed(&cursor);
    if (!cursor.expected) {
        slot->base += (uint64_t)slot->delta;
        code->last_base = slot->base;
        code->last_pc = slot->pc;
        *out_pc = slot->pc;
        get_addresses(&cursor, slot, out_access);
    }
    *out_expected = cursor.expected;
    return cursor.expected ? 0 : (size_t)(cursor.at - bytes);
}
