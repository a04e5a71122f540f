/* Complete writes to descriptors; standard descriptors that are closed. */
#ifndef GPUMEMTOPO_BASE_IO_H
#define GPUMEMTOPO_BASE_IO_H

#include <stddef.h>

/* Writes all bytes, with several calls if needed; continues after a signal. 0 or a negative errno;
 * some bytes may have been written then. */
int io_write_all(int fd, const char *data, size_t length);

/* The columns of the terminal; 0 if it is none, or does not know. */
unsigned io_columns(int fd);

/* Call first in main. Occupies the number of each standard descriptor that is closed, so that no
 * file opened later gets that number and receives output meant for the terminal. Using such a
 * descriptor still fails with EBADF. */
void io_fill_standard(void);

#endif
