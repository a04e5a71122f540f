/* Name and boot id of this machine. */
#ifndef GPUMEMTOPO_BASE_HOST_H
#define GPUMEMTOPO_BASE_HOST_H

enum { HOST_NAME_MAX_BYTES = 256 };

/* The host name; "localhost" if it has none. */
void host_name(char out_name[HOST_NAME_MAX_BYTES]);

/* The random id that the kernel chose at boot: it distinguishes machines of the same name. NULL if
 * there is none; freed with free(). */
char *host_boot_id(void);

#endif
