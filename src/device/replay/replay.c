/* A record as a source of GPUs. */
#include "device/replay/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/replay/body.h"
#include "device/replay/record_read.h"
#include "device/replay/slot.h"

struct replay_source {
    struct device_source base; /* infos are parallel to slots */
    struct record *record;
    struct slot *slots;
};

static void unload(struct slot *slot)
{
    calls_destroy(slot->calls);
    strbuf_fini(&slot->body);
    slot->calls = NULL;
}

/* Reads the body of a GPU once. On failure, releases what was read, so that a second try starts
 * anew. */
static int load(const struct replay_source *source, struct slot *slot, struct err *err)
{
    if (slot->calls)
        return 0;
    if (source->base.session != slot->gpu->session) {
        const char *uuid = slot->gpu->gpu.uuid;
        const struct record_gpu *part = record_find_gpu(source->record, uuid, source->base.session);
        if (!part)
            return err_set(err, -ENOENT, "%s was not measured again in this record", uuid);
        slot->gpu = part;
    }
    int rc = record_read_body(source->record, slot->gpu, &slot->body, err);
    if (rc)
        goto failed;
    rc = body_read(slot->body.data, slot->body.length, slot->gpu->body_offset, &slot->calls, err);
    if (rc) {
        record_blame(source->record, err);
        goto failed;
    }
    return 0;
failed:
    unload(slot);
    return rc;
}

static int replay_look(struct device_source *base, size_t i, bool thorough,
                       struct device_look *out_look, struct err *err)
{
    (void)thorough; /* the second look is the thorough one, as it was when recorded */
    struct replay_source *source = (struct replay_source *)base;
    struct facts *const tables[] = {&out_look->board, &out_look->config, &out_look->health};
    int rc = load(source, &source->slots[i], err);
    return rc ? rc : slot_find_facts(&source->slots[i], ASK_LOOK, tables, err);
}

static int replay_open(struct device_source *base, size_t i, struct device **out_device,
                       struct err *err)
{
    struct replay_source *source = (struct replay_source *)base;
    int rc = load(source, &source->slots[i], err);
    return rc ? rc : slot_open(&source->slots[i], out_device, err);
}

static void source_destroy(struct device_source *base)
{
    struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++) {
        unload(&source->slots[i]);
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
    .look = replay_look,
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
    if (rc)
        goto failed;
    rc = fill(source, rank, ranks, err);
    if (rc)
        goto failed;
    *out_source = &source->base;
    return 0;
failed:
    source_destroy(&source->base);
    return rc;
}

int replay_check(struct device_source *base, struct err *err)
{
    struct replay_source *source = (struct replay_source *)base;
    for (size_t i = 0; i < base->info_count; i++) {
        int rc = load(source, &source->slots[i], err);
        unload(&source->slots[i]);
        if (rc)
            return rc;
    }
    return 0;
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

const struct gpu_result *replay_recorded(const struct device_source *source, size_t i)
{
    const struct slot *slot = slot_of(source, i);
    return slot ? &slot->gpu->gpu : NULL;
}

const char *replay_missed(const struct device_source *source, size_t i)
{
    const struct slot *slot = slot_of(source, i);
    return slot && slot->missed ? slot->remark.data : NULL;
}
