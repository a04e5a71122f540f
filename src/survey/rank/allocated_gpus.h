/* How many GPUs of its node the launcher allocated to this job. */
#ifndef GPUMEMTOPO_SURVEY_RANK_ALLOCATED_GPUS_H
#define GPUMEMTOPO_SURVEY_RANK_ALLOCATED_GPUS_H

#include <stdint.h>

/* What the environment says. NULL: not set. */
struct allocated_environment {
    const char *gpus_on_node;   /* SLURM_GPUS_ON_NODE */
    const char *visible;        /* CUDA_VISIBLE_DEVICES, of this task */
    const char *tasks_per_node; /* SLURM_STEP_TASKS_PER_NODE: "8(x3),2" */
    const char *node_number;    /* SLURM_NODEID: the place of this node in that list */
    const char *local_size;     /* OMPI_COMM_WORLD_LOCAL_SIZE */
};
struct allocated_environment allocated_environment_read(void);

/* The most GPUs that the tasks of this node can list together; 0: not known. listed: how many this
 * task lists. Without Slurm, CUDA_VISIBLE_DEVICES may name GPUs that do not exist; then only what
 * the task lists is certain. */
uint32_t allocated_gpus(const struct allocated_environment *environment, uint32_t listed);

#endif
