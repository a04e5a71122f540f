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
        assert_non_null(probe->run);
        assert_non_null(probe->metrics[0]);
        assert_true(strlen(probe->description.summary) < 70);
        for (size_t d = 0; d < PROBE_LIST_MAX && probe->depends[d]; d++) {
            size_t at;
            assert_true(position(&all, probe->depends[d], &at));
            assert_true(at < i);
        }
    }
    free(all.indices);
}

static void selections(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        size_t count;
        const char *error;
    } cases[] = {
        {"main.latency", 1, NULL},
        {"l1_data.size", 2, NULL}, /* and what it depends on */
        {"l1_data", 3, NULL},
        {"l1_data,main", 4, NULL},
        {"main.latency,main.latency", 1, NULL},
        {"l1_data.sise", 0, "did you mean \"l1_data.size\"?"},
        {"l1_dat", 0, "no probe is called"},
        {"", 0, "no probe is called"},
        {"main,,l1_data", 0, "no probe is called"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct probe_selection s = {0};
        struct err err = {0};
        int rc = probes_select(PROFILE_STANDARD, cases[i].list, &s, &err);
        assert_int_equal(rc, cases[i].error ? -EINVAL : 0);
        assert_int_equal(s.count, cases[i].count);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dependencies), cmocka_unit_test(selections),
                                       cmocka_unit_test(profiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
