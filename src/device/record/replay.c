/* A record as a source of GPUs, and its devices: their answers come from the record. */
#include "device/record/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/record/answers.h"
#include "device/record/asked.h"
#include "device/record/record_read.h"

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
    const char *mark = answers_mark_text(slot->answers);
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

/* Reads the body of a GPU once. On failure, releases what was read, so that a second try starts
 * anew. */
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
    int rc = record_read_body(source->record, slot->gpu, &slot->body, err);
    if (!rc) {
        rc = answers_read(slot->body.data, slot->body.length, slot->gpu->body_offset,
                          &slot->answers, err);
        if (rc)
            record_blame(source->record, err);
    }
    if (rc)
        slot_unload(slot);
    return rc;
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
    struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++) {
        int rc = slot_load(source, &source->slots[i], err);
        slot_unload(&source->slots[i]);
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
