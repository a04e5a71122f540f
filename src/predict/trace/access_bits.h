/* The first byte of an access: a slot and what follows; shared by its writer and its reader. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_ACCESS_BITS_H
#define GPUMEMTOPO_PREDICT_TRACE_ACCESS_BITS_H

#include "predict/trace/access_code.h"

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

#endif
