/* Frames, wire values and encoded results: what was sent comes back, and nothing else does. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "inventory/gpu_result.h"
#include "inventory/wire/frame.h"
#include "rich.h"

static void crc_is_the_usual_one(void **state)
{
    (void)state;
    assert_int_equal(frame_crc32("123456789", 9), 0xcbf43926);
    assert_int_equal(frame_crc32("", 0), 0);
}

static void wire_values_come_back(void **state)
{
    (void)state;
    struct strbuf buffer = {0};
    wire_put_u32(&buffer, 0x01020304);
    wire_put_u64(&buffer, UINT64_MAX - 1);
    wire_put_f64(&buffer, -0.1);
    wire_put_f64(&buffer, NAN);
    wire_put_text(&buffer, NULL);
    wire_put_text(&buffer, "");
    wire_put_text(&buffer, "a\nb");
    assert_memory_equal(buffer.data, "\x04\x03\x02\x01", 4);
    struct wire_reader reader = {.data = (unsigned char *)buffer.data, .length = buffer.length};
    assert_int_equal(wire_get_u32(&reader), 0x01020304);
    assert_true(wire_get_u64(&reader) == UINT64_MAX - 1);
    assert_true(wire_get_f64(&reader) == -0.1);
    assert_true(isnan(wire_get_f64(&reader)));
    assert_null(wire_get_text(&reader));
    assert_false(reader.bad);
    char *empty = wire_get_text(&reader), *text = wire_get_text(&reader);
    assert_string_equal(empty, "");
    assert_string_equal(text, "a\nb");
    assert_int_equal(reader.position, buffer.length);
    assert_int_equal(wire_get_u32(&reader), 0);
    assert_true(reader.bad);
    free(empty);
    free(text);
    strbuf_fini(&buffer);
}

static void varints_come_back(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    static const int64_t folded[] = {0, -1, 1, 63, -64, 64, INT64_MAX, INT64_MIN};
    static const size_t lengths[] = {1, 1, 1, 2, 2, 3, 5, 10, 1, 1, 1, 1, 1, 2, 10, 10};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct strbuf buffer = {0};
        bool is_signed = i >= COUNT_OF(values);
        if (is_signed)
            wire_put_signed(&buffer, folded[i - COUNT_OF(values)]);
        else
            wire_put_varint(&buffer, values[i]);
        assert_int_equal(buffer.length, lengths[i]);
        for (size_t length = 0; length <= buffer.length; length++) {
            struct wire_reader reader = {.data = (unsigned char *)buffer.data, .length = length};
            uint64_t back =
                is_signed ? (uint64_t)wire_get_signed(&reader) : wire_get_varint(&reader);
            bool whole = length == buffer.length;
            uint64_t value = is_signed ? (uint64_t)folded[i - COUNT_OF(values)] : values[i];
            assert_int_equal(reader.bad, !whole);
            assert_true(back == (whole ? value : 0));
        }
        strbuf_fini(&buffer);
    }
    static const unsigned char endless[12] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    struct wire_reader reader = {.data = endless, .length = sizeof endless};
    assert_true(wire_get_varint(&reader) == 0);
    assert_true(reader.bad);
}

static void hostile_lengths_cost_nothing(void **state)
{
    (void)state;
    const struct {
        unsigned char bytes[8];
        size_t item_bytes; /* 0: read a text instead of a count */
    } rows[] = {
        {{0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4}, 1},
        {{0xff, 0xff, 0xff, 0xff}, 1},
        {{5, 0, 0, 0}, 1},
        {{2, 0, 0, 0}, 4},
        {{0xfe, 0xff, 0xff, 0xff}, 0},
        {{5, 0, 0, 0, 'a'}, 0},
        {{2, 0, 0, 0, 'a', 0, 'b'}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct wire_reader reader = {.data = rows[i].bytes, .length = sizeof rows[i].bytes};
        if (rows[i].item_bytes && wire_get_count(&reader, rows[i].item_bytes) != 0)
            fail_msg("row %zu gave a count", i);
        if (!rows[i].item_bytes && wire_get_text(&reader))
            fail_msg("row %zu gave a text", i);
        if (!reader.bad)
            fail_msg("row %zu is not bad", i);
    }
}

static void put_three(struct strbuf *stream)
{
    frame_write(stream, 7, "hello", 5);
    frame_write(stream, 0, NULL, 0);
    frame_write(stream, UINT32_MAX, "\0\1\2", 3);
}

static void frames_come_whole_from_any_pieces(void **state)
{
    (void)state;
    struct strbuf stream = {0};
    put_three(&stream);
    assert_int_equal(stream.length, 3 * FRAME_HEADER_BYTES + 8);
    for (size_t piece = 1; piece <= stream.length; piece++) {
        struct frame_reader reader = {0};
        struct frame frame;
        struct err err = {0};
        size_t seen = 0;
        for (size_t at = 0; at < stream.length; at += piece) {
            size_t n = stream.length - at < piece ? stream.length - at : piece;
            frame_reader_add(&reader, stream.data + at, n);
            int rc;
            while ((rc = frame_reader_next(&reader, &frame, &err)) == 1) {
                static const uint32_t types[] = {7, 0, UINT32_MAX};
                static const char *const payloads[] = {"hello", "", "\0\1\2"};
                static const size_t lengths[] = {5, 0, 3};
                assert_true(frame.type == types[seen]);
                assert_int_equal(frame.length, lengths[seen]);
                assert_memory_equal(frame.payload, payloads[seen], frame.length);
                seen++;
            }
            assert_int_equal(rc, 0);
        }
        assert_int_equal(seen, 3);
        assert_int_equal(frame_reader_pending(&reader), 0);
        frame_reader_fini(&reader);
    }
    strbuf_fini(&stream);
}

static void damaged_frames_are_refused_for_good(void **state)
{
    (void)state;
    struct strbuf stream = {0};
    frame_write(&stream, 7, "hello", 5);
    for (size_t i = 0; i < stream.length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct frame_reader reader = {0};
            struct frame frame = {0};
            struct err err = {0};
            stream.data[i] ^= (char)(1 << bit);
            frame_reader_add(&reader, stream.data, stream.length);
            int rc = frame_reader_next(&reader, &frame, &err);
            /* A longer length only makes it wait for bytes that never come. */
            if (rc != -EBADMSG && !(rc == 0 && i >= 12 && i < 16))
                fail_msg("byte %zu bit %d: %d", i, bit, rc);
            if (rc == -EBADMSG) {
                frame_reader_add(&reader, stream.data, stream.length);
                assert_int_equal(frame_reader_next(&reader, &frame, &err), -EBADMSG);
                assert_int_not_equal(err.text[0], 0);
            }
            frame_reader_fini(&reader);
            stream.data[i] ^= (char)(1 << bit);
        }
    }
    strbuf_fini(&stream);
}

static void oversized_frames_are_refused(void **state)
{
    (void)state;
    struct strbuf stream = {0};
    frame_write(&stream, 1, "", (size_t)FRAME_PAYLOAD_MAX + 1);
    assert_true(stream.failed);
    assert_int_equal(stream.length, 0);
    strbuf_fini(&stream);
}

/* Decodes, and if that succeeds compares with the original bytes. Exact-size copies let the
 * sanitizer see any read past the end. */
static int decode_copy(const char *data, size_t length, const struct strbuf *original)
{
    struct gpu_result result;
    struct err err = {0};
    memset(&result, 0x55, sizeof result);
    char *exact = malloc(length ? length : 1);
    assert_non_null(exact);
    memcpy(exact, data, length);
    int rc = gpu_result_decode(exact, length, &result, &err);
    free(exact);
    if (rc) {
        assert_int_equal(((unsigned char *)&result)[0], 0x55);
        assert_int_not_equal(err.text[0], 0);
        return rc;
    }
    struct strbuf again = {0};
    gpu_result_encode(&result, &again);
    gpu_result_fini(&result);
    if (original) {
        assert_int_equal(again.length, original->length);
        assert_memory_equal(again.data, original->data, again.length);
    }
    strbuf_fini(&again);
    return 0;
}

static void encode_rich(struct strbuf *out)
{
    struct gpu_result result;
    rich_result(&result);
    gpu_result_encode(&result, out);
    gpu_result_fini(&result);
    assert_false(out->failed);
}

static void results_come_back(void **state)
{
    (void)state;
    struct strbuf bytes = {0};
    encode_rich(&bytes);
    assert_int_equal(decode_copy(bytes.data, bytes.length, &bytes), 0);
    struct gpu_result result;
    assert_int_equal(gpu_result_decode(bytes.data, bytes.length, &result, NULL), 0);
    assert_string_equal(result.node, "gpu003\nroot");
    assert_null(result.model_key);
    assert_string_equal(result.reason, "");
    assert_int_equal(result.index, -1);
    assert_int_equal(result.status, GPU_CRASHED);
    assert_true(result.elapsed_s == 6.25);
    assert_int_equal(result.run.first_status, GPU_CRASHED);
    assert_string_equal(result.run.first_reason, "worker killed by signal 11");
    assert_int_equal(result.run.gpus_allocated, 8);
    assert_int_equal(facts_int(&result.hardware, "smallest", 0), INT64_MIN);
    assert_string_equal(facts_get(&result.hardware, "l2_bytes")->text, "not supported");
    const struct measure *m = measures_get(&result.measures, "l1_data.shared_with");
    assert_int_equal(m->word_count, 3);
    assert_string_equal(m->words[2], "off");
    m = measures_get(&result.measures, "l1_data.reach");
    assert_int_equal(m->bound, MEASURE_AT_LEAST);
    m = measures_get(&result.measures, "l2.latency"); /* infinite and "ok" */
    assert_int_equal(m->status, MEASURE_FAILED);
    assert_string_equal(m->reason, "not a finite number");
    assert_int_equal(facts_get(&result.hardware, "broken")->kind, FACT_UNKNOWN);
    gpu_result_fini(&result);
    strbuf_fini(&bytes);
}

static void damaged_results_are_refused(void **state)
{
    (void)state;
    struct strbuf bytes = {0};
    encode_rich(&bytes);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] ^= (char)(1 << i % 8);
        if (decode_copy(bytes.data, bytes.length, NULL) != -EBADMSG)
            fail_msg("flipped byte %zu", i);
        bytes.data[i] ^= (char)(1 << i % 8);
        if (decode_copy(bytes.data, i, NULL) != -EBADMSG)
            fail_msg("cut at byte %zu", i);
    }
    strbuf_append(&bytes, "x", 1);
    assert_int_equal(decode_copy(bytes.data, bytes.length, NULL), -EBADMSG);
    strbuf_fini(&bytes);
}

static void mend_checksum(struct strbuf *bytes)
{
    uint32_t sum = frame_crc32(bytes->data + 8, bytes->length - 8);
    for (int i = 0; i < 4; i++)
        bytes->data[4 + i] = (char)(unsigned char)(sum >> (8 * i));
}

/* With a checksum that fits, only the bounds stand between hostile bytes and memory. */
static void forged_results_never_crash(void **state)
{
    (void)state;
    static const unsigned char patterns[] = {0x00, 0x01, 0x7f, 0xff};
    struct strbuf bytes = {0};
    encode_rich(&bytes);
    size_t refused = 0;
    for (size_t i = 8; i < bytes.length; i++) {
        char old = bytes.data[i];
        for (size_t p = 0; p < sizeof patterns; p++) {
            bytes.data[i] = (char)patterns[p];
            mend_checksum(&bytes);
            int rc = decode_copy(bytes.data, bytes.length, NULL);
            assert_true(rc == 0 || rc == -EBADMSG);
            refused += rc != 0;
        }
        bytes.data[i] = old;
    }
    assert_true(refused > bytes.length / 4);
    while (--bytes.length > 8) {
        mend_checksum(&bytes);
        assert_int_equal(decode_copy(bytes.data, bytes.length, NULL), -EBADMSG);
    }
    strbuf_fini(&bytes);
}

/* The only place where the bytes stand. */
static char *place_of(const struct strbuf *bytes, const void *wanted, size_t length)
{
    char *found = memmem(bytes->data, bytes->length, wanted, length);
    assert_non_null(found);
    assert_null(
        memmem(found + 1, bytes->length - (size_t)(found + 1 - bytes->data), wanted, length));
    return found;
}

enum { FACT_KIND_AFTER = 4 }; /* bytes of a key: then comes its kind */

/* Numbers that can be told apart in the bytes. */
static void encode_marked(enum measure_status status, struct strbuf *out)
{
    struct gpu_result result = {.uuid = (char *)"GPU-1", .elapsed_s = 41.5};
    struct measure *m = measures_add(&result.measures, "l2.size", 42.5, "B", "m");
    m->spread = 43.5;
    m->confidence = 0.4375;
    m->status = status;
    facts_set_real(&result.health, "r", 45.5);
    facts_set_unknown(&m->notes, "note", NULL);
    gpu_result_encode(&result, out);
    result.uuid = NULL;
    gpu_result_fini(&result);
}

struct forgery {
    double was, is;
    enum measure_status status;
    int rc;
};

/* A worker whose memory is damaged sends whole frames with right sums. */
static void values_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct forgery cases[] = {
        {42.5, 0, MEASURE_OK, 0},
        {42.5, -1, MEASURE_OK, 0},
        {42.5, NAN, MEASURE_OK, -EBADMSG},
        {42.5, INFINITY, MEASURE_NOISY, -EBADMSG},
        {42.5, NAN, MEASURE_FAILED, 0},
        {43.5, 0, MEASURE_OK, 0},
        {43.5, NAN, MEASURE_OK, -EBADMSG},
        {43.5, -1e-9, MEASURE_OK, -EBADMSG},
        {43.5, INFINITY, MEASURE_OK, -EBADMSG},
        {0.4375, 1, MEASURE_OK, 0},
        {0.4375, NAN, MEASURE_OK, 0}, /* not known */
        {0.4375, 1.5, MEASURE_OK, -EBADMSG},
        {0.4375, -0.1, MEASURE_OK, -EBADMSG},
        {0.4375, INFINITY, MEASURE_OK, -EBADMSG},
        {41.5, NAN, MEASURE_OK, -EBADMSG},
        {41.5, -1, MEASURE_OK, -EBADMSG},
        {45.5, NAN, MEASURE_OK, -EBADMSG},
        {45.5, -INFINITY, MEASURE_OK, -EBADMSG},
        {45.5, -3, MEASURE_OK, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strbuf bytes = {0};
        encode_marked(cases[i].status, &bytes);
        memcpy(place_of(&bytes, &cases[i].was, 8), &cases[i].is, 8);
        mend_checksum(&bytes);
        if (decode_copy(bytes.data, bytes.length, &bytes) != cases[i].rc)
            fail_msg("%g instead of %g", cases[i].is, cases[i].was);
        strbuf_fini(&bytes);
    }
}

static void a_text_without_text_is_refused(void **state)
{
    (void)state;
    struct strbuf bytes = {0};
    encode_marked(MEASURE_OK, &bytes);
    char *kind = place_of(&bytes, "note", 4) + FACT_KIND_AFTER;
    assert_int_equal(*kind, FACT_UNKNOWN);
    *kind = FACT_BOOL;
    mend_checksum(&bytes);
    assert_int_equal(decode_copy(bytes.data, bytes.length, &bytes), 0);
    *kind = FACT_TEXT;
    mend_checksum(&bytes);
    assert_int_equal(decode_copy(bytes.data, bytes.length, &bytes), -EBADMSG);
    strbuf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_the_usual_one),
        cmocka_unit_test(wire_values_come_back),
        cmocka_unit_test(varints_come_back),
        cmocka_unit_test(hostile_lengths_cost_nothing),
        cmocka_unit_test(frames_come_whole_from_any_pieces),
        cmocka_unit_test(damaged_frames_are_refused_for_good),
        cmocka_unit_test(oversized_frames_are_refused),
        cmocka_unit_test(results_come_back),
        cmocka_unit_test(damaged_results_are_refused),
        cmocka_unit_test(forged_results_never_crash),
        cmocka_unit_test(values_that_are_none_are_refused),
        cmocka_unit_test(a_text_without_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
