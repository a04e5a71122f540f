/* The calls that use clusters and bulk copies. */
#include "device/call_row.h"

#include <errno.h>

/* Clusters and bulk copies. */

static const char *const cluster_names[] = {"places", "loads", "read", "copy"};
static const struct field cluster_rows[] = {
    {FIELD_CHOICE(struct device_cluster, work, cluster_names)},
    {FIELD(struct device_cluster, size, U32)},
    {FIELD(struct device_cluster, count, U32)},
    {FIELD(struct device_cluster, bytes, U32)},
    {FIELD(struct device_cluster, in_flight, U32)},
};
static const struct fields cluster_fields = {FIELDS(struct device_cluster, cluster_rows)};
static const struct field cluster_answer_rows[] = {
    {FIELD(struct device_cluster_answer, clusters, U32)},
    {FIELD_COUNT(struct device_cluster_answer, block_count)},
    {FIELD_COUNT(struct device_cluster_answer, cycle_count)},
    {FIELD_NUMBER_LIST(struct device_cluster_answer, sms, block_count, U16)},
    {FIELD_NUMBER_LIST(struct device_cluster_answer, cycles, cycle_count, U64), .form = FIELD_NEAR},
};
static const struct fields cluster_answer_fields = {
    FIELDS(struct device_cluster_answer, cluster_answer_rows)};

/* Of a bulk copy: what the instruction takes, and what the shared memory holds. */
static int copy_check(uint32_t bytes, uint32_t in_flight, uint32_t copies, uint32_t room_bytes,
                      struct err *err)
{
    if (!bytes || bytes % 16 || !in_flight || in_flight > DEVICE_BULK_FLIGHTS_MAX ||
        bytes > room_bytes / in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of %u bytes in flight", in_flight, bytes);
    if (copies < in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of which %u are in flight", copies, in_flight);
    return 0;
}

static int cluster_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_cluster *cluster = request;
    bool counted = cluster->work != DEVICE_CLUSTER_PLACES;
    (void)device;
    if (!cluster->size || cluster->size > DEVICE_CLUSTER_MAX || counted != (cluster->count > 0))
        return err_set(err, -EINVAL, "clusters of %u blocks, count %u", cluster->size,
                       cluster->count);
    switch (cluster->work) {
    case DEVICE_CLUSTER_PLACES:
    case DEVICE_CLUSTER_READ:
        return 0;
    case DEVICE_CLUSTER_LOADS:
        return cluster->count % DEVICE_CLUSTER_LOADS_STEP
                   ? err_set(err, -EINVAL, "%u loads in a cluster", cluster->count)
                   : 0;
    case DEVICE_CLUSTER_COPY:
        return copy_check(cluster->bytes, cluster->in_flight ? cluster->in_flight : 1,
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

static void cluster_finish(const void *request, void *answer)
{
    struct device_cluster_answer *got = answer;
    got->block_count = (size_t)got->clusters * ((const struct device_cluster *)request)->size;
}

static bool cluster_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_cluster *cluster = asked;
    const struct device_cluster_answer *got = answer;
    bool fits = cluster->size && cluster->size <= DEVICE_CLUSTER_MAX &&
                got->clusters <= sm_count / cluster->size &&
                got->block_count == (size_t)got->clusters * cluster->size &&
                got->cycle_count == got->clusters * device_cluster_cycles(cluster);
    for (size_t i = 0; fits && i < got->block_count; i++)
        fits = got->sms[i] < sm_count;
    return fits;
}

static const char *const bulk_names[] = {"l2", "memory"};
static const struct field bulk_rows[] = {
    {FIELD_CHOICE(struct device_bulk, source, bulk_names)},
    {FIELD(struct device_bulk, alone, BOOL)},
    {FIELD(struct device_bulk, bytes, U32)},
    {FIELD(struct device_bulk, in_flight, U32)},
    {FIELD(struct device_bulk, copies, U32)},
};
static const struct fields bulk_fields = {FIELDS(struct device_bulk, bulk_rows)};
static const struct field bulk_answer_rows[] = {
    {FIELD(struct device_bulk_answer, cycles, U64)},
    {FIELD(struct device_bulk_answer, elapsed_ns, U64)},
    {FIELD(struct device_bulk_answer, sms, U32)},
};
static const struct fields bulk_answer_fields = {
    FIELDS(struct device_bulk_answer, bulk_answer_rows)};

static int bulk_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_bulk *bulk = request;
    (void)device;
    if ((unsigned)bulk->source >= DEVICE_BULK_SOURCE_COUNT)
        return err_set(err, -EINVAL, "no source %d of bulk copies", (int)bulk->source);
    return copy_check(bulk->bytes, bulk->in_flight, bulk->copies, DEVICE_BULK_ROOM_BYTES, err);
}

const struct device_call_row device_run_cluster_row = {
    ROW("cluster", &cluster_fields, &cluster_answer_fields, -ENOSYS,
        "this device launches no clusters"),
    .check = cluster_check, .finish = cluster_finish, .fits = cluster_fits};
CALL_FUNCTION(device_run_cluster, DEVICE_CALL_CLUSTER, struct device_cluster,
              struct device_cluster_answer)
CALL_FINI(device_cluster_answer_fini, struct device_cluster_answer, cluster_answer_fields)

const struct device_call_row device_copy_bulk_row = {
    ROW("bulk", &bulk_fields, &bulk_answer_fields, -ENOSYS, "this device has no bulk copies"),
    .check = bulk_check};
CALL_FUNCTION(device_copy_bulk, DEVICE_CALL_BULK, struct device_bulk, struct device_bulk_answer)
