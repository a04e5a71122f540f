/* What is asked of a device, as a row of numbers: equal for requests of the same work. And its
 * answers, packed with the help of what was asked. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_ASKED_H
#define GPUMEMTOPO_DEVICE_RECORD_ASKED_H

#include "device/calls.h"

struct asked {
    uint64_t numbers[FIELDS_NUMBERS_MAX];
};

/* it: what device_call_ask made of an item of a request. */
struct asked asked_of(enum device_call call, const void *it);

/* Equal for equal requests. */
uint64_t asked_key(enum device_call call, const struct asked *asked);

/* Writes the differences from `last`, then sets `last` to this request. Successive requests differ
 * in few numbers. */
void asked_put(struct strbuf *buffer, enum device_call call, const struct asked *asked,
               struct asked *last);
void asked_get(struct wire_reader *reader, enum device_call call, struct asked *last);

/* The answer to an item of a request, without what follows from what was asked. */
void asked_put_answer(struct strbuf *buffer, enum device_call call, const void *it,
                      const void *answer);

/* Reads it into `answer`, which is zeroed (facts: sets them). Sets reader->bad for an answer that
 * cannot be one to this request on a GPU of so many SMs. Released by fields_fini, also then. */
void asked_get_answer(struct wire_reader *reader, enum device_call call, const void *it,
                      uint32_t sm_count, void *answer);

/* An error: code and text. Reading returns the code, or 0 if the reader is bad. */
void asked_put_err(struct strbuf *buffer, int code, const char *text);
int asked_get_err(struct wire_reader *reader, struct err *err);

#endif
