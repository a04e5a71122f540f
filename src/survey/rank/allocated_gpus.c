/* How many GPUs of its node the launcher allocated to this job. */
#include "survey/rank/allocated_gpus.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct allocated_environment allocated_environment_read(void)
{
    return (struct allocated_environment){
        .gpus_on_node = getenv("SLURM_GPUS_ON_NODE"),
        .visible = getenv("CUDA_VISIBLE_DEVICES"),
        .tasks_per_node = getenv("SLURM_STEP_TASKS_PER_NODE"),
        .node_number = getenv("SLURM_NODEID"),
        .local_size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"),
    };
}

/* A number from 0 to 65535 at the beginning of the text; -1: there is none. */
static long leading_number(const char *text)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    return text && end != text && value >= 0 && value <= UINT16_MAX ? value : -1;
}

/* The tasks of a node in a list such as "8(x3),2"; -1: the list does not say. */
static long tasks_in_list(const char *list, long node)
{
    while (list && node >= 0) {
        long tasks = leading_number(list), nodes = 1;
        const char *comma = strchr(list, ','), *times = strstr(list, "(x");
        if (times && (!comma || times < comma))
            nodes = leading_number(times + 2);
        if (tasks < 0 || nodes < 0)
            return -1;
        if (node < nodes)
            return tasks;
        node -= nodes;
        list = comma ? comma + 1 : NULL;
    }
    return -1;
}

/* How many GPUs CUDA_VISIBLE_DEVICES names. An entry that is no number and no UUID, such as
 * NoDevFiles or -1, ends the list, as it does for the driver. */
static long count_visible(const char *visible)
{
    long count = 0;
    while (visible && *visible) {
        bool known = (*visible >= '0' && *visible <= '9') || strncmp(visible, "GPU-", 4) == 0 ||
                     strncmp(visible, "MIG-", 4) == 0;
        if (!known)
            return count;
        count++;
        const char *comma = strchr(visible, ',');
        visible = comma ? comma + 1 : NULL;
    }
    return count;
}

uint32_t allocated_gpus(const struct allocated_environment *environment, uint32_t listed)
{
    long allocated = leading_number(environment->gpus_on_node);
    if (allocated < 0)
        return environment->visible ? listed : 0;
    long tasks =
        tasks_in_list(environment->tasks_per_node, leading_number(environment->node_number));
    if (tasks < 1)
        tasks = leading_number(environment->local_size);
    long visible = count_visible(environment->visible) * (tasks < 1 ? 1 : tasks);
    return (uint32_t)(environment->visible && visible < allocated ? visible : allocated);
}
