/* The calls of one GPU's record, found again by what was asked and for what. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_CALLS_H
#define GPUMEMTOPO_DEVICE_REPLAY_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/wire.h"

struct calls;

/* One request that was recorded: a job of a batch, a stream, any other call. */
struct call {
    uint64_t key;         /* ask_key */
    uint32_t mark;        /* what it was for: index in the marks */
    uint32_t number;      /* in the order of recording */
    uint8_t timed;        /* answer_timed_steps */
    bool answered;        /* false: the worker died in this call */
    bool failed;          /* the answer is an error */
    size_t position, end; /* of the answer in the body */
};

/* Reads and checks a whole body. offset: where it lies in its file, for messages. -EINVAL naming
 * the byte. Freed with calls_destroy. The body must stay where it is. */
int calls_read(const char *body, size_t length, uint64_t offset, struct calls **out_calls,
               struct err *err);

/* What the next requests are for. */
void calls_mark(struct calls *calls, const char *what);
const char *calls_mark_text(const struct calls *calls);

/* The answer to the n-th request of this key under the present mark: the n-th that was recorded
 * under that mark. A mark that asks more often than it did goes on, unless own_only, with what was
 * recorded under others. NULL: not recorded. */
const struct call *calls_find(struct calls *calls, uint64_t key, bool own_only);

/* The values of an answer. */
struct wire_reader calls_values(const struct calls *calls, const struct call *call);

void calls_destroy(struct calls *calls); /* accepts NULL */

#endif
