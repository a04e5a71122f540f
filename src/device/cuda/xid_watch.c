/* The Xid events of a GPU while it is open. */
#include "device/cuda/xid_watch.h"

#include <errno.h>

#include "base/mem.h"
#include "base/str.h"

/* A GPU that reports errors without end must not hold up the survey. */
enum { EVENTS_MAX = 1024 };

void xid_watch_begin(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    const struct nvml *nvml = gpu->nvml;
    *watch = (struct xid_watch){.result = NVML_FUNCTION_NOT_FOUND};
    if (!gpu->handle || !nvml->events_create || !nvml->events_register || !nvml->events_wait ||
        !nvml->events_free)
        return;
    watch->result = nvml->events_create(&watch->events);
    if (watch->result != NVML_OK) {
        watch->events = NULL;
        return;
    }
    watch->result = nvml->events_register(gpu->handle, NVML_EVENT_XID, watch->events);
    if (watch->result != NVML_OK)
        xid_watch_end(watch, gpu);
}

void xid_watch_end(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    if (watch->events)
        gpu->nvml->events_free(watch->events);
    watch->events = NULL;
}

static void keep(struct xid_watch *watch, const struct nvml_event *event)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->numbers[i] == event->data)
            return;
    if (event->type == NVML_EVENT_XID && watch->count < XID_LIST_MAX)
        watch->numbers[watch->count++] = (unsigned)event->data;
}

/* NVML queues the events; it answers NVML_TIMED_OUT when none is left. */
static void take_events(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    for (int taken = 0; taken < EVENTS_MAX; taken++) {
        struct nvml_event event = {0};
        watch->result = gpu->nvml->events_wait(watch->events, &event, 0);
        if (watch->result != NVML_OK)
            break;
        keep(watch, &event);
    }
    if (watch->result == NVML_TIMED_OUT)
        watch->result = NVML_OK;
}

int xid_watch_tell(struct xid_watch *watch, const struct nvml_gpu *gpu, struct facts *health)
{
    if (watch->events)
        take_events(watch, gpu);
    /* After an error it is not known whether there were others: those that came are told. */
    if (!watch->count && watch->result != NVML_OK)
        return nvml_tell_number(gpu, health_key(HEALTH_XID), watch->result, 0, health);
    struct strbuf text = {0};
    xid_put_list(&text, watch->numbers, watch->count);
    int rc = text.failed ? -ENOMEM : facts_set_text(health, health_key(HEALTH_XID), text.data);
    strbuf_fini(&text);
    return rc;
}
