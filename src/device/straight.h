/* Straight code: a long program without branches, in two copies at different addresses. One warp
 * executes the last `length` instructions of a copy again and again. How long one takes shows which
 * cache of instructions the program fits into. The second copy is shorter, since the driver takes a
 * second to compile 20,000 instructions.
 *
 * Jumping code: blocks of a few instructions, each of which ends with a jump over `stride` - 1
 * others, so that fetching ahead does not help. Behind a pass, the warp can chase constants. */
#ifndef GPUMEMTOPO_DEVICE_STRAIGHT_H
#define GPUMEMTOPO_DEVICE_STRAIGHT_H

#include "device/device.h"

enum {
    DEVICE_STRAIGHT_COPIES = 2,
    DEVICE_STRAIGHT_MAX = 16384,
    DEVICE_STRAIGHT_SECOND_MAX = 8192,
    DEVICE_STRAIGHT_JOBS = 2,
};

/* On its SM, once untimed and then `repeats` times. */
struct device_straight_job {
    uint32_t sm, copy, repeats;
    uint32_t length; /* in instructions: one of device_straight_length */
};

/* All jobs run at the same time, each on its own SM. The other SMs are idle. */
struct device_straight {
    struct device_straight_job jobs[DEVICE_STRAIGHT_JOBS];
    uint32_t job_count;
};
struct device_straight_answer {
    uint32_t instruction_bytes;            /* of one machine instruction */
    uint64_t cycles[DEVICE_STRAIGHT_JOBS]; /* of each job, all repeats together */
};

/* The lengths that can be asked for, rising; 0 beyond the last. Both copies have the same lengths,
 * but the second fewer. */
uint32_t device_straight_length(size_t i);
size_t device_straight_length_count(uint32_t copy);

/* Executes it. -ENOSYS: the device executes none; -ENOTSUP: not on this GPU, or not with this
 * driver. */
int device_run_straight(struct device *device, const struct device_straight *straight,
                        struct device_straight_answer *out_answer, struct err *err);

enum { DEVICE_WALK_BLOCKS_MAX = 1280, DEVICE_WALK_STRIDE_MIN = 3, DEVICE_WALK_STRIDE_MAX = 61 };

/* On an SM, all others idle: once untimed and then `repeats` times, each of the first `blocks`
 * blocks of the program once, then one load of each `constant_stride` bytes of the first
 * `constant_bytes` of constant memory. */
struct device_walk {
    uint32_t sm, repeats;
    uint32_t blocks;                          /* at least `stride` */
    uint32_t stride;                          /* of jumps, in blocks */
    uint32_t constant_bytes, constant_stride; /* 0: no constants */
};
struct device_walk_answer {
    uint32_t block_bytes;
    uint64_t code_cycles, constant_cycles; /* of all repeats together */
};

/* Executes it. Errors as those of straight code. */
int device_run_walk(struct device *device, const struct device_walk *walk,
                    struct device_walk_answer *out_answer, struct err *err);

#endif
