/* Two far words are in one bank with probability 1 / banks, however they are laid out: the share of
 * conflicts tells how many there are. The first conflict is where the words of all banks end. */
#include "probes/method/bank_pattern.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

enum { WORD_BYTES = 4, FAR_WORDS = BANK_PATTERN_WORDS / 2 };

/* A conflict costs at least this much; a load between the two groups is neither. */
static const double least_cycles = 0.4, unclear_low = 0.25, unclear_high = 0.75;

static int classify(const struct bank_pattern *pattern, bool *conflicts, struct err *err)
{
    double low = INFINITY, high = 0;
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++) {
        low = fmin(low, pattern->cycles[i]);
        high = fmax(high, pattern->cycles[i]);
    }
    if (high - low < least_cycles)
        return err_set(err, -ENODATA, "no two words up to %d bytes apart conflict",
                       BANK_PATTERN_WORDS * WORD_BYTES);
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++) {
        double share = (pattern->cycles[i] - low) / (high - low);
        if (share > unclear_low && share < unclear_high)
            return err_set(err, -ENODATA,
                           "loads of words %u bytes apart take %.2f cycles: neither %.2f nor %.2f",
                           i * WORD_BYTES, pattern->cycles[i], low, high);
        conflicts[i] = share >= unclear_high;
    }
    return 0;
}

static bool in_conflict(const struct bank_layout *layout, uint32_t words)
{
    uint64_t address = (uint64_t)words * WORD_BYTES;
    bool same_bank = address / layout->interleave_bytes % layout->banks == 0;
    return same_bank && address >= (uint64_t)layout->banks * layout->bank_bytes;
}

int bank_pattern_layout(const struct bank_pattern *pattern, struct bank_layout *out_layout,
                        struct err *err)
{
    bool conflicts[BANK_PATTERN_WORDS + 1] = {false};
    uint32_t first = 1, run = 0, count = 0;
    int rc = classify(pattern, conflicts, err);
    if (rc)
        return rc;
    while (!conflicts[first])
        first++;
    while (first + run <= BANK_PATTERN_WORDS && conflicts[first + run])
        run++;
    for (uint32_t i = BANK_PATTERN_WORDS - FAR_WORDS; i < BANK_PATTERN_WORDS; i++)
        count += conflicts[i];
    uint32_t banks = count ? FAR_WORDS / count : 0;
    struct bank_layout layout = {banks, banks ? first * WORD_BYTES / banks : 0, run * WORD_BYTES};
    bool explained = banks && layout.bank_bytes >= WORD_BYTES;
    for (uint32_t i = 1; explained && i <= BANK_PATTERN_WORDS; i++)
        explained = in_conflict(&layout, i) == conflicts[i];
    if (!explained)
        return err_set(err, -ENODATA,
                       "words conflict in another pattern than that of banks in turn: first at "
                       "%u bytes, then one in %u",
                       first * WORD_BYTES, banks);
    *out_layout = layout;
    return 0;
}

uint32_t bank_layout_passes(const struct bank_layout *layout, uint32_t lanes, uint32_t stride_bytes)
{
    uint32_t most = 1;
    for (uint32_t bank = 0; bank < layout->banks; bank++) {
        uint64_t last = UINT64_MAX; /* rows rise with the lanes */
        uint32_t count = 0;
        for (uint32_t lane = 0; lane < lanes; lane++) {
            uint64_t address = (uint64_t)lane * stride_bytes;
            uint64_t row = address / ((uint64_t)layout->banks * layout->bank_bytes);
            if (address / layout->interleave_bytes % layout->banks != bank)
                continue;
            count += row != last;
            last = row;
        }
        most = count > most ? count : most;
    }
    return most;
}
