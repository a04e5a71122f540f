/* Numbers of seven bits per byte, low bits first. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_VARINT_H
#define GPUMEMTOPO_PREDICT_TRACE_VARINT_H

#include <stddef.h>
#include <stdint.h>

enum { TRACE_VARINT_MAX = 10 };

/* Return how many bytes it takes. */
static inline size_t trace_varint_put(uint8_t out_bytes[TRACE_VARINT_MAX], uint64_t value)
{
    size_t length = 0;
    for (; value > 0x7f; value >>= 7)
        out_bytes[length++] = (uint8_t)(value | 0x80);
    out_bytes[length++] = (uint8_t)value;
    return length;
}

/* 0: it does not end before `end`, or has more than 64 bits. */
static inline size_t trace_varint_get(const uint8_t *at, const uint8_t *end, uint64_t *out_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < TRACE_VARINT_MAX && at + i < end; i++) {
        if (i == TRACE_VARINT_MAX - 1 && at[i] > 1)
            return 0;
        value |= (uint64_t)(at[i] & 0x7f) << 7 * i;
        if (!(at[i] & 0x80)) {
            *out_value = value;
            return i + 1;
        }
    }
    return 0;
}

#endif
