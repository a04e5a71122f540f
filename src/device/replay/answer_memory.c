/* The test of the whole memory, packed for the record. */
#include "device/replay/answer.h"

#include "base/mem.h"

static void put_region(struct strbuf *buffer, uint32_t patterns, const struct device_region *region)
{
    wire_put_varint(buffer, region->bytes);
    for (uint32_t p = 0; p < patterns; p++) {
        wire_put_varint(buffer, region->write_ns[p]);
        wire_put_varint(buffer, region->read_ns[p]);
    }
    wire_put_varint(buffer, region->cycles[0]);
    wire_put_varint(buffer, region->wrong_words);
    if (!region->wrong_words)
        return;
    wire_put_varint(buffer, region->wrong_offset);
    wire_put_varint(buffer, region->wrong_bits);
}

/* A counter that the GPU does not have. */
static const uint64_t UNKNOWN = UINT64_MAX;

static void put_ecc(struct strbuf *buffer, bool known, const struct device_ecc *ecc)
{
    wire_put_varint(buffer, known ? ecc->corrected : UNKNOWN);
    wire_put_varint(buffer, known ? ecc->uncorrected : UNKNOWN);
}

void answer_put_map(struct strbuf *buffer, uint32_t patterns, const struct device_memory_map *map)
{
    wire_put_varint(buffer, map->free_bytes);
    wire_put_varint(buffer, map->region_count);
    for (size_t i = 0; i < map->region_count; i++)
        put_region(buffer, patterns, &map->regions[i]);
    put_ecc(buffer, map->ecc_known, &map->ecc_before);
    put_ecc(buffer, map->ecc_known, &map->ecc_after);
    for (size_t i = 0; i < map->region_count; i++)
        wire_put_varint(buffer, map->regions[i].cycles[1]);
}

static bool get_ecc(struct wire_reader *reader, struct device_ecc *ecc)
{
    struct device_ecc read = {0};
    read.corrected = wire_get_varint(reader);
    read.uncorrected = wire_get_varint(reader);
    if (read.corrected == UNKNOWN)
        return false;
    *ecc = read;
    return true;
}

/* Records of older programs end before the counters, or after them. */
static void get_later_parts(struct wire_reader *reader, uint32_t count, bool keep,
                            struct device_memory_map *map)
{
    if (reader->bad || reader->position == reader->length)
        return;
    map->ecc_known = get_ecc(reader, &map->ecc_before);
    map->ecc_known &= get_ecc(reader, &map->ecc_after);
    if (reader->bad || reader->position == reader->length)
        return;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint64_t cycles = wire_get_varint(reader);
        if (keep)
            map->regions[i].cycles[1] = cycles;
    }
}

static void get_region(struct wire_reader *reader, uint64_t patterns, struct device_region *region)
{
    region->bytes = wire_get_varint(reader);
    for (uint64_t p = 0; p < patterns; p++) {
        region->write_ns[p] = wire_get_varint(reader);
        region->read_ns[p] = wire_get_varint(reader);
    }
    region->cycles[0] = wire_get_varint(reader);
    region->wrong_words = wire_get_varint(reader);
    if (!region->wrong_words)
        return;
    region->wrong_offset = wire_get_varint(reader);
    region->wrong_bits = wire_get_varint(reader);
}

void answer_get_map(struct wire_reader *reader, uint64_t patterns,
                    struct device_memory_map *out_map)
{
    struct device_memory_map map = {.free_bytes = wire_get_varint(reader)};
    uint32_t count = answer_get_count(reader, 3);
    if (patterns > DEVICE_PATTERN_COUNT)
        reader->bad = true;
    if (out_map && count && !reader->bad && !(map.regions = mem_array(count, sizeof *map.regions)))
        wire_no_memory(reader);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        struct device_region region = {0};
        get_region(reader, patterns, &region);
        if (out_map)
            map.regions[map.region_count++] = region;
    }
    get_later_parts(reader, count, out_map != NULL, &map);
    if (out_map)
        *out_map = map;
}
