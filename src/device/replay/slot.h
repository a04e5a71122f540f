/* Inside the replay backend: one GPU of a record while it is replayed. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_SLOT_H
#define GPUMEMTOPO_DEVICE_REPLAY_SLOT_H

#include "device/device.h"
#include "device/replay/ask.h"
#include "device/replay/calls.h"
#include "device/replay/parts.h"

/* Its calls, and the state of their replay. */
struct slot {
    const struct record_gpu *gpu;
    struct strbuf body;
    struct calls *calls; /* of the body; NULL: not read yet */
    bool ended;
    size_t missed;
    struct strbuf first, remark; /* the first missed request, and the sentence about all of them */
};

/* A call that is answered with facts: sets the recorded ones, also those that were known before the
 * call failed. -ENOENT if it is not in the record, -EIO after the end of a record that was cut
 * off. */
int slot_find_facts(struct slot *slot, enum ask_call call, struct facts *const *tables,
                    struct err *err);

/* A device that gives the answers of the slot, whose calls are read. Errors as recorded. Freed with
 * device_destroy, before the slot. */
int slot_open(struct slot *slot, struct device **out_device, struct err *err);

#endif
