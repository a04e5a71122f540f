/* validate_kernels CLAIMS [FLEET]: runs the kernels of the probes one by one, each with known work,
 * and writes to the file CLAIMS what each launch is said to have done. tools/gpu-validate runs this
 * under Nsight Compute and compares the hardware's counters with the claims. With a simulated fleet
 * there are claims, too, for a test of this program. Exits with 77 where there is no GPU.
 *
 * A line of CLAIMS: launch (of kernels named chase_*, stream_*
 * or sm_map_*, from 0), kernel, what, counter (a
 * name that gpu-validate knows), claimed, whole (of which a difference is told as a share). Whether
 * a load hit is claimed by its latency, as the probes do it. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "device/source.h"

enum {
    SKIPPED = 77,
    SECTOR_BYTES = 32,
    LINE_BYTES = 128,
    MAIN_PASSES = 3,
    L2_PASSES = 48, /* below what the backend spreads over several places */
    L1_PASSES = 32,
    L1_REPEATS = 4,     /* passes of a chase after the first */
    L2_LOADS = 1 << 19, /* so many that what else goes to DRAM during a launch does not count */
    COLD_MIB = 4,
    WIDTH_BYTES = 16,
    THREADS = 1024,
    THREADS_PER_SM = 2048,
    UNROLL = 8,
    L2_FACTOR = 32, /* as the probes of bandwidth have it, and so is the divisor */
    L2_DIVISOR = 4,
    TICKET_THREADS = 256,
    TICKET_BLOCKS = 2, /* per SM */
    TICKET_UNROLL = 4,
    TICKET_CHUNK = 16 << 10, /* bytes; those under way are a part of the smallest footprint */
    MAP_BYTES = 24 << 20,
    MAP_WINDOW = 4000000, /* cycles */
};
static const uint64_t MIB = UINT64_C(1) << 20;
static const double LOW_SHARE = 0.01, HIGH_SHARE = 0.99;

struct run {
    struct device *device;
    FILE *claims;
    uint32_t launch;       /* the next */
    uint64_t offset_bytes; /* of memory that no chase has loaded yet */
};

/* One row about the launch before this. */
static void claim(const struct run *run, const char *kernel, const char *what, const char *counter,
                  double claimed, double whole)
{
    fprintf(run->claims, "%" PRIu32 ",%s,%s,%s,%.0f,%.0f\n", run->launch - 1, kernel, what, counter,
            claimed, whole);
}

/* Streams. */

struct stream_case {
    const char *what, *kernel;
    enum device_stream_kind kind;
    double read_share, write_share; /* of its bytes */
    bool ticket;
};

static const struct stream_case stream_cases[] = {
    {"read stream", "stream_read_cg", DEVICE_STREAM_READ, 1, 0},
    {"write stream", "stream_write", DEVICE_STREAM_WRITE, 0, 1},
    {"copy stream", "stream_copy", DEVICE_STREAM_COPY, 0.5, 0.5},
    {"read by ticket", "stream_ticket_read", DEVICE_STREAM_READ, 1, 0, .ticket = true},
    {"write by ticket", "stream_ticket_write", DEVICE_STREAM_WRITE, 0, 1, .ticket = true},
    {"copy by ticket", "stream_ticket_copy", DEVICE_STREAM_COPY, 0.5, 0.5, .ticket = true},
};

static int run_stream(struct run *run, enum device_stream_kind kind, enum device_path path,
                      uint64_t footprint_bytes, uint64_t total_bytes, double *out_bytes,
                      struct err *err)
{
    uint64_t sms = device_limits(run->device)->sm_count;
    uint64_t in_flight = sms * THREADS_PER_SM * WIDTH_BYTES * UNROLL;
    const struct device_stream stream = {
        .kind = kind,
        .path = path,
        .footprint_bytes = footprint_bytes,
        .total_bytes = total_bytes,
        .width_bytes = WIDTH_BYTES,
        .threads = THREADS,
        .unroll = path == DEVICE_GLOBAL_CG && footprint_bytes < in_flight ? 1 : UNROLL,
    };
    struct device_stream_answer answer;
    int rc = device_stream(run->device, &stream, &answer, err);
    if (rc)
        return rc;
    run->launch += 2; /* one pass before the clock starts, then all that is counted */
    *out_bytes = (double)answer.bytes;
    return 0;
}

static int run_tickets(struct run *run, enum device_stream_kind kind, uint64_t footprint_bytes,
                       uint64_t total_bytes, double *out_bytes, struct err *err)
{
    const struct device_tickets tickets = {.kind = kind,
                                           .footprint_bytes = footprint_bytes,
                                           .total_bytes = total_bytes,
                                           .threads = TICKET_THREADS,
                                           .blocks_per_sm = TICKET_BLOCKS,
                                           .unroll = TICKET_UNROLL,
                                           .chunk_bytes = TICKET_CHUNK};
    struct device_tickets_answer answer;
    int rc = device_stream_tickets(run->device, &tickets, &answer, err);
    if (rc)
        return rc;
    run->launch += 2; /* one pass before, as above */
    *out_bytes = (double)answer.bytes;
    device_tickets_answer_fini(&answer);
    return 0;
}

static int validate_global_streams(struct run *run, bool main_memory, struct err *err)
{
    const struct device_limits *limits = device_limits(run->device);
    uint64_t footprint = main_memory ? L2_FACTOR * limits->l2_reported_bytes
                                     : limits->l2_reported_bytes / L2_DIVISOR;
    if (limits->global_bytes && footprint > limits->global_bytes)
        footprint = limits->global_bytes;
    footprint = footprint / MIB * MIB;
    if (!footprint)
        return 0;
    for (size_t i = 0; i < COUNT_OF(stream_cases); i++) {
        const struct stream_case *c = &stream_cases[i];
        const char *memory = main_memory ? "main" : "L2";
        char what[64];
        double bytes = 0, dram = main_memory ? 1 : 0;
        uint64_t total = footprint * (main_memory ? MAIN_PASSES : L2_PASSES);
        int rc = c->ticket
                     ? run_tickets(run, c->kind, footprint, total, &bytes, err)
                     : run_stream(run, c->kind, DEVICE_GLOBAL_CG, footprint, total, &bytes, err);
        if (rc)
            return rc;
        snprintf(what, sizeof what, "%s %s", memory, c->what);
        claim(run, c->kernel, what, "l2_read_bytes", bytes * c->read_share, bytes);
        claim(run, c->kernel, what, "l2_write_bytes", bytes * c->write_share, bytes);
        claim(run, c->kernel, what, "dram_read_bytes", bytes * c->read_share * dram, bytes);
        claim(run, c->kernel, what, "dram_write_bytes", bytes * c->write_share * dram, bytes);
    }
    return 0;
}

/* L1 is empty when a kernel begins: the first of all passes misses. */
static int validate_l1_stream(struct run *run, struct err *err)
{
    const struct device_limits *limits = device_limits(run->device);
    uint64_t footprint = limits->l1_nominal_bytes / 2 / LINE_BYTES * LINE_BYTES;
    double bytes = 0;
    if (!footprint)
        return 0;
    int rc = run_stream(run, DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, footprint,
                        footprint * limits->sm_count * L1_PASSES, &bytes, err);
    if (rc)
        return rc;
    double sectors = bytes / SECTOR_BYTES;
    claim(run, "stream_read_ca", "L1 read stream", "l1_sectors", sectors, sectors);
    claim(run, "stream_read_ca", "L1 read stream", "l1_hits", sectors * (L1_PASSES - 1) / L1_PASSES,
          sectors);
    claim(run, "stream_read_ca", "L1 read stream", "l1_fill_bytes", bytes / L1_PASSES, bytes);
    return 0;
}

/* Turns of SMs that read L2 at once, as the map of the die has them: each SM moves its own bytes,
 * no request is answered together with another one's. A quarter of the window comes before it. */
static int validate_turns(struct run *run, const char *what, uint32_t sms_at_once, struct err *err)
{
    uint32_t sms = device_limits(run->device)->sm_count, turns = (sms - 1) / sms_at_once + 1;
    uint16_t *turn_of = mem_array(sms, sizeof *turn_of);
    for (uint32_t i = 0; i < sms; i++)
        turn_of[i] = (uint16_t)(i / sms_at_once);
    const struct device_sm_map map = {.kind = DEVICE_SM_MAP_READ,
                                      .footprint_bytes = MAP_BYTES,
                                      .window_cycles = MAP_WINDOW,
                                      .turns = turn_of};
    struct device_sm_map_answer answer;
    int rc = device_map_sms(run->device, &map, &answer, err);
    free(turn_of);
    if (rc)
        return rc;
    run->launch += 2; /* all SMs bring the memory into L2; the first turn */
    double sum = 0, most = 0;
    for (uint32_t i = 0; i < sms_at_once; i++) {
        double bytes = (double)answer.values[2 * i] * 5 / 4;
        sum += bytes;
        most = bytes > most ? bytes : most;
    }
    device_sm_map_answer_fini(&answer);
    claim(run, "sm_map_read", what, "l2_read_bytes", sum, sum);
    claim(run, "sm_map_read", what, "l1_fill_bytes", sum, sum);
    claim(run, "sm_map_read", what, "l1_fill_bytes_most", most, most);
    run->launch += turns - 1;
    return 0;
}

/* Chases. */

static double quantile(const struct device_sample *sample, double share)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        seen += sample->bins[i].count;
        if ((double)seen >= share * (double)sample->loads)
            return device_bin_cycles(sample->bins[i].bin);
    }
    return 0;
}

static double count_below(const struct device_sample *sample, double cycles)
{
    double count = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++)
        if (device_bin_cycles(sample->bins[i].bin) < cycles)
            count += sample->bins[i].count;
    return count;
}

static int run_job(struct run *run, const struct device_job *job, struct device_answer *out_answer,
                   struct err *err)
{
    const struct device_batch batch = {.jobs = job, .job_count = 1, .at_once = 1};
    int rc = device_run(run->device, &batch, out_answer, err);
    if (!rc)
        run->launch++;
    return rc;
}

/* Begins on memory that was not loaded before. */
static struct device_array fresh_array(struct run *run, enum device_path path, uint64_t size_bytes,
                                       uint64_t stride_bytes)
{
    const struct device_array array = {.path = path,
                                       .offset_bytes = run->offset_bytes,
                                       .size_bytes = size_bytes,
                                       .stride_bytes = stride_bytes};
    run->offset_bytes += (size_bytes + MIB - 1) / MIB * MIB;
    return array;
}

/* The array from cold once, then `again` loads of it; both timed. */
static struct device_job cold_and_warm(const struct device_array *array, uint64_t again)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
    job.steps[0] = (struct device_step){.kind = DEVICE_CHASE, .array = *array};
    job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = *array, .loads = again};
    return job;
}

/* Loads the array into L2, past L1, in a launch of its own, whose traffic is not compared. */
static int fill(struct run *run, const struct device_array *array, struct err *err)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
    struct device_answer answer;
    job.steps[0] = (struct device_step){.kind = DEVICE_FILL, .array = *array};
    int rc = run_job(run, &job, &answer, err);
    if (!rc)
        device_answers_fini(&answer, 1);
    return rc;
}

/* Latencies of an array that fits, as cycles. hit_below: halfway between nearly all warm loads and
 * nearly all cold ones; 0 where the two overlap, and nothing is claimed of hits. miss_from: nearly
 * all cold loads take as long. Between the two are hits in a part of L2 that is far away. */
struct thresholds {
    double hit_below, miss_from;
};

/* Of each line only one sector is loaded, so that no cold load finds what another brought. What
 * misses L1 is in L2, the nearest place it can come from. */
static int find_thresholds(struct run *run, enum device_path path, uint64_t size_bytes,
                           struct thresholds *out_thresholds, struct err *err)
{
    const struct device_array array = fresh_array(run, path, size_bytes, LINE_BYTES);
    struct device_job job = cold_and_warm(&array, size_bytes / LINE_BYTES);
    struct device_answer answer;
    job.cold_l2 = path == DEVICE_GLOBAL_CG;
    int rc = job.cold_l2 ? 0 : fill(run, &array, err);
    if (!rc)
        rc = run_job(run, &job, &answer, err);
    if (rc)
        return rc;
    double miss = quantile(&answer.samples[0], LOW_SHARE);
    double hit = quantile(&answer.samples[1], HIGH_SHARE);
    device_answers_fini(&answer, 1);
    if (miss <= hit)
        log_warning("path %d: hits take up to %.0f cycles, misses from %.0f on", (int)path, hit,
                    miss);
    *out_thresholds = (struct thresholds){miss > hit ? (hit + miss) / 2 : 0, miss};
    return 0;
}

struct l1_case {
    const char *what, *kernel, *sectors, *hits;
    enum device_path path;
};

static const struct l1_case l1_cases[] = {
    {"L1", "chase_global_ca", "l1_sectors", "l1_hits", DEVICE_GLOBAL_CA},
    {"read-only", "chase_read_only", "l1_sectors", "l1_hits", DEVICE_READ_ONLY},
    {"texture", "chase_texture", "texture_sectors", "texture_hits", DEVICE_TEXTURE},
};

/* Eighths of the documented size: two that fit, two that do not. */
static const uint64_t l1_eighths[] = {4, 7, 10, 16};

static int validate_l1_size(struct run *run, const struct l1_case *c, uint64_t size_bytes,
                            double threshold, struct err *err)
{
    const struct device_array array = fresh_array(run, c->path, size_bytes, SECTOR_BYTES);
    uint64_t elements = size_bytes / SECTOR_BYTES;
    const struct device_job job = cold_and_warm(&array, L1_REPEATS * elements);
    struct device_answer answer;
    char what[64];
    int rc = run_job(run, &job, &answer, err);
    if (rc)
        return rc;
    double loads = 0, hits = 0;
    for (uint32_t i = 0; i < answer.sample_count; i++) {
        loads += (double)answer.samples[i].loads;
        hits += count_below(&answer.samples[i], threshold);
    }
    device_answers_fini(&answer, 1);
    snprintf(what, sizeof what, "%s chase of %" PRIu64 " KiB", c->what, size_bytes / 1024);
    claim(run, c->kernel, what, c->sectors, loads, loads);
    claim(run, c->kernel, what, c->hits, hits, loads);
    claim(run, c->kernel, what, "l2_read_bytes", (loads - hits) * SECTOR_BYTES,
          loads * SECTOR_BYTES);
    return 0;
}

static int validate_l1(struct run *run, struct err *err)
{
    uint64_t nominal = device_limits(run->device)->l1_nominal_bytes;
    int rc = 0;
    for (size_t i = 0; nominal && !rc && i < COUNT_OF(l1_cases); i++) {
        struct thresholds thresholds = {0};
        rc = find_thresholds(run, l1_cases[i].path, nominal / 8, &thresholds, err);
        for (size_t k = 0; !rc && thresholds.hit_below > 0 && k < COUNT_OF(l1_eighths); k++)
            rc = validate_l1_size(run, &l1_cases[i],
                                  nominal * l1_eighths[k] / 8 / SECTOR_BYTES * SECTOR_BYTES,
                                  thresholds.hit_below, err);
    }
    return rc;
}

/* Every sector of an array that L2 does not have, one after the other: all of it comes from main
 * memory, in pieces of out_fetch_bytes, as the misses among the loads tell. */
static int validate_l2_cold(struct run *run, const struct thresholds *thresholds,
                            double *out_fetch_bytes, struct err *err)
{
    const struct device_array array =
        fresh_array(run, DEVICE_GLOBAL_CG, COLD_MIB * MIB, SECTOR_BYTES);
    struct device_job job = cold_and_warm(&array, 0);
    struct device_answer answer;
    job.step_count = 1;
    job.cold_l2 = true;
    int rc = run_job(run, &job, &answer, err);
    if (rc)
        return rc;
    double loads = (double)answer.samples[0].loads, bytes = loads * SECTOR_BYTES;
    double hits = count_below(&answer.samples[0], thresholds->hit_below), misses = loads - hits;
    device_answers_fini(&answer, 1);
    if (misses <= 0)
        return err_set(err, -EIO, "no load of an array that L2 does not have took longer");
    double pieces = loads / misses;
    *out_fetch_bytes = SECTOR_BYTES * (pieces > 3 ? 4 : pieces > 1.5 ? 2 : 1);
    claim(run, "chase_global_cg", "cold L2 chase", "l2_read_bytes", bytes, bytes);
    claim(run, "chase_global_cg", "cold L2 chase", "l2_hits", hits, loads);
    claim(run, "chase_global_cg", "cold L2 chase", "dram_read_bytes_for_sms", bytes, bytes);
    return 0;
}

static int validate_l2_size(struct run *run, uint64_t size_bytes,
                            const struct thresholds *thresholds, double fetch_bytes,
                            struct err *err)
{
    struct device_array array = fresh_array(run, DEVICE_GLOBAL_CG, size_bytes, LINE_BYTES);
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
    struct device_answer answer;
    char what[64];
    int rc = fill(run, &array, err);
    array.order = DEVICE_RANDOM;
    array.seed = size_bytes;
    job.steps[0] = (struct device_step){.kind = DEVICE_CHASE, .array = array, .loads = L2_LOADS};
    if (!rc)
        rc = run_job(run, &job, &answer, err);
    if (rc)
        return rc;
    double loads = (double)answer.samples[0].loads;
    double hits = count_below(&answer.samples[0], thresholds->hit_below);
    double misses = loads - count_below(&answer.samples[0], thresholds->miss_from);
    device_answers_fini(&answer, 1);
    snprintf(what, sizeof what, "L2 chase of %" PRIu64 " MiB", size_bytes / MIB);
    claim(run, "chase_global_cg", what, "l2_read_bytes", loads * SECTOR_BYTES,
          loads * SECTOR_BYTES);
    claim(run, "chase_global_cg", what, "l2_hits", hits, loads);
    claim(run, "chase_global_cg", what, "dram_read_bytes_for_sms", misses * fetch_bytes,
          loads * fetch_bytes);
    return 0;
}

static int validate_l2(struct run *run, struct err *err)
{
    static const uint64_t quarters[] = {1, 8, 16}; /* of the reported size */
    uint64_t reported = device_limits(run->device)->l2_reported_bytes;
    struct thresholds thresholds = {0};
    double fetch_bytes = 0;
    int rc = find_thresholds(run, DEVICE_GLOBAL_CG, COLD_MIB * MIB, &thresholds, err);
    if (rc || thresholds.hit_below <= 0)
        return rc;
    rc = validate_l2_cold(run, &thresholds, &fetch_bytes, err);
    for (size_t i = 0; !rc && i < COUNT_OF(quarters); i++)
        rc = validate_l2_size(run, reported * quarters[i] / 4 / MIB * MIB, &thresholds, fetch_bytes,
                              err);
    return rc;
}

/* Makes the memory for arrays as large as it will be, so that no case finds it freshly written. */
static int reserve(struct run *run, struct err *err)
{
    uint64_t bytes = device_limits(run->device)->global_bytes;
    struct device_array array = {.path = DEVICE_GLOBAL_CG, .stride_bytes = LINE_BYTES};
    array.size_bytes = LINE_BYTES;
    array.offset_bytes = bytes > LINE_BYTES ? (bytes - LINE_BYTES) / LINE_BYTES * LINE_BYTES : 0;
    return fill(run, &array, err);
}

static int validate(struct run *run, struct err *err)
{
    fputs("launch,kernel,what,counter,claimed,whole\n", run->claims);
    int rc = reserve(run, err);
    if (!rc)
        rc = validate_global_streams(run, true, err);
    if (!rc)
        rc = validate_global_streams(run, false, err);
    if (!rc)
        rc = validate_l1_stream(run, err);
    if (!rc)
        rc = validate_turns(run, "all SMs read L2", device_limits(run->device)->sm_count, err);
    if (!rc)
        rc = validate_turns(run, "half of the SMs read L2",
                            device_limits(run->device)->sm_count / 2, err);
    if (!rc)
        rc = validate_l1(run, err);
    if (!rc)
        rc = validate_l2(run, err);
    return rc;
}

static int write_claims(struct device_source *source, const char *path, struct err *err)
{
    struct run run = {0};
    int rc = device_source_open(source, 0, &run.device, err);
    if (rc)
        return rc;
    run.claims = fopen(path, "w");
    if (!run.claims)
        rc = err_set(err, -errno, "cannot write %s", path);
    if (!rc)
        rc = validate(&run, err);
    if (run.claims && fclose(run.claims) && !rc)
        rc = err_set(err, -EIO, "cannot write %s", path);
    device_destroy(run.device);
    return rc;
}

int main(int argc, char **argv)
{
    struct device_source *source = NULL;
    struct err err = {0};
    log_set_prefix("validate_kernels");
    if (argc != 2 && argc != 3) {
        log_error("usage: validate_kernels CLAIMS [FLEET]");
        return 2;
    }
    int rc = argc == 3 ? device_source_sim(argv[2], 1, 0, 1, &source, &err)
                       : device_source_cuda(&source, &err);
    if (rc == -ENODEV || rc == -ENOTSUP) {
        log_failure(&err);
        return SKIPPED;
    }
    if (!rc)
        rc = write_claims(source, argv[1], &err);
    if (rc)
        log_failure(&err);
    device_source_destroy(source);
    return rc ? 1 : 0;
}
