/* The calls of one GPU's record, found by request and mark. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_CALLS_H
#define GPUMEMTOPO_DEVICE_REPLAY_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calls;

/* One request that was recorded: a job of a batch, a stream, any other call. */
struct call {
    uint64_t key;         /* ask_key */
    uint32_t mark;        /* what it was for */
    uint32_t number;      /* its place in the order of recording */
    bool answered;        /* false: the worker died during this call */
    bool failed;          /* the answer is an error */
    size_t position, end; /* of the answer in the body */
};

struct calls *calls_create(void);        /* NULL: no memory */
void calls_destroy(struct calls *calls); /* accepts NULL */

/* Sets what the next requests are for; "" at first. 0 or -ENOMEM. After -ENOMEM, calls_find fails
 * with -ENOMEM until the next mark, instead of returning answers recorded under the old mark. */
int calls_mark(struct calls *calls, const char *what);
const char *calls_mark_text(const struct calls *calls);
bool calls_has_mark(const struct calls *calls, const char *what);

/* While the recorded calls are read: calls_add adds one under the current mark; calls_last returns
 * the last but `back`. NULL: no memory. Valid until the next one is added. calls_seal ends the
 * reading and returns to the first mark. */
struct call *calls_add(struct calls *calls, uint64_t key);
struct call *calls_last(struct calls *calls, size_t back);
void calls_seal(struct calls *calls);

/* After calls_seal: the answer to the n-th request of this key under the current mark is the n-th
 * that was recorded under that mark. When those are used up, answers recorded under other marks
 * follow, unless own_only. *out_call is NULL for a request that was not recorded. 0 or -ENOMEM. */
int calls_find(struct calls *calls, uint64_t key, bool own_only, const struct call **out_call);

#endif
