/* Writes accesses as bytes. */
#include <string.h>

#include "predict/trace/access_bits.h"
#include "predict/trace/access_code.h"
#include "predict/trace/head.h"
#include "predict/trace/lanes.h"
#include "predict/trace/varint.h"

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
static uint32_t slot_of(struct trace_code *code, uint64_t pc, bool store, uint8_t bytes_log2,
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

static uint8_t *put_list(uint8_t *at, const struct warp_access *access)
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

static void note_lanes(struct trace_slot *slot, const struct form *form)
{
    slot->listed = form->listed;
    slot->step_x = form->lanes.step_x;
    slot->step_y = form->lanes.step_y;
    slot->lanes_log2 = form->listed ? 0 : (uint8_t)__builtin_ctz(form->lanes.lanes_x);
}

size_t trace_code_put(struct trace_code *code, const struct warp_access *access, uint64_t pc,
                      uint8_t out_bytes[TRACE_ACCESS_BYTES_MAX])
{
    struct form form;
    bool is_new;
    if (!form_of(access, &form))
        return 0;
    uint32_t number = slot_of(code, pc, access->store, form.bytes_log2, &is_new);
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
        note_lanes(slot, &form);
    }
    int64_t delta = (int64_t)(form.lanes.base - slot->base);
    if (delta != slot->delta) {
        head |= ACCESS_MOVED;
        at = put_signed(at, slot->delta = delta);
    }
    code->last_pc = pc;
    code->last_base = slot->base = form.lanes.base;
    if (form.listed)
        at = put_list(at, access);
    out_bytes[0] = head;
    return (size_t)(at - out_bytes);
}
