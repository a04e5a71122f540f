/* The driver's choice of the carve-out, as 132 launches on an H200 showed it (docs/VALIDATION.md).
 */
#include "predict/carveout.h"

#include "base/mem.h"

/* What a block takes beside its own; the carve-outs of compute capability 9.0; up to where the
 * driver takes more than the blocks need. */
static const uint64_t reserved = 1024, granule = 128;
static const uint64_t choices_kib[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
static const uint64_t generous_kib = 132;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* So many times the blocks that the threads allow are provided for. */
static uint64_t generosity(uint32_t warps, uint64_t shared_bytes)
{
    if (warps >= 32)
        return 1;
    return shared_bytes ? 2 : 4;
}

uint64_t carveout_of_hopper(const struct sm_limits *limits, uint32_t warps, uint64_t shared_bytes)
{
    uint64_t block = (shared_bytes + granule - 1) / granule * granule + reserved;
    uint64_t most = choices_kib[COUNT_OF(choices_kib) - 1] << 10;
    uint64_t blocks = smaller(limits->blocks_max, limits->warps_max / warps);
    uint64_t needed = smaller(blocks, most / block) * block;
    uint64_t wanted = smaller(limits->blocks_max, blocks * generosity(warps, shared_bytes)) * block;
    wanted = smaller(wanted, generous_kib << 10);
    wanted = wanted > needed ? wanted : needed;
    for (size_t i = 0; i < COUNT_OF(choices_kib); i++)
        if (choices_kib[i] << 10 >= wanted)
            return choices_kib[i] << 10;
    return most;
}
