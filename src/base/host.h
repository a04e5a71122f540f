/* Who this machine is. */
#ifndef GPUMEMTOPO_BASE_HOST_H
#define GPUMEMTOPO_BASE_HOST_H

enum { HOST_NAME_MAX_BYTES = 256 };

/* Its name; "localhost" where it has none. */
void host_name(char out_name[HOST_NAME_MAX_BYTES]);

/* The number that the kernel drew when it started: tells machines of one name apart. *out_id NULL:
 * there is none; freed with free(). 0 or -ENOMEM. */
int host_boot_id(char **out_id);

#endif
