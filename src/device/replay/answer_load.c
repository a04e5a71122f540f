/* The load, packed for the record. */
#include "device/replay/answer.h"

static void put_load_sample(struct strbuf *buffer, const struct device_load_sample *sample)
{
    wire_put_varint(buffer, sample->at_ns);
    wire_put_varint(buffer, sample->operations);
    wire_put_varint(buffer, sample->bytes);
    wire_put_varint(buffer, sample->cycles);
    wire_put_varint(buffer, sample->cycles_ns);
    wire_put_f64(buffer, sample->sm_mhz);
    wire_put_f64(buffer, sample->memory_mhz);
    wire_put_f64(buffer, sample->power_w);
    wire_put_f64(buffer, sample->energy_j);
    wire_put_f64(buffer, sample->temperature_c);
    wire_put_f64(buffer, sample->temperature_memory_c);
    wire_put_varint(buffer, sample->throttle_known);
    wire_put_varint(buffer, sample->throttle_reasons);
}

void answer_put_load(struct strbuf *buffer, const struct device_load_answer *answer)
{
    wire_put_varint(buffer, answer->unit);
    wire_put_varint(buffer, answer->end);
    wire_put_varint(buffer, answer->sample_count);
    for (size_t i = 0; i < answer->sample_count; i++)
        put_load_sample(buffer, &answer->samples[i]);
    if (!answer->start_known)
        return;
    wire_put_varint(buffer, answer->waited_ms);
    wire_put_varint(buffer, answer->alone);
}

/* How the load began is the last part. An older record ends here. */
static void get_start(struct wire_reader *reader, struct device_load_answer *out_answer)
{
    bool known = !reader->bad && reader->position < reader->length;
    uint64_t waited_ms = known ? wire_get_varint(reader) : 0;
    uint64_t alone = known ? wire_get_varint(reader) : 0;
    if (waited_ms > UINT32_MAX || alone > 1)
        reader->bad = true;
    if (!out_answer)
        return;
    out_answer->start_known = known;
    out_answer->waited_ms = (uint32_t)waited_ms;
    out_answer->alone = alone != 0;
}

static void get_load_sample(struct wire_reader *reader, struct device_load_sample *sample)
{
    sample->at_ns = wire_get_varint(reader);
    sample->operations = wire_get_varint(reader);
    sample->bytes = wire_get_varint(reader);
    sample->cycles = wire_get_varint(reader);
    sample->cycles_ns = wire_get_varint(reader);
    sample->sm_mhz = wire_get_f64(reader);
    sample->memory_mhz = wire_get_f64(reader);
    sample->power_w = wire_get_f64(reader);
    sample->energy_j = wire_get_f64(reader);
    sample->temperature_c = wire_get_f64(reader);
    sample->temperature_memory_c = wire_get_f64(reader);
    sample->throttle_known = wire_get_varint(reader) != 0;
    sample->throttle_reasons = wire_get_varint(reader);
}

void answer_get_load(struct wire_reader *reader, struct device_load_answer *out_answer)
{
    enum { SAMPLE_BYTES_MIN = 7 + 6 * 8 };
    uint64_t unit = wire_get_varint(reader), end = wire_get_varint(reader);
    uint32_t count = answer_get_count(reader, SAMPLE_BYTES_MIN);
    if (unit >= DEVICE_LOAD_UNIT_COUNT || end >= DEVICE_LOAD_END_COUNT)
        reader->bad = true;
    if (out_answer && !reader->bad) {
        out_answer->unit = (enum device_load_unit)unit;
        out_answer->end = (enum device_load_end)end;
    }
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        struct device_load_sample sample = {0};
        get_load_sample(reader, &sample);
        if (out_answer && !reader->bad && device_load_answer_add(out_answer, &sample))
            wire_no_memory(reader);
    }
    get_start(reader, out_answer);
}
