/* The probes of bandwidth: main memory and L2, and the memories and caches of all SMs together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probes/method/repeats.h"
#include "probes/streams/bandwidth.h"

enum {
    L2_FACTOR = 32, /* main memory: at most 3 % of the footprint can stay in L2 */
    L2_DIVISOR = 4, /* L2: half of what one of two parts holds */
    L2_TICKET_PER_CENT =
        40, /* by ticket: more chunks, and still less than one of two parts holds */
    UNIT_BYTES = 4096,
};

static const uint64_t MAIN_MIN_BYTES = UINT64_C(64) << 20;

static uint64_t main_stream_bytes(const struct device_limits *limits)
{
    uint64_t bytes = L2_FACTOR * limits->l2_reported_bytes;
    if (bytes < MAIN_MIN_BYTES)
        bytes = MAIN_MIN_BYTES;
    return limits->global_bytes && bytes > limits->global_bytes ? limits->global_bytes : bytes;
}

/* Streams of main memory and L2. By ticket: what the memory delivers when no SM waits for another
 * one. With equal work per SM, as most kernels have it: `_equal` in the name. */

/* What the last word of a metric names. */
static enum device_stream_kind kind_of(const char *metric)
{
    const char *word = strrchr(metric, '.') + 1;
    return strcmp(word, "read") == 0    ? DEVICE_STREAM_READ
           : strcmp(word, "write") == 0 ? DEVICE_STREAM_WRITE
                                        : DEVICE_STREAM_COPY;
}

static uint64_t l2_stream_bytes(const struct device_limits *limits, bool ticket)
{
    uint64_t bytes = limits->l2_reported_bytes;
    return ticket ? bytes / 100 * L2_TICKET_PER_CENT : bytes / L2_DIVISOR;
}

static int run_stream(struct probe_context *context, struct err *err)
{
    const char *metric = context->probe;
    const struct device_limits *limits = device_limits(context->device);
    bool ticket = !strstr(metric, "_equal.");
    uint64_t bytes = strncmp(metric, "l2.", 3) == 0 ? l2_stream_bytes(limits, ticket)
                                                    : main_stream_bytes(limits);
    const struct bandwidth_task task = {.metric = metric,
                                        .kind = kind_of(metric),
                                        .path = DEVICE_GLOBAL_CG,
                                        .footprint_bytes = bytes / UNIT_BYTES * UNIT_BYTES,
                                        .ticket = ticket};
    if (task.footprint_bytes)
        return bandwidth_report(context, &task, err);
    repeats_unsupported(context, metric, "the driver reports no L2");
    return 0;
}

#define MEMORY_PROBE(id, name, text, profile_, again_)                                             \
    const struct probe probe_##id = {                                                              \
        .description = {name, text, profile_},                                                     \
        .metrics = {name},                                                                         \
        .again = again_,                                                                           \
        .within = 0.05,                                                                            \
        .run = run_stream,                                                                         \
    };

MEMORY_PROBE(main_bandwidth_read, "main.bandwidth.read", "bandwidth of reading main memory",
             PROFILE_QUICK, true)
MEMORY_PROBE(main_bandwidth_write, "main.bandwidth.write", "bandwidth of writing main memory",
             PROFILE_QUICK, true)
MEMORY_PROBE(main_bandwidth_copy, "main.bandwidth.copy",
             "bandwidth of copying in main memory, both ways counted", PROFILE_QUICK, false)
MEMORY_PROBE(main_equal_read, "main.bandwidth_equal.read",
             "reading main memory with equal work per SM", PROFILE_STANDARD, false)
MEMORY_PROBE(main_equal_write, "main.bandwidth_equal.write",
             "writing main memory with equal work per SM", PROFILE_STANDARD, false)
MEMORY_PROBE(main_equal_copy, "main.bandwidth_equal.copy",
             "copying in main memory with equal work per SM", PROFILE_STANDARD, false)
MEMORY_PROBE(l2_bandwidth_read, "l2.bandwidth.read", "bandwidth of reading L2", PROFILE_QUICK, true)
MEMORY_PROBE(l2_bandwidth_write, "l2.bandwidth.write", "bandwidth of writing L2", PROFILE_QUICK,
             true)
MEMORY_PROBE(l2_bandwidth_copy, "l2.bandwidth.copy",
             "bandwidth of copying in L2, both ways counted", PROFILE_QUICK, false)
MEMORY_PROBE(l2_equal_read, "l2.bandwidth_equal.read", "reading L2 with equal work per SM",
             PROFILE_STANDARD, false)
MEMORY_PROBE(l2_equal_write, "l2.bandwidth_equal.write", "writing L2 with equal work per SM",
             PROFILE_STANDARD, false)

/* When the SMs end that have equal work. */

enum {
    ENDS_THREADS = 512,
    ENDS_BLOCKS = 4,
    ENDS_UNROLL = 4,
    ENDS_CHUNK_BYTES = 32 << 10,
    ENDS_WIDTH_BYTES = 16,
    ENDS_GROUPS_MAX = 64,
};

static const double ENDS_NS = 3e6;

/* The mean end of each group or part, in order of their numbers. */
static void note_ends_by(struct measure *m, const char *key, const double *ends, const double *map,
                         size_t sms)
{
    double sums[ENDS_GROUPS_MAX] = {0}, counts[ENDS_GROUPS_MAX] = {0};
    size_t groups = 0;
    for (size_t sm = 0; sm < sms; sm++) {
        if (!(map[sm] >= 0 && map[sm] < ENDS_GROUPS_MAX))
            return;
        size_t group = (size_t)map[sm];
        groups = group >= groups ? group + 1 : groups;
        sums[group] += ends[sm];
        counts[group]++;
    }
    for (size_t i = 0; i < groups; i++)
        sums[i] = facts_decimals(sums[i] / counts[i], 4);
    facts_set_numbers(&m->notes, key, sums, groups);
}

static void ends_report(struct probe_context *context, const char *metric, const double *ends,
                        size_t sms)
{
    static const struct {
        const char *key, *metric;
    } maps[] = {{"by_part", "l2.part_sms"}, {"by_group", "sm.groups"}};
    size_t first = 0, last = 0;
    for (size_t sm = 0; sm < sms; sm++) {
        first = ends[sm] < ends[first] ? sm : first;
        last = ends[sm] > ends[last] ? sm : last;
    }
    struct measure *m =
        measures_add(context->measures, metric, facts_decimals(ends[first], 4), "",
                     "equal work per SM: end of the first SM over that of the last");
    facts_set_int(&m->notes, "first_sm", (int64_t)first);
    facts_set_int(&m->notes, "last_sm", (int64_t)last);
    for (size_t i = 0; i < COUNT_OF(maps); i++) {
        const struct measure *of = measures_get(context->measures, maps[i].metric);
        size_t count = 0;
        const double *map = of ? facts_numbers(&of->notes, "map", &count) : NULL;
        if (map && count == sms)
            note_ends_by(m, maps[i].key, ends, map, sms);
    }
}

/* `of`: the bandwidth by ticket of the same stream. */
static int ends_measure(struct probe_context *context, const char *metric, const char *of,
                        uint64_t bytes, struct err *err)
{
    const struct bandwidth_shape usual = {.threads = ENDS_THREADS,
                                          .blocks_per_sm = ENDS_BLOCKS,
                                          .unroll = ENDS_UNROLL,
                                          .chunk_bytes = ENDS_CHUNK_BYTES,
                                          .width_bytes = ENDS_WIDTH_BYTES};
    const struct bandwidth_task task = {.kind = kind_of(metric), .footprint_bytes = bytes};
    double gbs;
    if (!measures_value(context->measures, of, &gbs)) {
        repeats_unsupported(context, metric, "the bandwidth is not known");
        return 0;
    }
    const struct bandwidth_shape shape = bandwidth_fit_tickets(context, &task, &usual);
    const struct device_tickets tickets = {.kind = task.kind,
                                           .footprint_bytes = bytes,
                                           .total_bytes = (uint64_t)(gbs * ENDS_NS),
                                           .threads = shape.threads,
                                           .blocks_per_sm = shape.blocks_per_sm,
                                           .unroll = shape.unroll,
                                           .chunk_bytes = shape.chunk_bytes,
                                           .equal_percent = 100,
                                           .ends = true};
    struct device_tickets_answer answer;
    int rc = device_stream_tickets(context->device, &tickets, &answer, err);
    if (rc)
        return rc;
    double *ends = mem_array(answer.end_count, sizeof *ends), last = 1;
    for (size_t sm = 0; sm < answer.end_count; sm++)
        last = (double)answer.end_ns[sm] > last ? (double)answer.end_ns[sm] : last;
    for (size_t sm = 0; sm < answer.end_count; sm++)
        ends[sm] = (double)answer.end_ns[sm] / last;
    if (answer.end_count)
        ends_report(context, metric, ends, answer.end_count);
    else
        repeats_unsupported(context, metric, "the number of SMs is not known");
    free(ends);
    device_tickets_answer_fini(&answer);
    return 0;
}

static int run_main_ends(struct probe_context *context, struct err *err)
{
    uint64_t bytes = main_stream_bytes(device_limits(context->device));
    int rc = ends_measure(context, "main.first_end.read", "main.bandwidth.read", bytes, err);
    return rc ? rc
              : ends_measure(context, "main.first_end.write", "main.bandwidth.write", bytes, err);
}

static int run_l2_ends(struct probe_context *context, struct err *err)
{
    uint64_t bytes = l2_stream_bytes(device_limits(context->device), true);
    int rc = ends_measure(context, "l2.first_end.read", "l2.bandwidth.read", bytes, err);
    return rc ? rc : ends_measure(context, "l2.first_end.write", "l2.bandwidth.write", bytes, err);
}

const struct probe probe_main_first_end = {
    .description = {"main.first_end", "when the first SM ends that has equal work, main memory",
                    PROFILE_STANDARD},
    .depends = {"main.bandwidth.read", "main.bandwidth.write", "l2.part_sms", "sm.groups"},
    .metrics = {"main.first_end.read", "main.first_end.write"},
    .run = run_main_ends,
};

const struct probe probe_l2_first_end = {
    .description = {"l2.first_end", "when the first SM ends that has equal work, L2",
                    PROFILE_STANDARD},
    .depends = {"l2.bandwidth.read", "l2.bandwidth.write", "l2.part_sms", "sm.groups"},
    .metrics = {"l2.first_end.read", "l2.first_end.write"},
    .run = run_l2_ends,
};

/* The probes of the bandwidth of what each SM has of its own, summed over all SMs. */

/* Footprints per SM: small if the size of the cache is not known; otherwise large enough for all
 * threads of a block to have several accesses in flight. */
static const uint64_t SMALL_BYTES = 4 * 1024, LARGE_BYTES = 64 * 1024, CONSTANTS_BYTES = 1024;

static const struct sm_stream {
    const char *metric;
    enum device_stream_kind kind;
    enum device_path path;
    enum study_id study; /* of the cache; STUDY_COUNT: none */
    bool no_surface;
} sm_streams[] = {
    {"l1_data.bandwidth.read", DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, STUDY_L1_DATA, false},
    {"l1_data.bandwidth.write", DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CA, STUDY_L1_DATA, true},
    {"shared.bandwidth.read", DEVICE_STREAM_READ, DEVICE_SHARED, STUDY_COUNT, false},
    {"shared.bandwidth.write", DEVICE_STREAM_WRITE, DEVICE_SHARED, STUDY_COUNT, true},
    {"texture.bandwidth.read", DEVICE_STREAM_READ, DEVICE_TEXTURE, STUDY_TEXTURE, true},
    {"read_only.bandwidth.read", DEVICE_STREAM_READ, DEVICE_READ_ONLY, STUDY_READ_ONLY, true},
    {"constant_l1.bandwidth.read", DEVICE_STREAM_READ, DEVICE_CONSTANT, STUDY_CONSTANT_L1, true},
};

enum { METRIC_MAX_BYTES = 64 };

static uint64_t power_of_two_within(uint64_t bytes, uint64_t most)
{
    uint64_t power = 1;
    while (power * 2 <= bytes)
        power *= 2;
    return power < most ? power : most;
}

/* Bytes per SM that stay in the cache, or in shared memory; 0: there is none. */
static int sm_stream_bytes(struct probe_context *context, const struct sm_stream *row,
                           uint64_t *out_bytes, struct err *err)
{
    char size[METRIC_MAX_BYTES];
    double size_bytes;
    if (row->study == STUDY_COUNT) {
        uint64_t bytes = device_limits(context->device)->shared_array_bytes;
        *out_bytes = bytes ? power_of_two_within(bytes, LARGE_BYTES) : 0;
        return 0;
    }
    const uint64_t most = row->path == DEVICE_CONSTANT ? CONSTANTS_BYTES : LARGE_BYTES;
    int rc = study_reach(context, row->study, STUDY_LEVEL, err);
    if (rc)
        return rc;
    snprintf(size, sizeof size, "%s.size", study_name(row->study));
    *out_bytes = SMALL_BYTES < most ? SMALL_BYTES : most / 2;
    if (!context->studies[row->study].supported)
        *out_bytes = 0;
    else if (measures_value(context->measures, size, &size_bytes))
        *out_bytes = power_of_two_within((uint64_t)(size_bytes / 2), most);
    return 0;
}

static int run_sm_stream(struct probe_context *context, struct err *err)
{
    const struct sm_stream *row = sm_streams;
    while (strcmp(row->metric, context->probe) != 0)
        row++;
    struct bandwidth_task task = {
        .metric = row->metric, .kind = row->kind, .path = row->path, .no_surface = row->no_surface};
    int rc = sm_stream_bytes(context, row, &task.footprint_bytes, err);
    if (rc)
        return rc;
    if (!task.footprint_bytes) {
        repeats_unsupported(context, row->metric,
                            row->study == STUDY_COUNT     ? "a block has no shared memory"
                            : row->study == STUDY_L1_DATA ? "global loads are not cached in L1"
                                                          : "there is no such cache");
        return 0;
    }
    return bandwidth_report(context, &task, err);
}

#define SM_PROBE(id, name, text, profile_, ...)                                                    \
    const struct probe probe_##id = {                                                              \
        .description = {name, text, profile_},                                                     \
        .depends = {__VA_ARGS__},                                                                  \
        .metrics = {name},                                                                         \
        .run = run_sm_stream,                                                                      \
    };

SM_PROBE(l1_data_bandwidth_read, "l1_data.bandwidth.read",
         "bandwidth of reading L1 data, all SMs together", PROFILE_STANDARD, "l1_data.size")
SM_PROBE(l1_data_bandwidth_write, "l1_data.bandwidth.write",
         "bandwidth of writing what L1 data holds, all SMs together", PROFILE_FULL, "l1_data.size")
SM_PROBE(shared_bandwidth_read, "shared.bandwidth.read",
         "bandwidth of reading shared memory, all SMs together", PROFILE_STANDARD, NULL)
SM_PROBE(shared_bandwidth_write, "shared.bandwidth.write",
         "bandwidth of writing shared memory, all SMs together", PROFILE_FULL, NULL)
SM_PROBE(texture_bandwidth_read, "texture.bandwidth.read",
         "bandwidth of texture fetches, all SMs together", PROFILE_FULL, "texture.size")
SM_PROBE(read_only_bandwidth_read, "read_only.bandwidth.read",
         "bandwidth of the read-only path, all SMs together", PROFILE_FULL, "read_only.size")
SM_PROBE(constant_bandwidth_read, "constant_l1.bandwidth.read",
         "bandwidth of constants, all SMs together", PROFILE_FULL, "constant_l1.size")

static int run_widths(struct probe_context *context, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(sm_streams); i++) {
        const struct sm_stream *row = &sm_streams[i];
        char metric[METRIC_MAX_BYTES];
        struct err own = {0};
        struct bandwidth_task task = {.metric = row->metric, .kind = row->kind, .path = row->path};
        snprintf(metric, sizeof metric, "%s_by_width", row->metric);
        int rc = sm_stream_bytes(context, row, &task.footprint_bytes, err);
        if (rc)
            return rc;
        rc = bandwidth_report_widths(context, &task, metric, &own);
        if (rc)
            rc = repeats_end(context, metric, rc, &own, err);
        if (rc)
            return rc;
    }
    return 0;
}

const struct probe probe_bandwidth_widths = {
    .description = {"sm.bandwidth_by_width", "bandwidth of what an SM has, by width of accesses",
                    PROFILE_FULL},
    .depends = {"l1_data.bandwidth.read", "l1_data.bandwidth.write", "shared.bandwidth.read",
                "shared.bandwidth.write", "texture.bandwidth.read", "read_only.bandwidth.read",
                "constant_l1.bandwidth.read"},
    .metrics = {"l1_data.bandwidth.read_by_width", "l1_data.bandwidth.write_by_width",
                "shared.bandwidth.read_by_width", "shared.bandwidth.write_by_width",
                "texture.bandwidth.read_by_width", "read_only.bandwidth.read_by_width",
                "constant_l1.bandwidth.read_by_width"},
    .run = run_widths,
};
