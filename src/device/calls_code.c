/* The calls that execute code: instructions, loads of shared memory, straight and jumping code. */
#include "device/call_row.h"

#include <errno.h>

#include "base/sort.h"
#include "device/instruction.h"
#include "device/shared_load.h"
#include "device/straight.h"

/* Code: its instruction counts by name. */

static const char *instruction_word(uint32_t i)
{
    return i < instruction_count ? instruction_table[i].name : NULL;
}

static const struct field code_rows[] = {
    {.key = "instruction",
     .type = FIELD_WORD,
     .offset = FIELD_AT(struct device_code, instruction, uint32_t),
     .word = instruction_word},
    {FIELD(struct device_code, chains, U32)},
    {FIELD(struct device_code, warps, U32)},
    {FIELD(struct device_code, length, U32)},
    {FIELD(struct device_code, repeats, U32)},
};
static const struct fields code_fields = {FIELDS(struct device_code, code_rows)};
static const struct field code_answer_rows[] = {
    {FIELD(struct device_code_answer, cycles, U64)},
    {FIELD(struct device_code_answer, machine, U64)},
    {FIELD(struct device_code_answer, most, U64)},
};
static const struct fields code_answer_fields = {
    FIELDS(struct device_code_answer, code_answer_rows)};

static int code_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_code *code = request;
    (void)device;
    if (code->instruction >= instruction_count)
        return err_set(err, -EINVAL, "no instruction %u", code->instruction);
    if (!code->chains || code->chains > INSTRUCTION_CHAINS_MAX || !code->warps ||
        code->warps > INSTRUCTION_WARPS_MAX || !code->repeats)
        return err_set(err, -EINVAL, "%u chains, %u warps, %u repeats", code->chains, code->warps,
                       code->repeats);
    if (!code->length || code->length > INSTRUCTION_LENGTH_MAX || code->length % code->chains)
        return err_set(err, -EINVAL, "%u instructions in %u chains", code->length, code->chains);
    return 0;
}

const struct device_call_row device_run_code_row = {
    ROW("code", &code_fields, &code_answer_fields, -ENOSYS, "this device executes no code"),
    .check = code_check};
CALL_FUNCTION(device_run_code, DEVICE_CALL_CODE, struct device_code, struct device_code_answer)

/* Loads of shared memory. */

static const struct field shared_load_rows[] = {
    {FIELD(struct device_shared_load, warps, U32)},
    {FIELD(struct device_shared_load, lanes, U32)},
    {FIELD(struct device_shared_load, lane_stride_bytes, U32)},
    {FIELD(struct device_shared_load, width_bytes, U32)},
    {FIELD(struct device_shared_load, loads, U32)},
};
static const struct fields shared_load_fields = {
    FIELDS(struct device_shared_load, shared_load_rows)};
static const struct field shared_load_answer_rows[] = {
    {FIELD(struct device_shared_load_answer, cycles, U64)},
};
static const struct fields shared_load_answer_fields = {
    FIELDS(struct device_shared_load_answer, shared_load_answer_rows)};

static int shared_load_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_limits *limits = &device->limits;
    const struct device_shared_load *load = request;
    uint32_t width = load->width_bytes;
    if (width != 4 && width != 8 && width != 16)
        return err_set(err, -EINVAL, "loads are 4, 8 or 16 bytes wide, not %u", width);
    if (!load->warps || load->warps > SHARED_LOAD_WARPS_MAX || !load->lanes ||
        load->lanes > SHARED_LOAD_LANES_MAX)
        return err_set(err, -EINVAL, "%u warps, %u lanes", load->warps, load->lanes);
    if (limits->warp_count && load->warps > limits->warp_count)
        return err_set(err, -EINVAL, "%u warps: a block has %u", load->warps, limits->warp_count);
    if (load->lane_stride_bytes % width)
        return err_set(err, -EINVAL, "a stride of %u bytes is not a multiple of %u",
                       load->lane_stride_bytes, width);
    if (!load->loads || load->loads % SHARED_LOAD_UNROLL || load->loads > SHARED_LOAD_COUNT_MAX)
        return err_set(err, -EINVAL, "%u loads: a multiple of %d, at most %d", load->loads,
                       SHARED_LOAD_UNROLL, SHARED_LOAD_COUNT_MAX);
    if (limits->shared_array_bytes && device_shared_load_bytes(load) > limits->shared_array_bytes)
        return err_set(err, -EINVAL, "the words end past the %llu bytes of shared memory",
                       (unsigned long long)limits->shared_array_bytes);
    return 0;
}

static int cycles_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t device_shared_load_median(uint64_t *cycles, uint32_t warps)
{
    sort_stable(cycles, warps, sizeof *cycles, cycles_by_value);
    return cycles[warps / 2];
}

const struct device_call_row device_load_shared_row = {
    ROW("shared_load", &shared_load_fields, &shared_load_answer_fields, -ENOSYS,
        "this device cannot load shared memory by several warps"),
    .check = shared_load_check};
CALL_FUNCTION(device_load_shared, DEVICE_CALL_SHARED_LOAD, struct device_shared_load,
              struct device_shared_load_answer)

/* Straight code. Lengths in steps of 32 at first, then of 128: large caches need no finer ones. */

enum { FINE = 32, COARSE = 128, FINE_END = 4096, FINE_COUNT = FINE_END / FINE };
enum { LENGTH_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_MAX - FINE_END) / COARSE };
enum { SECOND_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_SECOND_MAX - FINE_END) / COARSE };

size_t device_straight_length_count(uint32_t copy)
{
    return copy ? SECOND_COUNT : LENGTH_COUNT;
}

uint32_t device_straight_length(size_t i)
{
    if (i >= LENGTH_COUNT)
        return 0;
    return (uint32_t)(i < FINE_COUNT ? (i + 1) * FINE : FINE_END + (i - FINE_COUNT + 1) * COARSE);
}

static bool is_straight_length(uint32_t copy, uint32_t length)
{
    return length && length <= (copy ? DEVICE_STRAIGHT_SECOND_MAX : DEVICE_STRAIGHT_MAX) &&
           length % (length <= FINE_END ? FINE : COARSE) == 0;
}

static const struct field straight_job_rows[] = {
    {FIELD(struct device_straight_job, sm, U32)},
    {FIELD(struct device_straight_job, copy, U32)},
    {FIELD(struct device_straight_job, length, U32)},
    {FIELD(struct device_straight_job, repeats, U32)},
};
static const struct fields straight_job_fields = {
    FIELDS(struct device_straight_job, straight_job_rows)};
static const struct field straight_rows[] = {
    {FIELD(struct device_straight, job_count, U32)},
    {FIELD_FIRST(struct device_straight, jobs, job_count, &straight_job_fields)},
};
static const struct fields straight_fields = {FIELDS(struct device_straight, straight_rows)};
static const struct field straight_answer_rows[] = {
    {FIELD(struct device_straight_answer, instruction_bytes, U32)},
    {FIELD_ALL(struct device_straight_answer, cycles, U64)},
};
static const struct fields straight_answer_fields = {
    FIELDS(struct device_straight_answer, straight_answer_rows)};

static int straight_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_straight *straight = request;
    if (!straight->job_count || straight->job_count > DEVICE_STRAIGHT_JOBS)
        return err_set(err, -EINVAL, "%u jobs of straight code", straight->job_count);
    for (uint32_t i = 0; i < straight->job_count; i++) {
        const struct device_straight_job *job = &straight->jobs[i];
        if (job->sm >= device->limits.sm_count || job->copy >= DEVICE_STRAIGHT_COPIES ||
            !job->repeats || !is_straight_length(job->copy, job->length) ||
            (i && job->sm == straight->jobs[0].sm))
            return err_set(err, -EINVAL, "job %u: SM %u, copy %u, %u instructions, %u repeats", i,
                           job->sm, job->copy, job->length, job->repeats);
    }
    return 0;
}

const struct device_call_row device_run_straight_row = {
    ROW("straight", &straight_fields, &straight_answer_fields, -ENOSYS,
        "this device executes no straight code"),
    .check = straight_check};
CALL_FUNCTION(device_run_straight, DEVICE_CALL_STRAIGHT, struct device_straight,
              struct device_straight_answer)

/* Jumping code. */

static const struct field walk_rows[] = {
    {FIELD(struct device_walk, sm, U32)},
    {FIELD(struct device_walk, repeats, U32)},
    {FIELD(struct device_walk, blocks, U32)},
    {FIELD(struct device_walk, stride, U32)},
    {FIELD(struct device_walk, constant_bytes, U32)},
    {FIELD(struct device_walk, constant_stride, U32)},
};
static const struct fields walk_fields = {FIELDS(struct device_walk, walk_rows)};
static const struct field walk_answer_rows[] = {
    {FIELD(struct device_walk_answer, block_bytes, U32)},
    {FIELD(struct device_walk_answer, code_cycles, U64)},
    {FIELD(struct device_walk_answer, constant_cycles, U64)},
};
static const struct fields walk_answer_fields = {
    FIELDS(struct device_walk_answer, walk_answer_rows)};

static int walk_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_walk *walk = request;
    if (walk->sm >= device->limits.sm_count || !walk->repeats ||
        walk->stride < DEVICE_WALK_STRIDE_MIN || walk->stride > DEVICE_WALK_STRIDE_MAX ||
        walk->blocks < walk->stride || walk->blocks > DEVICE_WALK_BLOCKS_MAX)
        return err_set(err, -EINVAL, "SM %u, %u blocks %u apart, %u repeats", walk->sm,
                       walk->blocks, walk->stride, walk->repeats);
    if (walk->constant_bytes > device->limits.constant_bytes ||
        (walk->constant_bytes &&
         (!walk->constant_stride || walk->constant_stride % sizeof(uint32_t) ||
          walk->constant_stride > walk->constant_bytes)))
        return err_set(err, -EINVAL, "%u bytes of constants, %u apart", walk->constant_bytes,
                       walk->constant_stride);
    return 0;
}

const struct device_call_row device_run_walk_row = {
    ROW("walk", &walk_fields, &walk_answer_fields, -ENOSYS, "this device executes no jumping code"),
    .check = walk_check};
CALL_FUNCTION(device_run_walk, DEVICE_CALL_WALK, struct device_walk, struct device_walk_answer)
