/* Checks of a request to load shared memory. */
#include "device/shared_load.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"

static int check(const struct device_limits *limits, const struct device_shared_load *load,
                 struct err *err)
{
    uint32_t width = load->width_bytes;
    if (width != 4 && width != 8 && width != 16)
        return err_set(err, -EINVAL, "loads are 4, 8 or 16 bytes wide, not %u", width);
    if (!load->warps || load->warps > SHARED_LOAD_WARPS_MAX || !load->lanes ||
        load->lanes > SHARED_LOAD_LANES_MAX)
        return err_set(err, -EINVAL, "%u warps, %u lanes", load->warps, load->lanes);
    if (limits->warp_count && load->warps > limits->warp_count)
        return err_set(err, -EINVAL, "%u warps: a block has %u", load->warps, limits->warp_count);
    if (load->lane_stride_bytes % width)
        return err_set(err, -EINVAL, "a stride of %u bytes is not a multiple of %u",
                       load->lane_stride_bytes, width);
    if (!load->loads || load->loads % SHARED_LOAD_UNROLL || load->loads > SHARED_LOAD_COUNT_MAX)
        return err_set(err, -EINVAL, "%u loads: a multiple of %d, at most %d", load->loads,
                       SHARED_LOAD_UNROLL, SHARED_LOAD_COUNT_MAX);
    if (limits->shared_array_bytes && device_shared_load_bytes(load) > limits->shared_array_bytes)
        return err_set(err, -EINVAL, "the words end past the %llu bytes of shared memory",
                       (unsigned long long)limits->shared_array_bytes);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t device_shared_load_median(uint64_t *cycles, uint32_t warps)
{
    qsort(cycles, warps, sizeof *cycles, by_value);
    return cycles[warps / 2];
}

int device_load_shared(struct device *device, const struct device_shared_load *load,
                       struct device_shared_load_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_shared_load_answer){0};
    int rc = check(&device->limits, load, err);
    if (rc)
        return rc;
    if (!device->ops->load_shared)
        return err_set(err, -ENOSYS, "this device cannot load shared memory by several warps");
    return device->ops->load_shared(device, load, out_answer, err);
}
