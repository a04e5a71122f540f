/* Processes of one machine that do something at the same time. Nobody leads and nobody counts
 * seconds: each member shows by flags how far it is, and these fall if its process ends. */
#ifndef GPUMEMTOPO_DEVICE_MEETING_H
#define GPUMEMTOPO_DEVICE_MEETING_H

#include <stddef.h>

#include "device/flag.h"

/* The phases of a member, in this order; it leaves after the last one. */
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
