/* The state of an inventory as one line of a monitoring plugin (Nagios, Icinga, Naemon). */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_NAGIOS_H
#define GPUMEMTOPO_REPORT_COMMANDS_NAGIOS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* The exit codes of a plugin. */
enum nagios_state { NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL, NAGIOS_UNKNOWN };

struct nagios_limits {
    int64_t now_s;    /* seconds since 1970 */
    double max_age_s; /* an older inventory is UNKNOWN; 0: any age will do */
    bool warn_watch;  /* watched GPUs are a WARNING */
};

/* Appends "GPUMEMTOPO OK - text | performance data" and a line break.
 * CRITICAL: a GPU is failing or degraded. WARNING: one is misconfigured or mismatched, was not
 * measured or is gone. UNKNOWN: nothing was measured, or the inventory is too old or has a time in
 * the future. */
enum nagios_state report_nagios(const struct inventory *inventory,
                                const struct nagios_limits *limits, struct strbuf *out_line);

#endif
