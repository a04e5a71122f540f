/* What the launches of a check or of a screen gave, by sub-core. */
#include <errno.h>
#include <string.h>

#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

int cuda_sm_of(const struct cuda_gpu *gpu, uint32_t sm_id, uint32_t *out_sm, struct err *err)
{
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++)
        if (gpu->sm_ids[i] == sm_id) {
            *out_sm = i;
            return 0;
        }
    return err_set(err, -EIO, "a block ran on the unknown SM %u", sm_id);
}

int cuda_add_hashes(const struct cuda_gpu *gpu, const struct cuda_hashes *hashes,
                    struct device_check_place *places, uint64_t *cycles, struct err *err)
{
    uint32_t sms = gpu->base.limits.sm_count;
    if (cycles)
        memset(cycles, 0, (size_t)sms * DEVICE_SUB_CORES * sizeof *cycles);
    for (uint32_t i = 0; i < sms; i++) {
        const struct kernel_check_result *result = &hashes->results[i];
        uint32_t sm = 0;
        int rc = cuda_sm_of(gpu, result->sm_id, &sm, err);
        if (rc)
            return rc;
        for (uint32_t w = 0; w < hashes->warps; w++) {
            size_t at = sm * DEVICE_SUB_CORES + w % DEVICE_SUB_CORES;
            struct device_check_place *place = &places[at];
            if (cycles && result->cycles[w] > cycles[at])
                cycles[at] = result->cycles[w];
            place->count++;
            if (result->hashes[w] == hashes->expected)
                continue;
            place->wrong++;
            place->wrong_hash = result->hashes[w];
            place->wrong_warp = w;
            place->wrong_set = hashes->set;
        }
    }
    return 0;
}

void cuda_keep_fastest(struct device_check_place *places, const uint64_t *cycles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cycles[i] && (!places[i].cycles || cycles[i] < places[i].cycles))
            places[i].cycles = cycles[i];
}

uint64_t cuda_wrong_hashes(const struct device_check_place *places, size_t count)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += places[i].wrong;
    return wrong;
}
