/* What a device answered, packed for the record. */
#include "device/replay/answer.h"

#include <stdlib.h>

#include "base/mem.h"

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
}

static uint32_t get_u32(struct wire_reader *reader)
{
    uint64_t value = wire_get_varint(reader);
    if (value > UINT32_MAX)
        reader->bad = true;
    return reader->bad ? 0 : (uint32_t)value;
}

void answer_get_limits(struct wire_reader *reader, struct device_limits *out_limits)
{
    out_limits->sm_count = get_u32(reader);
    out_limits->warp_count = get_u32(reader);
    out_limits->global_bytes = wire_get_varint(reader);
    out_limits->constant_bytes = wire_get_varint(reader);
    out_limits->shared_bytes_max = wire_get_varint(reader);
    out_limits->host_bytes = wire_get_varint(reader);
    out_limits->l2_reported_bytes = wire_get_varint(reader);
    out_limits->timer_overhead_cycles = wire_get_f64(reader);
    out_limits->l1_nominal_bytes = wire_get_varint(reader);
    out_limits->l1_carveout_bytes = wire_get_varint(reader);
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

static void put_sample(struct strbuf *buffer, const struct device_sample *sample)
{
    wire_put_varint(buffer, sample->step);
    wire_put_signed(buffer, sample->sm);
    wire_put_varint(buffer, sample->loads);
    wire_put_varint(buffer, sample->total_cycles);
    wire_put_varint(buffer, sample->elapsed_ns);
    wire_put_varint(buffer, sample->bin_count);
    uint32_t last = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        wire_put_varint(buffer, sample->bins[i].bin - last);
        wire_put_varint(buffer, sample->bins[i].count);
        last = sample->bins[i].bin;
    }
    wire_put_varint(buffer, sample->kept_count);
    last = 0;
    for (uint32_t i = 0; i < sample->kept_count; i++) {
        wire_put_signed(buffer, (int64_t)sample->kept[i] - last);
        last = sample->kept[i];
    }
}

void answer_put_job(struct strbuf *buffer, const struct device_answer *answer)
{
    wire_put_varint(buffer, answer->sample_count);
    for (uint32_t i = 0; i < answer->sample_count; i++)
        put_sample(buffer, &answer->samples[i]);
}

/* A count of things of at least item_bytes each. */
static uint32_t get_count(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = get_u32(reader);
    if (count > (reader->length - reader->position) / item_bytes)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

static void get_bins(struct wire_reader *reader, struct device_sample *sample, bool keep)
{
    uint32_t count = get_count(reader, 2), bin = 0;
    if (keep && count && !(sample->bins = mem_array(count, sizeof *sample->bins)))
        reader->bad = true;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint64_t gap = wire_get_varint(reader);
        uint32_t loads = get_u32(reader);
        if (gap >= DEVICE_BIN_COUNT - bin || (i && !gap))
            reader->bad = true;
        else
            bin += (uint32_t)gap;
        if (keep && !reader->bad)
            sample->bins[sample->bin_count++] =
                (struct device_bin){.bin = (uint16_t)bin, .count = loads};
    }
}

static void get_kept(struct wire_reader *reader, struct device_sample *sample, bool keep)
{
    uint32_t count = get_count(reader, 1);
    int64_t cycles = 0;
    if (keep && count && !(sample->kept = mem_array(count, sizeof *sample->kept)))
        reader->bad = true;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        int64_t difference = wire_get_signed(reader);
        if (difference < -cycles || difference > UINT32_MAX - cycles) {
            reader->bad = true;
            return;
        }
        cycles += difference;
        if (keep)
            sample->kept[sample->kept_count++] = (uint32_t)cycles;
    }
}

static void get_sample(struct wire_reader *reader, uint32_t step, uint32_t sm_count,
                       struct device_sample *sample, bool keep)
{
    sample->step = get_u32(reader);
    int64_t sm = wire_get_signed(reader);
    if (sample->step != step || sm < 0 || sm > INT32_MAX || (sm_count && sm >= (int64_t)sm_count))
        reader->bad = true;
    sample->sm = reader->bad ? 0 : (int32_t)sm;
    sample->loads = wire_get_varint(reader);
    sample->total_cycles = wire_get_varint(reader);
    sample->elapsed_ns = wire_get_varint(reader);
    get_bins(reader, sample, keep);
    get_kept(reader, sample, keep);
}

uint32_t answer_timed_steps(const struct device_job *job)
{
    uint32_t timed = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        if (job->steps[i].kind == DEVICE_CHASE || job->steps[i].kind == DEVICE_AVERAGE)
            timed |= UINT32_C(1) << i;
    return timed;
}

void answer_get_job(struct wire_reader *reader, uint32_t timed_steps, uint32_t sm_count,
                    struct device_answer *out_answer)
{
    if (wire_get_varint(reader) != (uint64_t)__builtin_popcount(timed_steps))
        reader->bad = true;
    for (uint32_t i = 0; i < DEVICE_STEPS_MAX && !reader->bad; i++) {
        struct device_sample unkept = {0};
        if (timed_steps >> i & 1)
            get_sample(reader, i, sm_count,
                       out_answer ? &out_answer->samples[out_answer->sample_count++] : &unkept,
                       out_answer != NULL);
    }
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
    return reader->bad ? 0 : (int)code;
}
