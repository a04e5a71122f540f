/* Strings: parsers, buffers, nearest word; growing arrays, arenas and whole writes beside them. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

static void parses_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        uint64_t bytes;
    } cases[] = {
        {"0", 0, 0},
        {"131072", 0, 131072},
        {"128 KiB", 0, 131072},
        {"128K", 0, 131072},
        {"1.5 MiB", 0, 1572864},
        {"40GiB", 0, 42949672960u},
        {"64B", 0, 64},
        {"9223372036854775808", 0, 9223372036854775808u},
        {"99999999999999999999", -ERANGE, 0},
        {"99999999999 TiB", -ERANGE, 0},
        {"-1", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"KiB", -EINVAL, 0},
        {"1.3 B", -EINVAL, 0},
        {"12 apples", -EINVAL, 0},
        {"1 KiBB", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"1.2.3K", -EINVAL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t bytes = 42;
        int rc = str_parse_bytes(cases[i].text, &bytes);
        if (rc != cases[i].rc || bytes != (rc ? 42 : cases[i].bytes))
            fail_msg("\"%s\": %d, %llu", cases[i].text, rc, (unsigned long long)bytes);
    }
}

static void parses_numbers(void **state)
{
    (void)state;
    uint64_t u;
    double f;
    assert_int_equal(str_parse_u64("0x10", &u), 0);
    assert_int_equal(u, 16);
    assert_int_equal(str_parse_u64("12a", &u), -EINVAL);
    assert_int_equal(str_parse_u64(" 12", &u), -EINVAL);
    assert_int_equal(str_parse_u64("18446744073709551616", &u), -ERANGE);
    assert_int_equal(str_parse_f64("-1.5e3", &f), 0);
    assert_true(f == -1500);
    assert_int_equal(str_parse_f64("nan", &f), -EINVAL);
    assert_int_equal(str_parse_f64("inf", &f), -EINVAL);
    assert_int_equal(str_parse_f64("1e999", &f), -ERANGE);
    assert_int_equal(str_parse_f64("", &f), -EINVAL);
    assert_int_equal(str_parse_f64("1 ", &f), -EINVAL);
}

static void finds_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"l1_data.size", "l1_data.line", "main.latency"};
    assert_string_equal(str_nearest("l1_data.sise", words, 3), "l1_data.size");
    assert_string_equal(str_nearest("main.latancy", words, 3), "main.latency");
    assert_null(str_nearest("zebra", words, 3));
    assert_null(str_nearest("", words, 3));
    assert_null(str_nearest("x", words, 0));
}

static void buffers_grow(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&buf, "%d,", i);
    assert_int_equal(strlen(buf.data), buf.length);
    assert_int_equal(strncmp(buf.data, "0,1,2,", 6), 0);
    strbuf_fini(&buf);
    assert_null(buf.data);
    assert_true(str_equal(NULL, NULL));
    assert_false(str_equal(NULL, ""));
}

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    size_t capacity = 0;
    int *numbers = NULL;
    struct arena arena = {0};
    numbers = mem_grow(NULL, &capacity, 100, sizeof *numbers);
    assert_true(capacity >= 100);
    assert_int_equal(numbers[99], 0);
    free(numbers);
    for (size_t i = 1; i < 100000; i *= 3) {
        char *block = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)block % 16, 0);
        memset(block, 1, i);
    }
    assert_string_equal(arena_copy(&arena, "abcdef", 3), "abc");
    arena_fini(&arena);
}

static void copies_and_orders(void **state)
{
    (void)state;
    char *copy = NULL;
    copy = str_copy("abc");
    assert_string_equal(copy, "abc");
    free(copy);
    copy = str_copy(NULL);
    assert_null(copy);
    assert_true(str_order("a", "b") < 0 && str_order("b", "a") > 0 && str_order("a", "a") == 0);
    assert_true(str_order(NULL, "a") < 0 && str_order("a", NULL) > 0);
    assert_true(str_order(NULL, NULL) == 0 && str_order(NULL, "") == 0);
    assert_true(str_equal(NULL, NULL) && !str_equal(NULL, "") && str_equal("a", "a"));
}

/* More than a pipe holds, so that it takes several writes. */
static void writes_all(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char *sent = mem_array(BYTES, 1);
    assert_non_null(sent);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(io_write_all(ends[1], sent, BYTES) != 0);
    }
    assert_true(child > 0);
    close(ends[1]);
    size_t got = 0;
    char block[4096];
    for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0;)
        got += (size_t)n;
    assert_int_equal(got, BYTES);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    free(sent);
    assert_int_equal(io_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(io_write_all(-1, "", 0), 0);
}

static void last_parts(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"/usr/bin/gpumemtopo-survey", "gpumemtopo-survey"},
                                          {"./survey", "survey"},
                                          {"survey", "survey"},
                                          {"folder/", ""},
                                          {"/", ""},
                                          {"", ""}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(str_last_part(rows[i][0]), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parses_bytes),
                                       cmocka_unit_test(parses_numbers),
                                       cmocka_unit_test(finds_nearest),
                                       cmocka_unit_test(buffers_grow),
                                       cmocka_unit_test(memory_is_zeroed_and_aligned),
                                       cmocka_unit_test(copies_and_orders),
                                       cmocka_unit_test(writes_all),
                                       cmocka_unit_test(last_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
