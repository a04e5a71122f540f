/* A right that one process of this machine has at a time. It ends when its holder ends. */
#ifndef GPUMEMTOPO_DEVICE_TURN_H
#define GPUMEMTOPO_DEVICE_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised except for its name: not held. */
struct turn {
    uint64_t name; /* processes that use the same number exclude each other */
    int fd;        /* valid while held */
    bool held;
    bool contended; /* another process waited when it was last given back */
    bool impatient; /* one wait timed out: from then on only one try */
};

/* Patience for the host link: far more than all GPUs of a node need one after the other. */
enum { TURN_LINK_MS = 5000 };

/* One try without waiting. 0, -EADDRINUSE when another process has it, or another negative
 * errno. */
int turn_try(struct turn *turn);

/* Claims `what` of this name until this process ends; the first process of the machine that asks
 * gets it. False: another process has it. True also if that cannot be found out. */
bool turn_claim(const char *what, const char *name);

/* Waits until the turn's holder gives it back or ends, at most ms. The turn is not taken. */
void turn_await(const struct turn *turn, int ms);

/* Waits for the turn, at most patience_ms. After one timeout it never waits again: a holder that
 * hangs must not cost every process its time. True: it is held now. */
bool turn_take(struct turn *turn, int patience_ms);
void turn_give(struct turn *turn); /* accepts one that is not held */

#endif
