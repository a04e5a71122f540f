/* Damaged, cut, foreign and forged records: refused with the byte, never a crash. */
#include "../../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/record/entry.h"
#include "device/record/record.h"
#include "inventory/wire/frame.h"
#include "tape.h"

static void record_something(struct tape *tape)
{
    struct device_job jobs[3] = {0};
    struct device_answer answers[3];
    struct facts facts[3] = {0};
    struct device_clocks clocks;
    struct device_link link;
    struct device_stream_answer moved;
    struct err err = {0};
    const struct device_stream stream = {
        .kind = DEVICE_STREAM_H2D, .footprint_bytes = 65536, .total_bytes = 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        const struct device_array array = {.path = DEVICE_TEXTURE,
                                           .size_bytes = 1024 << i,
                                           .stride_bytes = 64,
                                           .order = i ? DEVICE_RANDOM : DEVICE_SEQUENTIAL,
                                           .seed = i};
        jobs[i] = (struct device_job){
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
        jobs[i].steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
        jobs[i].steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = array, .keep = 4};
    }
    const struct device_batch batch = {.jobs = jobs, .job_count = 3};
    tape_begin(tape);
    tape->again = true;
    assert_int_equal(device_identify(tape->device, &facts[0], &facts[1], &facts[2], &err), 0);
    device_mark(tape->device, "probe");
    assert_int_equal(device_run(tape->device, &batch, answers, &err), 0);
    assert_int_equal(device_stream(tape->device, &stream, &moved, &err), 0);
    assert_int_equal(device_read_clocks(tape->device, &clocks, &err), 0);
    device_begin_link(tape->device, &link);
    device_end_link(tape->device);
    assert_int_equal(device_read_health(tape->device, &facts[1], &facts[2], &err), 0);
    tape_end(tape, GPU_OK);
    device_answers_fini(answers, 3);
    for (size_t i = 0; i < 3; i++)
        facts_fini(&facts[i]);
}

/* Opens the file, and if that goes well checks it, opens its GPUs and lets them answer. */
static int try_file(const struct tape *tape, struct err *err)
{
    struct device_source *source = NULL;
    struct device *device = NULL;
    struct facts facts[3] = {0};
    struct device_clocks clocks;
    struct device_link link;
    *err = (struct err){0};
    int rc = device_source_replay(tape->path, 0, 1, &source, err);
    if (rc)
        return rc;
    rc = replay_check(source, err);
    for (size_t i = 0; i < device_source_count(source) && !rc; i++) {
        struct err ignored = {0};
        if (device_source_open(source, i, &device, &ignored))
            continue;
        device_identify(device, &facts[0], &facts[1], &facts[2], &ignored);
        device_mark(device, "probe");
        device_read_clocks(device, &clocks, &ignored);
        device_begin_link(device, &link);
        device_read_health(device, &facts[1], &facts[2], &ignored);
        device_destroy(device);
        for (size_t k = 0; k < 3; k++)
            facts_fini(&facts[k]);
    }
    device_source_destroy(source);
    return rc;
}

static void check_refused(struct tape *tape, const char *bytes, size_t length, const char *text)
{
    struct err err;
    tape_write_bytes(tape, bytes, length);
    int rc = try_file(tape, &err);
    if (rc != -EINVAL)
        fail_msg("expected \"%s\", got %d: %s", text, rc, err.text);
    assert_string_equal(err.file, tape->path);
    if (strncmp(err.text, "byte ", 5) != 0 || !strstr(err.text, text))
        fail_msg("expected \"%s\", got \"%s\"", text, err.text);
}

static void the_parts_come_back(void **state)
{
    (void)state;
    struct tape tape;
    struct record *record = NULL;
    struct err err = {0};
    record_something(&tape);
    assert_int_equal(record_open(tape.path, &record, &err), 0);
    const struct record_provenance *p = record_provenance(record);
    assert_string_equal(p->version, "1.2.3");
    assert_null(p->date);
    assert_int_equal(p->command_count, 2);
    assert_string_equal(p->command[1], "--record");
    assert_int_equal(p->seed, 7);
    assert_string_equal(p->config_text, "{}");
    assert_int_equal(p->ranks, 3);
    const struct record_survey *s = record_survey(record);
    assert_int_equal(s->nodes, 4);
    assert_int_equal(s->lost_ranks, 1);
    assert_string_equal(s->bare_nodes[0], "login1");
    assert_int_equal(s->unknown_count, 1);
    assert_string_equal(s->unknown[0].reason, "silent");
    assert_int_equal(record_find_gpu(record, "GPU-1", 0)->gpu.rank, 5);
    assert_null(record_find_gpu(record, "GPU-2", 0));
    record_close(record);
    tape_fini(&tape);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf whole = {0};
    record_something(&tape);
    tape_read(&tape, &whole);
    for (size_t length = 0; length < whole.length; length++)
        check_refused(&tape, whole.data, length, length < RECORD_HEAD_BYTES ? "not a record" : "");
    strbuf_append(&whole, "x", 1);
    check_refused(&tape, whole.data, whole.length, "nothing behind the end");
    strbuf_fini(&whole);
    tape_fini(&tape);
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf whole = {0};
    record_something(&tape);
    tape_read(&tape, &whole);
    for (size_t i = 0; i < whole.length; i++) {
        whole.data[i] ^= (char)(1 << i % 8);
        check_refused(&tape, whole.data, whole.length, "");
        whole.data[i] ^= (char)(1 << i % 8);
    }
    strbuf_fini(&whole);
    tape_fini(&tape);
}

static void foreign_and_future_files_are_named(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf whole = {0};
    struct err err;
    record_something(&tape);
    tape_read(&tape, &whole);
    check_refused(&tape, "gpumemtopo: {schema: 1}\n", 24, "byte 0: not a record");
    whole.data[RECORD_MAGIC_BYTES]++;
    check_refused(&tape, whole.data, whole.length, "byte 8: a record of version 5, expected 4");
    strbuf_fini(&whole);
    struct tape absent = {.path = "/nonexistent/record.gmr"};
    assert_int_equal(try_file(&absent, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot open"));
    tape_fini(&tape);
}

/* Leaves a whole entry out, or has it twice. */
static void missing_parts_are_noticed(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf whole = {0}, other = {0};
    record_something(&tape);
    tape_read(&tape, &whole);
    size_t position = RECORD_HEAD_BYTES, count = 0;
    struct record_entry entry;
    struct err err = {0};
    while (position < whole.length) {
        size_t start = position;
        assert_int_equal(entry_next(whole.data, whole.length, 0, &position, &entry, &err), 1);
        count++;
        for (int twice = 0; twice < 2; twice++) {
            other.length = 0;
            strbuf_append(&other, whole.data, twice ? position : start);
            strbuf_append(&other, whole.data + (twice ? start : position),
                          whole.length - (twice ? start : position));
            check_refused(&tape, other.data, other.length, "");
        }
    }
    assert_true(count > 10);
    strbuf_fini(&whole);
    strbuf_fini(&other);
    tape_fini(&tape);
}

/* Probes trust these: an SM that the device has, one sample per timed step, bins in range. */
static void samples_must_fit_their_job(void **state)
{
    (void)state;
    struct device_bin bins[2] = {{.bin = 7, .count = 2}, {.bin = 9, .count = 1}};
    uint32_t kept[2] = {7, 9};
    struct device_asked_job asked = {.job = {.agent_count = 1, .step_count = 1}};
    asked.job.steps[0] = (struct device_step){.kind = DEVICE_CHASE, .loads = 3, .keep = 2};
    static const struct {
        int32_t sm;
        uint16_t second_bin;
        bool untimed, good;
    } rows[] = {{3, 9, false, true},  {4, 9, false, false},   {-1, 9, false, false},
                {3, 7, false, false}, {3, 2303, false, true}, {3, 2304, false, false},
                {3, 9, true, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf buffer = {0};
        struct device_answer answer = {.sample_count = 1}, back = {0};
        bins[1].bin = rows[i].second_bin;
        answer.samples[0] = (struct device_sample){.sm = rows[i].sm,
                                                   .loads = 3,
                                                   .total_cycles = 23,
                                                   .bins = bins,
                                                   .bin_count = 2,
                                                   .kept = kept,
                                                   .kept_count = 2};
        asked.job.steps[0].kind = DEVICE_CHASE;
        asked_put_answer(&buffer, DEVICE_CALL_BATCH, &asked, &answer);
        if (rows[i].untimed)
            asked.job.steps[0].kind = DEVICE_FILL;
        struct wire_reader reader = {.data = (unsigned char *)buffer.data, .length = buffer.length};
        asked_get_answer(&reader, DEVICE_CALL_BATCH, &asked, 4, &back);
        if ((wire_end(&reader, "", NULL) == 0) != rows[i].good)
            fail_msg("row %zu is %s", i, rows[i].good ? "refused" : "accepted");
        device_answers_fini(&back, 1);
        strbuf_fini(&buffer);
    }
}

/* A GPU's head and body together: what is left is whole, but shorter than its end says. */
static void a_missing_gpu_is_noticed(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf whole = {0}, other = {0};
    struct record *record = NULL;
    struct err err = {0};
    struct record_entry entry;
    size_t head = RECORD_HEAD_BYTES;
    record_something(&tape);
    tape_read(&tape, &whole);
    assert_int_equal(record_open(tape.path, &record, &err), 0);
    size_t behind =
        (size_t)(record_gpu(record, 0)->body_offset + record_gpu(record, 0)->body_bytes);
    record_close(record);
    assert_int_equal(entry_next(whole.data, whole.length, 0, &head, &entry, &err), 1);
    strbuf_append(&other, whole.data, head);
    strbuf_append(&other, whole.data + behind, whole.length - behind);
    check_refused(&tape, other.data, other.length, "something is missing before it");
    strbuf_fini(&whole);
    strbuf_fini(&other);
    tape_fini(&tape);
}

/* Damages payloads and mends their sums, so that what reads the values sees the damage. */
static void forge(struct strbuf *whole, struct rng *rng)
{
    size_t position = RECORD_HEAD_BYTES;
    size_t starts[64], ends[64], count = 0;
    struct record_entry entry;
    struct err err = {0};
    while (count < 64 && entry_next(whole->data, whole->length, 0, &position, &entry, &err) > 0) {
        starts[count] = entry.position;
        ends[count++] = position;
    }
    size_t chosen = rng_below(rng, count), start = starts[chosen], end = ends[chosen] - 4;
    for (uint64_t i = 0, changes = 1 + rng_below(rng, 3); i < changes; i++) {
        size_t at = start + rng_below(rng, end - start);
        whole->data[at] = (char)(rng_below(rng, 2) ? rng_next(rng) : 0xff);
    }
    uint32_t sum = frame_crc32(whole->data + start, end - start);
    for (size_t i = 0; i < 4; i++)
        whole->data[end + i] = (char)(sum >> (8 * i));
}

static void forged_records_never_crash(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    struct tape tape;
    struct strbuf whole = {0}, forged = {0};
    struct rng rng;
    size_t refused = 0;
    record_something(&tape);
    tape_read(&tape, &whole);
    rng_init(&rng, 1, "forged records");
    for (int round = 0; round < ROUNDS; round++) {
        struct err err;
        forged.length = 0;
        strbuf_append(&forged, whole.data, whole.length);
        forge(&forged, &rng);
        tape_write_bytes(&tape, forged.data, forged.length);
        int rc = try_file(&tape, &err);
        refused += rc != 0;
        if (rc && rc != -EINVAL && rc != -ENOMEM)
            fail_msg("round %d: %d: %s", round, rc, err.text);
    }
    assert_in_range(refused, ROUNDS / 4, ROUNDS - 1);
    strbuf_fini(&whole);
    strbuf_fini(&forged);
    tape_fini(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_come_back),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(foreign_and_future_files_are_named),
        cmocka_unit_test(missing_parts_are_noticed),
        cmocka_unit_test(a_missing_gpu_is_noticed),
        cmocka_unit_test(samples_must_fit_their_job),
        cmocka_unit_test(forged_records_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
