/* The probe table: complete, without cycles, selected by profile, name and group. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"

static bool position(const struct probe_selection *s, const char *name, size_t *out_position)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(probe_describe(s->indices[i]).name, name) == 0) {
            *out_position = i;
            return true;
        }
    }
    return false;
}

/* Every dependency exists and stands before its user: so the table has no cycle. */
static void dependencies(void **state)
{
    (void)state;
    struct probe_selection all;
    struct err err = {0};
    assert_int_equal(probes_select(PROFILE_FULL, NULL, &all, &err), 0);
    assert_int_equal(all.count, probe_count());
    for (size_t i = 0; i < all.count; i++) {
        const struct probe *probe = probe_table[all.indices[i]];
        assert_true(!probe->run != !probe->run_study);
        assert_non_null(probe->metrics[0]);
        assert_true(strlen(probe->description.summary) < 70);
        for (size_t d = 0; d < PROBE_LIST_MAX && probe->depends[d]; d++) {
            size_t at = 0;
            assert_true(position(&all, probe->depends[d], &at));
            assert_true(at < i);
        }
    }
    free(all.indices);
}

/* Probes of a group, counted without the code under test. */
static size_t members(const char *group)
{
    size_t count = 0;
    for (size_t i = 0; i < probe_count(); i++) {
        const char *name = probe_describe(i).name;
        count += strncmp(name, group, strlen(group)) == 0 && name[strlen(group)] == '.';
    }
    return count;
}

static void selections(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *groups[2]; /* all of these, and */
        size_t more;           /* so many single ones, what they depend on included */
        const char *error;
    } cases[] = {
        {"main.latency", {NULL}, 1, NULL},
        {"cache.shared", {NULL}, 5, NULL},
        {"l1_data", {"l1_data"}, 0, NULL},
        {"l1_data,main", {"l1_data", "main"}, 3, NULL}, /* main.first_end: parts and groups */
        {"main.latency,main.latency", {NULL}, 1, NULL},
        {"l1_data.sise", {NULL}, 0, "did you mean \"l1_data.size\"?"},
        {"l1_dat", {NULL}, 0, "no probe is called"},
        {"", {NULL}, 0, "no probe is called"},
        {"main,,l1_data", {NULL}, 0, "no probe is called"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct probe_selection s = {0};
        struct err err = {0};
        size_t expected = cases[i].more;
        for (size_t g = 0; g < 2 && cases[i].groups[g]; g++)
            expected += members(cases[i].groups[g]);
        int rc = probes_select(PROFILE_STANDARD, cases[i].list, &s, &err);
        assert_int_equal(rc, cases[i].error ? -EINVAL : 0);
        assert_int_equal(s.count, expected);
        if (cases[i].error)
            assert_non_null(strstr(err.text, cases[i].error));
        free(s.indices);
    }
}

static void profiles(void **state)
{
    (void)state;
    enum probe_profile profile;
    assert_int_equal(probe_profile_parse("quick", &profile), 0);
    assert_int_equal(profile, PROFILE_QUICK);
    assert_int_equal(probe_profile_parse("full", &profile), 0);
    assert_int_equal(profile, PROFILE_FULL);
    assert_int_equal(probe_profile_parse("fast", &profile), -EINVAL);
}

static void metrics(void **state)
{
    (void)state;
    const char *nearest;
    assert_true(probe_reports("l1_data.size", &nearest));
    assert_true(probe_reports("host.bandwidth.d2h", &nearest));
    assert_false(probe_reports("l1_data.sizes", &nearest));
    assert_string_equal(nearest, "l1_data.size");
    assert_false(probe_reports("zebra", &nearest));
    assert_null(nearest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dependencies), cmocka_unit_test(selections),
                                       cmocka_unit_test(profiles), cmocka_unit_test(metrics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
