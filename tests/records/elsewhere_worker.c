/* A worker that only replays: compiled for another architecture, with what analyses records. */
#include <errno.h>

#include "device/source.h"
#include "survey/worker.h"

int device_source_cuda(struct device_source **out_source, struct err *err)
{
    (void)out_source;
    return err_set(err, -ENOSYS, "only records");
}

int device_source_sim(const char *fleet_path, uint64_t seed, uint32_t rank, uint32_t ranks,
                      struct device_source **out_source, struct err *err)
{
    (void)fleet_path, (void)seed, (void)rank, (void)ranks, (void)out_source;
    return err_set(err, -ENOSYS, "only records");
}

int main(void)
{
    return worker_main();
}
