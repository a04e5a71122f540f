/* Accesses of traces as bytes: what is written is read, extremes included; anything else is
 * refused.
 */
#include "../check.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "predict/trace/access_code.h"
#include "predict/trace/head.h"

static struct warp_access even(uint64_t base, int64_t step_x, uint32_t lanes_x, int64_t step_y,
                               uint32_t bytes, uint32_t mask)
{
    return (struct warp_access){.mask = mask,
                                .bytes = bytes,
                                .lanes_x = lanes_x,
                                .base = base,
                                .step_x = step_x,
                                .step_y = step_y};
}

static void assert_same(const struct warp_access *a, const struct warp_access *b)
{
    assert_int_equal(a->store, b->store);
    assert_int_equal(a->mask, b->mask);
    assert_int_equal(a->bytes, b->bytes);
    for (uint32_t lane = 0; lane < WARP_LANES; lane++)
        if (a->mask >> lane & 1)
            assert_true(trace_lanes_address(a, lane) == trace_lanes_address(b, lane));
}

/* Writes with one state and reads with another one, as file and reader do. */
static size_t round_trip(struct trace_code *writing, struct trace_code *reading,
                         const struct warp_access *access, uint64_t pc)
{
    uint8_t bytes[TRACE_ACCESS_BYTES_MAX];
    struct warp_access got = {0};
    uint64_t got_pc = 0;
    const char *expected = NULL;
    size_t length = trace_code_put(writing, access, pc, bytes);
    assert_in_range(length, 1, TRACE_ACCESS_BYTES_MAX);
    assert_int_equal(trace_code_get(reading, bytes, length, &got, &got_pc, &expected), length);
    assert_null(expected);
    assert_true(got_pc == pc);
    assert_same(access, &got);
    /* A record that is cut off is refused. */
    for (size_t cut = 0; cut < length; cut++) {
        struct trace_code copy = *writing;
        if (trace_code_get(&copy, bytes, cut, &got, &got_pc, &expected))
            fail_msg("%zu of %zu bytes were enough", cut, length);
        assert_non_null(expected);
    }
    return length;
}

static const uint64_t end = TRACE_ADDRESS_END;

static void extremes(void **state)
{
    (void)state;
    const int64_t far = (int64_t)(end / 32);
    const struct warp_access cases[] = {
        even(0, 0, 32, 0, 1, 1),
        even(end - 1, 0, 32, 0, 1, UINT32_MAX),
        even(0, 0, 32, 0, 32, UINT32_MAX),
        even(end - 32, 0, 32, 0, 32, 0x80000000),
        even(0, far, 32, 0, 4, UINT32_MAX),
        even(31 * (uint64_t)far, -far, 32, 0, 4, UINT32_MAX),
        even(0, 4, 16, 1 << 20, 4, UINT32_MAX),
        even(1 << 22, -8, 2, 64, 8, 0x55555555),
        even(4096, 4, 1, 4, 4, 0xff00ff00),
        even(end - 128, 4, 32, 0, 4, UINT32_MAX),
    };
    static const uint64_t pcs[] = {0, UINT64_MAX, 1, INT64_MAX, 0};
    struct trace_code writing = {0}, reading = {0};
    for (size_t i = 0; i < 5 * COUNT_OF(cases); i++) {
        struct warp_access access = cases[i * 7 % COUNT_OF(cases)];
        access.store = i & 1;
        round_trip(&writing, &reading, &access, pcs[i % COUNT_OF(pcs)]);
    }
}

static void lists(void **state)
{
    (void)state;
    struct trace_code writing = {0}, reading = {0};
    struct rng rng;
    rng_init(&rng, 1, "lists");
    for (int i = 0; i < 2000; i++) {
        struct warp_access access = {.listed = true,
                                     .bytes = UINT32_C(1) << rng_below(&rng, 6),
                                     .mask = (uint32_t)rng_below(&rng, UINT32_MAX) + 1,
                                     .store = rng_below(&rng, 2)};
        uint64_t span = UINT64_C(1) << (5 + rng_below(&rng, 51)); /* up to 2^55 */
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            access.addresses[lane] = rng_below(&rng, span) / access.bytes * access.bytes;
        round_trip(&writing, &reading, &access, rng_below(&rng, 40));
    }
    struct warp_access widest = {.listed = true, .bytes = 1, .mask = UINT32_MAX};
    for (uint32_t lane = 0; lane < WARP_LANES; lane++)
        widest.addresses[lane] = lane & 1 ? end - 1 - lane * lane : lane * lane * lane;
    round_trip(&writing, &reading, &widest, UINT64_MAX);
}

/* Addresses that lie evenly need no list, whatever lanes are active; a loop needs one byte. */
static void even_lists(void **state)
{
    (void)state;
    static const uint32_t masks[] = {UINT32_MAX, 1, 0x80000001, 0xf0f0, 0xffff0000, 0x10};
    for (size_t m = 0; m < COUNT_OF(masks); m++) {
        for (uint32_t lanes_x = 2; lanes_x <= WARP_LANES; lanes_x *= 2) {
            struct warp_access plain = even(1 << 20, 8, lanes_x, 4096, 8, masks[m]);
            struct warp_access access = plain;
            access.listed = true;
            for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                access.addresses[lane] = trace_lanes_address(&plain, lane);
            struct trace_code writing = {0}, reading = {0};
            for (int k = 0; k < 4; k++) {
                size_t length = round_trip(&writing, &reading, &access, 16);
                if (k > 1)
                    assert_int_equal(length, 1);
                for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                    access.addresses[lane] += 128;
            }
        }
    }
}

static void refused_accesses(void **state)
{
    (void)state;
    struct warp_access list = {.listed = true, .bytes = 4, .mask = 7, .addresses = {4, 9, 64}};
    const struct warp_access cases[] = {
        even(0, 4, 32, 0, 4, 0),
        even(0, 3, 32, 0, 3, 1),
        even(0, 64, 32, 0, 64, 1),
        even(0, 4, 32, 0, 0, 1),
        even(2, 4, 32, 0, 4, 1),
        even(0, 2, 32, 0, 4, 3),
        even(end, 0, 32, 0, 1, 1),
        even(end - 4, 4, 32, 0, 4, 3),
        even(4, -8, 32, 0, 4, 3),
        even(UINT64_MAX, 0, 32, 0, 1, 1),
        list,
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trace_code code = {0};
        uint8_t bytes[TRACE_ACCESS_BYTES_MAX];
        if (trace_code_put(&code, &cases[i], 0, bytes))
            fail_msg("case %zu was written", i);
    }
}

static void refused_bytes(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[24];
        size_t length;
        const char *expected;
    } cases[] = {
        {{0}, 0, "an access within the page"},
        {{0x00}, 1, "a slot that has none"},
        {{0x10}, 1, "an access within the page"},
        {{0x10, 6 << 1, 0}, 3, "1 to 32 bytes"},
        {{0x10, 0xfe, 0}, 3, "1 to 32 bytes"},
        {{0x30, 4, 0, 0}, 4, "a mask"},
        {{0x30, 4, 0, 0xff, 0xff, 0xff, 0xff, 0x1f}, 8, "a mask"},
        {{0x50, 4, 0, 7, 0, 0}, 6, "a layout"},
        {{0x10, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 12, "64 bits"},
        {{0x90, 4, 0, 1}, 4, "below 2^56"},       /* base -1 */
        {{0x90, 4, 0, 2}, 4, "multiples"},        /* base 1, element 4 */
        {{0x50, 4, 0, 6, 4}, 5, "multiples"},     /* step 2 */
        {{0x50, 4, 0, 6, 7}, 5, "below 2^56"},    /* step -4 from 0 */
        {{0x70, 4, 0, 3, 0, 3}, 6, "below 2^56"}, /* listed: 0, then -2 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trace_code code = {0};
        struct warp_access access;
        uint64_t pc;
        const char *expected = "";
        if (trace_code_get(&code, cases[i].bytes, cases[i].length, &access, &pc, &expected))
            fail_msg("case %zu was read", i);
        if (!strstr(expected, cases[i].expected))
            fail_msg("case %zu: expected %s", i, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extremes),      cmocka_unit_test(lists),
        cmocka_unit_test(even_lists),    cmocka_unit_test(refused_accesses),
        cmocka_unit_test(refused_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
