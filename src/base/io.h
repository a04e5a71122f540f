/* Whole writes to descriptors, and the standard ones. */
#ifndef GPUMEMTOPO_BASE_IO_H
#define GPUMEMTOPO_BASE_IO_H

#include <stddef.h>

/* Writes all bytes, however many calls it takes; goes on after a signal. 0 or a negative errno,
 * part of the bytes may then be written. */
int io_write_all(int fd, const char *data, size_t length);

/* First in main: takes the number of a standard descriptor that is closed, so that no file opened
 * later gets it, and the words meant for it. To use it fails with EBADF as before. */
void io_fill_standard(void);

#endif
