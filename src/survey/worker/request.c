/* A rank's request to a worker process: the binary form. */
#include "survey/worker/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "survey/comm/message.h"

void worker_request_write(const struct worker_request *request, struct strbuf *buffer)
{
    struct strbuf payload = {0};
    wire_put_u32(&payload, request->task);
    wire_put_u64(&payload, (uint64_t)request->parent);
    wire_put_text(&payload, request->fleet);
    wire_put_text(&payload, request->replay);
    wire_put_u32(&payload, request->record);
    wire_put_u64(&payload, request->seed);
    wire_put_u32(&payload, request->rank);
    wire_put_u32(&payload, request->ranks);
    wire_put_text(&payload, request->uuid);
    wire_put_u32(&payload, request->profile);
    wire_put_text(&payload, request->probes);
    wire_put_u32(&payload, request->measure_busy);
    wire_put_u32(&payload, request->session);
    wire_put_u32(&payload, request->attempt);
    wire_put_f64(&payload, request->load_s);
    wire_put_u32(&payload, request->load_one);
    wire_put_f64(&payload, request->stagger_s);
    wire_put_f64(&payload, request->limit_s);
    wire_put_u64(&payload, request->region_bytes);
    frame_write(buffer, WORKER_REQUEST, payload.data, payload.length);
    buffer->failed |= payload.failed;
    strbuf_fini(&payload);
}

int worker_request_decode(const struct frame *frame, struct worker_request *out_request,
                          struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    struct worker_request request = {0};
    if (frame->type != WORKER_REQUEST)
        return err_set(err, -EBADMSG, "not a request");
    uint32_t task = wire_get_u32(&reader);
    request.parent = (int64_t)wire_get_u64(&reader);
    request.fleet = wire_get_text(&reader);
    request.replay = wire_get_text(&reader);
    request.record = wire_get_u32(&reader) != 0;
    request.seed = wire_get_u64(&reader);
    request.rank = wire_get_u32(&reader);
    request.ranks = wire_get_u32(&reader);
    request.uuid = wire_get_text(&reader);
    uint32_t profile = wire_get_u32(&reader);
    request.probes = wire_get_text(&reader);
    uint32_t measure_busy = wire_get_u32(&reader);
    request.session = wire_get_u32(&reader);
    request.attempt = wire_get_u32(&reader);
    request.load_s = wire_get_f64(&reader);
    request.load_one = wire_get_u32(&reader) != 0;
    request.stagger_s = wire_get_f64(&reader);
    request.limit_s = wire_get_f64(&reader);
    request.region_bytes = wire_get_u64(&reader);
    if (task > WORKER_MEASURE || profile > PROFILE_FULL || measure_busy > 1 ||
        request.rank >= request.ranks || (task == WORKER_MEASURE && !request.uuid))
        reader.bad = true;
    request.task = task;
    request.profile = profile;
    request.measure_busy = measure_busy;
    int rc = wire_end(&reader, "request", err);
    if (rc)
        worker_request_fini(&request);
    else
        *out_request = request;
    return rc;
}

void worker_request_fini(struct worker_request *request)
{
    free(request->fleet);
    free(request->replay);
    free(request->uuid);
    free(request->probes);
    memset(request, 0, sizeof *request);
}
