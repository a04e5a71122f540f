/* What NVML tells of a GPU's NVLinks, and of the fabric behind them. */
#include "device/cuda/nvlink.h"

#include "base/mem.h"

/* Only links that exist report a state. A counter that a link does not have counts as 0. */
struct nvlinks nvlinks_read(const struct nvml_gpu *gpu)
{
    const struct nvml *nvml = gpu->nvml;
    struct nvlinks links = {.result = NVML_FUNCTION_NOT_FOUND};
    for (unsigned link = 0; gpu->handle && nvml->link_state && link < NVML_LINKS; link++) {
        unsigned is_active = 0;
        int state = nvml->link_state(gpu->handle, link, &is_active);
        if (link == 0)
            links.result = state;
        if (state != NVML_OK)
            continue;
        links.result = NVML_OK;
        is_active ? links.active++ : links.down++;
        for (int counter = 0; nvml->link_errors && counter < NVML_LINK_COUNTERS; counter++) {
            unsigned long long count = 0;
            if (nvml->link_errors(gpu->handle, link, counter, &count) == NVML_OK)
                links.errors.number += (int64_t)count;
        }
    }
    links.errors.result = links.result;
    return links;
}

/* Drivers before R550 have only the first version, which says nothing about the bandwidth. */
static int read_fabric(const struct nvml_gpu *gpu, struct nvml_fabric *out)
{
    *out = (struct nvml_fabric){.version = NVML_FABRIC_VERSION};
    int result = gpu->nvml->fabric ? gpu->nvml->fabric(gpu->handle, out) : NVML_FUNCTION_NOT_FOUND;
    if (result == NVML_OK || !gpu->nvml->fabric_v1)
        return result;
    struct nvml_fabric_v1 first = {{0}};
    result = gpu->nvml->fabric_v1(gpu->handle, &first);
    *out = (struct nvml_fabric){.status = first.status, .state = first.state};
    return result;
}

/* The status is valid only if the registration is completed. */
static const char *fabric_word(const struct nvml_fabric *fabric)
{
    switch (fabric->state) {
    case NVML_FABRIC_NOT_STARTED:
        return "not_started";
    case NVML_FABRIC_IN_PROGRESS:
        return "in_progress";
    case NVML_FABRIC_COMPLETED:
        if (fabric->status != NVML_OK)
            return "failed";
        return (fabric->health & NVML_FABRIC_BANDWIDTH_BITS) == NVML_FABRIC_BANDWIDTH_DEGRADED
                   ? "degraded"
                   : "completed";
    default:
        return NULL;
    }
}

static int tell_fabric(const struct nvml_gpu *gpu, struct facts *health)
{
    struct nvml_fabric fabric = {.state = NVML_FABRIC_NOT_SUPPORTED};
    int result = gpu->handle ? read_fabric(gpu, &fabric) : NVML_FUNCTION_NOT_FOUND;
    const char *word = result == NVML_OK ? fabric_word(&fabric) : NULL;
    if (word)
        return facts_set_text(health, health_key(HEALTH_FABRIC_STATE), word);
    return nvml_tell_number(gpu, health_key(HEALTH_FABRIC_STATE),
                            result == NVML_OK ? NVML_NOT_SUPPORTED : result, 0, health);
}

int nvlinks_tell(const struct nvml_gpu *gpu, const struct nvlinks *links, struct facts *health)
{
    const struct {
        const char *key;
        int64_t number;
    } rows[] = {{health_key(HEALTH_NVLINKS_ACTIVE), links->active},
                {health_key(HEALTH_NVLINKS_DOWN), links->down},
                {health_key(HEALTH_NVLINK_ERRORS), links->errors.number}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int rc = nvml_tell_number(gpu, rows[i].key, links->result, rows[i].number, health);
        if (rc)
            return rc;
    }
    return tell_fabric(gpu, health);
}
