/* The answers of one GPU's record: a sorted table, and how often each request was made again. */
#include "device/record/answers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/record/asked.h"
#include "device/record/entry.h"
#include "device/record/record.h"

/* How often a key was asked for under a mark. */
struct tally {
    uint64_t key;
    uint32_t mark, count; /* 0: a free place */
};

struct answers {
    struct recorded_answer *items; /* once all are read, sorted by key, mark, number */
    size_t count, capacity;
    char **marks;
    size_t mark_count, mark_capacity;
    uint32_t mark;         /* the current one */
    struct tally *tallies; /* open addressing, a power of two, at most half full */
    size_t tally_count, tally_size;
};

void answers_destroy(struct answers *answers)
{
    if (!answers)
        return;
    for (size_t i = 0; i < answers->mark_count; i++)
        free(answers->marks[i]);
    free(answers->marks);
    free(answers->items);
    free(answers->tallies);
    free(answers);
}

void answers_mark(struct answers *answers, const char *what)
{
    size_t i = 0;
    while (i < answers->mark_count && !str_equal(answers->marks[i], what))
        i++;
    answers->mark = (uint32_t)i;
    if (i < answers->mark_count)
        return;
    answers->marks = mem_grow(answers->marks, &answers->mark_capacity, answers->mark_count + 1,
                              sizeof *answers->marks);
    answers->marks[answers->mark_count++] = str_copy(what);
}

bool answers_has_mark(const struct answers *answers, const char *what)
{
    for (size_t i = 0; i < answers->mark_count; i++)
        if (str_equal(answers->marks[i], what))
            return true;
    return false;
}

const char *answers_mark_text(const struct answers *answers)
{
    return answers->marks[answers->mark];
}

static struct recorded_answer *answers_add(struct answers *answers, uint64_t key)
{
    answers->items =
        mem_grow(answers->items, &answers->capacity, answers->count + 1, sizeof *answers->items);
    struct recorded_answer *answer = &answers->items[answers->count];
    *answer = (struct recorded_answer){
        .key = key, .mark = answers->mark, .number = (uint32_t)answers->count};
    answers->count++;
    return answer;
}

static int answer_order(const void *left, const void *right)
{
    const struct recorded_answer *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->mark != b->mark)
        return a->mark < b->mark ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static struct tally *tally_of(struct answers *answers, uint64_t key, uint32_t mark)
{
    size_t at = (size_t)(key ^ mark * UINT64_C(0x9e3779b97f4a7c15)) & (answers->tally_size - 1);
    while (answers->tallies[at].count &&
           (answers->tallies[at].key != key || answers->tallies[at].mark != mark))
        at = (at + 1) & (answers->tally_size - 1);
    return &answers->tallies[at];
}

/* Counts a request under the current mark; returns how many there were before with its key. */
static size_t tally_count(struct answers *answers, uint64_t key)
{
    if (answers->tally_count * 2 >= answers->tally_size) {
        size_t old_size = answers->tally_size;
        struct tally *old = answers->tallies;
        answers->tally_size = old_size ? 2 * old_size : 1024;
        answers->tallies = mem_array(answers->tally_size, sizeof *answers->tallies);
        for (size_t i = 0; i < old_size; i++)
            if (old[i].count)
                *tally_of(answers, old[i].key, old[i].mark) = old[i];
        free(old);
    }
    struct tally *tally = tally_of(answers, key, answers->mark);
    answers->tally_count += tally->count == 0;
    *tally = (struct tally){.key = key, .mark = answers->mark, .count = tally->count + 1};
    return tally->count - 1;
}

/* The first answer that is not before (key, mark). */
static size_t answers_bound(const struct answers *answers, uint64_t key, uint64_t mark)
{
    size_t low = 0, high = answers->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct recorded_answer *answer = &answers->items[middle];
        if (answer->key < key || (answer->key == key && answer->mark < mark))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct recorded_answer *answers_find(struct answers *answers, uint64_t key, bool own_only)
{
    size_t n = tally_count(answers, key);
    size_t first = answers_bound(answers, key, 0);
    size_t own = answers_bound(answers, key, answers->mark);
    size_t behind = answers_bound(answers, key, (uint64_t)answers->mark + 1);
    size_t end = answers_bound(answers, key, UINT64_MAX);
    if (n < behind - own)
        return &answers->items[own + n];
    n -= behind - own;
    if (own_only || n >= end - first - (behind - own))
        return NULL;
    return &answers->items[n < own - first ? first + n : behind + (n - (own - first))];
}

/* A body while it is read. */
struct reading {
    const char *body;
    uint64_t offset;
    struct answers *answers;
    struct asked last[DEVICE_CALL_COUNT]; /* the next requests are stored as differences */
    enum device_call call;                /* the last one */
    bool asked;                           /* it has no answer yet */
    size_t pending;                       /* items in the call */
    char *items;                          /* what was asked, one struct for each of them */
    size_t item_capacity;                 /* in bytes */
    bool opened, closed;
    uint32_t sm_count;
};

static void reading_add(struct reading *reading, struct wire_reader *values)
{
    const struct fields *fields = device_call_row(reading->call)->asked;
    struct asked *last = &reading->last[reading->call];
    if (fields) {
        asked_get(values, reading->call, last);
        size_t at = reading->pending * fields->size;
        reading->items = mem_grow(reading->items, &reading->item_capacity, at + fields->size, 1);
        if (!fields_from_numbers(fields, last->numbers, reading->items + at))
            values->bad = true;
    }
    if (!values->bad)
        answers_add(reading->answers, asked_key(reading->call, last));
    reading->pending++;
}

static void reading_take_request(struct reading *reading, struct wire_reader *values)
{
    uint64_t call = wire_get_varint(values);
    bool in_time = call == DEVICE_CALL_LOOK || (call == DEVICE_CALL_OPEN) != reading->opened;
    if (call >= DEVICE_CALL_COUNT || reading->asked || !in_time) {
        values->bad = true;
        return;
    }
    reading->call = (enum device_call)call;
    reading->asked = true;
    reading->pending = 0;
    uint64_t count = device_call_row(reading->call)->count ? wire_get_varint(values) : 1;
    if (count > RECORD_JOBS_MAX)
        values->bad = true;
    while (reading->pending < count && !values->bad)
        reading_add(reading, values);
}

static void reading_check(struct reading *reading, size_t item, struct wire_reader *values)
{
    const struct device_call_row *row = device_call_row(reading->call);
    const char *it = row->asked ? reading->items + item * row->asked->size : NULL;
    union device_call_room answer = {0};
    asked_get_answer(values, reading->call, it, reading->sm_count, &answer);
    if (reading->call == DEVICE_CALL_OPEN) {
        reading->sm_count = ((const struct device_limits *)(const void *)&answer)->sm_count;
        reading->opened = true;
    }
    fields_fini(row->answer, &answer);
}

static void reading_take_answer(struct reading *reading, struct wire_reader *values)
{
    size_t base = (size_t)((const char *)values->data - reading->body);
    bool failed = wire_get_signed(values) != 0;
    if (failed) {
        values->position = 0;
        asked_get_err(values, NULL);
    }
    if (!reading->asked)
        values->bad = true;
    for (size_t i = 0; i < reading->pending && !values->bad; i++) {
        struct recorded_answer *answer =
            &reading->answers->items[reading->answers->count - reading->pending + i];
        answer->answered = true;
        answer->failed = failed;
        answer->position = base + (failed ? 0 : values->position);
        if (!failed || device_call_row(reading->call)->keeps_facts)
            reading_check(reading, i, values);
        answer->end = base + values->position;
    }
    reading->asked = false;
}

static int reading_take(struct reading *reading, struct record_entry *entry, struct err *err)
{
    unsigned long long here = reading->offset + entry->position;
    struct wire_reader *values = &entry->values;
    const char *what = "call";
    char *mark = NULL;
    if (reading->closed)
        return err_set(err, -EINVAL, "byte %llu: expected nothing after the device was closed",
                       here);
    switch (entry->type) {
    case ENTRY_MARK:
        what = "mark";
        mark = wire_get_text(values);
        values->bad |= !mark || reading->asked;
        if (!values->bad)
            answers_mark(reading->answers, mark);
        free(mark);
        break;
    case ENTRY_ASK:
        reading_take_request(reading, values);
        break;
    case ENTRY_ANSWER:
        what = "answer";
        reading_take_answer(reading, values);
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

int answers_read(const char *body, size_t length, uint64_t offset, struct answers **out_answers,
                 struct err *err)
{
    struct answers *answers = mem_array(1, sizeof *answers);
    struct reading reading = {.body = body, .offset = offset, .answers = answers};
    struct record_entry entry = {0};
    size_t position = 0;
    int rc = 1;
    answers_mark(answers, "");
    while (rc > 0) {
        rc = entry_next(body, length, offset, &position, &entry, err);
        int taken = rc > 0 ? reading_take(&reading, &entry, err) : 0;
        if (taken)
            rc = taken;
    }
    free(reading.items);
    if (rc) {
        answers_destroy(answers);
        return rc;
    }
    answers->mark = 0;
    if (answers->count)
        qsort(answers->items, answers->count, sizeof *answers->items, answer_order);
    *out_answers = answers;
    return 0;
}
