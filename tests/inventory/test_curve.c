/* Curves: to text and back, and what is none. */
#include "../check.h"

#include <string.h>

#include "inventory/curve.h"

static void comes_back(void **state)
{
    (void)state;
    struct curve curve = {.hit = 29.1, .far = 456, .miss = 622.75}, back;
    struct strbuf text = {0};
    for (size_t i = 0; i < CURVE_POINTS_MAX; i++)
        curve.points[curve.count++] =
            (struct curve_point){1e6 * (double)(i + 1), 29 + (double)i, (double)i / 128};
    curve_print(&curve, &text);
    assert_false(text.failed);
    assert_true(curve_read(text.data, &back));
    assert_int_equal(back.count, curve.count);
    assert_true(back.hit == 29.1 && back.far == 456 && back.miss == 622.75);
    for (size_t i = 0; i < curve.count; i++) {
        assert_true(back.points[i].bytes == curve.points[i].bytes);
        assert_true(back.points[i].cycles == curve.points[i].cycles);
        assert_float_equal(back.points[i].missed, curve.points[i].missed, 1e-4);
    }
    strbuf_puts(&text, "; 1 2 0.5"); /* one too many */
    assert_false(curve_read(text.data, &back));
    strbuf_fini(&text);
}

static void what_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "hit 1 far 0 miss 2",
        "hit 1 far 0 miss 2; bytes cycles missed",
        "hit 1 far 0 miss 2; bytes cycles missed; 1 2",
        "hit 1 far 0 miss 2; bytes cycles missed; 1 2 nan",
        "hit 1 far 0 miss 2; bytes cycles missed; 1 2 0.5 and more",
        "GB/s by bytes x threads with 1 2 4 8 blocks per SM; 4x32 1 2 3 4",
    };
    struct curve curve;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_false(curve_read(texts[i], &curve));
    assert_true(curve_read("hit 1 far 0 miss 2; bytes cycles missed; 64 1 0.5", &curve));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
