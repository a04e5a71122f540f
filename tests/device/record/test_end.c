/* How a record ends: cut by a crash, not complete, ended by itself, or not writable. */
#include "../../check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "device/record/entry.h"
#include "tape.h"

/* Leaves out the last `count` entries. */
static void drop_last(struct strbuf *body, size_t count)
{
    size_t ends[64] = {0}, entries = 0, position = 0;
    struct record_entry entry;
    struct err err = {0};
    while (entry_next(body->data, body->length, 0, &position, &entry, &err) > 0)
        ends[++entries] = position;
    body->length = ends[entries - count];
}

/* dropped 1: the close only, it died between calls. 2: the last answer too, it died in a call. */
static void a_cut_record_ends_as_it_did(void **state)
{
    (void)state;
    for (size_t dropped = 1; dropped <= 2; dropped++) {
        struct tape tape;
        struct strbuf body = {0};
        struct err err;
        const struct device_job job = ask_chase(1024);
        tape_begin(&tape);
        struct device_answer first = ask_device(tape.device, &job, 0);
        device_mark(tape.device, "b");
        struct device_answer second = ask_device(tape.device, &job, 0);
        device_destroy(tape.device);
        tape.device = NULL;
        tape_body(&tape, &body);
        drop_last(&body, dropped);
        strbuf_append(&body, "\x11\x7f half an entry", 17);
        tape_write(&tape, &body, GPU_CRASHED);
        struct device *device = tape_replay(&tape);
        ask_check_same(device, &job, 0, &first);
        device_mark(device, "b");
        if (dropped == 1)
            ask_check_same(device, &job, 0, &second);
        assert_null(replay_ended(tape.source, 0));
        assert_int_equal(ask_in_vain(device, &job, &err), -EIO);
        assert_non_null(replay_ended(tape.source, 0));
        assert_int_equal(replay_ended(tape.source, 0)->status, GPU_CRASHED);
        assert_string_equal(replay_ended(tape.source, 0)->reason, "it broke");
        assert_null(replay_missed(tape.source, 0));
        device_answers_fini(&first, 1);
        device_answers_fini(&second, 1);
        strbuf_fini(&body);
        tape_fini(&tape);
    }
}

/* The GPU was measured, but its record reached a limit: that is no crash. */
static void an_incomplete_record_says_so(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf body = {0};
    struct err err;
    const struct device_job job = ask_chase(1024);
    tape_begin(&tape);
    struct device_answer answer = ask_device(tape.device, &job, 0);
    device_answers_fini(&answer, 1);
    tape_body(&tape, &body);
    drop_last(&body, 1);
    tape_write(&tape, &body, GPU_OK);
    struct device *device = tape_replay(&tape);
    assert_int_equal(ask_in_vain(device, &job, &err), -ENOENT);
    assert_non_null(strstr(err.text, "not in the record, which is not complete: spread"));
    assert_null(replay_ended(tape.source, 0));
    strbuf_fini(&body);
    tape_fini(&tape);
}

/* It failed by itself: a new question is not in the record, the old end is not repeated. */
static void a_gpu_that_failed_by_itself_was_not_cut(void **state)
{
    (void)state;
    struct tape tape;
    struct err err;
    const struct device_job job = ask_chase(1024);
    tape_begin(&tape);
    tape_end(&tape, GPU_FAILED);
    struct device *device = tape_replay(&tape);
    assert_int_equal(ask_in_vain(device, &job, &err), -ENOENT);
    assert_null(replay_ended(tape.source, 0));
    tape_fini(&tape);
}

static void a_record_that_cannot_be_written_costs_only_itself(void **state)
{
    (void)state;
    struct tape tape;
    struct strbuf body = {0};
    bool closed = true;
    const struct device_job job = ask_chase(1024);
    tape_begin(&tape);
    int gone = dup(tape.fd);
    close(tape.fd);
    struct device_answer answer = ask_device(tape.device, &job, 0);
    assert_int_equal(answer.sample_count, 1);
    device_answers_fini(&answer, 1);
    tape.fd = dup2(gone, tape.fd);
    answer = ask_device(tape.device, &job, 0);
    device_answers_fini(&answer, 1);
    device_destroy(tape.device);
    tape.device = NULL;
    tape_body(&tape, &body);
    assert_int_equal(record_body_whole(body.data, body.length, &closed), body.length);
    assert_false(closed);
    strbuf_fini(&body);
    close(gone);
    tape_fini(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_record_ends_as_it_did),
        cmocka_unit_test(an_incomplete_record_says_so),
        cmocka_unit_test(a_gpu_that_failed_by_itself_was_not_cut),
        cmocka_unit_test(a_record_that_cannot_be_written_costs_only_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
