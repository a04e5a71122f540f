/* Commands that return nodes to service which were drained for a bad GPU and are healthy again.
 * They are only printed, for an administrator to run. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_UNDRAIN_H
#define GPUMEMTOPO_REPORT_COMMANDS_UNDRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* When the GPUs of several surveys were last measured. Zero-initialised is empty. */
struct undrain_times {
    struct undrain_time {
        char *uuid;
        int64_t measured_s; /* since 1970 */
    } * items;
    size_t count, capacity;
};

/* Adds the GPUs that a survey measured. An inventory made by merge is refused with -EINVAL: it does
 * not tell when each GPU was measured. */
int undrain_times_add(struct undrain_times *times, const struct inventory *inventory,
                      const char *path, struct err *err);
void undrain_times_fini(struct undrain_times *times);

/* list: a line "NODE|SECONDS|REASON" for each drained node; SECONDS since 1970. judged: all
 * surveys, judged together. Appends "scontrol update NodeName=n1 State=RESUME" for each node that a
 * reason of drain (drain.h) drained and that is healthy: all its GPUs were measured later,
 * none is failing or degraded, and the one that the reason names is among them. out_notes gets a
 * line for each other node that we drained. Sorts `times`. -EINVAL for a bad line. */
int report_undrain(const char *list, const char *list_name, const struct inventory *judged,
                   struct undrain_times *times, struct strbuf *out_lines, struct strbuf *out_notes,
                   struct err *err);

#endif
