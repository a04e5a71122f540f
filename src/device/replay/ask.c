/* Requests to a device as numbers. */
#include "device/replay/ask.h"

#include <string.h>

#include "base/mem.h"
#include "device/instruction.h"

/* By call: its name, and how many fields a request has. */
static const struct {
    const char *name;
    size_t fields;
} calls[ASK_CALL_COUNT] = {
    [ASK_LOOK] = {"look", 0},
    [ASK_OPEN] = {"open", 0},
    [ASK_IDENTIFY] = {"identify", 0},
    [ASK_BATCH] = {"batch", ASK_JOB_FIELDS},
    [ASK_STREAM] = {"stream", ASK_STREAM_FIELDS},
    [ASK_CLOCKS] = {"clocks", 0},
    [ASK_HEALTH] = {"health", 0},
    [ASK_LINK] = {"link", 0},
    [ASK_MEMORY] = {"memory", ASK_MEMORY_FIELDS},
    [ASK_CHECK] = {"check", ASK_CHECK_FIELDS},
    [ASK_LOAD] = {"load", ASK_LOAD_FIELDS},
    [ASK_PEERS] = {"peers", 0},
    [ASK_PEER] = {"peer", ASK_PEER_FIELDS},
    [ASK_SHARE] = {"share", ASK_SHARE_FIELDS},
    [ASK_SM_MAP] = {"sm_map", ASK_SM_MAP_FIELDS},
    [ASK_CODE] = {"code", ASK_CODE_FIELDS},
    [ASK_SHARED_LOAD] = {"shared_load", ASK_SHARED_LOAD_FIELDS},
    [ASK_STRAIGHT] = {"straight", ASK_STRAIGHT_FIELDS},
    [ASK_CLUSTER] = {"cluster", ASK_CLUSTER_FIELDS},
    [ASK_BULK] = {"bulk", ASK_BULK_FIELDS},
};

const char *ask_call_name(enum ask_call call)
{
    return calls[call].name;
}

size_t ask_tables(enum ask_call call)
{
    return call == ASK_LOOK || call == ASK_IDENTIFY ? 3
           : call == ASK_HEALTH                     ? 2
           : call == ASK_PEERS                      ? 1
                                                    : 0;
}

/* Positions in the fields of a job, and in those of one of its steps. */
enum {
    AT_ONCE,
    AGENTS,
    AGENT_FIRST,
    STEPS = AGENT_FIRST + 2 * DEVICE_AGENTS_MAX,
    SHARED,
    COLD,
    APART
};
enum { STEP_FIRST = APART + 1 };
enum {
    KIND,
    AGENT,
    PATH,
    OFFSET,
    SIZE,
    STRIDE,
    ORDER,
    SEED,
    START,
    LOADS,
    KEEP,
    LANES,
    LANE_STRIDE
};

/* In KEEP: only the side of a limit was kept. Where it was depends on what was measured before, so
 * it does not count; records from before there was a limit keep their fields. */
static const uint64_t SPLIT = UINT64_C(1) << 32;

_Static_assert(STEP_FIRST + DEVICE_STEPS_MAX * ASK_STEP_FIELDS == ASK_JOB_FIELDS,
               "fields of a job");
_Static_assert(LANE_STRIDE + 1 == ASK_STEP_FIELDS, "fields of a step");

static void put_step(uint64_t *fields, const struct device_step *step)
{
    fields[KIND] = step->kind;
    fields[AGENT] = step->agent;
    fields[PATH] = step->array.path;
    fields[OFFSET] = step->array.offset_bytes;
    fields[SIZE] = step->array.size_bytes;
    fields[STRIDE] = step->array.stride_bytes;
    fields[ORDER] = step->array.order;
    fields[START] = step->start;
    fields[LOADS] = step->loads;
    fields[KEEP] = step->keep | (step->split_cycles ? SPLIT : 0);
    fields[LANES] = step->lanes;
    fields[LANE_STRIDE] = step->lane_stride_bytes;
}

/* The first step that goes through the same random order; 0 where the order is not random. */
static uint32_t first_of_order(const struct device_job *job, uint32_t step)
{
    const struct device_array *array = &job->steps[step].array, *other = &job->steps[0].array;
    uint32_t first = 0;
    if (array->order != DEVICE_RANDOM)
        return 0;
    while (other->order != DEVICE_RANDOM || other->seed != array->seed)
        other = &job->steps[++first].array;
    return first;
}

static bool is_global(enum device_path path)
{
    return path <= DEVICE_TEXTURE;
}

static uint64_t lowest_offset(const struct device_job *job)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_array *array = &job->steps[i].array;
        if (is_global(array->path) && array->offset_bytes < lowest)
            lowest = array->offset_bytes;
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

struct ask ask_of_job(const struct device_job *job, uint32_t at_once)
{
    struct ask ask = {.call = ASK_BATCH};
    ask.fields[AT_ONCE] = at_once;
    ask.fields[AGENTS] = job->agent_count;
    for (uint32_t i = 0; i < job->agent_count; i++) {
        ask.fields[AGENT_FIRST + 2 * i] = (uint64_t)(int64_t)job->agents[i].sm;
        ask.fields[AGENT_FIRST + 2 * i + 1] = job->agents[i].warp;
    }
    ask.fields[STEPS] = job->step_count;
    ask.fields[SHARED] = job->shared_bytes;
    ask.fields[COLD] = job->cold_l2;
    uint64_t lowest = lowest_offset(job);
    ask.fields[APART] = lowest > 0;
    for (uint32_t i = 0; i < job->step_count; i++) {
        uint64_t *step = ask.fields + STEP_FIRST + i * ASK_STEP_FIELDS;
        put_step(step, &job->steps[i]);
        if (is_global(job->steps[i].array.path))
            step[OFFSET] -= lowest;
        step[SEED] = first_of_order(job, i);
        if (step[ORDER] == DEVICE_RANDOM)
            step[START] -= job->steps[step[SEED]].start;
    }
    return ask;
}

static struct device_step get_step(const uint64_t *fields)
{
    return (struct device_step){
        .kind = (enum device_step_kind)fields[KIND],
        .agent = (uint32_t)fields[AGENT],
        .array = {.path = (enum device_path)fields[PATH],
                  .offset_bytes = fields[OFFSET],
                  .size_bytes = fields[SIZE],
                  .stride_bytes = fields[STRIDE],
                  .order = (enum device_order)fields[ORDER],
                  .seed = fields[SEED]},
        .start = fields[START],
        .loads = fields[LOADS],
        .keep = (uint32_t)fields[KEEP],
        .split_cycles = fields[KEEP] & SPLIT ? 1 : 0,
        .lanes = (uint32_t)fields[LANES],
        .lane_stride_bytes = (uint32_t)fields[LANE_STRIDE],
    };
}

bool ask_to_job(const struct ask *ask, struct device_job *out_job)
{
    const uint64_t *fields = ask->fields;
    struct device_job job = {.shared_bytes = fields[SHARED], .cold_l2 = fields[COLD] != 0};
    if (fields[AGENTS] > DEVICE_AGENTS_MAX || fields[STEPS] > DEVICE_STEPS_MAX)
        return false;
    job.agent_count = (uint32_t)fields[AGENTS];
    for (uint32_t i = 0; i < job.agent_count; i++)
        job.agents[i] = (struct device_agent){.sm = (int32_t)(int64_t)fields[AGENT_FIRST + 2 * i],
                                              .warp = (uint32_t)fields[AGENT_FIRST + 2 * i + 1]};
    job.step_count = (uint32_t)fields[STEPS];
    for (uint32_t i = 0; i < job.step_count; i++) {
        job.steps[i] = get_step(fields + STEP_FIRST + i * ASK_STEP_FIELDS);
        if ((unsigned)job.steps[i].kind > DEVICE_FILL ||
            (unsigned)job.steps[i].array.path >= DEVICE_PATH_COUNT)
            return false;
        if (fields[APART] && is_global(job.steps[i].array.path))
            job.steps[i].array.offset_bytes++; /* anywhere but at 0 */
    }
    /* A value that a narrower type would cut off cannot come from a job. */
    const struct ask back = ask_of_job(&job, (uint32_t)fields[AT_ONCE]);
    if (memcmp(back.fields, fields, sizeof back.fields) != 0)
        return false;
    *out_job = job;
    return true;
}

struct ask ask_of_stream(const struct device_stream *stream)
{
    return (struct ask){
        .call = ASK_STREAM,
        .fields = {stream->kind, stream->path, stream->footprint_bytes, stream->total_bytes,
                   stream->width_bytes, stream->threads, stream->blocks, stream->unroll},
    };
}

struct ask ask_of_memory_test(const struct device_memory_test *test)
{
    return (struct ask){.call = ASK_MEMORY,
                        .fields = {test->patterns, test->region_bytes, test->loads}};
}

struct ask ask_of_check(const struct device_check *check)
{
    return (struct ask){.call = ASK_CHECK, .fields = {check->unit, check->target_ms}};
}

struct ask ask_of_load(const struct device_load *load)
{
    return (struct ask){.call = ASK_LOAD, .fields = {load->sample_ms}};
}

struct ask ask_of_peer_test(const struct device_peer_test *test)
{
    return (struct ask){.call = ASK_PEER, .fields = {test->peer, test->bytes, test->loads}};
}

struct ask ask_of_host_share(const struct device_host_share *asked)
{
    return (struct ask){.call = ASK_SHARE, .fields = {asked->kind, asked->bytes}};
}

struct ask ask_of_sm_map(const struct device_sm_map *map, uint32_t sm_count)
{
    uint64_t turns = 0;
    if (map->kind == DEVICE_SM_MAP_MEMORY)
        return (struct ask){.call = ASK_SM_MAP,
                            .fields = {map->kind, [4] = map->regions, [5] = map->loads}};
    for (uint32_t i = 0; i < sm_count; i++)
        turns = (turns ^ map->turns[i]) * UINT64_C(0x100000001b3);
    return (struct ask){.call = ASK_SM_MAP,
                        .fields = {map->kind, map->footprint_bytes, map->window_cycles, turns}};
}

struct ask ask_of_code(const struct device_code *code)
{
    return (struct ask){.call = ASK_CODE,
                        .fields = {str_hash(instruction_table[code->instruction].name),
                                   code->chains, code->warps, code->length, code->repeats}};
}

struct ask ask_of_shared_load(const struct device_shared_load *load)
{
    return (struct ask){.call = ASK_SHARED_LOAD,
                        .fields = {load->warps, load->lanes, load->lane_stride_bytes,
                                   load->width_bytes, load->loads}};
}

struct ask ask_of_straight(const struct device_straight *straight)
{
    struct ask ask = {.call = ASK_STRAIGHT};
    for (uint32_t i = 0; i < straight->job_count; i++) {
        uint64_t *fields = ask.fields + 4 * (size_t)i;
        fields[0] = straight->jobs[i].sm;
        fields[1] = straight->jobs[i].copy;
        fields[2] = straight->jobs[i].length;
        fields[3] = straight->jobs[i].repeats;
    }
    return ask;
}

struct ask ask_of_cluster(const struct device_cluster *cluster)
{
    return (struct ask){.call = ASK_CLUSTER,
                        .fields = {cluster->work, cluster->size, cluster->count, cluster->bytes,
                                   cluster->in_flight}};
}

struct device_cluster ask_to_cluster(const struct ask *ask)
{
    return (struct device_cluster){.work = (enum device_cluster_work)ask->fields[0],
                                   .size = (uint32_t)ask->fields[1],
                                   .count = (uint32_t)ask->fields[2],
                                   .bytes = (uint32_t)ask->fields[3],
                                   .in_flight = (uint32_t)ask->fields[4]};
}

struct ask ask_of_bulk(const struct device_bulk *bulk)
{
    return (struct ask){
        .call = ASK_BULK,
        .fields = {bulk->source, bulk->alone, bulk->bytes, bulk->in_flight, bulk->copies}};
}

struct ask ask_of_call(enum ask_call call)
{
    return (struct ask){.call = call};
}

static size_t field_count(enum ask_call call)
{
    return calls[call].fields;
}

bool ask_has_fields(enum ask_call call)
{
    return field_count(call) > 0;
}

uint64_t ask_key(const struct ask *ask)
{
    uint64_t key = UINT64_C(0x9e3779b97f4a7c15) * (ask->call + 1);
    for (size_t i = 0; i < field_count(ask->call); i++) {
        key = (key ^ ask->fields[i]) * UINT64_C(0xff51afd7ed558ccd);
        key ^= key >> 32;
    }
    return key;
}

void ask_put(struct strbuf *buffer, const struct ask *ask, struct ask *last)
{
    size_t changed = 0, behind = 0, count = field_count(ask->call);
    for (size_t i = 0; i < count; i++)
        changed += ask->fields[i] != last->fields[i];
    wire_put_varint(buffer, changed);
    for (size_t i = 0; i < count; i++) {
        if (ask->fields[i] == last->fields[i])
            continue;
        wire_put_varint(buffer, i - behind);
        wire_put_signed(buffer, (int64_t)(ask->fields[i] - last->fields[i]));
        behind = i + 1;
    }
    *last = *ask;
}

void ask_get(struct wire_reader *reader, enum ask_call call, struct ask *last)
{
    uint64_t changed = wire_get_varint(reader), at = 0, count = field_count(call);
    last->call = call;
    if (changed > count)
        reader->bad = true;
    for (uint64_t i = 0; i < changed && !reader->bad; i++) {
        uint64_t gap = wire_get_varint(reader);
        if (gap >= count - at) {
            reader->bad = true;
            return;
        }
        at += gap;
        last->fields[at++] += (uint64_t)wire_get_signed(reader);
    }
}

static void describe_bytes(struct strbuf *text, uint64_t bytes)
{
    if (bytes && bytes % 1024 == 0)
        strbuf_printf(text, "%llu KiB", (unsigned long long)bytes / 1024);
    else
        strbuf_printf(text, "%llu B", (unsigned long long)bytes);
}

static const char *path_name(uint64_t path)
{
    static const char *const names[DEVICE_PATH_COUNT] = {
        "global_ca", "global_cg", "read_only", "texture", "constant", "shared", "host"};
    return path < DEVICE_PATH_COUNT ? names[path] : "?";
}

static void describe_step(struct strbuf *text, const uint64_t *step, const uint64_t *before)
{
    static const char *const kinds[] = {"warm", "chase", "average", "fill"};
    bool same = before && memcmp(step + PATH, before + PATH, (SEED - PATH + 1) * sizeof *step) == 0;
    strbuf_puts(text, step[KIND] < COUNT_OF(kinds) ? kinds[step[KIND]] : "?");
    if (step[LOADS])
        strbuf_printf(text, " %llu loads of", (unsigned long long)step[LOADS]);
    strbuf_puts(text, same ? " the same" : " ");
    if (same)
        return;
    describe_bytes(text, step[SIZE]);
    strbuf_printf(text, " %s by ", path_name(step[PATH]));
    describe_bytes(text, step[STRIDE]);
    if (step[ORDER] != DEVICE_SEQUENTIAL)
        strbuf_puts(text, step[ORDER] == DEVICE_RANDOM ? " at random" : " downwards");
    if (step[OFFSET])
        strbuf_printf(text, " from %llu on", (unsigned long long)step[OFFSET]);
}

static const char *instruction_name(uint64_t hash)
{
    for (size_t i = 0; i < instruction_count; i++)
        if (str_hash(instruction_table[i].name) == hash)
            return instruction_table[i].name;
    return "?";
}

static void describe_cluster(struct strbuf *text, const uint64_t *fields)
{
    static const char *const works[DEVICE_CLUSTER_WORK_COUNT] = {
        "places", "loads of shared memory", "reads of shared memory", "bulk copies"};
    strbuf_printf(text, "clusters of %llu blocks: %s", (unsigned long long)fields[1],
                  fields[0] < DEVICE_CLUSTER_WORK_COUNT ? works[fields[0]] : "?");
}

static void describe_bulk(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "bulk copies from %s, %s: %llu at once of ",
                  fields[0] == DEVICE_BULK_L2 ? "L2" : "memory", fields[1] ? "one SM" : "all SMs",
                  (unsigned long long)fields[3]);
    describe_bytes(text, fields[2]);
}

static void describe_stream(struct strbuf *text, const uint64_t *fields)
{
    static const char *const streams[] = {"read",      "write", "copy", "h2d",  "d2h",
                                          "both ways", "mul",   "add",  "triad"};
    strbuf_printf(text, "stream: %s ", fields[0] < COUNT_OF(streams) ? streams[fields[0]] : "?");
    describe_bytes(text, fields[3]);
    strbuf_puts(text, " over ");
    describe_bytes(text, fields[2]);
    strbuf_printf(text, " %s", path_name(fields[1]));
}

static void describe_memory(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "test of the whole memory: %llu patterns, regions of ",
                  (unsigned long long)fields[0]);
    describe_bytes(text, fields[1]);
}

static void describe_check(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "check of the SMs: %s, %llu ms",
                  fields[0] < DEVICE_UNIT_COUNT ? device_unit_name((enum device_unit)fields[0])
                                                : "?",
                  (unsigned long long)fields[1]);
}

static void describe_load(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "load, sampled every %llu ms", (unsigned long long)fields[0]);
}

static void describe_peer(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "link to GPU %llu of the node: ", (unsigned long long)fields[0]);
    describe_bytes(text, fields[1]);
}

static void describe_share(struct strbuf *text, const uint64_t *fields)
{
    strbuf_puts(text, "host copies of all GPUs of the node at once: ");
    describe_bytes(text, fields[1]);
}

static void describe_sm_map(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "map of the SMs: %s",
                  fields[0] == DEVICE_SM_MAP_READ ? "bytes read from L2" : "memory by region");
}

static void describe_code(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "code: %llu times %llu of %s in %llu chains, %llu warps",
                  (unsigned long long)fields[4], (unsigned long long)fields[3],
                  instruction_name(fields[0]), (unsigned long long)fields[1],
                  (unsigned long long)fields[2]);
}

static void describe_shared_load(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(
        text, "%llu loads of %llu B from shared memory, %llu warps of %llu lanes, %llu B apart",
        (unsigned long long)fields[4], (unsigned long long)fields[3], (unsigned long long)fields[0],
        (unsigned long long)fields[1], (unsigned long long)fields[2]);
}

static void describe_straight(struct strbuf *text, const uint64_t *fields)
{
    strbuf_printf(text, "straight code: %llu instructions on SM %llu",
                  (unsigned long long)fields[2], (unsigned long long)fields[0]);
    if (fields[7])
        strbuf_printf(text, ", %llu on SM %llu", (unsigned long long)fields[6],
                      (unsigned long long)fields[4]);
}

static void describe_job(struct strbuf *text, const uint64_t *fields)
{
    const uint64_t *first = fields + STEP_FIRST;
    if (fields[AT_ONCE] == 0)
        strbuf_puts(text, "spread: ");
    else if (fields[AT_ONCE] == 1)
        strbuf_puts(text, "alone: ");
    else
        strbuf_printf(text, "%llu at once: ", (unsigned long long)fields[AT_ONCE]);
    for (uint64_t i = 0; i < fields[STEPS] && i < DEVICE_STEPS_MAX; i++) {
        const uint64_t *step = first + i * ASK_STEP_FIELDS;
        strbuf_puts(text, i ? ", " : "");
        describe_step(text, step, i ? step - ASK_STEP_FIELDS : NULL);
    }
}

void ask_describe(const struct ask *ask, struct strbuf *out_text)
{
    static void (*const describe[ASK_CALL_COUNT])(struct strbuf *, const uint64_t *) = {
        [ASK_BATCH] = describe_job,         [ASK_STREAM] = describe_stream,
        [ASK_MEMORY] = describe_memory,     [ASK_CHECK] = describe_check,
        [ASK_LOAD] = describe_load,         [ASK_PEER] = describe_peer,
        [ASK_SHARE] = describe_share,       [ASK_SM_MAP] = describe_sm_map,
        [ASK_CODE] = describe_code,         [ASK_SHARED_LOAD] = describe_shared_load,
        [ASK_STRAIGHT] = describe_straight, [ASK_CLUSTER] = describe_cluster,
        [ASK_BULK] = describe_bulk,
    };
    if (describe[ask->call])
        describe[ask->call](out_text, ask->fields);
    else
        strbuf_puts(out_text, ask_call_name(ask->call));
}
