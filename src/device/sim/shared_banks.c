/* Which words of which banks the lanes of a warp want. */
#include "device/sim/shared_banks.h"

#include <stdbool.h>

enum { LANES_MAX = 32, WORDS_PER_LANE_MAX = 16 };

struct wanted {
    uint64_t rows[LANES_MAX * WORDS_PER_LANE_MAX];
    uint32_t banks[LANES_MAX * WORDS_PER_LANE_MAX];
    uint32_t count;
    uint32_t per_bank[SIM_BANKS_MAX];
};

/* A word that is wanted twice is delivered once. */
static void want(const struct sim_banks *banks, uint64_t address, struct wanted *wanted)
{
    uint32_t bank = (uint32_t)(address / banks->interleave_bytes % banks->count);
    uint64_t row = address / ((uint64_t)banks->count * banks->bank_bytes);
    for (uint32_t i = 0; i < wanted->count; i++)
        if (wanted->banks[i] == bank && wanted->rows[i] == row)
            return;
    wanted->banks[wanted->count] = bank;
    wanted->rows[wanted->count++] = row;
    wanted->per_bank[bank]++;
}

static uint32_t passes_of_group(const struct sim_banks *banks, const struct sim_lanes *lanes,
                                uint32_t first, uint32_t end)
{
    struct wanted wanted = {.count = 0};
    uint32_t most = 1;
    for (uint32_t lane = first; lane < end; lane++)
        for (uint32_t at = 0; at < lanes->width_bytes; at += banks->interleave_bytes)
            want(banks, lanes->address + (uint64_t)lane * lanes->stride_bytes + at, &wanted);
    for (uint32_t i = 0; i < banks->count; i++)
        most = wanted.per_bank[i] > most ? wanted.per_bank[i] : most;
    return most;
}

uint32_t shared_banks_passes(const struct sim_banks *banks, const struct sim_lanes *lanes)
{
    uint32_t together = banks->count * banks->bank_bytes / lanes->width_bytes, passes = 0;
    together = together < 1 ? 1 : together;
    for (uint32_t first = 0; first < lanes->count; first += together) {
        uint32_t end = first + together < lanes->count ? first + together : lanes->count;
        passes += passes_of_group(banks, lanes, first, end);
    }
    return passes;
}
