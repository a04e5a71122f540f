/* The calls of one GPU's record. */
#include "device/replay/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/entry.h"
#include "device/replay/record.h"
#include "inventory/facts_wire.h"

/* How often a key was asked for under a mark. */
struct tally {
    uint64_t key;
    uint32_t mark, count; /* 0: a free place */
};

struct calls {
    const char *body;
    size_t length;
    uint64_t offset;
    struct call *items; /* sorted by key, mark, number */
    size_t count, capacity;
    char **marks;
    size_t mark_count, mark_capacity;
    uint32_t mark;         /* the present one */
    struct tally *tallies; /* open addressing, a power of two, at most half full */
    size_t tally_count, tally_size;
};

/* While a body is read. */
struct reading {
    struct calls *calls;
    struct ask last_job, last_stream;
    enum ask_call call;
    size_t pending; /* requests of the last ASK, the last ones of items */
    bool asked;     /* an ASK waits for its ANSWER */
    bool opened, closed;
    uint32_t sm_count;
};

static int find_mark(struct calls *calls, const char *what, uint32_t *out_mark)
{
    for (size_t i = 0; i < calls->mark_count; i++)
        if (str_equal(calls->marks[i], what)) {
            *out_mark = (uint32_t)i;
            return 0;
        }
    char **grown =
        mem_grow(calls->marks, &calls->mark_capacity, calls->mark_count + 1, sizeof *grown);
    char *copy = str_copy(what);
    if (grown)
        calls->marks = grown;
    if (!grown || !copy) {
        free(copy);
        return -ENOMEM;
    }
    *out_mark = (uint32_t)calls->mark_count;
    calls->marks[calls->mark_count++] = copy;
    return 0;
}

static int add_call(struct calls *calls, const struct ask *ask, uint32_t timed)
{
    struct call *grown = mem_grow(calls->items, &calls->capacity, calls->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    calls->items = grown;
    grown[calls->count] = (struct call){.key = ask_key(ask),
                                        .mark = calls->mark,
                                        .number = (uint32_t)calls->count,
                                        .timed = (uint8_t)timed};
    calls->count++;
    return 0;
}

static void take_batch(struct reading *reading, struct wire_reader *values)
{
    uint64_t count = wire_get_varint(values);
    struct device_job job;
    if (count > RECORD_JOBS_MAX)
        values->bad = true;
    for (uint64_t i = 0; i < count && !values->bad; i++, reading->pending++) {
        ask_get(values, ASK_BATCH, &reading->last_job);
        if (values->bad || !ask_to_job(&reading->last_job, &job) ||
            add_call(reading->calls, &reading->last_job, answer_timed_steps(&job)))
            values->bad = true;
    }
}

static void take_ask(struct reading *reading, struct wire_reader *values)
{
    uint64_t call = wire_get_varint(values);
    reading->pending = 0;
    if (call >= ASK_CALL_COUNT || reading->asked || reading->opened != (call != ASK_OPEN)) {
        values->bad = true;
        return;
    }
    reading->call = (enum ask_call)call;
    reading->asked = true;
    if (call == ASK_BATCH) {
        take_batch(reading, values);
        return;
    }
    struct ask ask = ask_of_call((enum ask_call)call);
    if (call == ASK_STREAM) {
        ask_get(values, ASK_STREAM, &reading->last_stream);
        ask = reading->last_stream;
    }
    if (values->bad || add_call(reading->calls, &ask, 0))
        values->bad = true;
    reading->pending = 1;
}

static void check_facts(struct wire_reader *values, size_t tables)
{
    for (size_t i = 0; i < tables && !values->bad; i++) {
        struct facts facts = {0};
        wire_get_facts(values, &facts);
        facts_fini(&facts);
    }
}

/* Reads past what answers one request. */
static void check_answer(struct reading *reading, uint32_t timed, struct wire_reader *values)
{
    struct device_limits limits = {0};
    struct device_clocks clocks = {0};
    switch (reading->call) {
    case ASK_OPEN:
        answer_get_limits(values, &limits);
        reading->sm_count = limits.sm_count;
        reading->opened = true;
        break;
    case ASK_IDENTIFY:
        check_facts(values, 3);
        break;
    case ASK_BATCH:
        answer_get_job(values, timed, reading->sm_count, NULL);
        break;
    case ASK_STREAM:
        wire_get_varint(values);
        wire_get_varint(values);
        break;
    default:
        answer_get_clocks(values, &clocks);
    }
}

static void take_answer(struct reading *reading, struct wire_reader *values)
{
    struct calls *calls = reading->calls;
    size_t base = (size_t)((const char *)values->data - calls->body);
    bool failed = wire_get_signed(values) != 0;
    if (failed) {
        values->position = 0;
        answer_get_err(values, NULL);
    }
    if (!reading->asked)
        values->bad = true;
    for (size_t i = calls->count - reading->pending; i < calls->count && !values->bad; i++) {
        struct call *call = &calls->items[i];
        call->answered = true;
        call->failed = failed;
        call->position = base + (failed ? 0 : values->position);
        if (!failed)
            check_answer(reading, call->timed, values);
        call->end = base + values->position;
    }
    reading->asked = false;
    reading->pending = 0;
}

static void take_mark(struct reading *reading, struct wire_reader *values)
{
    struct calls *calls = reading->calls;
    char *what = wire_get_text(values);
    if (!what || reading->asked || find_mark(calls, what, &calls->mark))
        values->bad = true;
    free(what);
}

static int take_entry(struct reading *reading, struct entry *entry, struct err *err)
{
    unsigned long long here = reading->calls->offset + entry->position;
    struct wire_reader *values = &entry->values;
    const char *what = "call";
    if (reading->closed)
        return err_set(err, -EINVAL, "byte %llu: expected nothing after the device was closed",
                       here);
    switch (entry->type) {
    case ENTRY_MARK:
        what = "mark";
        take_mark(reading, values);
        break;
    case ENTRY_ASK:
        take_ask(reading, values);
        break;
    case ENTRY_ANSWER:
        what = "answer";
        take_answer(reading, values);
        break;
    case ENTRY_CLOSE:
        reading->closed = true;
        values->bad |= reading->asked;
        break;
    default:
        return err_set(err, -EINVAL, "byte %llu: expected a call, found an entry of type %u", here,
                       entry->type);
    }
    if (wire_end(values, "", NULL))
        return err_set(err, -EINVAL, "byte %llu: malformed %s", here, what);
    return 0;
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

static int read_body(struct calls *calls, struct err *err)
{
    struct reading reading = {.calls = calls};
    struct entry entry = {0};
    size_t position = 0;
    int rc = find_mark(calls, "", &calls->mark) ? err_no_memory(err) : 1;
    while (rc > 0) {
        rc = entry_next(calls->body, calls->length, calls->offset, &position, &entry, err);
        if (rc > 0 && take_entry(&reading, &entry, err))
            rc = -EINVAL;
    }
    calls->mark = 0;
    if (!rc && calls->count)
        qsort(calls->items, calls->count, sizeof *calls->items, by_key);
    return rc;
}

int calls_read(const char *body, size_t length, uint64_t offset, struct calls **out_calls,
               struct err *err)
{
    struct calls *calls = mem_array(1, sizeof *calls);
    if (!calls)
        return err_no_memory(err);
    calls->body = body;
    calls->length = length;
    calls->offset = offset;
    int rc = read_body(calls, err);
    if (rc)
        calls_destroy(calls);
    else
        *out_calls = calls;
    return rc;
}

void calls_mark(struct calls *calls, const char *what)
{
    /* Without memory for a new mark, requests under it are looked for under the old one. */
    (void)find_mark(calls, what, &calls->mark);
}

const char *calls_mark_text(const struct calls *calls)
{
    return calls->marks[calls->mark];
}

/* The place of a key under the present mark. */
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

/* Counts a request: how many of its kind there were before. SIZE_MAX: no memory. */
static size_t count_asked(struct calls *calls, uint64_t key)
{
    if (calls->tally_count * 2 >= calls->tally_size && !grow_tallies(calls))
        return SIZE_MAX;
    struct tally *tally = place_of(calls, key, calls->mark);
    calls->tally_count += tally->count == 0;
    *tally = (struct tally){.key = key, .mark = calls->mark, .count = tally->count + 1};
    return tally->count - 1;
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

const struct call *calls_find(struct calls *calls, uint64_t key, bool own_only)
{
    size_t n = count_asked(calls, key);
    size_t first = lower_bound(calls, key, 0), own = lower_bound(calls, key, calls->mark);
    size_t behind = lower_bound(calls, key, (uint64_t)calls->mark + 1);
    size_t end = lower_bound(calls, key, UINT64_MAX);
    if (n < behind - own)
        return &calls->items[own + n];
    n -= behind - own;
    if (own_only || n >= end - first - (behind - own))
        return NULL;
    return &calls->items[n < own - first ? first + n : behind + (n - (own - first))];
}

struct wire_reader calls_values(const struct calls *calls, const struct call *call)
{
    return (struct wire_reader){.data = (const unsigned char *)calls->body + call->position,
                                .length = call->end - call->position};
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
