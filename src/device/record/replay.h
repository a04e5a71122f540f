/* A record as a source of GPUs: they give the answers that were recorded. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_REPLAY_H
#define GPUMEMTOPO_DEVICE_RECORD_REPLAY_H

#include "base/err.h"
#include "device/source.h"
#include "inventory/gpu_result.h"

/* The GPUs of a record, for one of `ranks` processes: GPUs i with i mod ranks == rank. Nodes
 * without a GPU belong to rank 0. Errors as record_open; freed with device_source_destroy. A device
 * returns -ENOENT for a request that is not in the record. If a GPU crashed, hung or was
 * interrupted, it returns -EIO after the end of its record. */
int device_source_replay(const char *path, uint32_t rank, uint32_t ranks,
                         struct device_source **out_source, struct err *err);

/* Reads and checks all answers of the source's GPUs. -EINVAL naming the byte. */
int replay_check(struct device_source *source, struct err *err);

/* GPU i of a source of any kind: how it ended (status and reason) when the replay has reached the
 * end of its record; else NULL. Valid as long as the source. */
const struct gpu_result *replay_ended(const struct device_source *source, size_t i);

/* GPU i of a source of any kind: what its record says of it; NULL: not a replay. */
const struct gpu_result *replay_recorded(const struct device_source *source, size_t i);

/* GPU i of a source of any kind: a sentence about requests that are not in the record; NULL: there
 * were none. */
const char *replay_missed(const struct device_source *source, size_t i);

#endif
