/* Recording: a source whose devices record every call and its answer. */
#include <stdlib.h>

#include "base/io.h"
#include "base/mem.h"
#include "device/record/entry.h"
#include "device/record/record.h"

/* Where entries are written. When a write fails, recording stops; the measurement goes on. */
struct sink {
    int fd;
    size_t written;
    bool broken, closed;
    struct asked last[DEVICE_CALL_COUNT]; /* the next requests are written as differences */
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

/* Writes one entry with one system call, so that a process that dies leaves whole entries; releases
 * the payload. */
static void sink_put(struct sink *sink, enum entry_type type, struct strbuf *payload)
{
    struct strbuf bytes = {0};
    if (payload->length > ENTRY_BYTES_MAX || sink->closed)
        sink->broken = true;
    else
        entry_write(&bytes, type, payload);
    if (bytes.length > RECORD_BODY_MAX - sink->written)
        sink->broken = true;
    if (!sink->broken && io_write_all(sink->fd, bytes.data, bytes.length))
        sink->broken = true;
    sink->written += sink->broken ? 0 : bytes.length;
    strbuf_fini(&bytes);
    strbuf_fini(payload);
}

/* device: of the request; NULL for calls of a source. */
static void sink_put_request(struct sink *sink, enum device_call call, const struct device *device,
                             const void *request)
{
    const struct device_call_row *row = device_call_row(call);
    size_t items = device_call_items(call, request);
    struct strbuf payload = {0};
    sink->broken |= items > RECORD_JOBS_MAX;
    wire_put_varint(&payload, (uint64_t)call);
    if (row->count)
        wire_put_varint(&payload, items);
    for (size_t i = 0; row->asked && i < items; i++) {
        union device_call_room it = {0};
        device_call_ask(call, device, request, i, &it);
        const struct asked asked = asked_of(call, &it);
        asked_put(&payload, call, &asked, &sink->last[call]);
    }
    sink_put(sink, ENTRY_ASK, &payload);
}

/* 0 or the error, then the answer. */
static void sink_put_answer(struct sink *sink, enum device_call call, const struct device *device,
                            const void *request, const void *answer, int rc, const struct err *err)
{
    const struct device_call_row *row = device_call_row(call);
    size_t items = rc && !row->keeps_facts ? 0 : device_call_items(call, request);
    struct strbuf payload = {0};
    if (rc)
        asked_put_err(&payload, rc, err->text);
    else
        wire_put_signed(&payload, 0);
    for (size_t i = 0; i < items; i++) {
        const void *item = (const char *)answer + i * row->answer->size;
        union device_call_room it = {0};
        device_call_ask(call, device, request, i, &it);
        if (row->fits && !row->fits(&it, item, device->limits.sm_count))
            sink->broken = true; /* nobody could read it */
        asked_put_answer(&payload, call, &it, item);
    }
    sink_put(sink, ENTRY_ANSWER, &payload);
}

/* Marks the record as complete. Called before the device is closed, since a driver may hang or
 * crash then. */
static void sink_close(struct sink *sink)
{
    struct strbuf nothing = {0};
    if (!sink->closed)
        sink_put(sink, ENTRY_CLOSE, &nothing);
    sink->closed = true;
}

static int recorder_call(struct device *device, enum device_call call, const void *request,
                         void *answer, struct err *err)
{
    struct recorder *self = (struct recorder *)device;
    struct err said = {0}; /* errors are recorded even if the caller does not want them */
    sink_put_request(self->sink, call, device, request);
    int rc = device_call(self->inner, call, request, answer, &said);
    sink_put_answer(self->sink, call, device, request, answer, rc, &said);
    if (rc && err)
        *err = said;
    return rc;
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
    sink_put(self->sink, ENTRY_MARK, &payload);
    device_mark(self->inner, what);
}

static void recorder_destroy(struct device *device)
{
    struct recorder *self = (struct recorder *)device;
    sink_close(self->sink);
    device_destroy(self->inner);
    free(self);
}

static int recording_open(struct device_source *source, size_t i, struct device **out_device,
                          struct err *err)
{
    static const struct device_ops ops = {.backend = "record",
                                          .call = recorder_call,
                                          .end_link = recorder_end_link,
                                          .mark = recorder_mark,
                                          .destroy = recorder_destroy};
    struct recording *recording = (struct recording *)source;
    struct device *inner = NULL;
    struct err said = {0};
    recording->inner->session = source->session;
    sink_put_request(&recording->sink, DEVICE_CALL_OPEN, NULL, NULL);
    int rc = device_source_open(recording->inner, i, &inner, &said);
    sink_put_answer(&recording->sink, DEVICE_CALL_OPEN, inner, NULL, inner ? &inner->limits : NULL,
                    rc, &said);
    if (rc) {
        if (err)
            *err = said;
        return rc;
    }
    struct recorder *self = mem_array(1, sizeof *self);
    self->base.ops = &ops;
    self->base.limits = inner->limits;
    self->inner = inner;
    self->sink = &recording->sink;
    *out_device = &self->base;
    return 0;
}

static int recording_look(struct device_source *source, size_t i, bool thorough,
                          struct device_look *out_look, struct err *err)
{
    struct recording *recording = (struct recording *)source;
    struct err said = {0};
    sink_put_request(&recording->sink, DEVICE_CALL_LOOK, NULL, NULL);
    int rc = device_source_look(recording->inner, i, thorough, out_look, &said);
    sink_put_answer(&recording->sink, DEVICE_CALL_LOOK, NULL, NULL, out_look, rc, &said);
    if (rc && err)
        *err = said;
    return rc;
}

/* The lists belong to the inner source. */
static void recorder_source_destroy(struct device_source *source)
{
    struct recording *recording = (struct recording *)source;
    sink_close(&recording->sink);
    device_source_destroy(recording->inner);
    free(recording);
}

struct device_source *device_source_record(struct device_source *inner, int fd)
{
    static const struct device_source_ops ops = {.backend = "record",
                                                 .open = recording_open,
                                                 .look = recording_look,
                                                 .destroy = recorder_source_destroy};
    struct recording *recording = mem_array(1, sizeof *recording);
    recording->base = *inner;
    recording->base.ops = &ops;
    recording->inner = inner;
    recording->sink.fd = fd;
    return &recording->base;
}
