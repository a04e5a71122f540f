/* Clusters on the stand-in for the driver. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_CLUSTER_H
#define GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_CLUSTER_H

#include <stdint.h>

/* Clusters of up to FAKE_CLUSTER_MAX blocks; block i of a launch takes so many cycles for each
 * load, round or copy, and one more for each block of the cluster whose memory it loads. */
enum { FAKE_CLUSTER_MAX = 2, FAKE_CLUSTER_CYCLES = 100 };

struct kernel_cluster;

/* Executes a launch of so many blocks; sm_ids: of each. */
void fake_cluster_run(const struct kernel_cluster *run, unsigned grid, const uint32_t *sm_ids);

#endif
