/* A GPU of the stand-in driver, opened for a test. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_CUDA_OPENED_H
#define GPUMEMTOPO_TESTS_DEVICE_CUDA_OPENED_H

#include "../../check.h"

#include "device/source.h"

enum { SMS = 4 }; /* of the stand-in */

static struct device_source *source;
static struct device *device;

static int set_up(void **state)
{
    (void)state;
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    if (!rc)
        rc = device_source_open(source, 0, &device, &err);
    if (rc)
        print_error("%s\n", err.text);
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    device_destroy(device);
    device_source_destroy(source);
    device = NULL;
    source = NULL;
    return 0;
}

#endif
