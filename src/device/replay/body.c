/* The body of one GPU in a record. */
#include "device/replay/body.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/entry.h"
#include "device/replay/record.h"
#include "schema/wire.h"

struct reading {
    const char *body;
    uint64_t offset;
    struct calls *calls;
    struct ask last[ASK_CALL_COUNT]; /* the next requests are stored as differences */
    enum ask_call call;              /* the last one asked */
    bool asked;                      /* it has no answer yet */
    size_t pending;                  /* requests in the call */
    struct device_job *jobs;         /* of a batch, as many as are pending */
    size_t job_capacity;
    bool opened, closed;
    uint32_t sm_count;
};

static void add_job(struct reading *reading, struct wire_reader *values)
{
    struct device_job *grown =
        mem_grow(reading->jobs, &reading->job_capacity, reading->pending + 1, sizeof *grown);
    if (grown)
        reading->jobs = grown;
    if (!grown)
        wire_no_memory(values);
    else if (!ask_to_job(&reading->last[ASK_BATCH], &grown[reading->pending]))
        values->bad = true;
    else if (!calls_add(reading->calls, ask_key(&reading->last[ASK_BATCH])))
        wire_no_memory(values);
}

static void take_batch(struct reading *reading, struct wire_reader *values)
{
    uint64_t count = wire_get_varint(values);
    if (count > RECORD_JOBS_MAX)
        values->bad = true;
    for (uint64_t i = 0; i < count && !values->bad; i++, reading->pending++) {
        ask_get(values, ASK_BATCH, &reading->last[ASK_BATCH]);
        if (!values->bad)
            add_job(reading, values);
    }
}

static void take_ask(struct reading *reading, struct wire_reader *values)
{
    uint64_t call = wire_get_varint(values);
    bool in_time = call == ASK_LOOK || (call == ASK_OPEN) != reading->opened;
    if (call >= ASK_CALL_COUNT || reading->asked || !in_time) {
        values->bad = true;
        return;
    }
    reading->call = (enum ask_call)call;
    reading->asked = true;
    reading->pending = 0;
    if (call == ASK_BATCH) {
        take_batch(reading, values);
        return;
    }
    struct ask *ask = &reading->last[call];
    ask->call = (enum ask_call)call;
    if (ask_has_fields(ask->call))
        ask_get(values, ask->call, ask);
    if (!calls_add(reading->calls, ask_key(ask)))
        wire_no_memory(values);
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

/* Answers of fixed size, to requests that their reading does not depend on. */
static void check_fixed_answer(enum ask_call call, struct wire_reader *values)
{
    union {
        struct device_peer_answer peer;
        struct device_host_share_answer share;
        struct device_code_answer code;
        struct device_straight_answer straight;
        struct device_bulk_answer bulk;
        struct device_clocks clocks;
        struct device_link link;
    } unused;
    switch (call) {
    case ASK_STREAM:
        wire_get_varint(values);
        wire_get_varint(values);
        break;
    case ASK_PEER:
        answer_get_peer(values, &unused.peer);
        break;
    case ASK_SHARE:
        answer_get_share(values, &unused.share);
        break;
    case ASK_CODE:
        answer_get_code(values, &unused.code);
        break;
    case ASK_SHARED_LOAD:
        wire_get_varint(values);
        break;
    case ASK_STRAIGHT:
        answer_get_straight(values, &unused.straight);
        break;
    case ASK_BULK:
        answer_get_bulk(values, &unused.bulk);
        break;
    case ASK_CLOCKS:
        answer_get_clocks(values, &unused.clocks);
        break;
    case ASK_LINK:
        answer_get_link(values, &unused.link);
        break;
    default:
        break;
    }
}

/* Reads the answer to request i, and checks it. */
static void check_answer(struct reading *reading, size_t i, struct wire_reader *values)
{
    struct device_limits limits = {0};
    struct device_cluster cluster;
    switch (reading->call) {
    case ASK_OPEN:
        answer_get_limits(values, &limits);
        reading->sm_count = limits.sm_count;
        reading->opened = true;
        break;
    case ASK_BATCH:
        answer_get_job(values, &reading->jobs[i], reading->sm_count, NULL);
        break;
    case ASK_MEMORY:
        answer_get_map(values, reading->last[ASK_MEMORY].fields[0], NULL);
        break;
    case ASK_CHECK:
        answer_get_check(values, NULL);
        break;
    case ASK_LOAD:
        answer_get_load(values, NULL);
        break;
    case ASK_SM_MAP:
        answer_get_sm_map(values, NULL);
        break;
    case ASK_CLUSTER:
        cluster = ask_to_cluster(&reading->last[ASK_CLUSTER]);
        answer_get_cluster(values, &cluster, reading->sm_count, NULL);
        break;
    default:
        check_fixed_answer(reading->call, values);
    }
}

static void take_answer(struct reading *reading, struct wire_reader *values)
{
    size_t base = (size_t)((const char *)values->data - reading->body);
    bool failed = wire_get_signed(values) != 0;
    if (failed) {
        values->position = 0;
        answer_get_err(values, NULL);
    }
    if (!reading->asked)
        values->bad = true;
    for (size_t i = 0; i < reading->pending && !values->bad; i++) {
        struct call *call = calls_last(reading->calls, reading->pending - 1 - i);
        call->answered = true;
        call->failed = failed;
        call->position = base + (failed ? 0 : values->position);
        if (!failed)
            check_answer(reading, i, values);
        check_facts(values, ask_tables(reading->call));
        call->end = base + values->position;
    }
    reading->asked = false;
}

static void take_mark(struct reading *reading, struct wire_reader *values)
{
    char *what = wire_get_text(values);
    if (!what || reading->asked)
        values->bad = true;
    else if (calls_mark(reading->calls, what))
        wire_no_memory(values);
    free(what);
}

static int take_entry(struct reading *reading, struct record_entry *entry, struct err *err)
{
    unsigned long long here = reading->offset + entry->position;
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
    if (values->no_memory)
        return err_no_memory(err);
    if (wire_end(values, "", NULL))
        return err_set(err, -EINVAL, "byte %llu: malformed %s", here, what);
    return 0;
}

int body_read(const char *body, size_t length, uint64_t offset, struct calls **out_calls,
              struct err *err)
{
    struct reading reading = {.body = body, .offset = offset, .calls = calls_create()};
    struct record_entry entry = {0};
    size_t position = 0;
    int rc = reading.calls ? 1 : err_no_memory(err);
    while (rc > 0) {
        rc = entry_next(body, length, offset, &position, &entry, err);
        int taken = rc > 0 ? take_entry(&reading, &entry, err) : 0;
        if (taken)
            rc = taken;
    }
    free(reading.jobs);
    if (rc) {
        calls_destroy(reading.calls);
        return rc;
    }
    calls_seal(reading.calls);
    *out_calls = reading.calls;
    return 0;
}
