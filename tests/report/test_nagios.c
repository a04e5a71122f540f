/* The line for a monitoring system: what is OK, and what never is. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/commands/commands.h"

static struct inventory_outlier outlier(int action)
{
    static struct inventory_evidence evidence = {.metric = (char *)"m", .cause = (char *)"a | b\n"};
    return (struct inventory_outlier){.uuid = (char *)"GPU-1",
                                      .node = (char *)"n1",
                                      .verdict = VERDICT_FAILING,
                                      .loss = NAN,
                                      .action = (enum action)action,
                                      .evidence = &evidence,
                                      .evidence_count = 1};
}

struct asked {
    const char *name;
    uint32_t measured, unmeasured, lost_ranks;
    int action; /* of an outlier; -1: none */
    int place;  /* action of a place; -1: none */
    bool gone, watched, busy;
    bool warn_watch;
    int age_h; /* of at most 48 */
    enum nagios_state expected;
    const char *text;
};

static const struct asked cases[] = {
    {"healthy", 8, 0, 0, -1, -1, .expected = NAGIOS_OK, .text = "GPUMEMTOPO OK - 8 of 8 GPUs"},
    {"drain", 8, 0, 0, ACTION_DRAIN, -1, .expected = NAGIOS_CRITICAL,
     .text = "1 to drain, 8 of 8 GPUs measured; n1 GPU-1 failing: a / b?"},
    {"alert", 8, 0, 0, ACTION_ALERT, -1, .expected = NAGIOS_WARNING, .text = "1 alerted"},
    {"alert, data", 8, 0, 0, ACTION_ALERT, -1, .expected = NAGIOS_WARNING, .text = "alert=1;0;;0"},
    {"a place", 8, 0, 0, -1, ACTION_DRAIN, .expected = NAGIOS_CRITICAL, .text = "2 to drain"},
    {"a place, told", 8, 0, 0, -1, ACTION_TELL, .expected = NAGIOS_OK, .text = "OK - 8 of 8"},
    {"a GPU and its place", 8, 0, 0, ACTION_DRAIN, ACTION_ALERT, .expected = NAGIOS_CRITICAL,
     .text = "drain=1;;0;0 alert=1;0;;0"},
    {"unmeasured", 7, 1, 0, -1, -1, .expected = NAGIOS_WARNING, .text = "7 of 8 GPUs measured"},
    {"lost", 8, 0, 1, -1, -1, .expected = NAGIOS_WARNING, .text = "1 rank lost"},
    {"gone", 8, 0, 0, -1, -1, .gone = true, .expected = NAGIOS_WARNING, .text = "1 missing"},
    {"busy", 8, 0, 0, -1, -1, .busy = true, .expected = NAGIOS_WARNING, .text = "1 busy"},
    {"watched", 8, 0, 0, -1, -1, .watched = true, .expected = NAGIOS_OK, .text = "1 told"},
    {"watched, warned", 8, 0, 0, -1, -1, .watched = true, .warn_watch = true,
     .expected = NAGIOS_WARNING, .text = "tell=1;0;;0"},
    {"nothing measured", 0, 8, 0, -1, -1, .expected = NAGIOS_UNKNOWN,
     .text = "no GPU was measured"},
    {"nothing there", 0, 0, 0, -1, -1, .expected = NAGIOS_UNKNOWN, .text = "0 of 0 GPUs"},
    {"nothing measured, one to drain", 0, 8, 0, ACTION_DRAIN, -1, .expected = NAGIOS_CRITICAL,
     .text = "1 to drain"},
    {"fresh", 8, 0, 0, -1, -1, .age_h = 47, .expected = NAGIOS_OK, .text = "age=169200s"},
    {"old", 8, 0, 0, -1, -1, .age_h = 49, .expected = NAGIOS_UNKNOWN, .text = "too old"},
    {"old and to drain", 8, 0, 0, ACTION_DRAIN, -1, .age_h = 49, .expected = NAGIOS_UNKNOWN,
     .text = "1 to drain"},
    {"future", 8, 0, 0, -1, -1, .age_h = -2, .expected = NAGIOS_UNKNOWN, .text = "in the future"},
};

static enum nagios_state ask(const struct asked *asked, const char *generated, int64_t now_s,
                             double max_age_s, struct strbuf *line)
{
    char *gpus[] = {(char *)"GPU-1", (char *)"GPU-2"};
    struct inventory_node nodes[] = {
        {.node = (char *)"n1",
         .verdict = VERDICT_DEGRADED,
         .action = asked->place < 0 ? ACTION_TELL : (enum action)asked->place,
         .gpus = gpus,
         .gpu_count = asked->gone ? 0 : 2}};
    struct inventory_outlier one = outlier(asked->action);
    struct inventory_value value = {.metric = (char *)"m"};
    struct inventory_gpu gpu = {.status = GPU_BUSY, .values = &value, .value_count = 1};
    const struct inventory inventory = {.generated = (char *)generated,
                                        .total_gpus = asked->measured + asked->unmeasured,
                                        .total_measured = asked->measured,
                                        .total_unmeasured = asked->unmeasured,
                                        .total_lost_ranks = asked->lost_ranks,
                                        .outliers = &one,
                                        .outlier_count = asked->action >= 0,
                                        .watch = &one,
                                        .watch_count = asked->watched,
                                        .gpus = &gpu,
                                        .gpu_count = asked->busy,
                                        .node_findings = nodes,
                                        .node_finding_count = asked->gone || asked->place >= 0};
    const struct nagios_limits limits = {now_s, max_age_s, asked->warn_watch};
    return report_nagios(&inventory, &limits, line);
}

static void states(void **state)
{
    (void)state;
    static const char generated[] = "2026-10-01T00:00:00Z";
    int64_t made_s;
    assert_int_equal(clock_parse_stamp(generated, &made_s), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strbuf line = {0};
        enum nagios_state got =
            ask(&cases[i], generated, made_s + 3600 * cases[i].age_h, 48 * 3600, &line);
        if (got != cases[i].expected || !strstr(line.data, cases[i].text))
            fail_msg("%s: %d, %s", cases[i].name, got, line.data);
        assert_ptr_equal(strchr(line.data, '\n'), line.data + line.length - 1); /* one line */
        assert_ptr_equal(strchr(line.data, '|'), strrchr(line.data, '|'));
        strbuf_fini(&line);
    }
}

/* Without a time nobody knows how old the file is; without a limit nobody asks. */
static void no_time(void **state)
{
    (void)state;
    struct strbuf line = {0};
    assert_int_equal(ask(&cases[0], "yesterday", 0, 1, &line), NAGIOS_UNKNOWN);
    assert_int_equal(ask(&cases[0], "yesterday", 0, 0, &line), NAGIOS_OK);
    assert_null(strstr(line.data, "age="));
    strbuf_fini(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(states), cmocka_unit_test(no_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
