/* A right that one process of this machine has at a time; it ends with its holder. */
#ifndef GPUMEMTOPO_DEVICE_TURN_H
#define GPUMEMTOPO_DEVICE_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised but for its name: never taken. */
struct turn {
    uint64_t name; /* processes that use the same number exclude each other */
    int fd;        /* valid while held */
    bool held;
    bool contended; /* someone waited when it was last given back */
    bool impatient; /* waited in vain once: from then on only one try */
};

/* For the host link: far more than all GPUs of a node need one after the other. */
enum { TURN_LINK_MS = 5000 };

/* One try, without waiting: 0, or a negative errno: -EADDRINUSE when another process has it. */
int turn_try(struct turn *turn);

/* What one process of the machine may have, the first that asks, until it ends. False: another one
 * has `what` of this name. Where that cannot be found out, true. */
bool turn_claim(const char *what, const char *name);

/* Waits for it, at most patience_ms, and once in vain means never to wait again: a holder that
 * hangs must not cost everybody their time. True: it is held now. */
bool turn_take(struct turn *turn, int patience_ms);
void turn_give(struct turn *turn); /* fine when not held */

#endif
