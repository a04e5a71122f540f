/* The blocks of a stream on the SMs of a simulated GPU. */
#ifndef GPUMEMTOPO_DEVICE_SIM_STREAM_H
#define GPUMEMTOPO_DEVICE_SIM_STREAM_H

#include <stdint.h>

/* GB/s are bytes per nanosecond. */
struct stream_blocks {
    uint32_t sms;
    uint32_t at_once; /* blocks that an SM holds */
    uint32_t blocks;
    double block_in_flight; /* bytes */
    double sm_limit;        /* GB/s */
    double level_limit;     /* GB/s of all SMs together; 0: none */
    double latency_ns;      /* of an access alone */
    double loaded_ns;       /* while the level delivers all it can; 0: the same */
};

/* Bytes per nanosecond from the start of the first block to the end of the last. All have the same
 * work; blocks are given to the SMs in turn, as many as fit, and the next ones when these end. */
double stream_blocks_rate(const struct stream_blocks *run);

#endif
