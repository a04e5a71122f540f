/* The entries of a record: type, length, payload, CRC-32; and the requests and answers in them.
 * docs/records.md describes the format. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_ENTRY_H
#define GPUMEMTOPO_DEVICE_RECORD_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "device/calls.h"
#include "schema/wire.h"

enum { RECORD_VERSION = 4, ENTRY_BYTES_MAX = 64 * 1024 * 1024 };

/* The first bytes of every record; the version follows as four bytes. They contain line ends and an
 * end-of-text character, so that a copy in text mode is detected. */
enum { RECORD_MAGIC_BYTES = 8, RECORD_HEAD_BYTES = RECORD_MAGIC_BYTES + 4 };
extern const char record_magic[RECORD_MAGIC_BYTES];

enum entry_type {
    /* entries of the file */
    ENTRY_PROVENANCE = 1, /* how the survey was run */
    ENTRY_GPU,            /* one GPU and how it ended; the body with its calls follows */
    ENTRY_SURVEY,         /* what rank 0 knew apart from the GPUs */
    ENTRY_END,
    ENTRY_GPU_AGAIN, /* a GPU that was measured a second time; like ENTRY_GPU */
    /* entries of a GPU's body */
    ENTRY_MARK = 16, /* text: what the next requests are for */
    ENTRY_ASK,       /* a call of the device interface, written before it is made */
    ENTRY_ANSWER,    /* its result or error */
    ENTRY_CLOSE,     /* the device was closed: nothing is missing */
};

/* One entry; `values` are those of its payload. */
struct record_entry {
    uint32_t type;
    size_t position; /* in the data it was read from */
    struct wire_reader values;
};

/* Appends one entry; its payload has at most ENTRY_BYTES_MAX bytes. */
void entry_write(struct strbuf *buffer, enum entry_type type, const struct strbuf *payload);

/* Reads the entry at *position and moves *position behind it. 1: an entry; 0: the end of the data;
 * -EINVAL: cut off or damaged. offset: where the data lie in their file, for the message. */
int entry_next(const char *data, size_t length, uint64_t offset, size_t *position,
               struct record_entry *out_entry, struct err *err);

/* How many bytes the entry that begins here takes, with type, length and checksum; 0 when `length`
 * bytes are too few to tell, -EINVAL when this is no entry. */
int entry_span(const char *data, size_t length, uint64_t *out_bytes);

enum { ENTRY_HEAD_MAX = 11 }; /* bytes that are always enough to tell */

/* What is asked of a device, as a row of numbers: equal for requests of the same work. And its
 * answers, packed with the help of what was asked. */
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
