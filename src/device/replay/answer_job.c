/* The samples of jobs, packed for the record. */
#include "device/replay/answer.h"

#include "base/mem.h"

static bool is_timed(const struct device_step *step)
{
    return step->kind == DEVICE_CHASE || step->kind == DEVICE_AVERAGE;
}

static uint64_t loads_asked(const struct device_step *step)
{
    const struct device_array *array = &step->array;
    if (step->loads || !array->stride_bytes)
        return step->loads;
    return array->size_bytes / array->stride_bytes;
}

/* Flags: a sample's field follows from its step, and is not written. */
enum { SAME_LOADS = 1, SAME_SM = 2, ALL_KEPT = 4, HAS_BINS = 8 };

/* Latencies of one sample in runs, at most: a damaged record must not ask for much memory. */
enum { RUNS_MAX = 1 << 20 };

static void put_bins(struct strbuf *buffer, const struct device_sample *sample)
{
    uint32_t last = 0;
    wire_put_varint(buffer, sample->bin_count);
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        wire_put_varint(buffer, sample->bins[i].bin - last);
        wire_put_varint(buffer, sample->bins[i].count);
        last = sample->bins[i].bin;
    }
}

/* Lengths of the runs that are not above the limit, above it, not above it, ... */
static void put_runs(struct strbuf *buffer, uint32_t split, const struct device_sample *sample)
{
    bool above = false;
    for (uint32_t i = 0; i < sample->kept_count; above = !above) {
        uint32_t begin = i;
        while (i < sample->kept_count && (sample->kept[i] > split) == above)
            i++;
        wire_put_varint(buffer, i - begin);
    }
}

static void put_kept(struct strbuf *buffer, const struct device_sample *sample)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < sample->kept_count; i++) {
        wire_put_signed(buffer, (int64_t)sample->kept[i] - last);
        last = sample->kept[i];
    }
}

static void put_sample(struct strbuf *buffer, const struct device_step *step, int32_t last_sm,
                       const struct device_sample *sample)
{
    unsigned flags = (sample->loads == loads_asked(step) ? SAME_LOADS : 0) |
                     (sample->sm == last_sm ? SAME_SM : 0) |
                     (sample->kept_count == step->keep ? ALL_KEPT : 0) |
                     (sample->bin_count && !step->split_cycles ? HAS_BINS : 0);
    wire_put_varint(buffer, flags);
    if (!(flags & SAME_LOADS))
        wire_put_varint(buffer, sample->loads);
    if (!(flags & SAME_SM))
        wire_put_varint(buffer, (uint32_t)sample->sm);
    wire_put_varint(buffer, sample->total_cycles);
    wire_put_varint(buffer, sample->elapsed_ns);
    if (flags & HAS_BINS)
        put_bins(buffer, sample);
    if (!(flags & ALL_KEPT))
        wire_put_varint(buffer, sample->kept_count);
    if (step->split_cycles)
        put_runs(buffer, step->split_cycles, sample);
    else
        put_kept(buffer, sample);
}

void answer_put_job(struct strbuf *buffer, const struct device_job *job,
                    const struct device_answer *answer)
{
    int32_t last_sm = -1;
    for (uint32_t i = 0; i < answer->sample_count; i++) {
        put_sample(buffer, &job->steps[answer->samples[i].step], last_sm, &answer->samples[i]);
        last_sm = answer->samples[i].sm;
    }
}

static void get_bins(struct wire_reader *reader, struct device_sample *sample, bool keep)
{
    uint32_t count = answer_get_count(reader, 2), bin = 0;
    if (keep && count && !(sample->bins = mem_array(count, sizeof *sample->bins)))
        wire_no_memory(reader);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint64_t gap = wire_get_varint(reader);
        uint32_t loads = answer_get_u32(reader);
        if (gap >= DEVICE_BIN_COUNT - bin || (i && !gap))
            reader->bad = true;
        else
            bin += (uint32_t)gap;
        if (keep && !reader->bad)
            sample->bins[sample->bin_count++] =
                (struct device_bin){.bin = (uint16_t)bin, .count = loads};
    }
}

static void get_kept(struct wire_reader *reader, uint32_t count, struct device_sample *sample,
                     bool keep)
{
    int64_t cycles = 0;
    if (count > reader->length - reader->position)
        reader->bad = true;
    if (keep && count && !reader->bad && !(sample->kept = mem_array(count, sizeof *sample->kept)))
        wire_no_memory(reader);
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

/* Latencies as device_run leaves them. */
static void get_runs(struct wire_reader *reader, uint32_t count, struct device_sample *sample,
                     bool keep)
{
    uint32_t at = 0;
    if (count > RUNS_MAX)
        reader->bad = true;
    if (keep && count && !reader->bad && !(sample->kept = mem_array(count, sizeof *sample->kept)))
        wire_no_memory(reader);
    for (bool above = false; at < count && !reader->bad; above = !above) {
        uint64_t run = wire_get_varint(reader);
        if (run > count - at || (at && !run)) {
            reader->bad = true;
            return;
        }
        for (uint64_t i = 0; i < run && keep; i++)
            sample->kept[at + i] = above ? UINT32_MAX : 0;
        at += (uint32_t)run;
    }
    if (keep)
        sample->kept_count = reader->bad ? 0 : count;
}

static void get_sample(struct wire_reader *reader, const struct device_step *step, int32_t last_sm,
                       struct device_sample *sample, bool keep)
{
    uint64_t flags = wire_get_varint(reader);
    sample->loads = flags & SAME_LOADS ? loads_asked(step) : wire_get_varint(reader);
    uint32_t sm = flags & SAME_SM ? (uint32_t)last_sm : answer_get_u32(reader);
    if (sm > INT32_MAX)
        reader->bad = true;
    sample->sm = (int32_t)sm;
    sample->total_cycles = wire_get_varint(reader);
    sample->elapsed_ns = wire_get_varint(reader);
    if (flags & HAS_BINS)
        get_bins(reader, sample, keep);
    uint32_t kept = flags & ALL_KEPT ? step->keep : answer_get_u32(reader);
    if (step->split_cycles)
        get_runs(reader, kept, sample, keep);
    else
        get_kept(reader, kept, sample, keep);
}

void answer_get_job(struct wire_reader *reader, const struct device_job *job, uint32_t sm_count,
                    struct device_answer *out_answer)
{
    int32_t last_sm = -1;
    for (uint32_t i = 0; i < job->step_count && !reader->bad; i++) {
        struct device_sample unkept = {0}, *sample = &unkept;
        if (!is_timed(&job->steps[i]))
            continue;
        if (out_answer)
            sample = &out_answer->samples[out_answer->sample_count++];
        sample->step = i;
        get_sample(reader, &job->steps[i], last_sm, sample, out_answer != NULL);
        last_sm = sample->sm;
        if (sm_count && (uint32_t)last_sm >= sm_count)
            reader->bad = true;
    }
}
