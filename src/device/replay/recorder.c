/* Recording: a source whose devices record every call and its answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"
#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/entry.h"
#include "device/replay/record.h"
#include "schema/wire.h"

/* Where entries are written. When a write fails, recording stops; the measurement goes on. */
struct sink {
    int fd;
    size_t written;
    bool broken, closed;
    struct ask last[ASK_CALL_COUNT]; /* the next requests are written as differences */
};

struct recorder {
    struct device base;
    struct device *inner;
    struct sink *sink;
};

struct recording {
    struct device_source base;
    struct device_source *inner;
    struct sink sink;
};

/* Writes one entry with one call, so that a process that dies leaves whole entries; releases the
 * payload. */
static void put(struct sink *sink, enum entry_type type, struct strbuf *payload)
{
    struct strbuf bytes = {0};
    entry_write(&bytes, type, payload);
    if (sink->closed || bytes.failed || bytes.length > RECORD_BODY_MAX - sink->written)
        sink->broken = true;
    if (!sink->broken && io_write_all(sink->fd, bytes.data, bytes.length))
        sink->broken = true;
    sink->written += sink->broken ? 0 : bytes.length;
    strbuf_fini(&bytes);
    strbuf_fini(payload);
}

static void put_ask(struct sink *sink, const struct ask *ask)
{
    struct strbuf payload = {0};
    wire_put_varint(&payload, ask->call);
    if (ask_has_fields(ask->call))
        ask_put(&payload, ask, &sink->last[ask->call]);
    put(sink, ENTRY_ASK, &payload);
}

static void put_batch(struct sink *sink, const struct device_batch *batch)
{
    struct strbuf payload = {0};
    sink->broken |= batch->job_count > RECORD_JOBS_MAX;
    wire_put_varint(&payload, ASK_BATCH);
    wire_put_varint(&payload, batch->job_count);
    for (size_t i = 0; i < batch->job_count; i++) {
        const struct ask ask = ask_of_job(&batch->jobs[i], batch->at_once);
        ask_put(&payload, &ask, &sink->last[ASK_BATCH]);
    }
    put(sink, ENTRY_ASK, &payload);
}

/* The answer: 0 or the error, then the values; releases them. */
static void put_answer(struct sink *sink, int rc, const struct err *err, struct strbuf *values)
{
    struct strbuf payload = {0};
    if (rc)
        answer_put_err(&payload, rc, err->text);
    else
        wire_put_signed(&payload, 0);
    strbuf_append(&payload, values->data, values->length);
    payload.failed |= values->failed;
    strbuf_fini(values);
    put(sink, ENTRY_ANSWER, &payload);
}

/* Marks the record as complete. Called before the device is closed, since a driver may hang or
 * crash then. */
static void put_close(struct sink *sink)
{
    struct strbuf nothing = {0};
    if (!sink->closed)
        put(sink, ENTRY_CLOSE, &nothing);
    sink->closed = true;
}

/* Errors are recorded even if the caller does not want them. */
static int hand_on(const struct err *said, int rc, struct err *err)
{
    if (rc && err)
        *err = *said;
    return rc;
}

static int recorder_identify(struct device *device, struct facts *hardware, struct facts *board,
                             struct facts *config, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_call(ASK_IDENTIFY);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = self->inner->ops->identify(self->inner, hardware, board, config, &said);
    wire_put_facts(&values, hardware);
    wire_put_facts(&values, board);
    wire_put_facts(&values, config);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_batch(struct device *device, const struct device_batch *batch,
                              struct device_answer *answers, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    struct strbuf values = {0};
    struct err said = {0};
    put_batch(self->sink, batch);
    int rc = self->inner->ops->run_batch(self->inner, batch, answers, &said);
    for (size_t i = 0; i < batch->job_count && !rc; i++)
        answer_put_job(&values, &batch->jobs[i], &answers[i]);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_stream(struct device *device, const struct device_stream *stream,
                               struct device_stream_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_stream(stream);
    struct device_stream_answer answer = {0};
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = self->inner->ops->run_stream(self->inner, stream, &answer, &said);
    if (!rc) {
        wire_put_varint(&values, answer.bytes);
        wire_put_varint(&values, answer.elapsed_ns);
    }
    put_answer(self->sink, rc, &said, &values);
    if (!rc)
        *out_answer = answer;
    return hand_on(&said, rc, err);
}

static int recorder_test_memory(struct device *device, const struct device_memory_test *test,
                                struct device_memory_map *out_map, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_memory_test(test);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_test_memory(self->inner, test, out_map, &said);
    if (!rc)
        answer_put_map(&values, test->patterns, out_map);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_check_unit(struct device *device, const struct device_check *check,
                               struct device_check_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_check(check);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_check_unit(self->inner, check, out_answer, &said);
    if (!rc)
        answer_put_check(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_map_sms(struct device *device, const struct device_sm_map *map,
                            struct device_sm_map_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_sm_map(map, device->limits.sm_count);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_map_sms(self->inner, map, out_answer, &said);
    if (!rc)
        answer_put_sm_map(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_code(struct device *device, const struct device_code *code,
                             struct device_code_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_code(code);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_run_code(self->inner, code, out_answer, &said);
    if (!rc)
        answer_put_code(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_load_shared(struct device *device, const struct device_shared_load *load,
                                struct device_shared_load_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_shared_load(load);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_load_shared(self->inner, load, out_answer, &said);
    if (!rc)
        wire_put_varint(&values, out_answer->cycles);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_cluster(struct device *device, const struct device_cluster *cluster,
                                struct device_cluster_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_cluster(cluster);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_run_cluster(self->inner, cluster, out_answer, &said);
    if (!rc)
        answer_put_cluster(&values, cluster, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_straight(struct device *device, const struct device_straight *straight,
                                 struct device_straight_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_straight(straight);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_run_straight(self->inner, straight, out_answer, &said);
    if (!rc)
        answer_put_straight(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_copy_bulk(struct device *device, const struct device_bulk *bulk,
                              struct device_bulk_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_bulk(bulk);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_copy_bulk(self->inner, bulk, out_answer, &said);
    if (!rc)
        answer_put_bulk(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_run_load(struct device *device, const struct device_load *load,
                             struct device_load_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_load(load);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_run_load(self->inner, load, out_answer, &said);
    if (!rc)
        answer_put_load(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_call(ASK_PEERS);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_list_peers(self->inner, out_gpus, &said);
    wire_put_facts(&values, out_gpus);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_test_peer(struct device *device, const struct device_peer_test *test,
                              struct device_peer_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_peer_test(test);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_test_peer(self->inner, test, out_answer, &said);
    if (!rc)
        answer_put_peer(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_share_host(struct device *device, const struct device_host_share *asked,
                               struct device_host_share_answer *out_answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_host_share(asked);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = device_share_host(self->inner, asked, out_answer, &said);
    if (!rc)
        answer_put_share(&values, out_answer);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static int recorder_read_clocks(struct device *device, struct device_clocks *out_clocks,
                                struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_call(ASK_CLOCKS);
    struct device_clocks clocks = {0};
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = self->inner->ops->read_clocks(self->inner, &clocks, &said);
    if (!rc)
        answer_put_clocks(&values, &clocks);
    put_answer(self->sink, rc, &said, &values);
    if (!rc)
        *out_clocks = clocks;
    return hand_on(&said, rc, err);
}

static int recorder_read_health(struct device *device, struct facts *config, struct facts *health,
                                struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_call(ASK_HEALTH);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(self->sink, &ask);
    int rc = self->inner->ops->read_health(self->inner, config, health, &said);
    wire_put_facts(&values, config);
    wire_put_facts(&values, health);
    put_answer(self->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

static void recorder_begin_link(struct device *device, struct device_link *out_link)
{
    struct recorder *self = (struct recorder *)device;
    const struct ask ask = ask_of_call(ASK_LINK);
    struct strbuf values = {0};
    put_ask(self->sink, &ask);
    device_begin_link(self->inner, out_link);
    answer_put_link(&values, out_link);
    put_answer(self->sink, 0, NULL, &values);
}

static void recorder_end_link(struct device *device)
{
    device_end_link(((struct recorder *)device)->inner);
}

static void recorder_mark(struct device *device, const char *what)
{
    struct recorder *self = (struct recorder *)device;
    struct strbuf payload = {0};
    wire_put_text(&payload, what);
    put(self->sink, ENTRY_MARK, &payload);
    device_mark(self->inner, what);
}

static void recorder_destroy(struct device *device)
{
    struct recorder *self = (struct recorder *)device;
    put_close(self->sink);
    device_destroy(self->inner);
    free(self);
}

static const struct device_ops recorder_ops = {
    .backend = "record",
    .identify = recorder_identify,
    .run_batch = recorder_run_batch,
    .run_stream = recorder_run_stream,
    .test_memory = recorder_test_memory,
    .check_unit = recorder_check_unit,
    .map_sms = recorder_map_sms,
    .run_load = recorder_run_load,
    .run_code = recorder_run_code,
    .load_shared = recorder_load_shared,
    .run_straight = recorder_run_straight,
    .run_cluster = recorder_run_cluster,
    .copy_bulk = recorder_copy_bulk,
    .list_peers = recorder_list_peers,
    .test_peer = recorder_test_peer,
    .share_host = recorder_share_host,
    .read_clocks = recorder_read_clocks,
    .read_health = recorder_read_health,
    .begin_link = recorder_begin_link,
    .end_link = recorder_end_link,
    .mark = recorder_mark,
    .destroy = recorder_destroy,
};

static int recording_open(struct device_source *source, size_t i, struct device **out_device,
                          struct err *err)
{
    struct recording *recording = (struct recording *)source;
    const struct ask ask = ask_of_call(ASK_OPEN);
    struct recorder *self = mem_array(1, sizeof *self);
    struct strbuf values = {0};
    struct err said = {0};
    if (!self)
        return err_no_memory(err);
    put_ask(&recording->sink, &ask);
    recording->inner->session = source->session;
    int rc = device_source_open(recording->inner, i, &self->inner, &said);
    if (!rc) {
        self->base = (struct device){.ops = &recorder_ops, .limits = self->inner->limits};
        self->sink = &recording->sink;
        answer_put_limits(&values, &self->base.limits);
    }
    put_answer(&recording->sink, rc, &said, &values);
    if (rc)
        free(self);
    else
        *out_device = &self->base;
    return hand_on(&said, rc, err);
}

static int recording_look(struct device_source *source, size_t i, bool thorough,
                          struct device_look *out_look, struct err *err)
{
    struct recording *recording = (struct recording *)source;
    const struct ask ask = ask_of_call(ASK_LOOK);
    struct strbuf values = {0};
    struct err said = {0};
    put_ask(&recording->sink, &ask);
    int rc = device_source_look(recording->inner, i, thorough, out_look, &said);
    wire_put_facts(&values, &out_look->board);
    wire_put_facts(&values, &out_look->config);
    wire_put_facts(&values, &out_look->health);
    put_answer(&recording->sink, rc, &said, &values);
    return hand_on(&said, rc, err);
}

/* The lists belong to the inner source. */
static void recording_destroy(struct device_source *source)
{
    struct recording *recording = (struct recording *)source;
    put_close(&recording->sink);
    device_source_destroy(recording->inner);
    free(recording);
}

int device_source_record(struct device_source *inner, int fd, struct device_source **out_source,
                         struct err *err)
{
    static const struct device_source_ops ops = {.backend = "record",
                                                 .open = recording_open,
                                                 .look = recording_look,
                                                 .destroy = recording_destroy};
    struct recording *recording = mem_array(1, sizeof *recording);
    if (!recording)
        return err_no_memory(err);
    recording->base = *inner;
    recording->base.ops = &ops;
    recording->inner = inner;
    recording->sink.fd = fd;
    *out_source = &recording->base;
    return 0;
}
