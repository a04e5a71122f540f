/* A record as a source of GPUs, and its devices: their answers come from the record. The answers of
 * one GPU are a sorted table, which also counts how often each request was made again. */
#include "device/record/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "device/record/entry.h"
#include "device/record/record.h"

/* The answer to one request that was recorded: an item of a call. */
struct recorded_answer {
    uint64_t key;         /* asked_key */
    uint32_t mark;        /* what it was for */
    uint32_t number;      /* its place in the order of recording */
    bool answered;        /* false: the worker died during this call */
    bool failed;          /* the answer is an error */
    size_t position, end; /* of the answer in the body */
};

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

static void answers_destroy(struct answers *answers)
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

/* Sets what the next requests are for; "" at first. */
static void answers_mark(struct answers *answers, const char *what)
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

static bool answers_has_mark(const struct answers *answers, const char *what)
{
    for (size_t i = 0; i < answers->mark_count; i++)
        if (str_equal(answers->marks[i], what))
            return true;
    return false;
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

/* The n-th request of this key under the current mark gets the n-th answer that was recorded under
 * that mark. When those are used up, answers recorded under other marks follow, unless own_only.
 * NULL for a request that was not recorded. */
static const struct recorded_answer *answers_find(struct answers *answers, uint64_t key,
                                                  bool own_only)
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
    reading->pending++;
    if (values->bad)
        return;
    struct answers *answers = reading->answers;
    answers->items =
        mem_grow(answers->items, &answers->capacity, answers->count + 1, sizeof *answers->items);
    answers->items[answers->count] = (struct recorded_answer){.key = asked_key(reading->call, last),
                                                              .mark = answers->mark,
                                                              .number = (uint32_t)answers->count};
    answers->count++;
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

/* Reads and checks the body of a GPU. offset: where it lies in its file, for messages. -EINVAL,
 * naming the byte, for data that no recorder wrote. The answers point into `body`; freed with
 * answers_destroy. */
static int answers_read(const char *body, size_t length, uint64_t offset,
                        struct answers **out_answers, struct err *err)
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
        sort_stable(answers->items, answers->count, sizeof *answers->items, answer_order);
    *out_answers = answers;
    return 0;
}

/* One GPU of the record while it is replayed. */
struct slot {
    const struct record_gpu *gpu;
    struct strbuf body;
    struct answers *answers; /* of the body; NULL: not read yet */
    bool ended;
    size_t missed;
    struct strbuf first, remark; /* the first missed request, and the sentence about all of them */
};

struct replay_source {
    struct device_source base; /* infos are parallel to slots */
    struct record *record;
    struct slot *slots;
};

struct replayed {
    struct device base;
    struct slot *slot;
};

/* True when the worker did not end by itself: nothing is recorded after that point. */
static bool slot_is_cut(const struct slot *slot)
{
    return !slot->gpu->closed && slot->gpu->gpu.status != GPU_OK;
}

static int slot_end(struct slot *slot, struct err *err)
{
    const struct gpu_result *gpu = &slot->gpu->gpu;
    slot->ended = true;
    return err_set(err, -EIO, "the record ends: %s, %s", gpu_status_name(gpu->status),
                   gpu->reason ? gpu->reason : "");
}

static int slot_miss(struct slot *slot, enum device_call call, const void *it, struct err *err)
{
    struct strbuf what = {0};
    const char *mark = slot->answers->marks[slot->answers->mark];
    device_call_describe(call, it, &what);
    if (!slot->missed++)
        strbuf_printf(&slot->first, "by %s: %s", *mark ? mark : "no probe", what.data);
    slot->remark.length = 0;
    strbuf_printf(&slot->remark, "%zu request%s not in the record, the first %s", slot->missed,
                  slot->missed == 1 ? " is" : "s are", slot->first.data);
    int rc = err_set(err, -ENOENT, "not in the record%s: %s",
                     slot->gpu->closed ? "" : ", which is not complete", what.data);
    strbuf_fini(&what);
    return rc;
}

/* Gives the recorded answer to what is asked: 0 or the recorded error. */
static int slot_answer(struct slot *slot, enum device_call call, const void *it, uint32_t sm_count,
                       void *answer, struct err *err)
{
    const struct device_call_row *row = device_call_row(call);
    const struct asked asked = asked_of(call, it);
    const struct recorded_answer *found =
        answers_find(slot->answers, asked_key(call, &asked), slot_is_cut(slot));
    if (!found || !found->answered)
        return slot_is_cut(slot) ? slot_end(slot, err) : slot_miss(slot, call, it, err);
    struct wire_reader values = {.data = (const unsigned char *)slot->body.data + found->position,
                                 .length = found->end - found->position};
    int rc = found->failed ? asked_get_err(&values, err) : 0;
    if (!row->keeps_facts)
        memset(answer, 0, row->answer->size);
    if (!rc || row->keeps_facts)
        asked_get_answer(&values, call, it, sm_count, answer);
    if (values.bad) /* two requests with the same key: damage was found when the record was read */
        return err_set(err, -EINVAL, "the answer in the record is to another request");
    return rc;
}

static int replay_call(struct device *device, enum device_call call, const void *request,
                       void *answer, struct err *err)
{
    struct slot *slot = ((struct replayed *)device)->slot;
    size_t items = device_call_items(call, request), size = device_call_row(call)->answer->size;
    int rc = 0;
    for (size_t i = 0; i < items && !rc; i++) {
        union device_call_room it = {0};
        device_call_ask(call, device, request, i, &it);
        rc = slot_answer(slot, call, &it, device->limits.sm_count, (char *)answer + i * size, err);
        if (rc == -ENOENT && items > 1)
            err_prefix(err, "job %zu of %zu", i + 1, items);
    }
    return rc;
}

static void replay_mark(struct device *device, const char *what)
{
    answers_mark(((struct replayed *)device)->slot->answers, what);
}

/* A record that was cut off does not say what came later. */
static bool replay_knows(struct device *device, const char *what)
{
    const struct slot *slot = ((struct replayed *)device)->slot;
    return slot_is_cut(slot) || answers_has_mark(slot->answers, what);
}

static void replay_destroy(struct device *device)
{
    free(device);
}

static void slot_unload(struct slot *slot)
{
    answers_destroy(slot->answers);
    strbuf_fini(&slot->body);
    slot->answers = NULL;
}

/* Reads the body of a part. On failure, releases what was read, so that a second try starts anew.
 */
static int slot_read(const struct replay_source *source, const struct record_gpu *part,
                     struct slot *slot, struct err *err)
{
    int rc = record_read_body(source->record, part, &slot->body, err);
    if (!rc) {
        rc = answers_read(slot->body.data, slot->body.length, part->body_offset, &slot->answers,
                          err);
        if (rc)
            record_blame(source->record, err);
    }
    if (rc)
        slot_unload(slot);
    return rc;
}

/* Reads the body of a GPU once. */
static int slot_load(const struct replay_source *source, struct slot *slot, struct err *err)
{
    if (slot->answers)
        return 0;
    if (source->base.session != slot->gpu->session) {
        const char *uuid = slot->gpu->gpu.uuid;
        const struct record_gpu *part = record_find_gpu(source->record, uuid, source->base.session);
        if (!part)
            return err_set(err, -ENOENT, "%s was not measured again in this record", uuid);
        slot->gpu = part;
    }
    return slot_read(source, slot->gpu, slot, err);
}

static int replay_look(struct device_source *base, size_t i, bool thorough,
                       struct device_look *out_look, struct err *err)
{
    (void)thorough; /* the second look is the thorough one, as it was when recorded */
    struct replay_source *source = (struct replay_source *)base;
    int rc = slot_load(source, &source->slots[i], err);
    return rc ? rc : slot_answer(&source->slots[i], DEVICE_CALL_LOOK, NULL, 0, out_look, err);
}

static int replay_open(struct device_source *base, size_t i, struct device **out_device,
                       struct err *err)
{
    static const struct device_ops ops = {.backend = "replay",
                                          .call = replay_call,
                                          .mark = replay_mark,
                                          .knows = replay_knows,
                                          .destroy = replay_destroy};
    struct replay_source *source = (struct replay_source *)base;
    struct slot *slot = &source->slots[i];
    struct device_limits limits;
    int rc = slot_load(source, slot, err);
    if (!rc)
        rc = slot_answer(slot, DEVICE_CALL_OPEN, NULL, 0, &limits, err);
    if (rc)
        return rc;
    struct replayed *self = mem_array(1, sizeof *self);
    self->base = (struct device){.ops = &ops, .limits = limits};
    self->slot = slot;
    *out_device = &self->base;
    return 0;
}

static void replay_source_destroy(struct device_source *base)
{
    struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++) {
        slot_unload(&source->slots[i]);
        strbuf_fini(&source->slots[i].first);
        strbuf_fini(&source->slots[i].remark);
    }
    free(source->slots);
    free(base->infos);
    free(base->bare_nodes);
    record_close(source->record);
    free(source);
}

static const struct device_source_ops replay_source_ops = {
    .backend = "replay",
    .open = replay_open,
    .look = replay_look,
    .destroy = replay_source_destroy,
};

static void replay_add_gpu(struct replay_source *source, const struct record_gpu *gpu)
{
    const struct gpu_result *is = &gpu->gpu;
    source->slots[source->base.info_count].gpu = gpu;
    source->base.infos[source->base.info_count++] = (struct device_info){
        .uuid = is->uuid,
        .node = is->node,
        .pci = is->pci,
        .index = is->index,
        .name = is->name,
        .model_key = is->model_key,
    };
}

int device_source_replay(const char *path, uint32_t rank, uint32_t ranks,
                         struct device_source **out_source, struct err *err)
{
    if (!ranks || rank >= ranks)
        return err_set(err, -EINVAL, "rank %u of %u", rank, ranks);
    struct replay_source *source = mem_array(1, sizeof *source);
    source->base.ops = &replay_source_ops;
    int rc = record_open(path, &source->record, err);
    if (rc) {
        replay_source_destroy(&source->base);
        return rc;
    }
    const struct record_survey *survey = record_survey(source->record);
    size_t count = record_gpu_count(source->record);
    source->slots = mem_array(count, sizeof *source->slots);
    source->base.infos = mem_array(count, sizeof *source->base.infos);
    source->base.bare_nodes = mem_array(survey->bare_count, sizeof *source->base.bare_nodes);
    for (size_t i = rank; i < count; i += ranks)
        replay_add_gpu(source, record_gpu(source->record, i));
    for (size_t i = 0; i < survey->bare_count && rank == 0; i++)
        source->base.bare_nodes[source->base.bare_count++] = survey->bare_nodes[i];
    *out_source = &source->base;
    return 0;
}

int replay_check(struct device_source *base, struct err *err)
{
    const struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++)
        for (uint32_t session = 0; session < 2; session++) {
            const struct record_gpu *part =
                record_find_gpu(source->record, base->infos[i].uuid, session);
            struct slot slot = {0};
            int rc = part ? slot_read(source, part, &slot, err) : 0;
            slot_unload(&slot);
            if (rc)
                return rc;
        }
    return 0;
}

static const struct slot *replay_slot(const struct device_source *base, size_t i)
{
    return base->ops == &replay_source_ops ? &((const struct replay_source *)base)->slots[i] : NULL;
}

const struct gpu_result *replay_ended(const struct device_source *source, size_t i)
{
    const struct slot *slot = replay_slot(source, i);
    return slot && slot->ended ? &slot->gpu->gpu : NULL;
}

const struct gpu_result *replay_recorded(const struct device_source *source, size_t i)
{
    const struct slot *slot = replay_slot(source, i);
    return slot ? &slot->gpu->gpu : NULL;
}

const char *replay_missed(const struct device_source *source, size_t i)
{
    const struct slot *slot = replay_slot(source, i);
    return slot && slot->missed ? slot->remark.data : NULL;
}
