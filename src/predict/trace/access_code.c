/* The accesses of a trace as bytes: lanes, differences to the access before, and back. */
#include "predict/trace/access_code.h"

#include <string.h>

#include "predict/trace/varint.h"

uint64_t trace_lanes_address(const struct warp_access *access, uint32_t lane)
{
    if (access->listed)
        return access->addresses[lane];
    return access->base + (uint64_t)((int64_t)(lane % access->lanes_x) * access->step_x) +
           (uint64_t)((int64_t)(lane / access->lanes_x) * access->step_y);
}

bool trace_lanes_fit(const struct trace_lanes *lanes, uint32_t bytes)
{
    const int64_t end = (int64_t)TRACE_ADDRESS_END;
    if (lanes->base >= TRACE_ADDRESS_END || lanes->step_x <= -end || lanes->step_x >= end ||
        lanes->step_y <= -end || lanes->step_y >= end)
        return false;
    int64_t x = (lanes->lanes_x - 1) * lanes->step_x;
    int64_t y = (WARP_LANES / lanes->lanes_x - 1) * lanes->step_y;
    int64_t low = (int64_t)lanes->base + (x < 0 ? x : 0) + (y < 0 ? y : 0);
    int64_t high = (int64_t)lanes->base + (x > 0 ? x : 0) + (y > 0 ? y : 0) + bytes;
    uint64_t odd = lanes->base | (uint64_t)lanes->step_x | (uint64_t)lanes->step_y;
    return low >= 0 && high <= end && !(odd & (bytes - 1));
}

/* The difference of two addresses that are `count` steps apart, per step; false: no whole number.
 */
static bool step_of(uint64_t from, uint64_t to, int64_t count, int64_t *out_step)
{
    int64_t difference = (int64_t)(to - from);
    *out_step = difference / count;
    return difference % count == 0;
}

static bool are_at(const struct warp_access *access, const struct trace_lanes *lanes)
{
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t address = lanes->base + (lane % lanes->lanes_x) * (uint64_t)lanes->step_x +
                           (lane / lanes->lanes_x) * (uint64_t)lanes->step_y;
        if (address != trace_lanes_address(access, lane))
            return false;
    }
    return true;
}

/* Rows of `width` lanes: the first two lanes of the first row give the step in it, the first lane
 * of the next row the step of rows. */
static bool find_rows(const struct warp_access *access, uint32_t width, struct trace_lanes *lanes)
{
    uint32_t first = (uint32_t)__builtin_ctz(access->mask), row = first / width;
    uint32_t rest = access->mask & (access->mask - 1);
    uint64_t at = trace_lanes_address(access, first);
    *lanes = (struct trace_lanes){.lanes_x = width};
    for (; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (lane / width != row)
            break;
        if (!lanes->step_x &&
            !step_of(at, trace_lanes_address(access, lane), lane - first, &lanes->step_x))
            return false;
    }
    if (rest) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        int64_t columns = (int64_t)(lane % width) - (int64_t)(first % width);
        uint64_t from = at + (uint64_t)columns * (uint64_t)lanes->step_x;
        if (!step_of(from, trace_lanes_address(access, lane), lane / width - row, &lanes->step_y))
            return false;
    }
    lanes->base = at - (first % width) * (uint64_t)lanes->step_x - row * (uint64_t)lanes->step_y;
    return are_at(access, lanes);
}

bool trace_lanes_find(const struct warp_access *access, struct trace_lanes *out_lanes)
{
    for (uint32_t width = WARP_LANES; width >= 2; width /= 2)
        if (find_rows(access, width, out_lanes) && trace_lanes_fit(out_lanes, access->bytes))
            return true;
    return false;
}

void trace_lanes_count(const struct warp_access *access, struct trace_totals *totals)
{
    totals->accesses++;
    totals->loads += !access->store;
    totals->lanes += (uint64_t)__builtin_popcount(access->mask);
    totals->bytes_max = access->bytes > totals->bytes_max ? access->bytes : totals->bytes_max;
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint64_t at = trace_lanes_address(access, (uint32_t)__builtin_ctz(rest));
        totals->lowest = at < totals->lowest ? at : totals->lowest;
        at += access->bytes - 1;
        totals->highest = at > totals->highest ? at : totals->highest;
    }
}

enum {
    ACCESS_SLOT = 0x0f,
    ACCESS_NEW = 0x10,   /* the slot gets another instruction: kind, pc */
    ACCESS_MASK = 0x20,  /* another mask than the slot's last access */
    ACCESS_LANES = 0x40, /* another layout of the lanes */
    ACCESS_MOVED = 0x80, /* the base moves by another distance than the last time */
    ACCESS_LISTED = 0,   /* layout: every active lane by itself; otherwise log2 of lanes_x, + 1 */
    ACCESS_LANES_LOG2 = 5,
};

/* A slot before the first access of its instruction. */
static inline void trace_code_begin_slot(struct trace_code *code, uint32_t number, uint64_t pc,
                                         bool store, uint8_t bytes_log2)
{
    code->used |= UINT32_C(1) << number;
    code->slots[number] = (struct trace_slot){.pc = pc,
                                              .base = code->last_base,
                                              .mask = UINT32_MAX,
                                              .store = store,
                                              .bytes_log2 = bytes_log2,
                                              .lanes_log2 = ACCESS_LANES_LOG2};
}

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    return at + trace_varint_put(at, value);
}

static uint8_t *put_signed(uint8_t *at, int64_t value)
{
    return put_varint(at, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

/* What is written of an access. */
struct form {
    struct trace_lanes lanes; /* listed: base is the address of the first active lane */
    bool listed;
    uint8_t bytes_log2;
};

static bool can_list(const struct warp_access *access)
{
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint64_t address = trace_lanes_address(access, (uint32_t)__builtin_ctz(rest));
        if (address >= TRACE_ADDRESS_END || address & (access->bytes - 1))
            return false;
    }
    return true;
}

static bool form_of(const struct warp_access *access, struct form *form)
{
    uint32_t bytes = access->bytes;
    if (!access->mask || !bytes || bytes > TRACE_ELEMENT_MAX || bytes & (bytes - 1))
        return false;
    *form = (struct form){.bytes_log2 = (uint8_t)__builtin_ctz(bytes)};
    if (!access->listed) {
        bool rows = access->lanes_x < WARP_LANES;
        form->lanes = (struct trace_lanes){.base = access->base,
                                           .step_x = access->step_x,
                                           .step_y = rows ? access->step_y : 0,
                                           .lanes_x = access->lanes_x};
        if (trace_lanes_fit(&form->lanes, bytes))
            return true;
    }
    if (trace_lanes_find(access, &form->lanes))
        return true;
    form->listed = true;
    form->lanes = (struct trace_lanes){
        .base = trace_lanes_address(access, (uint32_t)__builtin_ctz(access->mask))};
    return can_list(access);
}

/* The slot of this instruction; *out_new: it was another one's. */
static uint32_t access_slot(struct trace_code *code, uint64_t pc, bool store, uint8_t bytes_log2,
                            bool *out_new)
{
    *out_new = false;
    for (uint32_t i = 0; i < TRACE_SLOTS; i++) {
        const struct trace_slot *slot = &code->slots[i];
        if (code->used >> i & 1 && slot->pc == pc && slot->store == store &&
            slot->bytes_log2 == bytes_log2)
            return i;
    }
    *out_new = true;
    uint32_t taken = code->next;
    code->next = (taken + 1) % TRACE_SLOTS;
    return taken;
}

static uint8_t *put_lanes(uint8_t *at, const struct form *form)
{
    uint8_t lanes_log2 = form->listed ? 0 : (uint8_t)__builtin_ctz(form->lanes.lanes_x);
    *at++ = form->listed ? ACCESS_LISTED : (uint8_t)(lanes_log2 + 1);
    if (form->listed)
        return at;
    at = put_signed(at, form->lanes.step_x);
    return lanes_log2 == ACCESS_LANES_LOG2 ? at : put_signed(at, form->lanes.step_y);
}

static uint8_t *access_put_list(uint8_t *at, const struct warp_access *access)
{
    uint32_t rest = access->mask;
    uint64_t last = trace_lanes_address(access, (uint32_t)__builtin_ctz(rest));
    for (rest &= rest - 1; rest; rest &= rest - 1) {
        uint64_t address = trace_lanes_address(access, (uint32_t)__builtin_ctz(rest));
        at = put_signed(at, (int64_t)(address - last));
        last = address;
    }
    return at;
}

static bool same_lanes(const struct trace_slot *slot, const struct form *form)
{
    return !form->listed && !slot->listed && slot->step_x == form->lanes.step_x &&
           slot->step_y == form->lanes.step_y &&
           UINT32_C(1) << slot->lanes_log2 == form->lanes.lanes_x;
}

size_t trace_code_put(struct trace_code *code, const struct warp_access *access, uint64_t pc,
                      uint8_t out_bytes[TRACE_ACCESS_BYTES_MAX])
{
    struct form form;
    bool is_new;
    if (!form_of(access, &form))
        return 0;
    uint32_t number = access_slot(code, pc, access->store, form.bytes_log2, &is_new);
    struct trace_slot *slot = &code->slots[number];
    uint8_t head = (uint8_t)number, *at = out_bytes + 1;
    if (is_new) {
        head |= ACCESS_NEW;
        *at++ = (uint8_t)(access->store | form.bytes_log2 << 1);
        at = put_signed(at, (int64_t)(pc - code->last_pc));
        trace_code_begin_slot(code, number, pc, access->store, form.bytes_log2);
    }
    if (slot->mask != access->mask) {
        head |= ACCESS_MASK;
        at = put_varint(at, slot->mask = access->mask);
    }
    if (!same_lanes(slot, &form)) {
        head |= ACCESS_LANES;
        at = put_lanes(at, &form);
        slot->listed = form.listed;
        slot->step_x = form.lanes.step_x;
        slot->step_y = form.lanes.step_y;
        slot->lanes_log2 = form.listed ? 0 : (uint8_t)__builtin_ctz(form.lanes.lanes_x);
    }
    int64_t delta = (int64_t)(form.lanes.base - slot->base);
    if (delta != slot->delta) {
        head |= ACCESS_MOVED;
        at = put_signed(at, slot->delta = delta);
    }
    code->last_pc = pc;
    code->last_base = slot->base = form.lanes.base;
    if (form.listed)
        at = access_put_list(at, access);
    out_bytes[0] = head;
    return (size_t)(at - out_bytes);
}

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

static void access_get_list(struct cursor *cursor, struct warp_access *access)
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
        access_get_list(cursor, access);
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
    if (head & ACCESS_NEW) {
        uint8_t kind = get_byte(&cursor), bytes_log2 = kind >> 1;
        uint64_t pc = code->last_pc + (uint64_t)get_signed(&cursor);
        if (UINT32_C(1) << (bytes_log2 & 31) > TRACE_ELEMENT_MAX || bytes_log2 > 31)
            expect(&cursor, "elements of 1 to 32 bytes");
        trace_code_begin_slot(code, number, pc, kind & 1, bytes_log2);
    } else if (!(code->used >> number & 1))
        expect(&cursor, "an instruction in a slot that has none");
    if (head & ACCESS_MASK) {
        uint64_t mask = get_varint(&cursor);
        if (!mask || mask > UINT32_MAX)
            expect(&cursor, "a mask of 1 to 32 lanes");
        slot->mask = (uint32_t)mask;
    }
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
