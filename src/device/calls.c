/* The table of device calls, with the checks of their requests, and how a call is executed. */
#include "device/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "device/instruction.h"
#include "device/shared_load.h"
#include "device/source.h"
#include "device/straight.h"

/* Facts and limits. */

static const struct field look_rows[] = {
    {FIELD(struct device_look, board, FACTS)},
    {FIELD(struct device_look, config, FACTS)},
    {FIELD(struct device_look, health, FACTS)},
};
static const struct fields look_fields = {FIELDS(struct device_look, look_rows)};

static const struct field limits_rows[] = {
    {FIELD(struct device_limits, sm_count, U32)},
    {FIELD(struct device_limits, warp_count, U32)},
    {FIELD(struct device_limits, global_bytes, U64)},
    {FIELD(struct device_limits, wide_bytes, U64)},
    {FIELD(struct device_limits, constant_bytes, U64)},
    {FIELD(struct device_limits, shared_bytes_max, U64)},
    {FIELD(struct device_limits, shared_array_bytes, U64)},
    {FIELD(struct device_limits, host_bytes, U64)},
    {FIELD(struct device_limits, l2_reported_bytes, U64)},
    {FIELD(struct device_limits, timer_overhead_cycles, F64)},
    {FIELD(struct device_limits, l1_nominal_bytes, U64)},
    {FIELD(struct device_limits, l1_carveout_bytes, U64)},
    {FIELD_ALL(struct device_limits, carveout_steps, U64)},
    {FIELD(struct device_limits, carveout_reserve_bytes, U64)},
    {FIELD(struct device_limits, loads_max, U64)},
    {FIELD(struct device_limits, threads_per_sm, U32)},
    {FIELD(struct device_limits, l2_fetch_limit_bytes, U32)},
};
static const struct fields limits_fields = {FIELDS(struct device_limits, limits_rows)};

static const struct field identity_rows[] = {
    {FIELD(struct device_identity, hardware, FACTS)},
    {FIELD(struct device_identity, board, FACTS)},
    {FIELD(struct device_identity, config, FACTS)},
};
static const struct fields identity_fields = {FIELDS(struct device_identity, identity_rows)};

static const struct field health_rows[] = {
    {FIELD(struct device_health, config, FACTS)},
    {FIELD(struct device_health, health, FACTS)},
};
static const struct fields health_fields = {FIELDS(struct device_health, health_rows)};

static const struct field peers_rows[] = {{FIELD(struct device_peers, gpus, FACTS)}};
static const struct fields peers_fields = {FIELDS(struct device_peers, peers_rows)};

static const struct field clocks_rows[] = {
    {FIELD(struct device_clocks, sm_mhz, F64)},
    {FIELD(struct device_clocks, memory_mhz, F64)},
    {FIELD(struct device_clocks, throttle_reasons, U64)},
    {FIELD(struct device_clocks, throttle_known, BOOL)},
};
static const struct fields clocks_fields = {FIELDS(struct device_clocks, clocks_rows)};

static const struct field link_rows[] = {
    {FIELD(struct device_link, alone, BOOL)},
    {FIELD(struct device_link, near, BOOL)},
};
static const struct fields link_fields = {FIELDS(struct device_link, link_rows)};

static void link_begin(const void *request, void *answer)
{
    (void)request;
    *(struct device_link *)answer = (struct device_link){.alone = true, .near = true};
}

/* Streams, and copies of all GPUs of a node at once. */

static const char *const stream_names[] = {"read",      "write", "copy", "h2d",  "d2h",
                                           "both_ways", "mul",   "add",  "triad"};
static const struct field stream_rows[] = {
    {FIELD_CHOICE(struct device_stream, kind, stream_names)},
    {FIELD_CHOICE(struct device_stream, path, device_path_names)},
    {FIELD(struct device_stream, footprint_bytes, U64)},
    {FIELD(struct device_stream, total_bytes, U64)},
    {FIELD(struct device_stream, width_bytes, U32)},
    {FIELD(struct device_stream, threads, U32)},
    {FIELD(struct device_stream, blocks, U32)},
    {FIELD(struct device_stream, unroll, U32)},
};
static const struct fields stream_fields = {FIELDS(struct device_stream, stream_rows)};
static const struct field stream_answer_rows[] = {
    {FIELD(struct device_stream_answer, bytes, U64)},
    {FIELD(struct device_stream_answer, elapsed_ns, U64)},
};
static const struct fields stream_answer_fields = {
    FIELDS(struct device_stream_answer, stream_answer_rows)};

static int stream_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_stream *stream = request;
    if ((unsigned)stream->kind >= DEVICE_STREAM_KIND_COUNT)
        return err_set(err, -EINVAL, "no such kind of stream");
    /* One access of every thread of a block to every array. */
    uint64_t least =
        (uint64_t)stream->threads * stream->width_bytes * device_stream_arrays(stream->kind);
    bool partly = !device_stream_uses_host(stream->kind) && stream->path == DEVICE_GLOBAL_CG &&
                  stream->total_bytes >= least;
    if (!stream->footprint_bytes || (stream->total_bytes < stream->footprint_bytes && !partly))
        return err_set(err, -EINVAL, "a stream passes over its footprint at least once");
    if (device_stream_uses_host(stream->kind))
        return 0;
    bool written = stream->kind != DEVICE_STREAM_READ;
    if ((unsigned)stream->path >= DEVICE_HOST ||
        (written && stream->path != DEVICE_GLOBAL_CA && stream->path != DEVICE_GLOBAL_CG &&
         stream->path != DEVICE_SHARED))
        return err_set(err, -EINVAL, "this path cannot be streamed");
    uint32_t width = stream->width_bytes;
    if (width < 1 || width > 16 || (width & (width - 1)))
        return err_set(err, -EINVAL, "accesses are 1, 2, 4, 8 or 16 bytes wide, not %u", width);
    if (!stream->threads)
        return err_set(err, -EINVAL, "a block has at least one thread");
    uint64_t room = device_path_bytes(&device->limits, stream->path);
    if (room && stream->footprint_bytes > room)
        return err_set(err, -EINVAL, "the footprint is larger than the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

static const struct field tickets_rows[] = {
    {FIELD_CHOICE(struct device_tickets, kind, stream_names)},
    {FIELD(struct device_tickets, footprint_bytes, U64)},
    {FIELD(struct device_tickets, total_bytes, U64)},
    {FIELD(struct device_tickets, threads, U32)},
    {FIELD(struct device_tickets, blocks_per_sm, U32)},
    {FIELD(struct device_tickets, unroll, U32)},
    {FIELD(struct device_tickets, chunk_bytes, U32)},
    {FIELD(struct device_tickets, equal_percent, U32)},
    {FIELD(struct device_tickets, ends, BOOL)},
};
static const struct fields tickets_fields = {FIELDS(struct device_tickets, tickets_rows)};
static const struct field tickets_answer_rows[] = {
    {FIELD(struct device_tickets_answer, bytes, U64)},
    {FIELD(struct device_tickets_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_tickets_answer, end_count)},
    {FIELD_NUMBER_LIST(struct device_tickets_answer, end_ns, end_count, U64), .form = FIELD_NEAR},
};
static const struct fields tickets_answer_fields = {
    FIELDS(struct device_tickets_answer, tickets_answer_rows)};

static int tickets_check(const struct device *device, const void *request, struct err *err)
{
    enum { WARP = 32, ACCESS_BYTES = 16 };
    const struct device_tickets *tickets = request;
    if ((unsigned)tickets->kind > DEVICE_STREAM_COPY)
        return err_set(err, -EINVAL, "only reads, writes and copies go by ticket");
    if (!tickets->threads || tickets->threads % WARP || !tickets->blocks_per_sm)
        return err_set(err, -EINVAL, "%u blocks of %u threads", tickets->blocks_per_sm,
                       tickets->threads);
    if (!tickets->unroll || tickets->unroll > 8 || (tickets->unroll & (tickets->unroll - 1)))
        return err_set(err, -EINVAL, "1, 2, 4 or 8 accesses in flight, not %u", tickets->unroll);
    if (!tickets->chunk_bytes || tickets->chunk_bytes % ACCESS_BYTES ||
        tickets->footprint_bytes <
            (uint64_t)device_stream_arrays(tickets->kind) * tickets->chunk_bytes)
        return err_set(err, -EINVAL, "chunks of %u bytes in %llu", tickets->chunk_bytes,
                       (unsigned long long)tickets->footprint_bytes);
    uint64_t most = tickets->total_bytes > tickets->footprint_bytes ? tickets->total_bytes
                                                                    : tickets->footprint_bytes;
    if (tickets->equal_percent > 100 || most / tickets->chunk_bytes > UINT32_MAX / 2)
        return err_set(err, -EINVAL, "too many tickets, or more than 100 %%");
    uint64_t room = device->limits.global_bytes;
    if (room && tickets->footprint_bytes > room)
        return err_set(err, -EINVAL, "the footprint is larger than the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

static bool tickets_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_tickets *tickets = asked;
    return ((const struct device_tickets_answer *)answer)->end_count ==
           (tickets->ends ? sm_count : 0);
}

static const struct field share_rows[] = {
    {FIELD_CHOICE(struct device_host_share, kind, stream_names)},
    {FIELD(struct device_host_share, bytes, U64)},
};
static const struct fields share_fields = {FIELDS(struct device_host_share, share_rows)};
static const struct field share_answer_rows[] = {
    {FIELD(struct device_host_share_answer, gpus, U32)},
    {FIELD(struct device_host_share_answer, bytes, U64)},
    {FIELD(struct device_host_share_answer, elapsed_ns, U64)},
};
static const struct fields share_answer_fields = {
    FIELDS(struct device_host_share_answer, share_answer_rows)};

static int share_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_host_share *asked = request;
    (void)device;
    if (!device_stream_uses_host(asked->kind) || !asked->bytes)
        return err_set(err, -EINVAL, "not a copy between host and GPU");
    return 0;
}

/* The test of the whole memory. Its seed does not count. */

static const struct field memory_rows[] = {
    {FIELD(struct device_memory_test, patterns, U32)},
    {FIELD(struct device_memory_test, region_bytes, U64)},
    {FIELD(struct device_memory_test, loads, U32)},
};
static const struct fields memory_fields = {FIELDS(struct device_memory_test, memory_rows)};
static const struct field region_rows[] = {
    {FIELD(struct device_region, bytes, U64), .form = FIELD_SAME},
    {FIELD_ALL(struct device_region, write_ns, U64), .form = FIELD_NEAR},
    {FIELD_ALL(struct device_region, read_ns, U64), .form = FIELD_NEAR},
    {FIELD_ALL(struct device_region, cycles, U64), .form = FIELD_NEAR},
    {FIELD(struct device_region, wrong_words, U64)},
    {FIELD(struct device_region, wrong_offset, U64)},
    {FIELD(struct device_region, wrong_bits, U64)},
};
static const struct fields region_fields = {FIELDS(struct device_region, region_rows)};
static const struct field ecc_rows[] = {
    {FIELD(struct device_ecc, corrected, U64)},
    {FIELD(struct device_ecc, uncorrected, U64)},
};
static const struct fields ecc_fields = {FIELDS(struct device_ecc, ecc_rows)};
static const struct field memory_map_rows[] = {
    {FIELD(struct device_memory_map, free_bytes, U64)},
    {FIELD_COUNT(struct device_memory_map, region_count)},
    {FIELD_STRUCT_LIST(struct device_memory_map, regions, region_count, &region_fields)},
    {FIELD(struct device_memory_map, ecc_known, BOOL)},
    {FIELD_INSIDE(struct device_memory_map, ecc_before, &ecc_fields)},
    {FIELD_INSIDE(struct device_memory_map, ecc_after, &ecc_fields)},
};
static const struct fields memory_map_fields = {FIELDS(struct device_memory_map, memory_map_rows)};

static int memory_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_memory_test *test = request;
    (void)device;
    if (test->region_bytes < DEVICE_REGION_MIN || (test->region_bytes & (test->region_bytes - 1)))
        return err_set(err, -EINVAL, "regions are powers of two of at least %d MiB",
                       DEVICE_REGION_MIN >> 20);
    if (!test->patterns || test->patterns > DEVICE_PATTERN_COUNT)
        return err_set(err, -EINVAL, "there are %d patterns", DEVICE_PATTERN_COUNT);
    return 0;
}

/* The March test. Its seed does not count. */

static const struct field march_rows[] = {
    {FIELD(struct device_march, backgrounds, U32)},
};
static const struct fields march_fields = {FIELDS(struct device_march, march_rows)};
static const struct field wrong_word_rows[] = {
    {FIELD(struct device_wrong_word, offset, U64), .form = FIELD_NEAR},
    {FIELD(struct device_wrong_word, expected, U64)},
    {FIELD(struct device_wrong_word, found, U64)},
    {FIELD(struct device_wrong_word, read, U32), .form = FIELD_SAME},
};
static const struct fields wrong_word_fields = {FIELDS(struct device_wrong_word, wrong_word_rows)};
static const struct field march_answer_rows[] = {
    {FIELD(struct device_march_answer, free_bytes, U64)},
    {FIELD(struct device_march_answer, bytes, U64)},
    {FIELD(struct device_march_answer, wrong, U64)},
    {FIELD(struct device_march_answer, first, U64)},
    {FIELD(struct device_march_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_march_answer, word_count)},
    {FIELD_STRUCT_LIST(struct device_march_answer, words, word_count, &wrong_word_fields)},
    {FIELD(struct device_march_answer, ecc_known, BOOL)},
    {FIELD_INSIDE(struct device_march_answer, ecc_before, &ecc_fields)},
    {FIELD_INSIDE(struct device_march_answer, ecc_after, &ecc_fields)},
};
static const struct fields march_answer_fields = {
    FIELDS(struct device_march_answer, march_answer_rows)};

static int march_check(const struct device *device, const void *request, struct err *err)
{
    uint32_t backgrounds = ((const struct device_march *)request)->backgrounds;
    (void)device;
    if (!backgrounds || backgrounds > DEVICE_MARCH_BACKGROUNDS)
        return err_set(err, -EINVAL, "there are %d backgrounds", DEVICE_MARCH_BACKGROUNDS);
    return 0;
}

/* The check of the SMs. Its seed does not count. */

static const struct field check_rows[] = {
    {FIELD_CHOICE(struct device_check, unit, device_unit_names)},
    {FIELD(struct device_check, target_ms, U32)},
};
static const struct fields check_fields = {FIELDS(struct device_check, check_rows)};
static const struct field place_rows[] = {
    {FIELD(struct device_check_place, count, U32), .form = FIELD_SAME},
    {FIELD(struct device_check_place, wrong, U32)},
    {FIELD(struct device_check_place, wrong_hash, U64)},
    {FIELD(struct device_check_place, wrong_warp, U32)},
    {FIELD(struct device_check_place, cycles, U64)},
};
static const struct fields place_fields = {FIELDS(struct device_check_place, place_rows)};
static const struct field check_answer_rows[] = {
    {FIELD_COUNT(struct device_check_answer, place_count)},
    {FIELD(struct device_check_answer, operations, U64)},
    {FIELD(struct device_check_answer, cycles, U64)},
    {FIELD(struct device_check_answer, elapsed_ns, U64)},
    {FIELD_STRUCT_LIST(struct device_check_answer, places, place_count, &place_fields)},
};
static const struct fields check_answer_fields = {
    FIELDS(struct device_check_answer, check_answer_rows)};

static const struct field screen_rows[] = {
    {FIELD_CHOICE(struct device_screen, path, device_screen_names)},
    {FIELD(struct device_screen, target_ms, U32)},
};
static const struct fields screen_fields = {FIELDS(struct device_screen, screen_rows)};
static const struct field second_look_rows[] = {
    {FIELD(struct device_second_look, launches, U32)},
    {FIELD(struct device_second_look, wrong, U32)},
    {FIELD(struct device_second_look, place, U32)},
    {FIELD(struct device_second_look, results, U64)},
    {FIELD(struct device_second_look, differ, U64)},
    {FIELD(struct device_second_look, sm_mhz, F64)},
    {FIELD(struct device_second_look, power_w, F64)},
    {FIELD(struct device_second_look, temperature_c, F64)},
};
static const struct fields second_look_fields = {
    FIELDS(struct device_second_look, second_look_rows)};
static const struct field wrong_result_rows[] = {
    {FIELD(struct device_wrong_result, period, U32)},
    {FIELD(struct device_wrong_result, number, U32)},
    {FIELD(struct device_wrong_result, lane, U32)},
    {FIELD(struct device_wrong_result, expected, U32)},
    {FIELD(struct device_wrong_result, found, U32)},
};
static const struct fields wrong_result_fields = {
    FIELDS(struct device_wrong_result, wrong_result_rows)};
static const struct field screen_answer_rows[] = {
    {FIELD(struct device_screen_answer, digest, U64)},
    {FIELD(struct device_screen_answer, code, U64)},
    {FIELD(struct device_screen_answer, launches, U32)},
    {FIELD(struct device_screen_answer, wrong_launches, U32)},
    {FIELD(struct device_screen_answer, not_as_host, BOOL)},
    {FIELD(struct device_screen_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_screen_answer, place_count)},
    {FIELD_COUNT(struct device_screen_answer, result_count)},
    {FIELD_STRUCT_LIST(struct device_screen_answer, places, place_count, &place_fields)},
    {FIELD_INSIDE(struct device_screen_answer, again, &second_look_fields)},
    {FIELD_STRUCT_LIST(struct device_screen_answer, results, result_count, &wrong_result_fields)},
};
static const struct fields screen_answer_fields = {
    FIELDS(struct device_screen_answer, screen_answer_rows)};

static int screen_check(const struct device *device, const void *request, struct err *err)
{
    (void)device;
    if ((unsigned)((const struct device_screen *)request)->path >= DEVICE_SCREEN_COUNT)
        return err_set(err, -EINVAL, "no such path");
    return 0;
}

static const struct field pulse_rows[] = {
    {FIELD_CHOICE(struct device_pulse, path, device_screen_names)},
    {FIELD(struct device_pulse, hz, U32)},
    {FIELD(struct device_pulse, target_ms, U32)},
};
static const struct fields pulse_fields = {FIELDS(struct device_pulse, pulse_rows)};
static const struct field pulse_answer_rows[] = {
    {FIELD(struct device_pulse_answer, launches, U32)},
    {FIELD(struct device_pulse_answer, wrong_launches, U32)},
    {FIELD(struct device_pulse_answer, busy_ns, U64)},
    {FIELD(struct device_pulse_answer, idle_ns, U64)},
    {FIELD(struct device_pulse_answer, power_known, BOOL)},
    {FIELD(struct device_pulse_answer, power_low_w, F64)},
    {FIELD(struct device_pulse_answer, power_high_w, F64)},
    {FIELD_COUNT(struct device_pulse_answer, place_count)},
    {FIELD_STRUCT_LIST(struct device_pulse_answer, places, place_count, &place_fields)},
};
static const struct fields pulse_answer_fields = {
    FIELDS(struct device_pulse_answer, pulse_answer_rows)};

static int pulse_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_pulse *pulse = request;
    (void)device;
    if ((unsigned)pulse->path >= DEVICE_SCREEN_COUNT || pulse->hz > DEVICE_PULSE_HZ_MAX)
        return err_set(err, -EINVAL, "no such path, or more than %d Hz", DEVICE_PULSE_HZ_MAX);
    return 0;
}

static int unit_check(const struct device *device, const void *request, struct err *err)
{
    (void)device;
    if ((unsigned)((const struct device_check *)request)->unit >= DEVICE_UNIT_COUNT)
        return err_set(err, -EINVAL, "no such unit");
    return 0;
}

/* The map of the SMs. */

static const char *const map_names[] = {"read", "memory", "atomics"};
static const struct field map_rows[] = {
    {FIELD_CHOICE(struct device_sm_map, kind, map_names)},
    {FIELD(struct device_sm_map, footprint_bytes, U64)},
    {FIELD(struct device_sm_map, window_cycles, U32)},
    {FIELD(struct device_sm_map, turns_hash, U64)},
    {FIELD(struct device_sm_map, regions, U32)},
    {FIELD(struct device_sm_map, loads, U32)},
};
static const struct fields map_fields = {FIELDS(struct device_sm_map, map_rows)};
/* Every second value is near the one before the last. */
static const struct field map_answer_rows[] = {
    {FIELD_COUNT(struct device_sm_map_answer, value_count)},
    {FIELD(struct device_sm_map_answer, region_bytes, U64)},
    {FIELD_NUMBER_LIST(struct device_sm_map_answer, values, value_count, U64), .form = FIELD_NEAR,
     .lag = 2},
};
static const struct fields map_answer_fields = {
    FIELDS(struct device_sm_map_answer, map_answer_rows)};

static int map_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_sm_map *map = request;
    uint64_t footprint = map->footprint_bytes;
    if ((unsigned)map->kind >= DEVICE_SM_MAP_KIND_COUNT)
        return err_set(err, -EINVAL, "there is no map of kind %d", map->kind);
    if (map->kind != DEVICE_SM_MAP_READ) {
        if (!map->regions || map->regions > DEVICE_SM_MAP_REGIONS_MAX || !map->loads ||
            map->loads > DEVICE_SM_MAP_LOADS_MAX)
            return err_set(err, -EINVAL, "at most %d regions and %d loads",
                           DEVICE_SM_MAP_REGIONS_MAX, DEVICE_SM_MAP_LOADS_MAX);
    }
    if (map->kind != DEVICE_SM_MAP_MEMORY && footprint < DEVICE_REGION_MIN)
        return err_set(err, -EINVAL, "a footprint has at least %d MiB", DEVICE_REGION_MIN >> 20);
    if (map->kind == DEVICE_SM_MAP_ATOMICS && (footprint & (footprint - 1)))
        return err_set(err, -EINVAL, "a footprint of atomics is a power of two");
    if (map->kind == DEVICE_SM_MAP_READ) {
        if (!map->window_cycles || !map->turns)
            return err_set(err, -EINVAL, "a map of reads has turns and a window");
        for (uint32_t i = 0; i < device->limits.sm_count; i++)
            if (map->turns[i] >= device->limits.sm_count)
                return err_set(err, -EINVAL, "SM %u has turn %u: there are not more turns than SMs",
                               i, map->turns[i]);
    }
    return device->limits.sm_count
               ? 0
               : err_set(err, -ENOTSUP, "this device cannot measure single SMs");
}

static void map_ask(const struct device *device, const void *request, size_t item, void *out_asked)
{
    const struct device_sm_map *map = request;
    struct device_sm_map *asked = out_asked;
    (void)item;
    *asked = (struct device_sm_map){.kind = map->kind};
    if (map->kind != DEVICE_SM_MAP_MEMORY)
        asked->footprint_bytes = map->footprint_bytes;
    if (map->kind != DEVICE_SM_MAP_READ) {
        asked->regions = map->regions;
        asked->loads = map->loads;
        return;
    }
    asked->window_cycles = map->window_cycles;
    for (uint32_t i = 0; i < device->limits.sm_count; i++)
        asked->turns_hash = (asked->turns_hash ^ map->turns[i]) * UINT64_C(0x100000001b3);
}

static bool map_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_sm_map *map = asked;
    size_t each = map->kind == DEVICE_SM_MAP_READ ? 2 : map->regions;
    return ((const struct device_sm_map_answer *)answer)->value_count == sm_count * each;
}

/* Latency under load. */

static const struct field loaded_rows[] = {
    {FIELD(struct device_loaded_chase, cold, BOOL)},
    {FIELD(struct device_loaded_chase, quiet, BOOL)},
    {FIELD(struct device_loaded_chase, footprint_bytes, U64)},
    {FIELD(struct device_loaded_chase, chasers, U32)},
    {FIELD(struct device_loaded_chase, window_cycles, U32)},
    {FIELD(struct device_loaded_chase, limit_bytes, U64)},
};
static const struct fields loaded_fields = {FIELDS(struct device_loaded_chase, loaded_rows)};
static const struct field loaded_answer_rows[] = {
    {FIELD(struct device_loaded_chase_answer, bytes, U64)},
    {FIELD(struct device_loaded_chase_answer, elapsed_ns, U64)},
    {FIELD(struct device_loaded_chase_answer, loads, U64)},
    {FIELD(struct device_loaded_chase_answer, cycles, U64)},
    {FIELD(struct device_loaded_chase_answer, squares, U64)},
};
static const struct fields loaded_answer_fields = {
    FIELDS(struct device_loaded_chase_answer, loaded_answer_rows)};

static int loaded_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_loaded_chase *asked = request;
    uint64_t footprint = asked->footprint_bytes;
    if (footprint < DEVICE_LOADED_READ_BYTES || footprint / DEVICE_LOADED_READ_BYTES > UINT32_MAX)
        return err_set(err, -EINVAL, "a footprint of %llu bytes", (unsigned long long)footprint);
    if (!asked->window_cycles || !asked->chasers || asked->chasers > DEVICE_LOADED_CHASERS_MAX)
        return err_set(err, -EINVAL, "%u SMs time loads for %u cycles", asked->chasers,
                       asked->window_cycles);
    if (asked->chasers >= device->limits.sm_count)
        return err_set(err, -ENOTSUP, "%u SMs are too few for it", device->limits.sm_count);
    return 0;
}

/* The way between the parts of L2. */

static const char *const way_names[] = {"read", "write"};
static const struct field way_rows[] = {
    {FIELD_CHOICE(struct device_way, work, way_names)},
    {FIELD(struct device_way, far, BOOL)},
    {FIELD(struct device_way, parts, U32)},
    {FIELD(struct device_way, every, U32)},
    {FIELD(struct device_way, footprint_bytes, U64)},
    {FIELD(struct device_way, total_bytes, U64)},
    {FIELD(struct device_way, part_hash, U64)},
};
static const struct fields way_fields = {FIELDS(struct device_way, way_rows)};
static const struct field way_answer_rows[] = {
    {FIELD_ALL(struct device_way_answer, bytes, U64)},
    {FIELD_ALL(struct device_way_answer, elapsed_ns, U64)},
    {FIELD_ALL(struct device_way_answer, lines, U64)},
};
static const struct fields way_answer_fields = {FIELDS(struct device_way_answer, way_answer_rows)};

static int way_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_way *asked = request;
    if ((unsigned)asked->work >= DEVICE_WAY_WORK_COUNT || !asked->parts || asked->parts > 3 ||
        !asked->every)
        return err_set(err, -EINVAL, "work %d of parts %u", (int)asked->work, asked->parts);
    if (!asked->footprint_bytes || !asked->split_cycles || !asked->part_of_sm)
        return err_set(err, -EINVAL, "the way is used by SMs whose parts are known");
    for (uint32_t i = 0; i < device->limits.sm_count; i++)
        if (asked->part_of_sm[i] > 1)
            return err_set(err, -EINVAL, "SM %u is near part %u of two", i, asked->part_of_sm[i]);
    return device->limits.sm_count
               ? 0
               : err_set(err, -ENOTSUP, "this device cannot measure single SMs");
}

static void way_ask(const struct device *device, const void *request, size_t item, void *out_asked)
{
    struct device_way *asked = out_asked;
    (void)item;
    *asked = *(const struct device_way *)request;
    asked->part_hash = 0;
    for (uint32_t i = 0; i < device->limits.sm_count; i++)
        asked->part_hash = (asked->part_hash ^ asked->part_of_sm[i]) * UINT64_C(0x100000001b3);
    asked->part_of_sm = NULL;
}

/* The load. Its length does not count. */

static const char *const load_unit_names[] = {"fp32", "mma", "wgmma"};
static const char *const load_end_names[] = {"done", "time", "slowdown", "others"};
static const struct field load_rows[] = {{FIELD(struct device_load, sample_ms, U32)}};
static const struct fields load_fields = {FIELDS(struct device_load, load_rows)};
static const struct field load_sample_rows[] = {
    {FIELD(struct device_load_sample, at_ns, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, operations, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, bytes, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, cycles, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, cycles_ns, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, sm_mhz, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, memory_mhz, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, power_w, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, energy_j, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, temperature_c, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, temperature_memory_c, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, throttle_reasons, U64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, throttle_known, BOOL), .form = FIELD_SAME},
};
static const struct fields load_sample_fields = {
    FIELDS(struct device_load_sample, load_sample_rows)};
static const struct field load_answer_rows[] = {
    {FIELD_CHOICE(struct device_load_answer, unit, load_unit_names)},
    {FIELD_CHOICE(struct device_load_answer, end, load_end_names)},
    {FIELD_COUNT(struct device_load_answer, sample_count)},
    {FIELD(struct device_load_answer, start_known, BOOL)},
    {FIELD(struct device_load_answer, waited_ms, U32)},
    {FIELD(struct device_load_answer, alone, BOOL)},
    {FIELD_STRUCT_LIST(struct device_load_answer, samples, sample_count, &load_sample_fields)},
};
static const struct fields load_answer_fields = {
    FIELDS(struct device_load_answer, load_answer_rows)};

static int load_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_load *load = request;
    (void)device;
    if (!load->duration_ms || !load->sample_ms || !load->limit_ms)
        return err_set(err, -EINVAL, "a load has a duration, a limit and samples");
    return 0;
}

static void load_begin(const void *request, void *answer)
{
    const struct device_load *load = request;
    *(struct device_load_answer *)answer = (struct device_load_answer){
        .start_known = true, .waited_ms = load->waited_ms, .alone = load->alone};
}

void device_load_answer_add(struct device_load_answer *answer,
                            const struct device_load_sample *sample)
{
    size_t count = answer->sample_count;
    if (!(count & (count - 1))) /* grows at 0 and at every power of two */
        answer->samples =
            mem_resize(answer->samples, count, count ? 2 * count : 1, sizeof *answer->samples);
    answer->samples[answer->sample_count++] = *sample;
}

/* The link to another GPU. How long to wait does not count. */

static const struct field peer_rows[] = {
    {FIELD(struct device_peer_test, peer, U32)},
    {FIELD(struct device_peer_test, bytes, U64)},
    {FIELD(struct device_peer_test, loads, U32)},
};
static const struct fields peer_fields = {FIELDS(struct device_peer_test, peer_rows)};
static const struct field peer_answer_rows[] = {
    {FIELD(struct device_peer_answer, copy_read_ns, U64)},
    {FIELD(struct device_peer_answer, copy_write_ns, U64)},
    {FIELD(struct device_peer_answer, copy_both_ns, U64)},
    {FIELD(struct device_peer_answer, mapped, BOOL)},
    {FIELD(struct device_peer_answer, read_ns, U64)},
    {FIELD(struct device_peer_answer, write_ns, U64)},
    {FIELD(struct device_peer_answer, both_ns, U64)},
    {FIELD(struct device_peer_answer, cycles, U64)},
    {FIELD(struct device_peer_answer, chase_ns, U64)},
    {FIELD(struct device_peer_answer, wrong_words, U64)},
};
static const struct fields peer_answer_fields = {
    FIELDS(struct device_peer_answer, peer_answer_rows)};

static int peer_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_peer_test *test = request;
    (void)device;
    if (test->peer >= DEVICE_PEERS_MAX)
        return err_set(err, -EINVAL, "at most %d GPUs of a node are looked at", DEVICE_PEERS_MAX);
    if (test->bytes < DEVICE_REGION_MIN || test->bytes % DEVICE_REGION_MIN || !test->loads)
        return err_set(err, -EINVAL, "transfers are multiples of %d MiB, and loads at least 1",
                       DEVICE_REGION_MIN >> 20);
    return 0;
}

/* Code: its instruction counts by name. */

static const char *instruction_word(uint32_t i)
{
    return i < instruction_count ? instruction_table[i].name : NULL;
}

static const struct field code_rows[] = {
    {.key = "instruction",
     .type = FIELD_WORD,
     .offset = FIELD_AT(struct device_code, instruction, uint32_t),
     .word = instruction_word},
    {FIELD(struct device_code, chains, U32)},
    {FIELD(struct device_code, warps, U32)},
    {FIELD(struct device_code, length, U32)},
    {FIELD(struct device_code, repeats, U32)},
};
static const struct fields code_fields = {FIELDS(struct device_code, code_rows)};
static const struct field code_answer_rows[] = {
    {FIELD(struct device_code_answer, cycles, U64)},
    {FIELD(struct device_code_answer, machine, U64)},
    {FIELD(struct device_code_answer, most, U64)},
};
static const struct fields code_answer_fields = {
    FIELDS(struct device_code_answer, code_answer_rows)};

static int code_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_code *code = request;
    (void)device;
    if (code->instruction >= instruction_count)
        return err_set(err, -EINVAL, "no instruction %u", code->instruction);
    if (!code->chains || code->chains > INSTRUCTION_CHAINS_MAX || !code->warps ||
        code->warps > INSTRUCTION_WARPS_MAX || !code->repeats)
        return err_set(err, -EINVAL, "%u chains, %u warps, %u repeats", code->chains, code->warps,
                       code->repeats);
    if (!code->length || code->length > INSTRUCTION_LENGTH_MAX || code->length % code->chains)
        return err_set(err, -EINVAL, "%u instructions in %u chains", code->length, code->chains);
    return 0;
}

/* Loads of shared memory. */

static const struct field shared_load_rows[] = {
    {FIELD(struct device_shared_load, warps, U32)},
    {FIELD(struct device_shared_load, lanes, U32)},
    {FIELD(struct device_shared_load, lane_stride_bytes, U32)},
    {FIELD(struct device_shared_load, width_bytes, U32)},
    {FIELD(struct device_shared_load, loads, U32)},
};
static const struct fields shared_load_fields = {
    FIELDS(struct device_shared_load, shared_load_rows)};
static const struct field shared_load_answer_rows[] = {
    {FIELD(struct device_shared_load_answer, cycles, U64)},
};
static const struct fields shared_load_answer_fields = {
    FIELDS(struct device_shared_load_answer, shared_load_answer_rows)};

static int shared_load_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_limits *limits = &device->limits;
    const struct device_shared_load *load = request;
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

static int cycles_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t device_shared_load_median(uint64_t *cycles, uint32_t warps)
{
    sort_stable(cycles, warps, sizeof *cycles, cycles_by_value);
    return cycles[warps / 2];
}

/* Straight code. Lengths in steps of 32 at first, then of 128: large caches need no finer ones. */

enum { FINE = 32, COARSE = 128, FINE_END = 4096, FINE_COUNT = FINE_END / FINE };
enum { LENGTH_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_MAX - FINE_END) / COARSE };
enum { SECOND_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_SECOND_MAX - FINE_END) / COARSE };

size_t device_straight_length_count(uint32_t copy)
{
    return copy ? SECOND_COUNT : LENGTH_COUNT;
}

uint32_t device_straight_length(size_t i)
{
    if (i >= LENGTH_COUNT)
        return 0;
    return (uint32_t)(i < FINE_COUNT ? (i + 1) * FINE : FINE_END + (i - FINE_COUNT + 1) * COARSE);
}

static bool is_straight_length(uint32_t copy, uint32_t length)
{
    return length && length <= (copy ? DEVICE_STRAIGHT_SECOND_MAX : DEVICE_STRAIGHT_MAX) &&
           length % (length <= FINE_END ? FINE : COARSE) == 0;
}

static const struct field straight_job_rows[] = {
    {FIELD(struct device_straight_job, sm, U32)},
    {FIELD(struct device_straight_job, copy, U32)},
    {FIELD(struct device_straight_job, length, U32)},
    {FIELD(struct device_straight_job, repeats, U32)},
};
static const struct fields straight_job_fields = {
    FIELDS(struct device_straight_job, straight_job_rows)};
static const struct field straight_rows[] = {
    {FIELD(struct device_straight, job_count, U32)},
    {FIELD_FIRST(struct device_straight, jobs, job_count, &straight_job_fields)},
};
static const struct fields straight_fields = {FIELDS(struct device_straight, straight_rows)};
static const struct field straight_answer_rows[] = {
    {FIELD(struct device_straight_answer, instruction_bytes, U32)},
    {FIELD_ALL(struct device_straight_answer, cycles, U64)},
};
static const struct fields straight_answer_fields = {
    FIELDS(struct device_straight_answer, straight_answer_rows)};

static int straight_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_straight *straight = request;
    if (!straight->job_count || straight->job_count > DEVICE_STRAIGHT_JOBS)
        return err_set(err, -EINVAL, "%u jobs of straight code", straight->job_count);
    for (uint32_t i = 0; i < straight->job_count; i++) {
        const struct device_straight_job *job = &straight->jobs[i];
        if (job->sm >= device->limits.sm_count || job->copy >= DEVICE_STRAIGHT_COPIES ||
            !job->repeats || !is_straight_length(job->copy, job->length) ||
            (i && job->sm == straight->jobs[0].sm))
            return err_set(err, -EINVAL, "job %u: SM %u, copy %u, %u instructions, %u repeats", i,
                           job->sm, job->copy, job->length, job->repeats);
    }
    return 0;
}

/* Jumping code. */

static const struct field walk_rows[] = {
    {FIELD(struct device_walk, sm, U32)},
    {FIELD(struct device_walk, repeats, U32)},
    {FIELD(struct device_walk, blocks, U32)},
    {FIELD(struct device_walk, stride, U32)},
    {FIELD(struct device_walk, constant_bytes, U32)},
    {FIELD(struct device_walk, constant_stride, U32)},
};
static const struct fields walk_fields = {FIELDS(struct device_walk, walk_rows)};
static const struct field walk_answer_rows[] = {
    {FIELD(struct device_walk_answer, block_bytes, U32)},
    {FIELD(struct device_walk_answer, code_cycles, U64)},
    {FIELD(struct device_walk_answer, constant_cycles, U64)},
};
static const struct fields walk_answer_fields = {
    FIELDS(struct device_walk_answer, walk_answer_rows)};

static int walk_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_walk *walk = request;
    if (walk->sm >= device->limits.sm_count || !walk->repeats ||
        walk->stride < DEVICE_WALK_STRIDE_MIN || walk->stride > DEVICE_WALK_STRIDE_MAX ||
        walk->blocks < walk->stride || walk->blocks > DEVICE_WALK_BLOCKS_MAX)
        return err_set(err, -EINVAL, "SM %u, %u blocks %u apart, %u repeats", walk->sm,
                       walk->blocks, walk->stride, walk->repeats);
    if (walk->constant_bytes > device->limits.constant_bytes ||
        (walk->constant_bytes &&
         (!walk->constant_stride || walk->constant_stride % sizeof(uint32_t) ||
          walk->constant_stride > walk->constant_bytes)))
        return err_set(err, -EINVAL, "%u bytes of constants, %u apart", walk->constant_bytes,
                       walk->constant_stride);
    return 0;
}

/* Clusters and bulk copies. */

static const char *const cluster_names[] = {"places", "loads", "read", "copy"};
static const struct field cluster_rows[] = {
    {FIELD_CHOICE(struct device_cluster, work, cluster_names)},
    {FIELD(struct device_cluster, size, U32)},
    {FIELD(struct device_cluster, count, U32)},
    {FIELD(struct device_cluster, bytes, U32)},
    {FIELD(struct device_cluster, in_flight, U32)},
};
static const struct fields cluster_fields = {FIELDS(struct device_cluster, cluster_rows)};
static const struct field cluster_answer_rows[] = {
    {FIELD(struct device_cluster_answer, clusters, U32)},
    {FIELD_COUNT(struct device_cluster_answer, block_count)},
    {FIELD_COUNT(struct device_cluster_answer, cycle_count)},
    {FIELD_NUMBER_LIST(struct device_cluster_answer, sms, block_count, U16)},
    {FIELD_NUMBER_LIST(struct device_cluster_answer, cycles, cycle_count, U64), .form = FIELD_NEAR},
};
static const struct fields cluster_answer_fields = {
    FIELDS(struct device_cluster_answer, cluster_answer_rows)};

/* Of a bulk copy: what the instruction takes, and what the shared memory holds. */
static int copy_check(uint32_t bytes, uint32_t in_flight, uint32_t copies, uint32_t room_bytes,
                      struct err *err)
{
    if (!bytes || bytes % 16 || !in_flight || in_flight > DEVICE_BULK_FLIGHTS_MAX ||
        bytes > room_bytes / in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of %u bytes in flight", in_flight, bytes);
    if (copies < in_flight)
        return err_set(err, -EINVAL, "%u bulk copies of which %u are in flight", copies, in_flight);
    return 0;
}

static int cluster_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_cluster *cluster = request;
    bool counted = cluster->work != DEVICE_CLUSTER_PLACES;
    (void)device;
    if (!cluster->size || cluster->size > DEVICE_CLUSTER_MAX || counted != (cluster->count > 0))
        return err_set(err, -EINVAL, "clusters of %u blocks, count %u", cluster->size,
                       cluster->count);
    switch (cluster->work) {
    case DEVICE_CLUSTER_PLACES:
    case DEVICE_CLUSTER_READ:
        return 0;
    case DEVICE_CLUSTER_LOADS:
        return cluster->count % DEVICE_CLUSTER_LOADS_STEP
                   ? err_set(err, -EINVAL, "%u loads in a cluster", cluster->count)
                   : 0;
    case DEVICE_CLUSTER_COPY:
        return copy_check(cluster->bytes, cluster->in_flight ? cluster->in_flight : 1,
                          cluster->count, DEVICE_CLUSTER_ROOM_BYTES, err);
    default:
        return err_set(err, -EINVAL, "no work %d of clusters", (int)cluster->work);
    }
}

size_t device_cluster_cycles(const struct device_cluster *cluster)
{
    if (cluster->work == DEVICE_CLUSTER_PLACES)
        return 0;
    return (size_t)cluster->size * (cluster->work == DEVICE_CLUSTER_LOADS ? cluster->size : 1);
}

static void cluster_finish(const void *request, void *answer)
{
    struct device_cluster_answer *got = answer;
    got->block_count = (size_t)got->clusters * ((const struct device_cluster *)request)->size;
}

static bool cluster_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_cluster *cluster = asked;
    const struct device_cluster_answer *got = answer;
    bool fits = cluster->size && cluster->size <= DEVICE_CLUSTER_MAX &&
                got->clusters <= sm_count / cluster->size &&
                got->block_count == (size_t)got->clusters * cluster->size &&
                got->cycle_count == got->clusters * device_cluster_cycles(cluster);
    for (size_t i = 0; fits && i < got->block_count; i++)
        fits = got->sms[i] < sm_count;
    return fits;
}

static const char *const bulk_names[] = {"l2", "memory"};
static const struct field bulk_rows[] = {
    {FIELD_CHOICE(struct device_bulk, source, bulk_names)},
    {FIELD(struct device_bulk, alone, BOOL)},
    {FIELD(struct device_bulk, bytes, U32)},
    {FIELD(struct device_bulk, in_flight, U32)},
    {FIELD(struct device_bulk, copies, U32)},
};
static const struct fields bulk_fields = {FIELDS(struct device_bulk, bulk_rows)};
static const struct field bulk_answer_rows[] = {
    {FIELD(struct device_bulk_answer, cycles, U64)},
    {FIELD(struct device_bulk_answer, elapsed_ns, U64)},
    {FIELD(struct device_bulk_answer, sms, U32)},
};
static const struct fields bulk_answer_fields = {
    FIELDS(struct device_bulk_answer, bulk_answer_rows)};

static int bulk_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_bulk *bulk = request;
    (void)device;
    if ((unsigned)bulk->source >= DEVICE_BULK_SOURCE_COUNT)
        return err_set(err, -EINVAL, "no source %d of bulk copies", (int)bulk->source);
    return copy_check(bulk->bytes, bulk->in_flight, bulk->copies, DEVICE_BULK_ROOM_BYTES, err);
}

/* The table. DEVICE_CALL_BATCH is in jobs.c. */

#define ROW(call, fields, answers, code, text)                                                     \
    .name = call, .asked = fields, .answer = answers, .absent_code = code, .absent = text

static const struct device_call_row rows[DEVICE_CALL_COUNT] = {
    [DEVICE_CALL_LOOK] = {ROW("look", NULL, &look_fields, 0, NULL), .keeps_facts = true},
    [DEVICE_CALL_OPEN] = {ROW("open", NULL, &limits_fields, 0, NULL)},
    [DEVICE_CALL_IDENTIFY] = {ROW("identify", NULL, &identity_fields, 0, NULL),
                              .keeps_facts = true},
    [DEVICE_CALL_STREAM] = {ROW("stream", &stream_fields, &stream_answer_fields, -ENOSYS,
                                "this device has no streams"),
                            .check = stream_check},
    [DEVICE_CALL_CLOCKS] = {ROW("clocks", NULL, &clocks_fields, -ENOTSUP,
                                "this device has no clocks")},
    [DEVICE_CALL_HEALTH] = {ROW("health", NULL, &health_fields, 0, NULL), .keeps_facts = true},
    [DEVICE_CALL_LINK] = {ROW("link", NULL, &link_fields, 0, NULL), .begin = link_begin},
    [DEVICE_CALL_MEMORY] = {ROW("memory", &memory_fields, &memory_map_fields, -ENOTSUP,
                                "this device cannot test its memory"),
                            .check = memory_check},
    [DEVICE_CALL_PULSE] = {ROW("pulse", &pulse_fields, &pulse_answer_fields, -ENOTSUP,
                               "this device cannot screen its SMs"),
                           .check = pulse_check},
    [DEVICE_CALL_MARCH] = {ROW("march", &march_fields, &march_answer_fields, -ENOTSUP,
                               "this device cannot test its memory"),
                           .check = march_check},
    [DEVICE_CALL_CHECK] = {ROW("check", &check_fields, &check_answer_fields, -ENOTSUP,
                               "this device cannot check its SMs"),
                           .check = unit_check},
    [DEVICE_CALL_LOAD] = {ROW("load", &load_fields, &load_answer_fields, -ENOTSUP,
                              "this device cannot be put under load"),
                          .check = load_check, .begin = load_begin},
    [DEVICE_CALL_PEERS] = {ROW("peers", NULL, &peers_fields, -ENOTSUP,
                               "other GPUs of the node are not known"),
                           .keeps_facts = true},
    [DEVICE_CALL_PEER] = {ROW("peer", &peer_fields, &peer_answer_fields, -ENOTSUP,
                              "links to other GPUs cannot be measured"),
                          .check = peer_check},
    [DEVICE_CALL_SHARE] = {ROW("share", &share_fields, &share_answer_fields, -ENOTSUP,
                               "other GPUs of the node are not known"),
                           .check = share_check},
    [DEVICE_CALL_SM_MAP] = {ROW("sm_map", &map_fields, &map_answer_fields, -ENOTSUP,
                                "this device cannot measure single SMs"),
                            .check = map_check, .ask = map_ask, .fits = map_fits},
    [DEVICE_CALL_CODE] = {ROW("code", &code_fields, &code_answer_fields, -ENOSYS,
                              "this device executes no code"),
                          .check = code_check},
    [DEVICE_CALL_SHARED_LOAD] = {ROW("shared_load", &shared_load_fields, &shared_load_answer_fields,
                                     -ENOSYS,
                                     "this device cannot load shared memory by several warps"),
                                 .check = shared_load_check},
    [DEVICE_CALL_STRAIGHT] = {ROW("straight", &straight_fields, &straight_answer_fields, -ENOSYS,
                                  "this device executes no straight code"),
                              .check = straight_check},
    [DEVICE_CALL_WALK] = {ROW("walk", &walk_fields, &walk_answer_fields, -ENOSYS,
                              "this device executes no jumping code"),
                          .check = walk_check},
    [DEVICE_CALL_CLUSTER] = {ROW("cluster", &cluster_fields, &cluster_answer_fields, -ENOSYS,
                                 "this device launches no clusters"),
                             .check = cluster_check, .finish = cluster_finish,
                             .fits = cluster_fits},
    [DEVICE_CALL_BULK] = {ROW("bulk", &bulk_fields, &bulk_answer_fields, -ENOSYS,
                              "this device has no bulk copies"),
                          .check = bulk_check},
    [DEVICE_CALL_TICKETS] = {ROW("tickets", &tickets_fields, &tickets_answer_fields, -ENOSYS,
                                 "this device hands out no work by ticket"),
                             .check = tickets_check, .fits = tickets_fits},
    [DEVICE_CALL_LOADED_CHASE] = {ROW("loaded_chase", &loaded_fields, &loaded_answer_fields,
                                      -ENOSYS, "this device has no chases under load"),
                                  .check = loaded_check},
    [DEVICE_CALL_WAY] = {ROW("way", &way_fields, &way_answer_fields, -ENOSYS,
                             "this device cannot use the way between the parts of L2"),
                         .check = way_check, .ask = way_ask},
    [DEVICE_CALL_SCREEN] = {ROW("screen", &screen_fields, &screen_answer_fields, -ENOTSUP,
                                "this device cannot screen its SMs"),
                            .check = screen_check},
};

const struct device_call_row *device_call_row(enum device_call call)
{
    return call == DEVICE_CALL_BATCH ? &device_batch_row : &rows[call];
}

int device_call(struct device *device, enum device_call call, const void *request, void *answer,
                struct err *err)
{
    const struct device_call_row *row = device_call_row(call);
    size_t items = device_call_items(call, request);
    if (!row->keeps_facts)
        memset(answer, 0, items * row->answer->size);
    int rc = row->check ? row->check(device, request, err) : 0;
    if (rc)
        return rc;
    if (row->begin)
        row->begin(request, answer);
    if (device->ops->call)
        rc = device->ops->call(device, call, request, answer, err);
    else if (device->ops->calls[call])
        rc = device->ops->calls[call](device, request, answer, err);
    else if (row->absent)
        rc = err_set(err, row->absent_code, "%s", row->absent);
    if (!rc && row->finish)
        row->finish(request, answer);
    for (size_t i = 0; rc && !row->keeps_facts && i < items; i++)
        fields_fini(row->answer, (char *)answer + i * row->answer->size);
    return rc;
}

size_t device_call_items(enum device_call call, const void *request)
{
    const struct device_call_row *row = device_call_row(call);
    return row->count ? row->count(request) : 1;
}

void device_call_ask(enum device_call call, const struct device *device, const void *request,
                     size_t item, union device_call_room *out_asked)
{
    const struct device_call_row *row = device_call_row(call);
    if (row->ask)
        row->ask(device, request, item, out_asked);
    else if (row->asked)
        memcpy(out_asked, request, row->asked->size);
}

void device_call_describe(enum device_call call, const void *asked, struct strbuf *out_text)
{
    const struct device_call_row *row = device_call_row(call);
    if (row->describe) {
        row->describe(asked, out_text);
        return;
    }
    strbuf_puts(out_text, row->name);
    strbuf_puts(out_text, row->asked ? ": " : "");
    if (row->asked)
        fields_describe(row->asked, asked, out_text);
}

void device_call_document(struct strbuf *out_text)
{
    strbuf_puts(out_text, "| number | call | asked | answer |\n| --- | --- | --- | --- |\n");
    for (int call = 0; call < DEVICE_CALL_COUNT; call++) {
        const struct device_call_row *row = device_call_row((enum device_call)call);
        strbuf_printf(out_text, "| %d | %s | ", call, row->name);
        if (row->asked)
            fields_document(row->asked, out_text);
        strbuf_puts(out_text, " | ");
        fields_document(row->answer, out_text);
        strbuf_puts(out_text, " |\n");
    }
}

/* The functions of the calls, with types. */

#define CALL_FUNCTION(name, call, request, answer)                                                 \
    int name(struct device *device, const request *asked, answer *out_answer, struct err *err)     \
    {                                                                                              \
        return device_call(device, call, asked, out_answer, err);                                  \
    }
CALL_FUNCTION(device_stream, DEVICE_CALL_STREAM, struct device_stream, struct device_stream_answer)
CALL_FUNCTION(device_stream_tickets, DEVICE_CALL_TICKETS, struct device_tickets,
              struct device_tickets_answer)
CALL_FUNCTION(device_test_memory, DEVICE_CALL_MEMORY, struct device_memory_test,
              struct device_memory_map)
CALL_FUNCTION(device_march_memory, DEVICE_CALL_MARCH, struct device_march,
              struct device_march_answer)
CALL_FUNCTION(device_check_unit, DEVICE_CALL_CHECK, struct device_check, struct device_check_answer)
CALL_FUNCTION(device_screen_path, DEVICE_CALL_SCREEN, struct device_screen,
              struct device_screen_answer)
CALL_FUNCTION(device_pulse_path, DEVICE_CALL_PULSE, struct device_pulse, struct device_pulse_answer)
CALL_FUNCTION(device_map_sms, DEVICE_CALL_SM_MAP, struct device_sm_map, struct device_sm_map_answer)
CALL_FUNCTION(device_chase_loaded, DEVICE_CALL_LOADED_CHASE, struct device_loaded_chase,
              struct device_loaded_chase_answer)
CALL_FUNCTION(device_cross_way, DEVICE_CALL_WAY, struct device_way, struct device_way_answer)
CALL_FUNCTION(device_run_load, DEVICE_CALL_LOAD, struct device_load, struct device_load_answer)
CALL_FUNCTION(device_run_code, DEVICE_CALL_CODE, struct device_code, struct device_code_answer)
CALL_FUNCTION(device_load_shared, DEVICE_CALL_SHARED_LOAD, struct device_shared_load,
              struct device_shared_load_answer)
CALL_FUNCTION(device_run_straight, DEVICE_CALL_STRAIGHT, struct device_straight,
              struct device_straight_answer)
CALL_FUNCTION(device_run_walk, DEVICE_CALL_WALK, struct device_walk, struct device_walk_answer)
CALL_FUNCTION(device_run_cluster, DEVICE_CALL_CLUSTER, struct device_cluster,
              struct device_cluster_answer)
CALL_FUNCTION(device_copy_bulk, DEVICE_CALL_BULK, struct device_bulk, struct device_bulk_answer)
CALL_FUNCTION(device_test_peer, DEVICE_CALL_PEER, struct device_peer_test,
              struct device_peer_answer)
CALL_FUNCTION(device_share_host, DEVICE_CALL_SHARE, struct device_host_share,
              struct device_host_share_answer)

#define CALL_FINI(name, answer, fields)                                                            \
    void name(answer *it)                                                                          \
    {                                                                                              \
        fields_fini(&fields, it);                                                                  \
    }
CALL_FINI(device_memory_map_fini, struct device_memory_map, memory_map_fields)
CALL_FINI(device_march_answer_fini, struct device_march_answer, march_answer_fields)
CALL_FINI(device_check_answer_fini, struct device_check_answer, check_answer_fields)
CALL_FINI(device_screen_answer_fini, struct device_screen_answer, screen_answer_fields)
CALL_FINI(device_pulse_answer_fini, struct device_pulse_answer, pulse_answer_fields)
CALL_FINI(device_tickets_answer_fini, struct device_tickets_answer, tickets_answer_fields)
CALL_FINI(device_sm_map_answer_fini, struct device_sm_map_answer, map_answer_fields)
CALL_FINI(device_load_answer_fini, struct device_load_answer, load_answer_fields)
CALL_FINI(device_cluster_answer_fini, struct device_cluster_answer, cluster_answer_fields)
CALL_FINI(device_look_fini, struct device_look, look_fields)

int device_run(struct device *device, const struct device_batch *batch,
               struct device_answer *answers, struct err *err)
{
    return device_call(device, DEVICE_CALL_BATCH, batch, answers, err);
}

int device_read_clocks(struct device *device, struct device_clocks *out_clocks, struct err *err)
{
    return device_call(device, DEVICE_CALL_CLOCKS, NULL, out_clocks, err);
}

void device_begin_link(struct device *device, struct device_link *out_link)
{
    struct err ignored = {0};
    (void)device_call(device, DEVICE_CALL_LINK, NULL, out_link, &ignored);
}

int device_identify(struct device *device, struct facts *hardware, struct facts *board,
                    struct facts *config, struct err *err)
{
    struct device_identity answer = {*hardware, *board, *config};
    int rc = device_call(device, DEVICE_CALL_IDENTIFY, NULL, &answer, err);
    *hardware = answer.hardware;
    *board = answer.board;
    *config = answer.config;
    return rc;
}

int device_read_health(struct device *device, struct facts *config, struct facts *health,
                       struct err *err)
{
    struct device_health answer = {*config, *health};
    int rc = device_call(device, DEVICE_CALL_HEALTH, NULL, &answer, err);
    *config = answer.config;
    *health = answer.health;
    return rc;
}

int device_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    struct device_peers answer = {*out_gpus};
    int rc = device_call(device, DEVICE_CALL_PEERS, NULL, &answer, err);
    *out_gpus = answer.gpus;
    return rc;
}
