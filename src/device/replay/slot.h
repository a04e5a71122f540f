/* Inside the replay backend: one GPU of a record while it is replayed. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_SLOT_H
#define GPUMEMTOPO_DEVICE_REPLAY_SLOT_H

#include "device/device.h"
#include "device/replay/ask.h"
#include "device/replay/calls.h"
#include "device/replay/parts.h"

/* Its calls, and what their replay came to. */
struct slot {
    const struct record_gpu *gpu;
    struct strbuf body;
    struct calls *calls; /* of the body; NULL: not read yet */
    bool ended;
    size_t missed;
    struct strbuf first, remark; /* the first request missed, and the sentence on all */
};

/* A call that is answered by facts: sets those of the record, also those that were had before the
 * call failed. -ENOENT for what is not there, -EIO where a cut record ends. */
int slot_find_facts(struct slot *slot, enum ask_call call, struct facts *const *tables,
                    struct err *err);

/* A device whose answers are the slot's; the calls are read. Errors as when it was recorded. Freed
 * with device_destroy, before the slot. */
int slot_open(struct slot *slot, struct device **out_device, struct err *err);

#endif
