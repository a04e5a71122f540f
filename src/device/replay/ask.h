/* Requests to a device as numbers: packed for the record, hashed to be found again, in words. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_ASK_H
#define GPUMEMTOPO_DEVICE_REPLAY_ASK_H

#include <stdint.h>

#include "base/str.h"
#include "device/device.h"
#include "inventory/wire/wire.h"

/* The calls of the device interface. The numbers are part of the format. */
enum ask_call {
    ASK_LOOK,
    ASK_OPEN,
    ASK_IDENTIFY,
    ASK_BATCH,
    ASK_STREAM,
    ASK_CLOCKS,
    ASK_HEALTH,
    ASK_LINK,
    ASK_CALL_COUNT,
};
const char *ask_call_name(enum ask_call call);

/* Tables of facts in the answer; an error has them too, with what was known by then. */
size_t ask_tables(enum ask_call call);

enum {
    ASK_STEP_FIELDS = 13,
    ASK_JOB_FIELDS = 10 + DEVICE_STEPS_MAX * ASK_STEP_FIELDS,
    ASK_STREAM_FIELDS = 8,
};

/* A job (with how many of its batch run at once) or a stream, field by field, so that requests that
 * want the same have the same fields:
 * - agents and steps beyond their count are 0;
 * - which random order an array has does not count, nor where it begins: in place of the seed
 * stands the number of the first step that has the same one, and the start is counted from that
 * step's;
 * - where in global memory a job's arrays lie counts only for those that begin at 0: any other
 * place is chosen to be apart from other jobs. */
struct ask {
    enum ask_call call;
    uint64_t fields[ASK_JOB_FIELDS];
};
struct ask ask_of_job(const struct device_job *job, uint32_t at_once);
struct ask ask_of_stream(const struct device_stream *stream);
struct ask ask_of_call(enum ask_call call); /* one that asks for nothing in particular */

/* A job back from its fields, with the same fields. False for numbers that
 * no job has. */
bool ask_to_job(const struct ask *ask, struct device_job *out_job);

/* Equal for equal requests. */
uint64_t ask_key(const struct ask *ask);

/* The differences from `last`, which becomes this request. Neighbours differ in few fields. */
void ask_put(struct strbuf *buffer, const struct ask *ask, struct ask *last);
void ask_get(struct wire_reader *reader, enum ask_call call, struct ask *last);

/* "alone: warm 64 KiB global_ca by 32 B, chase 2048 loads of it". */
void ask_describe(const struct ask *ask, struct strbuf *out_text);

#endif
