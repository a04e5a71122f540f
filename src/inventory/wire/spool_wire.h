/* The two frames of a spool file (inventory/wire/spool.h) in their binary form. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_WIRE_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_WIRE_H

#include "inventory/wire/frame.h"
#include "inventory/wire/spool.h"

/* Append both frames. Errors only set buffer->failed. */
void spool_encode_gpu(const struct spool_origin *origin, const struct gpu_result *gpu,
                      struct strbuf *buffer);
void spool_encode_survey(const struct spool_origin *origin, const struct spool_survey *survey,
                         struct strbuf *buffer);

/* Fill in the content of a frame. After a failure, release what was read with spool_file_fini. */
int spool_decode_origin(const struct frame *frame, struct spool_origin *origin, struct err *err);
int spool_decode_body(const struct frame *frame, struct spool_file *file, struct err *err);

#endif
