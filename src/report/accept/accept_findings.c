/* The findings of an acceptance: how they are kept, and what they mean together. */
#include "base/mem.h"
#include "report/accept/accept_stages.h"

const char *accept_class_name(enum accept_class class)
{
    static const char *const names[] = {"missing", "other", "below", "faulty", "not shown"};
    return names[class];
}

const char *accept_verdict(const struct accept *accept)
{
    const bool open = accept->counts[ACCEPT_NOT_SHOWN] > 0;
    const bool wrong = accept->finding_count > accept->counts[ACCEPT_NOT_SHOWN];
    if (wrong)
        return open ? "Not as ordered, and not everything is shown" : "Not as ordered";
    return open ? "Incomplete: not everything is shown" : "As ordered";
}

void accept_add(struct accept *accept, const struct inventory_gpu *gpu,
                const struct accept_finding *finding)
{
    accept->findings = mem_grow(accept->findings, &accept->finding_room, accept->finding_count + 1,
                                sizeof *accept->findings);
    struct accept_finding *slot = &accept->findings[accept->finding_count++];
    *slot = *finding;
    slot->index = -1;
    if (gpu) {
        slot->node = gpu->node;
        slot->uuid = gpu->uuid;
        slot->index = gpu->index;
    }
    accept->counts[finding->class]++;
}
