/* The calls of one GPU's record: a sorted table, and how often each request was made again. */
#include "device/replay/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

/* How often a key was asked for under a mark. */
struct tally {
    uint64_t key;
    uint32_t mark, count; /* 0: a free place */
};

struct calls {
    struct call *items; /* once sealed, sorted by key, mark, number */
    size_t count, capacity;
    char **marks;
    size_t mark_count, mark_capacity;
    uint32_t mark;         /* the current one; MARK_NONE: it could not be allocated */
    struct tally *tallies; /* open addressing, a power of two, at most half full */
    size_t tally_count, tally_size;
};

enum { MARK_NONE = UINT32_MAX };

struct calls *calls_create(void)
{
    struct calls *calls = mem_array(1, sizeof *calls);
    if (calls && calls_mark(calls, "")) {
        calls_destroy(calls);
        return NULL;
    }
    return calls;
}

void calls_destroy(struct calls *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->mark_count; i++)
        free(calls->marks[i]);
    free(calls->marks);
    free(calls->items);
    free(calls->tallies);
    free(calls);
}

int calls_mark(struct calls *calls, const char *what)
{
    for (size_t i = 0; i < calls->mark_count; i++)
        if (str_equal(calls->marks[i], what)) {
            calls->mark = (uint32_t)i;
            return 0;
        }
    char **grown =
        mem_grow(calls->marks, &calls->mark_capacity, calls->mark_count + 1, sizeof *grown);
    char *copy = str_copy(what);
    if (grown)
        calls->marks = grown;
    if (!grown || !copy) {
        free(copy);
        calls->mark = MARK_NONE;
        return -ENOMEM;
    }
    calls->mark = (uint32_t)calls->mark_count;
    calls->marks[calls->mark_count++] = copy;
    return 0;
}

bool calls_has_mark(const struct calls *calls, const char *what)
{
    for (size_t i = 0; i < calls->mark_count; i++)
        if (str_equal(calls->marks[i], what))
            return true;
    return false;
}

const char *calls_mark_text(const struct calls *calls)
{
    return calls->mark == MARK_NONE ? "" : calls->marks[calls->mark];
}

struct call *calls_add(struct calls *calls, uint64_t key)
{
    struct call *grown = mem_grow(calls->items, &calls->capacity, calls->count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    calls->items = grown;
    struct call *call = &grown[calls->count];
    *call = (struct call){.key = key, .mark = calls->mark, .number = (uint32_t)calls->count++};
    return call;
}

struct call *calls_last(struct calls *calls, size_t back)
{
    return &calls->items[calls->count - 1 - back];
}

static int by_key(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->mark != b->mark)
        return a->mark < b->mark ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void calls_seal(struct calls *calls)
{
    calls->mark = 0;
    if (calls->count)
        qsort(calls->items, calls->count, sizeof *calls->items, by_key);
}

/* The tally of a key under the current mark. */
static struct tally *place_of(struct calls *calls, uint64_t key, uint32_t mark)
{
    size_t at = (size_t)(key ^ mark * UINT64_C(0x9e3779b97f4a7c15)) & (calls->tally_size - 1);
    while (calls->tallies[at].count &&
           (calls->tallies[at].key != key || calls->tallies[at].mark != mark))
        at = (at + 1) & (calls->tally_size - 1);
    return &calls->tallies[at];
}

static bool grow_tallies(struct calls *calls)
{
    size_t old_size = calls->tally_size;
    struct tally *old = calls->tallies;
    struct tally *grown = mem_array(old_size ? 2 * old_size : 1024, sizeof *grown);
    if (!grown)
        return false;
    calls->tallies = grown;
    calls->tally_size = old_size ? 2 * old_size : 1024;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].count)
            *place_of(calls, old[i].key, old[i].mark) = old[i];
    free(old);
    return true;
}

/* Counts a request; out: how many there were before with the same key. 0 or -ENOMEM. */
static int count_asked(struct calls *calls, uint64_t key, size_t *out_before)
{
    if (calls->tally_count * 2 >= calls->tally_size && !grow_tallies(calls))
        return -ENOMEM;
    struct tally *tally = place_of(calls, key, calls->mark);
    calls->tally_count += tally->count == 0;
    *tally = (struct tally){.key = key, .mark = calls->mark, .count = tally->count + 1};
    *out_before = tally->count - 1;
    return 0;
}

/* The first call that is not before (key, mark). */
static size_t lower_bound(const struct calls *calls, uint64_t key, uint64_t mark)
{
    size_t low = 0, high = calls->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct call *call = &calls->items[middle];
        if (call->key < key || (call->key == key && call->mark < mark))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int calls_find(struct calls *calls, uint64_t key, bool own_only, const struct call **out_call)
{
    size_t n = 0;
    if (calls->mark == MARK_NONE || count_asked(calls, key, &n))
        return -ENOMEM;
    size_t first = lower_bound(calls, key, 0), own = lower_bound(calls, key, calls->mark);
    size_t behind = lower_bound(calls, key, (uint64_t)calls->mark + 1);
    size_t end = lower_bound(calls, key, UINT64_MAX);
    *out_call = NULL;
    if (n < behind - own) {
        *out_call = &calls->items[own + n];
        return 0;
    }
    n -= behind - own;
    if (!own_only && n < end - first - (behind - own))
        *out_call = &calls->items[n < own - first ? first + n : behind + (n - (own - first))];
    return 0;
}
