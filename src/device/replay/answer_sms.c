/* Checks and maps of the SMs, packed for the record. */
#include "device/replay/answer.h"

#include "base/mem.h"

enum { PLACES_MAX = 1 << 20 };

static bool is_listed(const struct device_check_answer *answer, size_t i)
{
    return answer->places[i].wrong || answer->places[i].count != answer->places[0].count;
}

void answer_put_check(struct strbuf *buffer, const struct device_check_answer *answer)
{
    size_t listed = 0, behind = 0;
    wire_put_varint(buffer, answer->operations);
    wire_put_varint(buffer, answer->cycles);
    wire_put_varint(buffer, answer->elapsed_ns);
    wire_put_varint(buffer, answer->place_count);
    wire_put_varint(buffer, answer->place_count ? answer->places[0].count : 0);
    for (size_t i = 0; i < answer->place_count; i++)
        listed += is_listed(answer, i);
    wire_put_varint(buffer, listed);
    for (size_t i = 0; i < answer->place_count; i++) {
        if (!is_listed(answer, i))
            continue;
        wire_put_varint(buffer, i - behind);
        wire_put_varint(buffer, answer->places[i].count);
        wire_put_varint(buffer, answer->places[i].wrong);
        wire_put_varint(buffer, answer->places[i].wrong_hash);
        behind = i + 1;
    }
}

static void get_place(struct wire_reader *reader, size_t count, size_t *at,
                      struct device_check_place *places)
{
    uint64_t gap = wire_get_varint(reader);
    struct device_check_place place = {.count = answer_get_u32(reader),
                                       .wrong = answer_get_u32(reader)};
    place.wrong_hash = wire_get_varint(reader);
    if (reader->bad || gap >= count - *at) {
        reader->bad = true;
        return;
    }
    *at += gap;
    if (places)
        places[*at] = place;
    ++*at;
}

void answer_get_check(struct wire_reader *reader, struct device_check_answer *out_answer)
{
    struct device_check_answer answer = {.operations = wire_get_varint(reader),
                                         .cycles = wire_get_varint(reader),
                                         .elapsed_ns = wire_get_varint(reader)};
    uint32_t count = answer_get_u32(reader), usual = answer_get_u32(reader),
             listed = answer_get_count(reader, 4);
    size_t at = 0;
    if (count > PLACES_MAX || listed > count)
        reader->bad = true;
    if (out_answer && count && !reader->bad &&
        !(answer.places = mem_array(count, sizeof *answer.places)))
        wire_no_memory(reader);
    for (uint32_t i = 0; i < count && answer.places; i++)
        answer.places[answer.place_count++].count = usual;
    for (uint32_t i = 0; i < listed && !reader->bad; i++)
        get_place(reader, count, &at, answer.places);
    if (out_answer)
        *out_answer = answer;
}

/* Every second value is near the one before the last: as differences from it. */
void answer_put_sm_map(struct strbuf *buffer, const struct device_sm_map_answer *answer)
{
    wire_put_varint(buffer, answer->region_bytes);
    wire_put_varint(buffer, answer->value_count);
    for (size_t i = 0; i < answer->value_count; i++)
        wire_put_signed(buffer, (int64_t)(answer->values[i] - (i > 1 ? answer->values[i - 2] : 0)));
}

void answer_get_sm_map(struct wire_reader *reader, struct device_sm_map_answer *out_answer)
{
    struct device_sm_map_answer answer = {.region_bytes = wire_get_varint(reader)};
    uint32_t count = answer_get_count(reader, 1);
    uint64_t last[2] = {0};
    if (out_answer && count && !reader->bad &&
        !(answer.values = mem_array(count, sizeof *answer.values)))
        wire_no_memory(reader);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        last[i % 2] += (uint64_t)wire_get_signed(reader);
        if (answer.values)
            answer.values[answer.value_count++] = last[i % 2];
    }
    if (out_answer)
        *out_answer = answer;
}
