/* Clusters, whose blocks reach each other's shared memory, and bulk copies by the copy unit of an
 * SM. A request launches as many blocks as run at once, one per SM. */
#ifndef GPUMEMTOPO_DEVICE_CLUSTER_H
#define GPUMEMTOPO_DEVICE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct device;

enum device_cluster_work {
    DEVICE_CLUSTER_PLACES, /* nothing: only where the blocks of each cluster run */
    /* One thread of a cluster at a time: dependent loads of the shared memory of every block of the
     * cluster in turn, its own too. */
    DEVICE_CLUSTER_LOADS,
    /* All threads of all blocks load the shared memory of the other blocks of their cluster in
     * turn; of their own block in a cluster of one. */
    DEVICE_CLUSTER_READ,
    /* Each block copies its shared memory into that of the next block of the cluster by bulk
     * copies; into its own in a cluster of one. */
    DEVICE_CLUSTER_COPY,
    DEVICE_CLUSTER_WORK_COUNT
};
struct device_cluster {
    enum device_cluster_work work;
    uint32_t size;  /* blocks */
    uint32_t count; /* loads of each pair; rounds of each thread; copies of each block */
    uint32_t bytes; /* of a bulk copy, a multiple of 16 */
    /* Bulk copies of a block. 0: one copy in the whole cluster, which each block passes on when it
     * has come; then `count` is how often it goes round. */
    uint32_t in_flight;
};
enum {
    DEVICE_CLUSTER_MAX = 16,
    DEVICE_CLUSTER_LOADS_STEP = 32,       /* a multiple of this many loads */
    DEVICE_CLUSTER_ROUND_BYTES = 64,      /* that a thread loads in a round: 4 times 16 */
    DEVICE_CLUSTER_THREADS = 1024,        /* of a block that reads */
    DEVICE_CLUSTER_ROOM_BYTES = 64 << 10, /* for all copies in flight between blocks */
    DEVICE_BULK_ROOM_BYTES = 128 << 10,   /* and for those from global memory */
    DEVICE_BULK_FLIGHTS_MAX = 32,
};
struct device_cluster_answer {
    uint32_t clusters;  /* that ran at once: as many as the GPU holds */
    uint16_t *sms;      /* by cluster, then by block */
    size_t block_count; /* of these; set by device_run_cluster */
    /* By cluster and block; loads: then by the block whose memory is loaded; places: none. */
    uint64_t *cycles;
    size_t cycle_count;
};

/* Bulk copies from global memory into shared memory. */
enum device_bulk_source {
    DEVICE_BULK_L2,     /* memory that L2 holds */
    DEVICE_BULK_MEMORY, /* memory that L2 does not hold */
    DEVICE_BULK_SOURCE_COUNT
};
struct device_bulk {
    enum device_bulk_source source;
    bool alone;         /* one SM; otherwise all at once */
    uint32_t bytes;     /* of a copy, a multiple of 16 */
    uint32_t in_flight; /* of an SM */
    uint32_t copies;    /* of an SM */
};
struct device_bulk_answer {
    uint64_t cycles;     /* of an SM, mean of all */
    uint64_t elapsed_ns; /* from the first start to the last end */
    uint32_t sms;
};

/* Launches clusters. -ENOTSUP: the GPU has no clusters, or none of this size. -ENOSYS: the device
 * launches none. -EBUSY: another process has a part of the GPU. out_answer is released by
 * device_cluster_answer_fini. */
int device_run_cluster(struct device *device, const struct device_cluster *cluster,
                       struct device_cluster_answer *out_answer, struct err *err);
void device_cluster_answer_fini(struct device_cluster_answer *answer);

/* How many cycles an answer to this request has for each cluster. */
size_t device_cluster_cycles(const struct device_cluster *cluster);

/* Copies by bulk. Errors as above. */
int device_copy_bulk(struct device *device, const struct device_bulk *bulk,
                     struct device_bulk_answer *out_answer, struct err *err);

#endif
