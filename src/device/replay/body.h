/* The body of one GPU in a record: its calls and answers, read and checked. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_BODY_H
#define GPUMEMTOPO_DEVICE_REPLAY_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/replay/calls.h"

/* Reads a whole body. offset: where it lies in its file, for messages. -EINVAL, naming the byte,
 * for data that no recorder wrote. The calls point into `body`; freed with calls_destroy. */
int body_read(const char *body, size_t length, uint64_t offset, struct calls **out_calls,
              struct err *err);

#endif
