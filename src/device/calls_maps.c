/* The calls that look at single SMs and at the parts of L2. */
#include "device/call_row.h"

#include <errno.h>

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

const struct device_call_row device_map_sms_row = {
    ROW("sm_map", &map_fields, &map_answer_fields, -ENOTSUP,
        "this device cannot measure single SMs"),
    .check = map_check, .ask = map_ask, .fits = map_fits};
CALL_FUNCTION(device_map_sms, DEVICE_CALL_SM_MAP, struct device_sm_map, struct device_sm_map_answer)
CALL_FINI(device_sm_map_answer_fini, struct device_sm_map_answer, map_answer_fields)

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

const struct device_call_row device_chase_loaded_row = {ROW("loaded_chase", &loaded_fields,
                                                            &loaded_answer_fields, -ENOSYS,
                                                            "this device has no chases under load"),
                                                        .check = loaded_check};
CALL_FUNCTION(device_chase_loaded, DEVICE_CALL_LOADED_CHASE, struct device_loaded_chase,
              struct device_loaded_chase_answer)

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

const struct device_call_row device_cross_way_row = {
    ROW("way", &way_fields, &way_answer_fields, -ENOSYS,
        "this device cannot use the way between the parts of L2"),
    .check = way_check, .ask = way_ask};
CALL_FUNCTION(device_cross_way, DEVICE_CALL_WAY, struct device_way, struct device_way_answer)
