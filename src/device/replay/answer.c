/* What a device answered, packed for the record. */
#include "device/replay/answer.h"

#include <stdlib.h>

void answer_put_limits(struct strbuf *buffer, const struct device_limits *limits)
{
    wire_put_varint(buffer, limits->sm_count);
    wire_put_varint(buffer, limits->warp_count);
    wire_put_varint(buffer, limits->global_bytes);
    wire_put_varint(buffer, limits->constant_bytes);
    wire_put_varint(buffer, limits->shared_bytes_max);
    wire_put_varint(buffer, limits->host_bytes);
    wire_put_varint(buffer, limits->l2_reported_bytes);
    wire_put_f64(buffer, limits->timer_overhead_cycles);
    wire_put_varint(buffer, limits->l1_nominal_bytes);
    wire_put_varint(buffer, limits->l1_carveout_bytes);
    wire_put_varint(buffer, limits->shared_array_bytes);
    for (size_t i = 0; i < DEVICE_CARVEOUTS_MAX; i++)
        wire_put_varint(buffer, limits->carveout_steps[i]);
    wire_put_varint(buffer, limits->carveout_reserve_bytes);
    wire_put_varint(buffer, limits->loads_max);
    wire_put_varint(buffer, limits->threads_per_sm);
    wire_put_varint(buffer, limits->l2_fetch_limit_bytes);
    wire_put_varint(buffer, limits->wide_bytes);
}

uint32_t answer_get_u32(struct wire_reader *reader)
{
    uint64_t value = wire_get_varint(reader);
    if (value > UINT32_MAX)
        reader->bad = true;
    return reader->bad ? 0 : (uint32_t)value;
}

uint32_t answer_get_count(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = answer_get_u32(reader);
    if (count > (reader->length - reader->position) / item_bytes)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

void answer_get_limits(struct wire_reader *reader, struct device_limits *out_limits)
{
    out_limits->sm_count = answer_get_u32(reader);
    out_limits->warp_count = answer_get_u32(reader);
    out_limits->global_bytes = wire_get_varint(reader);
    out_limits->constant_bytes = wire_get_varint(reader);
    out_limits->shared_bytes_max = wire_get_varint(reader);
    out_limits->host_bytes = wire_get_varint(reader);
    out_limits->l2_reported_bytes = wire_get_varint(reader);
    out_limits->timer_overhead_cycles = wire_get_f64(reader);
    out_limits->l1_nominal_bytes = wire_get_varint(reader);
    out_limits->l1_carveout_bytes = wire_get_varint(reader);
    out_limits->shared_array_bytes = wire_get_varint(reader);
    for (size_t i = 0; i < DEVICE_CARVEOUTS_MAX; i++)
        out_limits->carveout_steps[i] = wire_get_varint(reader);
    out_limits->carveout_reserve_bytes = wire_get_varint(reader);
    out_limits->loads_max = wire_get_varint(reader);
    if (reader->position == reader->length)
        return; /* an older record, which ends before these */
    out_limits->threads_per_sm = answer_get_u32(reader);
    out_limits->l2_fetch_limit_bytes = answer_get_u32(reader);
    if (reader->position < reader->length)
        out_limits->wide_bytes = wire_get_varint(reader);
}

void answer_put_clocks(struct strbuf *buffer, const struct device_clocks *clocks)
{
    wire_put_f64(buffer, clocks->sm_mhz);
    wire_put_f64(buffer, clocks->memory_mhz);
    wire_put_varint(buffer, clocks->throttle_reasons);
    wire_put_varint(buffer, clocks->throttle_known);
}

void answer_get_clocks(struct wire_reader *reader, struct device_clocks *out_clocks)
{
    out_clocks->sm_mhz = wire_get_f64(reader);
    out_clocks->memory_mhz = wire_get_f64(reader);
    out_clocks->throttle_reasons = wire_get_varint(reader);
    out_clocks->throttle_known = wire_get_varint(reader) != 0;
}

void answer_put_link(struct strbuf *buffer, const struct device_link *link)
{
    wire_put_varint(buffer, link->alone);
    wire_put_varint(buffer, link->near);
}

void answer_get_link(struct wire_reader *reader, struct device_link *out_link)
{
    out_link->alone = wire_get_varint(reader) != 0;
    out_link->near = wire_get_varint(reader) != 0;
}

void answer_put_peer(struct strbuf *buffer, const struct device_peer_answer *answer)
{
    wire_put_varint(buffer, answer->copy_read_ns);
    wire_put_varint(buffer, answer->copy_write_ns);
    wire_put_varint(buffer, answer->copy_both_ns);
    wire_put_varint(buffer, answer->wrong_words);
    wire_put_varint(buffer, answer->mapped);
    if (!answer->mapped)
        return;
    wire_put_varint(buffer, answer->read_ns);
    wire_put_varint(buffer, answer->write_ns);
    wire_put_varint(buffer, answer->cycles);
    wire_put_varint(buffer, answer->both_ns);
    wire_put_varint(buffer, answer->chase_ns);
}

void answer_get_peer(struct wire_reader *reader, struct device_peer_answer *out_answer)
{
    struct device_peer_answer answer = {.copy_read_ns = wire_get_varint(reader)};
    answer.copy_write_ns = wire_get_varint(reader);
    answer.copy_both_ns = wire_get_varint(reader);
    answer.wrong_words = wire_get_varint(reader);
    answer.mapped = wire_get_varint(reader) != 0;
    if (answer.mapped) {
        answer.read_ns = wire_get_varint(reader);
        answer.write_ns = wire_get_varint(reader);
        answer.cycles = wire_get_varint(reader);
    }
    if (answer.mapped && reader->position < reader->length) { /* older records end here */
        answer.both_ns = wire_get_varint(reader);
        answer.chase_ns = wire_get_varint(reader);
    }
    *out_answer = answer;
}

void answer_put_code(struct strbuf *buffer, const struct device_code_answer *answer)
{
    wire_put_varint(buffer, answer->cycles);
    wire_put_varint(buffer, answer->machine);
    wire_put_varint(buffer, answer->most);
}

void answer_get_code(struct wire_reader *reader, struct device_code_answer *out_answer)
{
    *out_answer = (struct device_code_answer){0};
    out_answer->cycles = wire_get_varint(reader);
    out_answer->machine = wire_get_varint(reader);
    if (reader->position < reader->length) /* old records end here */
        out_answer->most = wire_get_varint(reader);
}

void answer_put_share(struct strbuf *buffer, const struct device_host_share_answer *answer)
{
    wire_put_varint(buffer, answer->gpus);
    wire_put_varint(buffer, answer->bytes);
    wire_put_varint(buffer, answer->elapsed_ns);
}

void answer_get_share(struct wire_reader *reader, struct device_host_share_answer *out_answer)
{
    out_answer->gpus = (uint32_t)wire_get_varint(reader);
    out_answer->bytes = wire_get_varint(reader);
    out_answer->elapsed_ns = wire_get_varint(reader);
}

void answer_put_straight(struct strbuf *buffer, const struct device_straight_answer *answer)
{
    wire_put_varint(buffer, answer->instruction_bytes);
    for (size_t i = 0; i < DEVICE_STRAIGHT_JOBS; i++)
        wire_put_varint(buffer, answer->cycles[i]);
}

void answer_get_straight(struct wire_reader *reader, struct device_straight_answer *out_answer)
{
    out_answer->instruction_bytes = (uint32_t)wire_get_varint(reader);
    for (size_t i = 0; i < DEVICE_STRAIGHT_JOBS; i++)
        out_answer->cycles[i] = wire_get_varint(reader);
}

void answer_put_err(struct strbuf *buffer, int code, const char *text)
{
    wire_put_signed(buffer, code);
    wire_put_text(buffer, text);
}

int answer_get_err(struct wire_reader *reader, struct err *err)
{
    enum { ERRNO_MAX = 4095 };
    int64_t code = wire_get_signed(reader);
    char *text = wire_get_text(reader);
    if (code >= 0 || code < -ERRNO_MAX || !text)
        reader->bad = true;
    else if (!reader->bad)
        err_set(err, (int)code, "%s", text);
    free(text);
    if (reader->no_memory)
        return err_no_memory(err);
    return reader->bad ? 0 : (int)code;
}
