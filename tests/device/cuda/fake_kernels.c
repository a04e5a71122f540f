/* The kernels on the host: memory is the host's, and a load takes 1 + (address / 8) % 256 cycles,
 * so that latencies tell which elements were loaded. */
#include "fake_kernels.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/check_program.h"
#include "device/device.h"
#include "device/screen_program.h"
#include "fake_cluster.h"
#include "fake_code.h"

enum { SM_IDS = 9, TEXTURED_CYCLES = 200 };

/* SM ids with gaps; the SM with the first id takes no block on the first try. */
static const uint32_t sm_ids[FAKE_SMS] = {0, 3, 4, 8};
static int chase_launches;

struct fake_gpu fake_gpu;

static uint64_t load(uint32_t path, uint64_t at, const uint32_t *image, uint32_t *out_cycles)
{
    uint64_t value;
    if (path == DEVICE_TEXTURE) {
        at = fake_gpu.texture_base + 4 * at;
        value = *(const uint32_t *)(uintptr_t)at;
    } else if (path == DEVICE_CONSTANT) {
        value = fake_gpu.constant_words[at / 4];
    } else if (path == DEVICE_SHARED) {
        value = image[at / 4];
    } else {
        value = *(const uint64_t *)(uintptr_t)at;
    }
    *out_cycles = 1 + (uint32_t)(at / 8 % 256);
    return value;
}

/* FAKE_CUDA_CYCLES="600": each load takes so long, wherever it goes. */
static void run_step(const struct kernel_step *step, const uint32_t *image,
                     struct kernel_result *result)
{
    const char *fixed_cycles = getenv("FAKE_CUDA_CYCLES");
    uint32_t *output = (uint32_t *)(uintptr_t)step->output;
    uint64_t at = step->first, kept = 0;
    uint32_t left = step->left, position = step->position;
    if (step->kind == KERNEL_CHASE)
        memset(output, 0, step->bins * sizeof *output);
    for (uint64_t n = 0; n < step->loads; n++) {
        uint32_t cycles;
        uint64_t value = load(step->path, at, image, &cycles);
        cycles = fixed_cycles ? (uint32_t)strtoul(fixed_cycles, NULL, 10) : cycles;
        cycles += fake_gpu.textured ? TEXTURED_CYCLES : 0;
        at += step->stride;
        if (--left == 0) {
            at -= step->span;
            left = step->pass;
        }
        position = position + 1 < step->pass ? position + 1 : 0;
        if (step->order == KERNEL_CHAINED)
            at = value;
        else if (step->order == KERNEL_PERMUTED)
            at = step->base + kernel_permute(position, step->pass, step->key) * step->stride;
        result->cycles[step->index] += cycles;
        if (step->kind != KERNEL_CHASE)
            continue;
        uint32_t bin = kernel_bin_of(cycles);
        output[bin < step->bins ? bin : step->bins - 1]++;
        if (kept < step->keep && n == kept * step->loads / step->keep)
            output[step->bins + kept++] = step->split ? -(uint32_t)(cycles > step->split) : cycles;
    }
    result->elapsed_ns[step->index] = result->cycles[step->index];
}

static void run_job(const struct kernel_job *job, uint32_t sm_id)
{
    struct kernel_result *result = (struct kernel_result *)(uintptr_t)job->result;
    uint32_t *image = calloc(job->image_bytes / 4 + 1, 4);
    if (job->image)
        memcpy(image, (const void *)(uintptr_t)job->image, job->image_bytes);
    for (uint32_t i = 0; i < job->step_count; i++)
        if (job->steps[i].kind != KERNEL_FILL)
            run_step(&job->steps[i], image, result);
    result->sm_id = sm_id;
    result->done = job->step_count;
    free(image);
}

static void run_chase(void **parameters)
{
    const struct kernel_job *jobs = *(const struct kernel_job **)parameters[0];
    int32_t *claims = *(int32_t **)parameters[1];
    bool textures = false;
    for (int i = chase_launches++ ? 0 : 1; i < FAKE_SMS; i++) {
        int32_t number = claims[sm_ids[i]];
        claims[sm_ids[i]] = -1;
        if (number < 0)
            continue;
        run_job(&jobs[number], sm_ids[i]);
        textures |= jobs[number].steps[0].path == DEVICE_TEXTURE;
    }
    fake_gpu.textured |= textures;
}

static uint64_t link_element(const struct kernel_link *link, uint32_t i)
{
    return link->permuted ? kernel_permute(i, link->count, link->key) : i;
}

static void run_link(const struct kernel_link *link)
{
    for (uint32_t i = 0; i < link->count; i++) {
        uint32_t next = i + 1 < link->count ? i + 1 : 0;
        uint64_t at = link->base + link_element(link, i) * link->stride;
        uint64_t to = link->base + link_element(link, next) * link->stride;
        if (link->wide)
            *(uint64_t *)(uintptr_t)at = to;
        else
            *(uint32_t *)(uintptr_t)at = (uint32_t)((to - link->origin) >> link->shift);
    }
}

/* FAKE_STREAM tells the test of the last launch of a streaming kernel: name, blocks, threads. */
static void tell_stream(const char *name, unsigned grid, unsigned block)
{
    char text[128];
    snprintf(text, sizeof text, "%s %u %u", name, grid, block);
    setenv("FAKE_STREAM", text, 1);
}

/* FAKE_CUDA_LATER="5:FAKE_NVML_PIDS=99": before the fifth launch that tests memory or is part of a
 * load, this variable gets this value. */
static void let_time_pass(void)
{
    static int launches;
    const char *text = getenv("FAKE_CUDA_LATER");
    char name[64];
    int call = 0, at = 0;
    if (text && sscanf(text, "%d:%63[^=]=%n", &call, name, &at) == 2 && ++launches == call)
        setenv(name, text + at, 1);
}

/* FAKE_CUDA_STUCK="4096": in memory tests, bit 5 of the word at this offset is always 1. */
static void run_memory(const char *name, const struct kernel_region *region)
{
    static const char *const patterns[] = {"address", "inverse", "walking", "random"};
    const char *text = getenv("FAKE_CUDA_STUCK");
    uint64_t stuck = text ? strtoull(text, NULL, 10) : UINT64_MAX;
    struct kernel_region_result *result = (struct kernel_region_result *)(uintptr_t)region->result;
    uint64_t *words = (uint64_t *)(uintptr_t)region->base;
    bool writes = strncmp(name, "memory_write_", 13) == 0;
    enum kernel_pattern pattern = KERNEL_PATTERN_ADDRESS;
    while (strcmp(name + 13, patterns[pattern]) != 0)
        pattern++;
    if (16 * region->count >= FAKE_LARGE_BYTES)
        return;
    for (uint64_t i = 0; i < 2 * region->count; i++) {
        uint64_t right = kernel_pattern_word(pattern, region->offset + 8 * i, region->seed);
        if (writes)
            words[i] = right;
        if (region->offset + 8 * i == stuck)
            words[i] |= 1 << 5;
        if (writes || words[i] == right)
            continue;
        result->wrong_words++;
        result->wrong_bits |= words[i] ^ right;
        result->wrong_offset = 8 * i < result->wrong_offset ? 8 * i : result->wrong_offset;
    }
}

/* The first half of the region is written, the second one is checked. */
static void run_exchange(struct kernel_region region)
{
    region.count /= 2;
    run_memory("memory_write_address", &region);
    region.base += 16 * region.count;
    region.offset += 16 * region.count;
    run_memory("memory_check_address", &region);
}

/* An element of the March test: "write", "up", "down" or "read". The same bit sticks. */
static void run_march(const char *name, const struct kernel_march *march)
{
    const char *text = getenv("FAKE_CUDA_STUCK");
    uint64_t stuck = text ? strtoull(text, NULL, 10) : UINT64_MAX;
    struct kernel_march_log *log = (struct kernel_march_log *)(uintptr_t)march->log;
    uint64_t *words = (uint64_t *)(uintptr_t)march->base;
    bool reads = strcmp(name, "write") != 0, writes = strcmp(name, "read") != 0;
    if (16 * march->count >= FAKE_LARGE_BYTES)
        return;
    for (uint64_t i = 0; i < 2 * march->count; i++) {
        uint64_t expected = kernel_march_word(march, 8 * i);
        if (reads && log && words[i] != expected) {
            log->first = 8 * i < log->first ? 8 * i : log->first;
            if (log->wrong++ < KERNEL_WRONG_WORDS)
                log->words[log->wrong - 1] =
                    (struct kernel_wrong_word){8 * i, expected, words[i], march->read};
        }
        if (writes)
            words[i] = ~expected;
        if (8 * i == stuck)
            words[i] |= 1 << 5;
    }
}

/* The checks: every warp has the host's hash. FAKE_CUDA_WRONG="1": those of the second SM have
 * another.
 */
static void run_check(const char *name, unsigned grid, unsigned block,
                      const struct kernel_check *check)
{
    const char *text = getenv("FAKE_CUDA_WRONG");
    unsigned wrong = text ? (unsigned)strtoul(text, NULL, 10) : UINT_MAX;
    struct kernel_check_result *results = (struct kernel_check_result *)(uintptr_t)check->results;
    struct check_run run = {.seed = check->seed,
                            .periods = check->periods,
                            .warps = block / CHECK_LANES,
                            .section_words = check->section_words};
    while (strcmp(device_unit_name(run.unit), name) != 0)
        run.unit++;
    uint64_t hash = check_hash(&run, 0);
    for (unsigned i = 0; i < grid; i++) {
        results[i].sm_id = sm_ids[i];
        for (uint32_t w = 0; w < run.warps; w++) {
            results[i].hashes[w] = hash + (i == wrong);
            results[i].cycles[w] = 1000;
        }
    }
}

/* A clock for pauses: a launch of the screen takes a millisecond. */
static uint64_t pulse_clock_ns;

static void run_pause(uint64_t ns, uint64_t *stamps)
{
    stamps[0] = pulse_clock_ns;
    pulse_clock_ns += ns;
    stamps[1] = pulse_clock_ns;
}

/* The screen, in the same way: the host's hash, or one that all SMs have, and another one for each
 * set of operands; not the host's with FAKE_CUDA_OTHER, or if L1 holds other than
 * FAKE_CUDA_L1_CHUNKS chunks. A word of a warp that is wrong is 8 and its
 * set instead of 0: in the fourth period the sixth one, of lane 7. */
static void run_screen(const char *name, unsigned grid, unsigned block,
                       const struct kernel_screen *screen)
{
    if (strcmp(name, "fill") == 0)
        return;
    pulse_clock_ns += 1000000;
    const char *text = getenv("FAKE_CUDA_WRONG");
    unsigned wrong = text ? (unsigned)strtoul(text, NULL, 10) : UINT_MAX;
    struct kernel_check_result *results = (struct kernel_check_result *)(uintptr_t)screen->results;
    uint32_t *trace = (uint32_t *)(uintptr_t)screen->trace;
    if (trace && wrong < FAKE_SMS && screen->trace_sm == sm_ids[wrong])
        trace[(3 * screen->period_words + 5) * CHECK_LANES + 7] = 8 + screen->set;
    static uint64_t hashes[DEVICE_SCREEN_COUNT]; /* found once: it takes milliseconds */
    unsigned path = 0;
    while (strcmp(device_screen_names[path], name) != 0)
        path++;
    if (!hashes[path] && !screen_host_hash((enum device_screen_path)path, 0, &hashes[path]))
        hashes[path] = 1000 + path;
    uint64_t hash = hashes[path] + 1000 * screen->set + (getenv("FAKE_CUDA_OTHER") ? 7 : 0);
    const char *l1_chunks = getenv("FAKE_CUDA_L1_CHUNKS");
    if (l1_chunks && strtoul(l1_chunks, NULL, 10) != screen->l1_chunks)
        hash++;
    for (unsigned i = 0; i < grid; i++) {
        results[i].sm_id = sm_ids[i];
        for (uint32_t w = 0; w < block / CHECK_LANES; w++)
            results[i].hashes[w] = hash + (i == wrong);
    }
}

/* Every block of a launch has a number from 0 on. Warps share chunks only if there are fewer of
 * them than warps, and have as many as there are, up to eight. The first launch brings into L2 what
 * the others read: all but a part of a share. */
static bool reads_its_shares(const struct kernel_sm_read *read, uint32_t blocks)
{
    static uint32_t brought, share;
    uint32_t *readers = (uint32_t *)(uintptr_t)read->readers;
    uint32_t warps = blocks * (KERNEL_SM_MAP_THREADS / 32), chunks = read->shares * read->span;
    bool numbered = *readers == read->earlier;
    *readers += blocks;
    if (read->turn == UINT32_MAX) {
        brought = numbered && read->shares <= warps ? chunks : 0;
        share = read->span;
        return true;
    }
    return numbered && chunks < brought + share && (read->shares >= warps || read->span == 1) &&
           (read->span == 8 || (read->span + 1) * warps > brought);
}

/* Every SM of the turn reads 1000 bytes per cycle of its index + 1, in 1 ns per cycle.
 * FAKE_CUDA_SHARED="1": the blocks do not run at once. */
static void run_sm_read(const struct kernel_sm_read *read, unsigned grid)
{
    struct kernel_sm_gate *gate = (struct kernel_sm_gate *)(uintptr_t)read->gate;
    const struct kernel_sm_place *places = (const struct kernel_sm_place *)(uintptr_t)read->places;
    struct kernel_sm_result *results = (struct kernel_sm_result *)(uintptr_t)read->results;
    uint32_t sms = 0;
    for (int i = 0; i < FAKE_SMS; i++)
        sms += read->turn == UINT32_MAX || places[sm_ids[i]].turn == read->turn;
    bool right = reads_its_shares(read, sms * (grid / FAKE_SMS));
    gate->came += grid;
    for (int i = 0;
         i < FAKE_SMS && right && gate->came == read->expected && !getenv("FAKE_CUDA_SHARED");
         i++) {
        const struct kernel_sm_place *place = &places[sm_ids[i]];
        if (place->turn == read->turn)
            results[place->sm] = (struct kernel_sm_result){
                1000u * (place->sm + 1) * (uint64_t)read->window_cycles, read->window_cycles};
    }
}

/* An SM takes as many cycles per load as its index and the region have together, and 500 more. */
static void run_sm_memory(const struct kernel_sm_memory *memory)
{
    uint64_t *results = (uint64_t *)(uintptr_t)memory->results;
    for (uint32_t i = 0; i < memory->sms * memory->regions; i++)
        results[i] = (500 + i / memory->regions + i % memory->regions) * (uint64_t)memory->loads;
}

/* Even SMs are near even lines, odd ones near odd ones. */
static void run_sm_atomics(const struct kernel_sm_atomics *atomics)
{
    uint64_t *results = (uint64_t *)(uintptr_t)atomics->results;
    for (uint32_t i = 0; i < atomics->sms * atomics->lines; i++)
        results[i] = (i / atomics->lines % 2 == i % atomics->lines % 2 ? 300u : 500u) *
                     (uint64_t)atomics->atomics;
}

/* Ten loads of 500 cycles on each SM that times them, while each other one reads 100 chunks, or one
 * if there is a limit. FAKE_CUDA_LATE="1": those that read begin when the chase has begun. */
static void run_sm_loaded(const struct kernel_loaded *loaded)
{
    const struct kernel_sm_place *places =
        (const struct kernel_sm_place *)(uintptr_t)loaded->places;
    struct kernel_loaded_result *result = (struct kernel_loaded_result *)(uintptr_t)loaded->result;
    for (int i = 0; i < FAKE_SMS && !getenv("FAKE_CUDA_SHARED"); i++) {
        if (places[sm_ids[i]].turn) {
            result->loads += 10;
            result->cycles += 5000;
            result->squares += 2500000;
            result->window_ns += loaded->window_cycles;
        } else if (!loaded->quiet) {
            result->chunks += loaded->gap_cycles ? 1 : 100;
            result->all_chunks += 200;
        }
    }
    result->read_begin_ns = getenv("FAKE_CUDA_LATE") ? 1001 : 1000;
    result->read_not_end_ns = ~UINT64_C(2000);
    result->chase_not_begin_ns = ~UINT64_C(1000);
    result->chase_end_ns = 2000;
}

/* Two of three lines are at home in part 0. */
static void run_sm_homes(const struct kernel_way *way)
{
    uint32_t *found = (uint32_t *)(uintptr_t)way->found;
    found[0] = way->lines / 3 * 2;
    found[1] = way->lines / 3;
}

/* A launch takes 1000 ns per pass, twice as long if the lines are far, and again if an SM does not
 * work. What is read once must have
 * been written by the SMs near it. */
static void run_sm_way(const char *name, const struct kernel_way *way)
{
    static bool fresh[2];
    struct kernel_way_result *result = (struct kernel_way_result *)(uintptr_t)way->result;
    const struct kernel_sm_place *places = (const struct kernel_sm_place *)(uintptr_t)way->places;
    bool reads = strcmp(name, "read") == 0;
    for (uint32_t part = 0; part < 2; part++) {
        if (!(way->parts >> part & 1))
            continue;
        if (reads && !fresh[part ^ way->far])
            return;
        fresh[part ^ way->far] = !reads && !way->far;
    }
    for (uint32_t part = 0; part < 2; part++) {
        uint64_t idle = 0;
        for (int i = 0; i < FAKE_SMS; i++)
            idle += places[sm_ids[i]].turn == (part | KERNEL_WAY_IDLE);
        if (!(way->parts >> part & 1))
            continue;
        result->begin_ns[part] = 5000;
        result->end_ns[part] = 5000 + 1000 * way->passes * (way->far ? 2 : 1) * (1 + idle);
    }
}

/* Each load takes 20 cycles, and as many more as there are bytes between two lanes and in a load.
 * Warp w begins w cycles later. */
static void run_shared_load(const char *name, unsigned block,
                            const struct kernel_shared_load *asked)
{
    struct kernel_shared_result *result = (struct kernel_shared_result *)(uintptr_t)asked->result;
    uint64_t each = 20 + asked->lane_stride_bytes + strtoul(name, NULL, 10);
    for (unsigned w = 0; w < block / 32; w++) {
        result->begin[w] = 1000 + w;
        result->end[w] = 1000 + w + each * asked->repeats * KERNEL_SHARED_UNROLL;
    }
}

/* FAKE_CUDA_PACE="path": each launch of a load takes 20 ms indeed, and adds a line to this file:
 * the process, and when the launch began and ended, in ns. */
static void take_time(const char *path)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *file = fopen(path, "a");
    if (!file)
        return;
    fprintf(file, "%d %lld%09ld %lld%09ld\n", (int)getpid(), (long long)begin.tv_sec, begin.tv_nsec,
            (long long)end.tv_sec, end.tv_nsec);
    fclose(file);
}

static void run_load(const struct kernel_load *load, unsigned grid)
{
    if (getenv("FAKE_CUDA_PACE"))
        take_time(getenv("FAKE_CUDA_PACE"));
    struct kernel_load_result *result = (struct kernel_load_result *)(uintptr_t)load->result;
    result->operations += load->rounds * (uint64_t)grid;
    result->bytes += load->chunks;
    result->cycles += 30000000;
    result->elapsed_ns += 20000000;
    result->unit = KERNEL_LOAD_MMA;
    fake_gpu.load_ms += 20;
}

void fake_kernels_run(const char *name, unsigned grid, unsigned block, void **parameters)
{
    if (strncmp(name, "memory_", 7) == 0 || strncmp(name, "load_", 5) == 0)
        let_time_pass();
    if (strncmp(name, "stream_", 7) == 0)
        tell_stream(name, grid, block);
    else if (strncmp(name, "chase_", 6) == 0)
        run_chase(parameters);
    else if (strncmp(name, "memory_write_", 13) == 0 || strncmp(name, "memory_check_", 13) == 0)
        run_memory(name, parameters[0]);
    else if (strncmp(name, "march_", 6) == 0)
        run_march(name + 6, parameters[0]);
    else if (strcmp(name, "memory_exchange") == 0)
        run_exchange(*(const struct kernel_region *)parameters[0]);
    else if (strcmp(name, "load_pause") == 0)
        run_pause(*(const uint64_t *)parameters[0],
                  (uint64_t *)(uintptr_t) * (const uint64_t *)parameters[1]);
    else if (strncmp(name, "screen_", 7) == 0)
        run_screen(name + 7, grid, block, parameters[0]);
    else if (strncmp(name, "check_", 6) == 0)
        run_check(name + 6, grid, block, parameters[0]);
    else if (strcmp(name, "sm_map_read") == 0)
        run_sm_read(parameters[0], grid);
    else if (strcmp(name, "sm_map_memory") == 0)
        run_sm_memory(parameters[0]);
    else if (strcmp(name, "sm_map_atomics") == 0)
        run_sm_atomics(parameters[0]);
    else if (strcmp(name, "sm_map_loaded") == 0)
        run_sm_loaded(parameters[0]);
    else if (strcmp(name, "sm_map_homes") == 0)
        run_sm_homes(parameters[0]);
    else if (strncmp(name, "sm_map_way_", 11) == 0)
        run_sm_way(name + 11, parameters[0]);
    else if (strncmp(name, "shared_load_", 12) == 0)
        run_shared_load(name + 12, block, parameters[0]);
    else if (strncmp(name, "cluster_", 8) == 0 || strcmp(name, "bulk_copy") == 0)
        fake_cluster_run(parameters[0], grid, sm_ids);
    else if (strcmp(name, "code") == 0)
        fake_code_run(grid, block, parameters);
    else if (strcmp(name, "straight") == 0)
        fake_straight_run(grid, sm_ids, parameters);
    else if (strcmp(name, "load_both") == 0)
        run_load(parameters[0], grid);
    else if (strcmp(name, "load_fill") == 0)
        fake_gpu.load_ms = 0;
    else if (strcmp(name, "scrub_l1") == 0)
        fake_gpu.textured = false;
    else if (strcmp(name, "link_chain") == 0)
        run_link(parameters[0]);
    else if (strcmp(name, "count_sm_ids") == 0)
        **(uint32_t **)parameters[0] = SM_IDS;
    else if (strcmp(name, "find_sms") == 0)
        for (int i = 0; i < FAKE_SMS; i++)
            (*(uint32_t **)parameters[0])[sm_ids[i]] = 1;
}
