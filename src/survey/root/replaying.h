/* A survey that is replayed: how it was run comes from its record. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_REPLAYING_H
#define GPUMEMTOPO_SURVEY_ROOT_REPLAYING_H

#include "base/err.h"
#include "device/replay/record_read.h"
#include "survey/options.h"

/* Opens the record that `options` names and takes from it seed, profile, probes and --busy,
 * unless the command line gave others. The strings belong to the record. -EINVAL for a bad file, or
 * for what this program does not know. */
int replaying_open(struct survey_options *options, struct record **out_record, struct err *err);

#endif
