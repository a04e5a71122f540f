/* A record as a source of GPUs: they answer what they answered when they were recorded. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_REPLAY_H
#define GPUMEMTOPO_DEVICE_REPLAY_REPLAY_H

#include "base/err.h"
#include "device/source.h"
#include "inventory/gpu_result.h"

/* The GPUs of a record, for one of `ranks` processes: GPUs i with i mod ranks == rank. Rank 0 has
 * the nodes without a GPU. Errors as record_open; freed with device_source_destroy. A device
 * answers -ENOENT to what is not in the record, and -EIO from where the record of a GPU that
 * crashed, hung or was interrupted ends. */
int device_source_replay(const char *path, uint32_t rank, uint32_t ranks,
                         struct device_source **out_source, struct err *err);

/* Reads and checks all that the source's GPUs answered. -EINVAL with the byte. */
int replay_check(struct device_source *source, struct err *err);

/* GPU i of a source of any kind: how it ended (status and reason), once the replay has come to
 * that point; NULL otherwise. Valid as long as the source. */
const struct gpu_result *replay_ended(const struct device_source *source, size_t i);

/* GPU i of a source of any kind: a sentence on requests that are not in the record; NULL: none. */
const char *replay_missed(const struct device_source *source, size_t i);

#endif
