/* Stands in for the CUDA backend in a build without it. */
#include <errno.h>

#include "device/source.h"

int device_source_cuda(struct device_source **out_source, struct err *err)
{
    (void)out_source;
    return err_set(err, -ENOTSUP, "built without the CUDA backend");
}

int device_cuda_check(struct err *err)
{
    (void)err;
    return 0;
}
