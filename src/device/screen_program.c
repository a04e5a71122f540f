/* The answers of the screen that the host knows. */
#include "device/screen_program.h"

#include "catalogue/screens.h"

#define SCREEN_NAME(id, name, ...) name,
const char *const device_screen_names[DEVICE_SCREEN_COUNT] = {SCREENS(SCREEN_NAME)};

#define SCREEN_ROW(id, name, words, host, warps, oldest, newest) {host, warps, oldest, newest},
const struct device_screen_row device_screen_rows[DEVICE_SCREEN_COUNT] = {SCREENS(SCREEN_ROW)};

bool device_screen_exists(enum device_screen_path path, int capability)
{
    const struct device_screen_row *row = &device_screen_rows[path];
    return capability >= row->oldest && (!row->newest || capability <= row->newest);
}

static uint32_t words_of(enum device_screen_path path, uint32_t step, uint32_t lane,
                         uint32_t words[SCREEN_WORDS])
{
    switch (path) {
    case DEVICE_SCREEN_INT:
        return screen_int_words(step, lane, words);
    case DEVICE_SCREEN_FP32:
        return screen_fp32_words(step, lane, words);
    case DEVICE_SCREEN_FP64:
        return screen_fp64_words(step, lane, words);
    default:
        return 0;
    }
}

bool screen_host_hash(enum device_screen_path path, uint64_t *out_hash)
{
    uint64_t hash = 0;
    if (!device_screen_rows[path].by_host)
        return false;
    for (uint32_t lane = 0; lane < CHECK_LANES; lane++) {
        uint32_t words[SCREEN_STEPS * SCREEN_WORDS], count = 0;
        for (uint32_t step = 0; step < SCREEN_STEPS; step++)
            count += words_of(path, step, lane, words + count);
        uint64_t sum = 0;
        for (uint32_t period = 0; period < SCREEN_PERIODS; period++)
            for (uint32_t i = 0; i < count; i++)
                sum = check_fold(sum, words[i]);
        hash += check_lane_hash(sum, lane);
    }
    *out_hash = hash;
    return true;
}
