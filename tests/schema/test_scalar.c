/* Single values as YAML: quoting, escapes, shortest numbers that read back. */
#include "../check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "schema/scalar.h"

static void texts_are_quoted_where_needed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *yaml;
    } rows[] = {
        {NULL, "null"},
        {"", "\"\""},
        {"null", "\"null\""},
        {"NULL", "\"NULL\""},
        {"Yes", "\"Yes\""},
        {"n", "\"n\""},
        {"no way", "no way"},
        {"trailing ", "\"trailing \""},
        {"chase+cpd", "chase+cpd"},
        {"GB/s", "GB/s"},
        {"GPU-12ab", "GPU-12ab"},
        {"main.bandwidth.read", "main.bandwidth.read"},
        {"0.1.0", "0.1.0"},
        {"0.1.0.", "\"0.1.0.\""},
        {"9.0", "\"9.0\""},
        {"12:30:45", "\"12:30:45\""},
        {"2026-11-14", "\"2026-11-14\""},
        {"-o", "\"-o\""},
        {"a: b", "\"a: b\""},
        {"a #b", "\"a #b\""},
        {"a,b", "\"a,b\""},
        {"say \"hi\" \\ now", "\"say \\\"hi\\\" \\\\ now\""},
        {"\t\n\r\x1b\x7f", "\"\\t\\n\\r\\x1B\\x7F\""},
        {"\xc2\x9b", "\"\\u009B\""},
        {"\xe2\x80\xa8", "\"\\u2028\""},
        {"\xef\xbb\xbf", "\"\\uFEFF\""},
        {"\xc3\xa4", "\"\xc3\xa4\""},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"\xff", "\"\xef\xbf\xbd\""},
        {"\xc3", "\"\xef\xbf\xbd\""},
        {"\xc3(", "\"\xef\xbf\xbd(\""},
        {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\x80", "\"\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf buffer = {0};
        scalar_put_text(&buffer, rows[i].text);
        if (strcmp(buffer.data, rows[i].yaml) != 0)
            fail_msg("row %zu: %s, expected %s", i, buffer.data, rows[i].yaml);
        strbuf_fini(&buffer);
    }
}

static void numbers_are_shortest(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *yaml;
    } rows[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-3051, "-3051"},
        {0.1, "0.1"},
        {0.30000000000000004, "0.30000000000000004"},
        {-0.327, "-0.327"},
        {100, "100"},
        {1e15, "1000000000000000"},
        {123456789012345.0, "123456789012345"},
        {0x1p52 - 1, "4503599627370495"},
        {1e16, "1.0e+16"},
        {1.5e20, "1.5e+20"},
        {1e-5, "0.00001"},
        {1e-6, "1.0e-06"},
        {5e-324, "4.94065645841247e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {0.00012345, "0.00012345"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf buffer = {0};
        scalar_put_number(&buffer, rows[i].value);
        if (strcmp(buffer.data, rows[i].yaml) != 0)
            fail_msg("row %zu: %s, expected %s", i, buffer.data, rows[i].yaml);
        strbuf_fini(&buffer);
    }
}

static double draw(struct rng *rng, unsigned kind)
{
    uint64_t bits = rng_next(rng);
    double value;
    switch (kind) {
    case 0: /* any bit pattern */
        memcpy(&value, &bits, sizeof value);
        return isfinite(value) ? value : 1;
    case 1: /* what measurements look like */
        return rng_uniform(rng) * 1e4;
    case 2: /* few decimals */
        return (double)(bits % 10000000) / 1000;
    default: /* neighbours of short decimals */
        return nextafter((double)(bits % 100000) / 100, INFINITY);
    }
}

static void numbers_read_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1, "test_scalar");
    for (unsigned i = 0; i < 100000; i++) {
        double value = draw(&rng, i % 4);
        struct strbuf buffer = {0};
        scalar_put_number(&buffer, value);
        if (strtod(buffer.data, NULL) != value)
            fail_msg("%s is not %.17g", buffer.data, value);
        /* %g drops trailing zeros, so 15 digits show what needs no more at its shortest. */
        char shortest[40];
        snprintf(shortest, sizeof shortest, "%.15g", value);
        if (i % 4 == 2 && strcmp(buffer.data, shortest) != 0)
            fail_msg("%s, but %s is shortest", buffer.data, shortest);
        strbuf_fini(&buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quoted_where_needed),
        cmocka_unit_test(numbers_are_shortest),
        cmocka_unit_test(numbers_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
