/* Figures of one GPU that must add up, and lines that are no surer than the size. */
#include "../check.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "probes/sums.h"

/* Figures as a GPU's probes left them; 0: not measured. */
static const struct figures {
    const char *what;
    double near, far, parts, penalty, main;
    bool penalty_ok, main_ok;
} figures[] = {
    {"one part", 200, 0, 1, 300, 500, true, true},
    {"within 2.5 % of the penalty", 200, 0, 1, 300, 507, true, true},
    {"within 2.5 % of the larger figure only", 200, 0, 1, 300, 510, false, true},
    {"beyond", 200, 0, 1, 300, 520, false, false},
    {"two parts", 280, 460, 2, 290, 660, true, true},
    {"penalty of the near part only", 280, 460, 2, 270, 680, false, false},
    {"four parts", 200, 400, 4, 300, 650, true, true},
    {"no penalty", 200, 0, 1, 0, 900, true, true},
    {"no far latency", 200, 0, 2, 300, 900, true, true},
};

static void put(struct measures *measures, const char *metric, double value)
{
    if (value <= 0)
        return;
    struct measure *m = measures_add(measures, metric, value, "cycles", "given");
    assert_non_null(m);
    m->confidence = 1;
}

/* A figure that does not add up is noisy, less sure, and says what it was compared with. */
static void check(const struct measures *all, const char *metric, bool ok, const char *what)
{
    const struct measure *m = measures_get(all, metric);
    if (m && (m->status == MEASURE_OK) != ok)
        fail_msg("%s: %s is %s", what, metric, measure_status_name(m->status));
    if (m && (m->confidence == 1) != ok)
        fail_msg("%s: %s has confidence %g", what, metric, m->confidence);
    assert_true(ok || (strstr(m->reason, "main.latency") && strstr(m->reason, "l2.miss_penalty")));
}

static void latencies_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(figures); i++) {
        const struct figures *f = &figures[i];
        struct measures all = {0};
        put(&all, "l2.latency", f->near);
        put(&all, "l2.latency_far", f->far);
        put(&all, "l2.parts", f->parts);
        put(&all, "l2.miss_penalty", f->penalty);
        put(&all, "main.latency", f->main);
        sums_check(&all);
        check(&all, "l2.miss_penalty", f->penalty_ok, f->what);
        check(&all, "main.latency", f->main_ok, f->what);
        measures_fini(&all);
    }
}

/* The status of a memory's line, once it was compared with a size of this status. */
static enum measure_status line_beside(const char *memory, enum measure_status size_status)
{
    struct measures all = {0};
    char size[64], line[64];
    snprintf(size, sizeof size, "%s.size", memory);
    snprintf(line, sizeof line, "%s.line", memory);
    put(&all, line, 128);
    put(&all, size, 16384);
    measure_set_status(&all.items[1], size_status, "made up");
    sums_check(&all);
    const struct measure *m = measures_get(&all, line);
    enum measure_status status = m->status;
    assert_true(status == MEASURE_OK || (strstr(m->reason, size) && m->confidence < 1));
    measures_fini(&all);
    return status;
}

static void a_line_is_no_surer_than_the_size(void **state)
{
    (void)state;
    static const char *const memories[] = {"l1_data",     "texture",      "read_only",
                                           "constant_l1", "constant_l15", "l2"};
    for (size_t i = 0; i < COUNT_OF(memories); i++) {
        assert_int_equal(line_beside(memories[i], MEASURE_OK), MEASURE_OK);
        assert_int_equal(line_beside(memories[i], MEASURE_NOISY), MEASURE_NOISY);
        assert_int_equal(line_beside(memories[i], MEASURE_FAILED), MEASURE_NOISY);
        assert_int_equal(line_beside(memories[i], MEASURE_UNSUPPORTED), MEASURE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(latencies_add_up),
                                       cmocka_unit_test(a_line_is_no_surer_than_the_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
