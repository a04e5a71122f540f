/* A record without names. */
#ifndef GPUMEMTOPO_DEVICE_RECORD_RECORD_ANONYMOUS_H
#define GPUMEMTOPO_DEVICE_RECORD_RECORD_ANONYMOUS_H

#include "base/err.h"
#include "inventory/pseudonyms.h"

/* Copies the record `from` to `to`, with pseudonyms for all names; comments of the configuration
 * are left out. It replays as before. The names are sealed; those of the record that they do not
 * have are added. Errors as record_open and record_file_create. */
int record_anonymous_copy(const char *from, const char *to, struct pseudonyms *names,
                          struct err *err);

#endif
