/* Where GPUs come from: a simulated fleet, the driver of this machine or a record (device/record).
 * Lists and opens them. */
#ifndef GPUMEMTOPO_DEVICE_SOURCE_H
#define GPUMEMTOPO_DEVICE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct device_source;

/* What is known of a GPU without measuring. The strings belong to the source. */
struct device_info {
    const char *uuid;
    const char *node; /* NULL: the host this runs on */
    const char *pci;
    int32_t index;
    const char *name;
    const char *model_key;
    uint32_t gpus_allocated; /* as in struct gpu_run; simulated GPUs only */
};

/* A node whose driver does not answer, although the launcher gave its GPUs to this job. */
struct device_dead_node {
    const char *node, *reason;
    uint32_t gpus_allocated;
};

/* The simulated fleet of a YAML file, for one of `ranks` processes: GPUs i with i mod ranks ==
 * rank, in the order of the fleet (all GPUs if the fleet has `visibility: all`). -EINVAL with
 * position for a bad file. Freed with device_source_destroy. */
int device_source_sim(const char *fleet_path, uint64_t seed, uint32_t rank, uint32_t ranks,
                      struct device_source **out_source, struct err *err);

/* The GPUs that the CUDA driver shows to this process. -ENODEV without a driver or a GPU (the text
 * says which), -ENOTSUP in a build without the CUDA backend. */
int device_source_cuda(struct device_source **out_source, struct err *err);

/* -EINVAL if the environment (GPUMEMTOPO_CUDA_TOOLKIT) asks for kernels that this build does not
 * have; the text names those that it has. */
int device_cuda_check(struct err *err);

size_t device_source_count(const struct device_source *source);
const struct device_info *device_source_info(const struct device_source *source, size_t i);

/* Nodes that have no GPU at all, as far as the source knows. */
size_t device_source_bare_count(const struct device_source *source);
const char *device_source_bare_node(const struct device_source *source, size_t i);

/* What the driver reports about GPU i before this process opens it: whether other processes compute
 * on it, and its identity even if it cannot be opened. Facts are added to those present. thorough:
 * also what takes long, for a GPU that could not be opened. */
struct device_look {
    struct facts board, config, health;
};
int device_source_look(struct device_source *source, size_t i, bool thorough,
                       struct device_look *look, struct err *err);
void device_look_fini(struct device_look *look);

/* Opens GPU i for measuring. Freed with device_destroy before the source is.
 * device_source.session: which measurement of the GPU this is. */
int device_source_open(struct device_source *source, size_t i, struct device **out_device,
                       struct err *err);

void device_source_destroy(struct device_source *source); /* accepts NULL */

/* The functions of a source; first member of every backend's own struct. */
struct device_source_ops {
    const char *backend; /* "sim", "cuda", "record", "replay" */
    int (*open)(struct device_source *source, size_t i, struct device **out_device,
                struct err *err);
    int (*look)(struct device_source *source, size_t i, bool thorough, struct device_look *look,
                struct err *err); /* NULL: there is nothing to read */
    void (*destroy)(struct device_source *source);
};
struct device_source {
    const struct device_source_ops *ops;
    struct device_info *infos;
    size_t info_count;
    const char **bare_nodes;
    size_t bare_count;
    uint32_t session; /* 0: the first measurement of a GPU, also its second try; 1: it is measured
                         again */
    struct device_dead_node *dead_nodes; /* simulated ones */
    size_t dead_count;
    uint32_t attempt; /* set by the worker: how many workers tried its GPU before */
};

#endif
