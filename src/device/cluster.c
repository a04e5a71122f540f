/* Requests for clusters and bulk copies: the checks that all backends need. */
#include "device/cluster.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device/device.h"

/* Of a bulk copy: what the instruction takes, and what the shared memory holds. */
static int check_copy(uint32_t bytes, uint32_t in_flight, uint32_t copies, uint32_t room_bytes,
                      struct err *err)
{
    if (!bytes || bytes % 16 || !in_flight || in_flight > DEVICE_BULK_FLIGHTS_MAX ||
        bytes > room_bytes / in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of %u bytes in flight", in_flight, bytes);
    if (copies < in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of which %u are in flight", copies, in_flight);
    return 0;
}

static int check_cluster(const struct device_cluster *cluster, struct err *err)
{
    bool counted = cluster->work != DEVICE_CLUSTER_PLACES;
    if (!cluster->size || cluster->size > DEVICE_CLUSTER_MAX || counted != (cluster->count > 0))
        return err_set(err, -EINVAL, "clusters of %u blocks, count %u", cluster->size,
                       cluster->count);
    switch (cluster->work) {
    case DEVICE_CLUSTER_PLACES:
        return 0;
    case DEVICE_CLUSTER_LOADS:
        return cluster->count % DEVICE_CLUSTER_LOADS_STEP
                   ? err_set(err, -EINVAL, "%u loads in a cluster", cluster->count)
                   : 0;
    case DEVICE_CLUSTER_READ:
        return 0;
    case DEVICE_CLUSTER_COPY:
        return check_copy(cluster->bytes, cluster->in_flight ? cluster->in_flight : 1,
                          cluster->count, DEVICE_CLUSTER_ROOM_BYTES, err);
    default:
        return err_set(err, -EINVAL, "no work %d of clusters", (int)cluster->work);
    }
}

size_t device_cluster_cycles(const struct device_cluster *cluster)
{
    if (cluster->work == DEVICE_CLUSTER_PLACES)
        return 0;
    return (size_t)cluster->size * (cluster->work == DEVICE_CLUSTER_LOADS ? cluster->size : 1);
}

int device_run_cluster(struct device *device, const struct device_cluster *cluster,
                       struct device_cluster_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_cluster_answer){0};
    int rc = check_cluster(cluster, err);
    if (rc)
        return rc;
    if (!device->ops->run_cluster)
        return err_set(err, -ENOSYS, "this device launches no clusters");
    rc = device->ops->run_cluster(device, cluster, out_answer, err);
    if (rc)
        device_cluster_answer_fini(out_answer);
    return rc;
}

void device_cluster_answer_fini(struct device_cluster_answer *answer)
{
    free(answer->sms);
    free(answer->cycles);
    *answer = (struct device_cluster_answer){0};
}

int device_copy_bulk(struct device *device, const struct device_bulk *bulk,
                     struct device_bulk_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_bulk_answer){0};
    if ((unsigned)bulk->source >= DEVICE_BULK_SOURCE_COUNT)
        return err_set(err, -EINVAL, "no source %d of bulk copies", (int)bulk->source);
    int rc = check_copy(bulk->bytes, bulk->in_flight, bulk->copies, DEVICE_BULK_ROOM_BYTES, err);
    if (rc)
        return rc;
    if (!device->ops->copy_bulk)
        return err_set(err, -ENOSYS, "this device has no bulk copies");
    return device->ops->copy_bulk(device, bulk, out_answer, err);
}
