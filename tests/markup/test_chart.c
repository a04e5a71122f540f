/* Scales and steps of drawings, lines and labels in their place, heads of tables. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "markup/chart.h"
#include "markup/table.h"

static const struct chart plain = {.width = 200,
                                   .height = 100,
                                   .left = 20,
                                   .right = 120,
                                   .top = 10,
                                   .bottom = 60,
                                   .title_y = 8,
                                   .x = {10, 30},
                                   .y = {0, 5}};

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%g instead of %g", value, wanted);
}

static void scales(void **state)
{
    (void)state;
    struct chart chart = plain;
    assert_near(chart_x(&chart, 10), 20, 1e-9);
    assert_near(chart_x(&chart, 20), 70, 1e-9);
    assert_near(chart_x(&chart, 40), 170, 1e-9); /* beyond the frame */
    assert_near(chart_y(&chart, 0), 60, 1e-9);
    assert_near(chart_y(&chart, 5), 10, 1e-9);
    chart.x = (struct chart_scale){1, 100, true};
    assert_near(chart_x(&chart, 10), 70, 1e-9);
    chart.x = (struct chart_scale){7, 7, false}; /* one survey, one size */
    assert_near(chart_x(&chart, 7), 20, 1e-9);
}

static void widening(void **state)
{
    (void)state;
    struct chart_scale scale = {INFINITY, -INFINITY, false};
    chart_widen(&scale, NAN);
    chart_widen(&scale, 3);
    chart_widen(&scale, -2);
    assert_near(scale.low, -2, 0);
    assert_near(scale.high, 3, 0);
}

static void steps(void **state)
{
    (void)state;
    static const struct {
        double high, end;
    } ends[] = {{0, 1}, {0.9, 0.92}, {1, 1.2}, {97, 100}, {4660, 4800}, {1980, 2200}};
    static const struct {
        double span, decimal, binary;
    } spans[] = {{10, 2, 2}, {7, 1, 1}, {70, 10, 16}, {1000, 200, 256}, {0.3, 0.05, 0.0625}};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        assert_near(chart_round_end(ends[i].high), ends[i].end, 1e-9);
    for (size_t i = 0; i < COUNT_OF(spans); i++) {
        assert_near(chart_decimal_step(spans[i].span, 7), spans[i].decimal, 1e-9);
        assert_near(chart_binary_step(spans[i].span, 7), spans[i].binary, 1e-9);
    }
}

/* Names that come from outside are text, and the values are where the scales say. */
static void drawing(void **state)
{
    (void)state;
    struct strbuf out = {0};
    chart_begin(&out, &plain, "<b>", " (GB/s)");
    chart_y_tick(&out, &plain, 5, "5");
    chart_x_tick(&out, &plain, 20, true, "20 & more");
    chart_frame(&out, &plain);
    chart_line_begin(&out, "series s0");
    chart_line_point(&out, &plain, 10, 0);
    chart_line_point(&out, &plain, 30, 5);
    chart_line_end(&out);
    chart_end(&out);
    static const char *const parts[] = {
        "<title>&#60;b&#62;</title>",
        "y=\"8\">&#60;b&#62; (GB/s)</text>",
        "<line class=\"grid\" x1=\"20\" y1=\"10.0\" x2=\"120\" y2=\"10.0\"/>",
        "<text x=\"14.0\" y=\"14.0\" text-anchor=\"end\">5</text>",
        "<line class=\"grid\" x1=\"70.0\" y1=\"10\" x2=\"70.0\" y2=\"60\"/>",
        "<text x=\"70.0\" y=\"78.0\" text-anchor=\"middle\">20 &#38; more</text>",
        "<rect class=\"frame\" x=\"20\" y=\"10\" width=\"100\" height=\"50\"/>",
        "points=\"20.0,60.0 120.0,10.0 \"/>"};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!strstr(out.data, parts[i]))
            fail_msg("no %s in\n%s", parts[i], out.data);
    strbuf_fini(&out);
}

static void tables(void **state)
{
    (void)state;
    struct strbuf out = {0};
    table_begin(&out, "sort filter", "node|#GPUs|cause");
    table_row(&out);
    table_name(&out, "a<b");
    table_count(&out, 3);
    table_sentence(&out, NULL);
    table_index(&out, -1);
    table_index(&out, 4);
    table_end(&out);
    assert_string_equal(out.data,
                        "<div class=wide><table class=\"sort filter\"><thead><tr><th>node<th "
                        "class=n>GPUs<th>cause</thead><tbody>\n<tr><td>a&#60;b<td class=n>3<td "
                        "class=t>-<td class=n>-<td class=n>4</tbody></table></div>\n");
    strbuf_fini(&out);
    table_begin(&out, NULL, "");
    assert_string_equal(out.data, "<div class=wide><table><thead><tr></thead><tbody>\n");
    strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales),  cmocka_unit_test(widening), cmocka_unit_test(steps),
        cmocka_unit_test(drawing), cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
