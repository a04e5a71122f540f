/* How the processes of one machine take turns, show flags to each other, and meet. What a process
 * holds ends with it, however it ends. */
#ifndef GPUMEMTOPO_DEVICE_TURN_H
#define GPUMEMTOPO_DEVICE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A turn: a right that one process has at a time.
 *
 * Zero-initialised except for its name: not held. */
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

/* A flag that every process can see. It falls when the process that raised it lowers it or ends,
 * however it ends.
 *
 * Zero-initialised except for its name: not raised. */
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

/* A meeting: processes that do something at the same time. Nobody leads and nobody counts seconds:
 * each member shows by flags how far it is, and these fall if its process ends.
 *
 * The phases of a member, in this order; it leaves after the last one. */
enum meeting_phase {
    MEETING_HERE,   /* it has come, and waits for all who may still come */
    MEETING_ACTIVE, /* it works, until all are done */
    MEETING_DONE,   /* it still works, but has measured */
    MEETING_PHASES
};

enum { MEETING_MAX = 32 };

struct meeting {
    uint64_t names[MEETING_MAX];  /* of this meeting, one for each member; the same everywhere */
    uint64_t coming[MEETING_MAX]; /* names of flags that are up while a member may still come */
    size_t count, own;
    bool absent[MEETING_MAX]; /* never came, or has left */
    struct flag flags[MEETING_PHASES];
};

/* Zero-initialises the meeting. */
void meeting_init(struct meeting *meeting, size_t count, size_t own);

/* Enters the next phase. 0 or a negative errno: -EADDRINUSE if another process is this member. */
int meeting_enter(struct meeting *meeting, enum meeting_phase phase);

/* True when every member has reached the phase or is absent. Sets `absent` of those that never came
 * or have left. */
bool meeting_reached(struct meeting *meeting, enum meeting_phase phase);

/* Members that are not absent, this one among them. */
size_t meeting_present(const struct meeting *meeting);

void meeting_leave(struct meeting *meeting);

#endif
