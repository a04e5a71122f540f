/* Whole writes to descriptors. */
#ifndef GPUMEMTOPO_BASE_IO_H
#define GPUMEMTOPO_BASE_IO_H

#include <stddef.h>

/* Writes all bytes, however many calls it takes; goes on after a signal. 0 or a negative errno,
 * part of the bytes may then be written. */
int io_write_all(int fd, const char *data, size_t length);

#endif
