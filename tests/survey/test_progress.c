/* The progress line: what it says, when it is due, and that no name can break it. */
#include "../check.h"

#include <string.h>

#include "base/mem.h"
#include "survey/root/progress.h"

static void the_line_says_it_all(void **state)
{
    (void)state;
    struct gpu_result third = {.node = (char *)"gpu003", .index = 2};
    struct gpu_result hostile = {.node = (char *)"\x1b[2Jgpu\n\r", .index = -1};
    const struct root_slowest slow = {&third, "l2.size", 14.4}, odd = {&hostile, "\x1b]0;x", 1};
    const struct {
        struct progress_state state;
        unsigned columns;
        const char *line;
    } rows[] = {
        {{0, 16, 3.2, NULL}, 80, "0 of 16 GPUs; 3 s"},
        {{12, 16, 24, &slow},
         80,
         "12 of 16 GPUs, slowest gpu003 GPU 2 in l2.size since 14 s; 24 s, about 8 s left"},
        {{12, 16, 24, &slow}, 40, "12 of 16 GPUs, slowest gpu003 GPU 2 i..."},
        {{16, 16, 24, NULL}, 80, "16 of 16 GPUs; 24 s"},
        {{1, 2, 5, &odd},
         90,
         "1 of 2 GPUs, slowest ?[2Jgpu?? in ?]0;x since 1 s; 5 s, about 5 s left"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf line = {0};
        progress_line(&rows[i].state, rows[i].columns, &line);
        assert_string_equal(line.data, rows[i].line);
        strbuf_fini(&line);
    }
}

static void a_log_gets_one_in_ten_seconds(void **state)
{
    (void)state;
    struct progress log = {.enabled = true, .last_s = 100};
    struct progress terminal = {.enabled = true, .terminal = true, .last_s = 100};
    struct progress off = {.last_s = 100};
    assert_false(progress_due(&log, 109.9));
    assert_true(progress_due(&log, 110));
    assert_false(progress_due(&terminal, 100.1));
    assert_true(progress_due(&terminal, 100.3));
    assert_false(progress_due(&off, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_says_it_all),
        cmocka_unit_test(a_log_gets_one_in_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
