/* Replay of a recorded survey: how it was run comes from the record. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_REPLAYING_H
#define GPUMEMTOPO_SURVEY_ROOT_REPLAYING_H

#include "base/err.h"
#include "device/replay/record_read.h"
#include "survey/options.h"

/* Opens the record that `options` names. Takes seed, profile, probes and --busy from it, unless the
 * command line set them. The strings belong to the record. -EINVAL for a bad file, or for one that
 * needs something this program does not know. */
int replaying_open(struct survey_options *options, struct record **out_record, struct err *err);

#endif
