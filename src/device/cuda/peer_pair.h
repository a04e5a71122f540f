/* One pair of GPUs whose link is measured. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_PEER_PAIR_H
#define GPUMEMTOPO_DEVICE_CUDA_PEER_PAIR_H

#include "device/cuda/gpu.h"

/* The caller sets the first three; everything else is zero. */
struct peer_pair {
    struct cuda_gpu *gpu;
    CUdevice device; /* the peer */
    struct device_peer_test test;
    struct device_peer_answer answer;
    CUcontext context; /* on the peer */
    CUdeviceptr there, here;
    CUfunction write, check, exchange, chase;
    bool mapped;
};

/* Fills in the answer, and releases everything that it took on both GPUs. Any call of the driver
 * may hang if the link is bad. */
int peer_pair_measure(struct peer_pair *pair, struct err *err);

#endif
