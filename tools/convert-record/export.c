/* Prints a record of version 1 or 2 as words, for import.c. Built with the sources of the last
 * revision that reads them (tools/convert-record/convert.sh). Words come in the order of the rows
 * of src/device/calls.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/replay/answer.h"
#include "device/replay/ask.h"
#include "device/replay/record_read.h"
#include "inventory/wire/facts_wire.h"

static void number(uint64_t value)
{
    printf(" %" PRIu64, value);
}

static void real(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    number(bits);
}

static void bytes(const char *data, size_t length)
{
    printf(" x");
    for (size_t i = 0; i < length; i++)
        printf("%02x", (unsigned char)data[i]);
}

static void text(const char *value)
{
    if (value)
        bytes(value, strlen(value));
    else
        printf(" -");
}

static void texts(char *const *values, size_t count)
{
    number(count);
    for (size_t i = 0; i < count; i++)
        text(values[i]);
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void job(const struct ask *ask, struct device_job *out_job)
{
    if (!ask_to_job(ask, out_job))
        give_up("malformed job");
    number(ask->fields[0]); /* at once */
    number(out_job->agent_count);
    for (uint32_t i = 0; i < DEVICE_AGENTS_MAX; i++) {
        number((uint64_t)(int64_t)out_job->agents[i].sm);
        number(out_job->agents[i].warp);
    }
    number(out_job->step_count);
    number(out_job->shared_bytes);
    number(out_job->cold_l2);
    for (uint32_t i = 0; i < DEVICE_STEPS_MAX; i++) {
        const struct device_step *step = &out_job->steps[i];
        const struct device_array *array = &step->array;
        const uint64_t numbers[] = {step->kind,        step->agent,
                                    array->path,       array->offset_bytes,
                                    array->size_bytes, array->stride_bytes,
                                    array->order,      array->seed,
                                    step->start,       step->loads,
                                    step->keep,        step->split_cycles,
                                    step->lanes,       step->lane_stride_bytes};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            number(numbers[k]);
    }
}

static void job_answer(const struct device_answer *answer)
{
    for (uint32_t i = 0; i < answer->sample_count; i++) {
        const struct device_sample *s = &answer->samples[i];
        number(s->step);
        number((uint64_t)(int64_t)s->sm);
        number(s->loads);
        number(s->total_cycles);
        number(s->elapsed_ns);
        number(s->bin_count);
        number(s->kept_count);
        for (uint32_t k = 0; k < s->bin_count; k++) {
            number(s->bins[k].bin);
            number(s->bins[k].count);
        }
        for (uint32_t k = 0; k < s->kept_count; k++)
            number(s->kept[k]);
    }
}

static void limits(struct wire_reader *values, struct device_limits *it)
{
    answer_get_limits(values, it);
    number(it->sm_count);
    number(it->warp_count);
    number(it->global_bytes);
    number(it->wide_bytes);
    number(it->constant_bytes);
    number(it->shared_bytes_max);
    number(it->shared_array_bytes);
    number(it->host_bytes);
    number(it->l2_reported_bytes);
    real(it->timer_overhead_cycles);
    number(it->l1_nominal_bytes);
    number(it->l1_carveout_bytes);
    for (size_t i = 0; i < DEVICE_CARVEOUTS_MAX; i++)
        number(it->carveout_steps[i]);
    number(it->carveout_reserve_bytes);
    number(it->loads_max);
    number(it->threads_per_sm);
    number(it->l2_fetch_limit_bytes);
}

static void memory_map(struct wire_reader *values, uint64_t patterns)
{
    struct device_memory_map map = {0};
    answer_get_map(values, patterns, &map);
    number(map.free_bytes);
    number(map.region_count);
    for (size_t i = 0; i < map.region_count; i++) {
        const struct device_region *region = &map.regions[i];
        number(region->bytes);
        for (int p = 0; p < DEVICE_PATTERN_COUNT; p++)
            number(region->write_ns[p]);
        for (int p = 0; p < DEVICE_PATTERN_COUNT; p++)
            number(region->read_ns[p]);
        number(region->cycles[0]);
        number(region->cycles[1]);
        number(region->wrong_words);
        number(region->wrong_offset);
        number(region->wrong_bits);
    }
    number(map.ecc_known);
    number(map.ecc_before.corrected);
    number(map.ecc_before.uncorrected);
    number(map.ecc_after.corrected);
    number(map.ecc_after.uncorrected);
    device_memory_map_fini(&map);
}

static void check(struct wire_reader *values)
{
    struct device_check_answer it = {0};
    answer_get_check(values, &it);
    number(it.place_count);
    number(it.operations);
    number(it.cycles);
    number(it.elapsed_ns);
    for (size_t i = 0; i < it.place_count; i++) {
        number(it.places[i].count);
        number(it.places[i].wrong);
        number(it.places[i].wrong_hash);
    }
    device_check_answer_fini(&it);
}

static void load(struct wire_reader *values)
{
    struct device_load_answer it = {0};
    answer_get_load(values, &it);
    number(it.unit);
    number(it.end);
    number(it.sample_count);
    number(it.start_known);
    number(it.waited_ms);
    number(it.alone);
    for (size_t i = 0; i < it.sample_count; i++) {
        const struct device_load_sample *s = &it.samples[i];
        number(s->at_ns);
        number(s->operations);
        number(s->bytes);
        number(s->cycles);
        number(s->cycles_ns);
        real(s->sm_mhz);
        real(s->memory_mhz);
        real(s->power_w);
        real(s->energy_j);
        real(s->temperature_c);
        real(s->temperature_memory_c);
        number(s->throttle_reasons);
        number(s->throttle_known);
    }
    device_load_answer_fini(&it);
}

static void peer(struct wire_reader *values)
{
    struct device_peer_answer it = {0};
    answer_get_peer(values, &it);
    number(it.copy_read_ns);
    number(it.copy_write_ns);
    number(it.copy_both_ns);
    number(it.mapped);
    number(it.read_ns);
    number(it.write_ns);
    number(it.both_ns);
    number(it.cycles);
    number(it.chase_ns);
    number(it.wrong_words);
}

static void sm_map(struct wire_reader *values)
{
    struct device_sm_map_answer it = {0};
    answer_get_sm_map(values, &it);
    number(it.value_count);
    number(it.region_bytes);
    for (size_t i = 0; i < it.value_count; i++)
        number(it.values[i]);
    device_sm_map_answer_fini(&it);
}

static void cluster(struct wire_reader *values, const struct device_cluster *asked, uint32_t sms)
{
    struct device_cluster_answer it = {0};
    answer_get_cluster(values, asked, sms, &it);
    size_t blocks = (size_t)it.clusters * asked->size;
    number(it.clusters);
    number(blocks);
    number(it.cycle_count);
    for (size_t i = 0; i < blocks; i++)
        number(it.sms[i]);
    for (size_t i = 0; i < it.cycle_count; i++)
        number(it.cycles[i]);
    device_cluster_answer_fini(&it);
}

static void plain_numbers(struct wire_reader *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        number(wire_get_varint(values));
}

struct reading {
    struct ask last[ASK_CALL_COUNT];
    enum ask_call call;
    size_t items;
    struct device_job *jobs;
    uint32_t sm_count;
};

/* The fields of a request, and the count of jobs where the new form has one. */
static void request(struct reading *r, struct wire_reader *values)
{
    r->call = (enum ask_call)wire_get_varint(values);
    r->items = r->call == ASK_BATCH ? (size_t)wire_get_varint(values) : 1;
    printf("Q");
    number(r->call);
    number(r->items);
    if (r->call == ASK_BATCH) {
        r->jobs = realloc(r->jobs, (r->items + 1) * sizeof *r->jobs);
        for (size_t i = 0; i < r->items; i++) {
            ask_get(values, ASK_BATCH, &r->last[ASK_BATCH]);
            job(&r->last[ASK_BATCH], &r->jobs[i]);
        }
        printf("\n");
        return;
    }
    static const size_t counts[ASK_CALL_COUNT] = {
        [ASK_STREAM] = 8,      [ASK_MEMORY] = 3,  [ASK_CHECK] = 2,  [ASK_LOAD] = 1,
        [ASK_PEER] = 3,        [ASK_SHARE] = 2,   [ASK_SM_MAP] = 6, [ASK_CODE] = 5,
        [ASK_SHARED_LOAD] = 5, [ASK_CLUSTER] = 5, [ASK_BULK] = 5};
    struct ask *ask = &r->last[r->call];
    if (ask_has_fields(r->call))
        ask_get(values, r->call, ask);
    if (r->call == ASK_STRAIGHT) {
        number(ask->fields[7] ? 2 : 1);
        for (size_t i = 0; i < 8; i++)
            number(ask->fields[i]);
    }
    for (size_t i = 0; i < counts[r->call]; i++)
        number(ask->fields[i]);
    printf("\n");
}

static void values_of(struct reading *r, size_t item, struct wire_reader *values)
{
    struct device_answer answer = {0};
    struct device_limits it = {0};
    struct device_cluster asked;
    switch (r->call) {
    case ASK_OPEN:
        limits(values, &it);
        r->sm_count = it.sm_count;
        break;
    case ASK_BATCH:
        answer_get_job(values, &r->jobs[item], r->sm_count, &answer);
        job_answer(&answer);
        device_answers_fini(&answer, 1);
        break;
    case ASK_MEMORY:
        memory_map(values, r->last[ASK_MEMORY].fields[0]);
        break;
    case ASK_CHECK:
        check(values);
        break;
    case ASK_LOAD:
        load(values);
        break;
    case ASK_PEER:
        peer(values);
        break;
    case ASK_SM_MAP:
        sm_map(values);
        break;
    case ASK_CLUSTER:
        asked = ask_to_cluster(&r->last[ASK_CLUSTER]);
        cluster(values, &asked, r->sm_count);
        break;
    case ASK_CLOCKS:
        real(wire_get_f64(values));
        real(wire_get_f64(values));
        plain_numbers(values, 2);
        break;
    case ASK_STREAM:
    case ASK_LINK:
        plain_numbers(values, 2);
        break;
    case ASK_SHARED_LOAD:
        plain_numbers(values, 1);
        break;
    case ASK_CODE: {
        struct device_code_answer code;
        answer_get_code(values, &code);
        number(code.cycles);
        number(code.machine);
        number(code.most);
        break;
    }
    case ASK_SHARE:
    case ASK_STRAIGHT:
    case ASK_BULK:
        plain_numbers(values, 3);
        break;
    default:
        break;
    }
}

static void answer_of(struct reading *r, struct wire_reader *values)
{
    struct err err = {0};
    int rc = wire_get_signed(values) != 0;
    printf("A");
    if (rc) {
        values->position = 0;
        rc = answer_get_err(values, &err);
        printf(" %d", rc);
        text(err.text);
    } else {
        printf(" 0 -");
    }
    for (size_t i = 0; i < r->items && !rc; i++)
        values_of(r, i, values);
    for (size_t i = 0; i < ask_tables(r->call); i++) {
        struct facts facts = {0};
        struct strbuf packed = {0};
        wire_get_facts(values, &facts);
        wire_put_facts(&packed, &facts);
        bytes(packed.data, packed.length);
        facts_fini(&facts);
        strbuf_fini(&packed);
    }
    printf("\n");
}

static void body(const struct record *record, const struct record_gpu *gpu)
{
    struct reading reading = {0};
    struct strbuf data = {0};
    struct record_entry entry = {0};
    struct err err = {0};
    size_t position = 0;
    if (record_read_body(record, gpu, &data, &err))
        give_up(err.text);
    while (entry_next(data.data ? data.data : "", data.length, 0, &position, &entry, &err) > 0) {
        struct wire_reader *values = &entry.values;
        if (entry.type == ENTRY_MARK) {
            char *mark = wire_get_text(values);
            printf("M");
            text(mark);
            printf("\n");
            free(mark);
        } else if (entry.type == ENTRY_ASK) {
            request(&reading, values);
        } else if (entry.type == ENTRY_ANSWER) {
            answer_of(&reading, values);
        } else {
            printf("C\n");
        }
        if (values->bad || values->position != values->length)
            give_up("malformed entry");
    }
    free(reading.jobs);
    strbuf_fini(&data);
}

static void gpu_part(const struct record *record, const struct record_gpu *part)
{
    const struct gpu_result *gpu = &part->gpu;
    printf("G %u %d", part->session, part->closed);
    text(gpu->uuid);
    text(gpu->node);
    text(gpu->pci);
    printf(" %d", gpu->index);
    text(gpu->name);
    text(gpu->model_key);
    printf(" %d %d", gpu->rank, (int)gpu->status);
    text(gpu->reason);
    printf(" %d", (int)gpu->first_status);
    text(gpu->first_reason);
    number(gpu->gpus_given);
    printf("\n");
    body(record, part);
    printf("E\n");
}

int main(int argc, char **argv)
{
    struct record *record = NULL;
    struct err err = {0};
    if (argc != 2 || record_open(argv[1], &record, &err))
        give_up(argc != 2 ? "usage: export RECORD" : err.text);
    const struct record_provenance *p = record_provenance(record);
    printf("P");
    text(p->version);
    text(p->date);
    text(p->host);
    text(p->backend);
    texts(p->command, p->command_count);
    number(p->seed);
    number(p->profile);
    text(p->probes);
    number(p->measure_busy);
    text(p->config);
    text(p->config_text);
    number(p->ranks);
    printf("\n");
    for (size_t i = 0; i < record_gpu_count(record); i++) {
        const struct record_gpu *first = record_gpu(record, i);
        const struct record_gpu *again = record_find_gpu(record, first->gpu.uuid, 1);
        gpu_part(record, first);
        if (again)
            gpu_part(record, again);
    }
    const struct record_survey *s = record_survey(record);
    printf("S %u %u", s->nodes, s->lost_ranks);
    texts(s->bare_nodes, s->bare_count);
    number(s->unknown_count);
    for (size_t i = 0; i < s->unknown_count; i++) {
        text(s->unknown[i].node);
        printf(" %d %d", s->unknown[i].rank, (int)s->unknown[i].status);
        text(s->unknown[i].reason);
        number(s->unknown[i].gpus_given);
    }
    printf("\n");
    record_close(record);
    return 0;
}
