/* A flag that every process of this machine can see. It falls when the process that raised it
 * lowers it or ends, however it ends. */
#ifndef GPUMEMTOPO_DEVICE_FLAG_H
#define GPUMEMTOPO_DEVICE_FLAG_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised except for its name: not raised. */
struct flag {
    uint64_t name;
    int fd; /* valid while raised */
    bool raised;
};

/* 0, -EADDRINUSE when another process has raised it, or another negative errno. */
int flag_raise(struct flag *flag);
void flag_lower(struct flag *flag); /* accepts one that is not raised */

/* True if any process has raised it. */
bool flag_is_up(uint64_t name);

#endif
