/* The answers of the screen that the host knows. */
#include "device/screen_program.h"

#include "catalogue/screens.h"

#define SCREEN_NAME(id, name, ...) name,
const char *const device_screen_names[DEVICE_SCREEN_COUNT] = {SCREENS(SCREEN_NAME)};

#define SCREEN_ROW(id, name, words, host, warps, steps, taken, operands, oldest, newest)           \
    {host, warps, steps, taken, operands, oldest, newest},
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
    case DEVICE_SCREEN_PREDICATES:
        return screen_predicates_words(step, lane, words);
    default:
        return 0;
    }
}

/* The sum of a lane in a launch of a path that computes. */
static uint64_t sum_of_words(enum device_screen_path path, uint32_t set, uint32_t lane)
{
    uint32_t words[SCREEN_WORDS], first = screen_first_step(set, SCREEN_STEPS);
    uint64_t sum = 0;
    for (uint32_t step = 0; step < SCREEN_PERIODS * SCREEN_STEPS; step++) {
        uint32_t count = words_of(path, first + step, lane, words);
        for (uint32_t i = 0; i < count; i++)
            sum = check_fold(sum, words[i]);
    }
    return sum;
}

/* Words from `first` on of a chunk, of which a lane takes every 128th four. */
static uint64_t sum_of_read(uint64_t sum, uint32_t first, uint32_t apart)
{
    struct screen_read sums = {.products = sum};
    for (uint32_t i = 0; i < SCREEN_TAKEN_L1 / 4; i++) {
        uint32_t words[4];
        for (uint32_t k = 0; k < 4; k++)
            words[k] = screen_data_word((first + i * apart + k) % SCREEN_CHUNK_WORDS);
        screen_read_four(&sums, i, words);
    }
    return screen_read_end(&sums);
}

/* The same of a path that reads memory. All lanes read the same constants, one four after the
 * other. */
static uint64_t sum_of_chunks(enum device_screen_path path, uint32_t lane)
{
    enum { AT_ONCE = 4 };
    uint32_t visits = SCREEN_PERIODS * device_screen_rows[path].steps;
    uint64_t sum = 0;
    for (uint32_t visit = 0; visit < visits; visit++)
        sum = path == DEVICE_SCREEN_CONSTANT
                  ? sum_of_read(sum, visit * SCREEN_TAKEN_CONSTANT, AT_ONCE)
                  : sum_of_read(sum, AT_ONCE * lane, AT_ONCE * CHECK_LANES);
    return sum;
}

bool screen_host_hash(enum device_screen_path path, uint32_t set, uint64_t *out_hash)
{
    uint64_t hash = 0;
    uint32_t words[SCREEN_WORDS];
    if (!device_screen_rows[path].by_host)
        return false;
    bool reads = !words_of(path, 0, 0, words);
    for (uint32_t lane = 0; lane < CHECK_LANES; lane++) {
        uint64_t sum = reads ? sum_of_chunks(path, lane) : sum_of_words(path, set, lane);
        hash += check_lane_hash(sum, lane);
    }
    *out_hash = hash;
    return true;
}

uint32_t screen_operands(enum device_screen_path path, const struct screen_place *place,
                         uint32_t operands[SCREEN_OPERANDS])
{
    const struct device_screen_row *row = &device_screen_rows[path];
    uint32_t count = row->steps == SCREEN_STEPS ? row->operands : 0;
    uint32_t step = screen_first_step(place->set, row->steps) + place->period * row->steps;
    for (uint32_t i = 0; i < count; i++)
        operands[i] = screen_operand(step + place->step, place->lane, i);
    return count;
}
