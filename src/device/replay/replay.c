/* The replay backend: a device whose answers come from a record. */
#include "device/replay/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/body.h"
#include "device/replay/record_read.h"
#include "inventory/facts_wire.h"

/* One GPU of the source, and what its replay came to. */
struct slot {
    const struct record_gpu *gpu;
    bool ended;
    size_t missed;
    struct strbuf first, remark; /* the first request missed, and the sentence on all */
};

struct replay_source {
    struct device_source base; /* infos are parallel to slots */
    struct record *record;
    struct slot *slots;
};

struct replayed {
    struct device base;
    struct slot *slot;
    struct strbuf body;
    struct calls *calls;
};

/* The worker did not end by itself: what follows was never asked. */
static bool is_cut(const struct slot *slot)
{
    return !slot->gpu->closed && slot->gpu->gpu.status != GPU_OK;
}

static int end_here(struct slot *slot, struct err *err)
{
    const struct gpu_result *gpu = &slot->gpu->gpu;
    slot->ended = true;
    return err_set(err, -EIO, "the record ends: %s, %s", gpu_status_name(gpu->status),
                   gpu->reason ? gpu->reason : "");
}

static int miss(struct replayed *self, const struct ask *ask, struct err *err)
{
    struct slot *slot = self->slot;
    struct strbuf what = {0};
    const char *mark = calls_mark_text(self->calls);
    ask_describe(ask, &what);
    if (!slot->missed++)
        strbuf_printf(&slot->first, "by %s: %s", *mark ? mark : "no probe",
                      what.data ? what.data : "");
    slot->remark.length = 0;
    strbuf_printf(&slot->remark, "%zu request%s not in the record, the first %s", slot->missed,
                  slot->missed == 1 ? " is" : "s are", slot->first.data ? slot->first.data : "");
    int rc =
        err_set(err, -ENOENT, "not in the record%s: %s",
                slot->gpu->closed ? "" : ", which is not complete", what.data ? what.data : "");
    strbuf_fini(&what);
    return rc;
}

/* The recorded answer: 0 with its values, or the recorded error, or that there is none. */
static int find(struct replayed *self, const struct ask *ask, struct wire_reader *out_values,
                struct err *err)
{
    bool cut = is_cut(self->slot);
    const struct call *call = calls_find(self->calls, ask_key(ask), cut);
    if (!call || !call->answered)
        return cut ? end_here(self->slot, err) : miss(self, ask, err);
    *out_values =
        (struct wire_reader){.data = (const unsigned char *)self->body.data + call->position,
                             .length = call->end - call->position};
    return call->failed ? answer_get_err(out_values, err) : 0;
}

/* Sets every fact of a recorded table. */
static int set_facts(struct wire_reader *values, struct facts *facts, struct err *err)
{
    struct facts recorded = {0};
    int rc = 0;
    wire_get_facts(values, &recorded);
    for (size_t i = 0; i < recorded.count && !rc; i++)
        rc = facts_set(facts, &recorded.items[i]);
    facts_fini(&recorded);
    return rc ? err_no_memory(err) : 0;
}

static int replay_identify(struct device *device, struct facts *hardware, struct facts *board,
                           struct facts *config, struct err *err)
{
    const struct ask ask = ask_of_call(ASK_IDENTIFY);
    struct wire_reader values;
    int rc = find((struct replayed *)device, &ask, &values, err);
    if (!rc)
        rc = set_facts(&values, hardware, err);
    if (!rc)
        rc = set_facts(&values, board, err);
    if (!rc)
        rc = set_facts(&values, config, err);
    return rc;
}

static int replay_run_batch(struct device *device, const struct device_batch *batch,
                            struct device_answer *answers, struct err *err)
{
    struct replayed *self = (struct replayed *)device;
    int rc = 0;
    for (size_t i = 0; i < batch->job_count && !rc; i++) {
        const struct ask ask = ask_of_job(&batch->jobs[i], batch->at_once);
        struct wire_reader values;
        rc = find(self, &ask, &values, err);
        if (rc == -ENOENT && batch->job_count > 1)
            err_prefix(err, "job %zu of %zu", i + 1, batch->job_count);
        if (rc)
            break;
        answer_get_job(&values, &batch->jobs[i], device->limits.sm_count, &answers[i]);
        if (values.bad) /* checked when it was opened, so memory is out */
            rc = err_no_memory(err);
    }
    if (rc)
        device_answers_fini(answers, batch->job_count);
    return rc;
}

static int replay_run_stream(struct device *device, const struct device_stream *stream,
                             struct device_stream_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_stream(stream);
    struct wire_reader values;
    int rc = find((struct replayed *)device, &ask, &values, err);
    if (rc)
        return rc;
    out_answer->bytes = wire_get_varint(&values);
    out_answer->elapsed_ns = wire_get_varint(&values);
    return 0;
}

static int replay_read_clocks(struct device *device, struct device_clocks *out_clocks,
                              struct err *err)
{
    const struct ask ask = ask_of_call(ASK_CLOCKS);
    struct wire_reader values;
    int rc = find((struct replayed *)device, &ask, &values, err);
    if (!rc)
        answer_get_clocks(&values, out_clocks);
    return rc;
}

static void replay_mark(struct device *device, const char *what)
{
    /* Without memory for a new mark, requests under it are looked for under the old one. */
    (void)calls_mark(((struct replayed *)device)->calls, what);
}

static void replay_destroy(struct device *device)
{
    struct replayed *self = (struct replayed *)device;
    calls_destroy(self->calls);
    strbuf_fini(&self->body);
    free(self);
}

static const struct device_ops replay_ops = {
    .backend = "replay",
    .identify = replay_identify,
    .run_batch = replay_run_batch,
    .run_stream = replay_run_stream,
    .read_clocks = replay_read_clocks,
    .mark = replay_mark,
    .destroy = replay_destroy,
};

static int read_calls(const struct replay_source *source, const struct record_gpu *gpu,
                      struct strbuf *body, struct calls **out_calls, struct err *err)
{
    int rc = record_read_body(source->record, gpu, body, err);
    if (rc)
        return rc;
    rc = body_read(body->data, body->length, gpu->body_offset, out_calls, err);
    return rc ? record_blame(source->record, err) : 0;
}

static int replay_open(struct device_source *base, size_t i, struct device **out_device,
                       struct err *err)
{
    struct replay_source *source = (struct replay_source *)base;
    const struct ask ask = ask_of_call(ASK_OPEN);
    struct wire_reader values;
    struct replayed *self = mem_array(1, sizeof *self);
    if (!self)
        return err_no_memory(err);
    self->base.ops = &replay_ops;
    self->slot = &source->slots[i];
    int rc = read_calls(source, self->slot->gpu, &self->body, &self->calls, err);
    if (!rc)
        rc = find(self, &ask, &values, err);
    if (rc) {
        replay_destroy(&self->base);
        return rc;
    }
    answer_get_limits(&values, &self->base.limits);
    *out_device = &self->base;
    return 0;
}

static void source_destroy(struct device_source *base)
{
    struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++) {
        strbuf_fini(&source->slots[i].first);
        strbuf_fini(&source->slots[i].remark);
    }
    free(source->slots);
    free(base->infos);
    free(base->bare_nodes);
    record_close(source->record);
    free(source);
}

static const struct device_source_ops source_ops = {
    .backend = "replay",
    .open = replay_open,
    .destroy = source_destroy,
};

static void add_gpu(struct replay_source *source, const struct record_gpu *gpu)
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

static int fill(struct replay_source *source, uint32_t rank, uint32_t ranks, struct err *err)
{
    const struct record_survey *survey = record_survey(source->record);
    size_t count = record_gpu_count(source->record);
    source->slots = mem_array(count, sizeof *source->slots);
    source->base.infos = mem_array(count, sizeof *source->base.infos);
    source->base.bare_nodes = mem_array(survey->bare_count, sizeof *source->base.bare_nodes);
    if (!source->slots || !source->base.infos || !source->base.bare_nodes)
        return err_no_memory(err);
    for (size_t i = rank; i < count; i += ranks)
        add_gpu(source, record_gpu(source->record, i));
    for (size_t i = 0; i < survey->bare_count && rank == 0; i++)
        source->base.bare_nodes[source->base.bare_count++] = survey->bare_nodes[i];
    return 0;
}

int device_source_replay(const char *path, uint32_t rank, uint32_t ranks,
                         struct device_source **out_source, struct err *err)
{
    if (!ranks || rank >= ranks)
        return err_set(err, -EINVAL, "rank %u of %u", rank, ranks);
    struct replay_source *source = mem_array(1, sizeof *source);
    if (!source)
        return err_no_memory(err);
    source->base.ops = &source_ops;
    int rc = record_open(path, &source->record, err);
    if (!rc)
        rc = fill(source, rank, ranks, err);
    if (rc)
        source_destroy(&source->base);
    else
        *out_source = &source->base;
    return rc;
}

int replay_check(struct device_source *base, struct err *err)
{
    struct replay_source *source = (struct replay_source *)base;
    int rc = 0;
    for (size_t i = 0; i < base->info_count && !rc; i++) {
        struct strbuf body = {0};
        struct calls *calls = NULL;
        rc = read_calls(source, source->slots[i].gpu, &body, &calls, err);
        calls_destroy(calls);
        strbuf_fini(&body);
    }
    return rc;
}

static const struct slot *slot_of(const struct device_source *base, size_t i)
{
    return base->ops == &source_ops ? &((const struct replay_source *)base)->slots[i] : NULL;
}

const struct gpu_result *replay_ended(const struct device_source *source, size_t i)
{
    const struct slot *slot = slot_of(source, i);
    return slot && slot->ended ? &slot->gpu->gpu : NULL;
}

const char *replay_missed(const struct device_source *source, size_t i)
{
    const struct slot *slot = slot_of(source, i);
    return slot && slot->missed ? slot->remark.data : NULL;
}
