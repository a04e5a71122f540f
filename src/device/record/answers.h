/* The answers that one GPU's record has, found by request and mark. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_ANSWERS_H
#define GPUMEMTOPO_DEVICE_RECORD_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct answers;

/* The answer to one request that was recorded: an item of a call. */
struct recorded_answer {
    uint64_t key;         /* asked_key */
    uint32_t mark;        /* what it was for */
    uint32_t number;      /* its place in the order of recording */
    bool answered;        /* false: the worker died during this call */
    bool failed;          /* the answer is an error */
    size_t position, end; /* of the answer in the body */
};

/* Reads and checks the body of a GPU. offset: where it lies in its file, for messages. -EINVAL,
 * naming the byte, for data that no recorder wrote. The answers point into `body`; freed with
 * answers_destroy. */
int answers_read(const char *body, size_t length, uint64_t offset, struct answers **out_answers,
                 struct err *err);
void answers_destroy(struct answers *answers); /* accepts NULL */

/* Sets what the next requests are for; "" at first. */
void answers_mark(struct answers *answers, const char *what);
const char *answers_mark_text(const struct answers *answers);
bool answers_has_mark(const struct answers *answers, const char *what);

/* The n-th request of this key under the current mark gets the n-th answer that was recorded under
 * that mark. When those are used up, answers recorded under other marks follow, unless own_only.
 * NULL for a request that was not recorded. */
const struct recorded_answer *answers_find(struct answers *answers, uint64_t key, bool own_only);

#endif
