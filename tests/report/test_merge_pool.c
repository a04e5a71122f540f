/* Who counts when several files tell of one GPU. */
#include "../check.h"

#include <string.h>

#include "report/merge/merge_source.h"

struct said {
    int count;
    size_t kept, dropped; /* sources of the last pair */
};

static void said(void *user, const struct merge_entry *kept, const struct merge_entry *dropped)
{
    struct said *notes = user;
    notes->count++;
    notes->kept = kept->source;
    notes->dropped = dropped->source;
}

struct pool_case {
    const char *what;
    struct merge_entry entries[3];
    size_t count;
    size_t kept; /* source */
    int said;
};

static void newest_wins(void **state)
{
    (void)state;
    static const struct pool_case cases[] = {
        {"alone", {{.uuid = "a", .time_ms = 5, .source = 0}}, 1, 0, 0},
        {"newer first",
         {{.uuid = "a", .time_ms = 9, .source = 0}, {.uuid = "a", .time_ms = 5, .source = 1}},
         2,
         0,
         1},
        {"newer last",
         {{.uuid = "a", .time_ms = 5, .source = 0}, {.uuid = "a", .time_ms = 9, .source = 1}},
         2,
         1,
         1},
        {"as old: the later named",
         {{.uuid = "a", .time_ms = 5, .source = 1}, {.uuid = "a", .time_ms = 5, .source = 0}},
         2,
         1,
         1},
        {"a plan that was carried out, on a node whose clock is behind",
         {{.uuid = "a", .time_ms = 9, .source = 0, .survey = "s", .planned = true},
          {.uuid = "a", .time_ms = 5, .source = 1, .survey = "s"}},
         2,
         1,
         0},
        {"a plan of a later survey, never carried out",
         {{.uuid = "a", .time_ms = 9, .source = 0, .survey = "t", .planned = true},
          {.uuid = "a", .time_ms = 5, .source = 1, .survey = "s"}},
         2,
         0,
         1},
        {"newer, but its survey was interrupted",
         {{.uuid = "a", .time_ms = 5, .source = 0},
          {.uuid = "a", .time_ms = 9, .source = 1, .cut_short = true}},
         2,
         0,
         1},
        {"all were interrupted",
         {{.uuid = "a", .time_ms = 5, .source = 0, .cut_short = true},
          {.uuid = "a", .time_ms = 9, .source = 1, .cut_short = true}},
         2,
         1,
         1},
        {"three",
         {{.uuid = "a", .time_ms = 1, .source = 0},
          {.uuid = "a", .time_ms = 3, .source = 1},
          {.uuid = "a", .time_ms = 2, .source = 2}},
         3,
         1,
         2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct merge_pool pool = {0};
        struct said notes = {0};
        size_t left = 0, source = 99;
        for (size_t k = 0; k < cases[i].count; k++)
            merge_pool_add(&pool, &cases[i].entries[k]);
        merge_pool_settle(&pool, said, &notes);
        for (size_t k = 0; k < pool.count; k++)
            if (!pool.entries[k].dropped) {
                left++;
                source = pool.entries[k].source;
            }
        if (left != 1 || source != cases[i].kept || notes.count != cases[i].said)
            fail_msg("%s: %zu left, source %zu, said %d", cases[i].what, left, source, notes.count);
        if (notes.count)
            assert_int_equal(notes.kept, cases[i].kept);
        merge_pool_fini(&pool);
    }
}

static void others_are_left_alone(void **state)
{
    (void)state;
    struct merge_pool pool = {0};
    struct said notes = {0};
    const char *const uuids[] = {"c", "a", "b"};
    for (size_t i = 0; i < COUNT_OF(uuids); i++) {
        const struct merge_entry entry = {.uuid = uuids[i], .source = i};
        merge_pool_add(&pool, &entry);
    }
    merge_pool_settle(&pool, said, &notes);
    for (size_t i = 0; i < pool.count; i++)
        assert_false(pool.entries[i].dropped);
    assert_int_equal(notes.count, 0);
    merge_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_wins),
        cmocka_unit_test(others_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
