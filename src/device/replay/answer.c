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
    wire_put_varint(buffer, limits->shared_array_bytes);
    for (size_t i = 0; i < DEVICE_CARVEOUTS_MAX; i++)
        wire_put_varint(buffer, limits->carveout_steps[i]);
    wire_put_varint(buffer, limits->carveout_reserve_bytes);
    wire_put_varint(buffer, limits->loads_max);
    wire_put_varint(buffer, limits->threads_per_sm);
    wire_put_varint(buffer, limits->l2_fetch_limit_bytes);
    wire_put_varint(buffer, limits->wide_bytes);
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
    out_limits->shared_array_bytes = wire_get_varint(reader);
    for (size_t i = 0; i < DEVICE_CARVEOUTS_MAX; i++)
        out_limits->carveout_steps[i] = wire_get_varint(reader);
    out_limits->carveout_reserve_bytes = wire_get_varint(reader);
    out_limits->loads_max = wire_get_varint(reader);
    if (reader->position == reader->length)
        return; /* an older record, which ends before these */
    out_limits->threads_per_sm = get_u32(reader);
    out_limits->l2_fetch_limit_bytes = get_u32(reader);
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

/* Reads a count of items that take at least item_bytes each. */
static uint32_t get_count(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = get_u32(reader);
    if (count > (reader->length - reader->position) / item_bytes)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

void answer_get_map(struct wire_reader *reader, uint64_t patterns,
                    struct device_memory_map *out_map)
{
    struct device_memory_map map = {.free_bytes = wire_get_varint(reader)};
    uint32_t count = get_count(reader, 3);
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

static void get_bins(struct wire_reader *reader, struct device_sample *sample, bool keep)
{
    uint32_t count = get_count(reader, 2), bin = 0;
    if (keep && count && !(sample->bins = mem_array(count, sizeof *sample->bins)))
        wire_no_memory(reader);
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
    uint32_t sm = flags & SAME_SM ? (uint32_t)last_sm : get_u32(reader);
    if (sm > INT32_MAX)
        reader->bad = true;
    sample->sm = (int32_t)sm;
    sample->total_cycles = wire_get_varint(reader);
    sample->elapsed_ns = wire_get_varint(reader);
    if (flags & HAS_BINS)
        get_bins(reader, sample, keep);
    uint32_t kept = flags & ALL_KEPT ? step->keep : get_u32(reader);
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
    struct device_check_place place = {.count = get_u32(reader), .wrong = get_u32(reader)};
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
    uint32_t count = get_u32(reader), usual = get_u32(reader), listed = get_count(reader, 4);
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
    uint32_t count = get_count(reader, 1);
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
    uint32_t count = get_count(reader, SAMPLE_BYTES_MIN);
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
