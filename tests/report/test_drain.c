/* Lines that drain nodes: which nodes, and nothing that a shell would heed. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue/metrics.h"
#include "report/drain.h"

static size_t spared;

static struct inventory_evidence finding(const char *metric, const char *cause, double deviation)
{
    return (struct inventory_evidence){
        .metric = (char *)metric, .cause = (char *)cause, .deviation = deviation};
}

static void which_nodes(void **state)
{
    (void)state;
    struct inventory_evidence slow = finding("main.bandwidth.read", "cause unknown", -0.327);
    struct inventory_evidence ecc = finding("health.ecc", "ECC errors: 5", NAN);
    struct inventory_outlier outliers[] = {
        {.node = (char *)"n2",
         .uuid = (char *)"GPU-1",
         .verdict = VERDICT_DEGRADED,
         .action = ACTION_DRAIN,
         .evidence = &slow,
         .evidence_count = 1},
        {.node = (char *)"n1",
         .verdict = VERDICT_MISCONFIGURED,
         .action = ACTION_ALERT,
         .evidence = &slow,
         .evidence_count = 1},
        {.node = (char *)"n2",
         .uuid = (char *)"GPU-2",
         .verdict = VERDICT_FAILING,
         .action = ACTION_DRAIN,
         .evidence = &ecc,
         .evidence_count = 1},
        {.node = (char *)"n3",
         .verdict = VERDICT_MISMATCHED,
         .action = ACTION_ALERT,
         .evidence = &slow,
         .evidence_count = 1},
        {.node = NULL, .verdict = VERDICT_FAILING, .action = ACTION_DRAIN},
    };
    struct inventory_node nodes[] = {
        {.node = (char *)"n4",
         .finding = (char *)"all slow",
         .action = ACTION_DRAIN,
         .verdict = VERDICT_DEGRADED},
        {.node = (char *)"n5", .finding = (char *)"no GPU visible on this node"},
        {.node = NULL,
         .finding = (char *)"slot 3",
         .action = ACTION_DRAIN,
         .verdict = VERDICT_DEGRADED},
    };
    const struct inventory inventory = {.outliers = outliers,
                                        .outlier_count = COUNT_OF(outliers),
                                        .node_findings = nodes,
                                        .node_finding_count = COUNT_OF(nodes)};
    struct strbuf lines = {0}, refused = {0};
    spared = report_drain(&inventory, &lines, &refused);
    assert_string_equal(
        lines.data,
        "scontrol update NodeName=n2 State=DRAIN Reason=\"gpumemtopo:failing:GPU-2:ECC errors, "
        "5:health.ecc:-:+1 GPU\"\n"
        "scontrol update NodeName=n4 State=DRAIN Reason=\"gpumemtopo:degraded:-:all slow:-:-\"\n");
    assert_int_equal(refused.length, 0);
    strbuf_fini(&lines);
    spared = report_exclude(&inventory, &lines, &refused);
    assert_string_equal(lines.data, "n2,n4\n");
    strbuf_fini(&lines);
    const struct inventory healthy = {0};
    spared = report_exclude(&healthy, &lines, &refused);
    assert_int_equal(lines.length, 0);
    strbuf_fini(&lines);
}

/* A slot or a model that is bad as a whole: each node with one of its GPUs, once. */
static void whole_model(void **state)
{
    (void)state;
    struct inventory_gpu gpus[] = {
        {.uuid = (char *)"c", .node = (char *)"n2"}, {.uuid = (char *)"a", .node = (char *)"n1"},
        {.uuid = (char *)"b", .node = (char *)"n1"}, {.uuid = (char *)"d", .node = (char *)"n3"},
        {.uuid = NULL, .node = (char *)"n4"},
    };
    char *bad[] = {(char *)"a", (char *)"b", (char *)"c", (char *)"unknown"};
    char *odd[] = {(char *)"d"};
    struct inventory_node places[] = {
        {.finding =
             (char *)"3 of 3 GPUs of m: main.latency 7 cycles, expected 5 cycles (+40.0 %): heat",
         .action = ACTION_DRAIN,
         .verdict = VERDICT_DEGRADED,
         .gpus = bad,
         .gpu_count = COUNT_OF(bad)},
        {.finding = (char *)"all odd",
         .action = ACTION_ALERT,
         .verdict = VERDICT_MISCONFIGURED,
         .gpus = odd,
         .gpu_count = COUNT_OF(odd)},
        {.finding = (char *)"divided", .gpus = odd, .gpu_count = COUNT_OF(odd)},
    };
    const struct inventory inventory = {.gpus = gpus,
                                        .gpu_count = COUNT_OF(gpus),
                                        .node_findings = places,
                                        .node_finding_count = COUNT_OF(places)};
    struct strbuf lines = {0}, refused = {0};
    spared = report_drain(&inventory, &lines, &refused);
    assert_string_equal(lines.data,
                        "scontrol update NodeName=n1 State=DRAIN "
                        "Reason=\"gpumemtopo:degraded:a:heat:main.latency:+40.0%:+1 GPU\"\n"
                        "scontrol update NodeName=n2 State=DRAIN "
                        "Reason=\"gpumemtopo:degraded:c:heat:main.latency:+40.0%\"\n");
    strbuf_fini(&lines);
}

/* tests/report/merge.py has a shell read such lines. */
static void hostile_names(void **state)
{
    (void)state;
    static const char *const names[] = {"n1; reboot",  "n1\nreboot", "$(reboot)", "n[1-9]",
                                        "n1,n2",       "",           "-a",        "ALL nodes",
                                        "n1\" State=", "\033[2J",    "n'1",       "ALL",
                                        "all",         "localhost",  "Default"};
    struct inventory_evidence odd =
        finding("x:y'z", "x\"; reboot; $(id) `id` \\ ! \n\033[31m<script>", 1e9);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct inventory_outlier outlier = {
            .node = (char *)names[i], .verdict = VERDICT_FAILING, .action = ACTION_DRAIN};
        const struct inventory inventory = {.outliers = &outlier, .outlier_count = 1};
        struct strbuf lines = {0}, refused = {0};
        spared = report_drain(&inventory, &lines, &refused);
        assert_int_equal(lines.length, 0);
        assert_int_not_equal(refused.length, 0);
        assert_null(memchr(refused.data, '\033', refused.length));
        strbuf_fini(&lines);
        strbuf_fini(&refused);
    }
    struct inventory_outlier outlier = {.node = (char *)"n1",
                                        .verdict = VERDICT_FAILING,
                                        .action = ACTION_DRAIN,
                                        .evidence = &odd,
                                        .evidence_count = 1};
    const struct inventory inventory = {.outliers = &outlier, .outlier_count = 1};
    struct strbuf lines = {0}, refused = {0};
    spared = report_drain(&inventory, &lines, &refused);
    assert_string_equal(lines.data,
                        "scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:"
                        "failing:-:x_; reboot; _(id) _id_ _ _ ___31m_script_:x-yz:-\"\n");
    strbuf_fini(&lines);
}

/* undrain finds the line of a node. A finding may look like another one's. */
static void line_of_a_node(void **state)
{
    (void)state;
    struct inventory_evidence ecc = finding("health.ecc", NULL, NAN);
    struct inventory_evidence odd = finding("m", "scontrol update NodeName=n3 State=DRAIN", NAN);
    struct inventory_outlier outliers[] = {
        {.node = (char *)"n2",
         .verdict = VERDICT_FAILING,
         .action = ACTION_DRAIN,
         .evidence = &ecc,
         .evidence_count = 1},
        {.node = (char *)"n10",
         .verdict = VERDICT_FAILING,
         .action = ACTION_DRAIN,
         .evidence = &odd,
         .evidence_count = 1},
    };
    const struct inventory inventory = {.outliers = outliers, .outlier_count = 2};
    struct drain_lines lines;
    struct strbuf refused = {0};
    drain_lines_init(&lines, &inventory, &refused);
    assert_int_equal(lines.count, 2);
    assert_string_equal(
        drain_lines_find(&lines, "n2"),
        "scontrol update NodeName=n2 State=DRAIN Reason=\"gpumemtopo:failing:-:-:health.ecc:-\"");
    assert_non_null(drain_lines_find(&lines, "n10"));
    assert_null(drain_lines_find(&lines, "n1"));
    assert_null(drain_lines_find(&lines, "n3"));
    assert_null(drain_lines_find(&lines, NULL));
    drain_lines_fini(&lines);
    assert_null(drain_lines_find(&lines, "n2"));
}

/* The worst finding of a node is told: verdict, then size. Not the first GPU by name or slot. */
static void worst_first(void **state)
{
    (void)state;
    struct inventory_evidence small = finding("l2.latency", "cause unknown", 0.05);
    struct inventory_evidence large[] = {
        finding("main.bandwidth.read", "memory clock 1300 MHz, model runs at 2600 MHz", -0.5),
        finding("main.bandwidth.write", "the same", -0.49), finding("l2.latency", "the same", 0.1)};
    struct inventory_outlier outliers[] = {{.node = (char *)"n1",
                                            .uuid = (char *)"GPU-1",
                                            .verdict = VERDICT_DEGRADED,
                                            .action = ACTION_DRAIN,
                                            .evidence = &small,
                                            .evidence_count = 1},
                                           {.node = (char *)"n1",
                                            .uuid = (char *)"GPU-2",
                                            .verdict = VERDICT_DEGRADED,
                                            .action = ACTION_DRAIN,
                                            .evidence = large,
                                            .evidence_count = COUNT_OF(large)}};
    static const char *const expected[] = {
        "memory clock 1300 MHz, model runs at 2600 MHz:main.bandwidth.read:-50.0%:+2 findings\"\n",
        "memory clock 1300 MHz, model runs at 2600 MHz:main.bandwidth.read:-50.0%:+1 GPU\"\n"};
    for (size_t alone = 0; alone < 2; alone++) {
        const struct inventory inventory = {.outliers = outliers + 1 - alone,
                                            .outlier_count = 1 + alone};
        struct strbuf lines = {0}, refused = {0};
        spared = report_drain(&inventory, &lines, &refused);
        assert_non_null(strstr(lines.data, "Reason=\"gpumemtopo:degraded:GPU-2:memory clock"));
        assert_non_null(strstr(lines.data, expected[alone]));
        strbuf_fini(&lines);
    }
}

/* The action decides, whatever the verdict and the evidence are. A GPU whose node is drained is not
 * counted among those that are left out. */
static void by_action(void **state)
{
    (void)state;
    struct inventory_evidence ecc = finding("health.ecc", "ECC errors: 5", NAN);
    char *gpus[] = {(char *)"a", (char *)"b"};
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        for (int gpu = ACTION_ALERT; gpu <= ACTION_DRAIN; gpu++)
            for (int node = ACTION_TELL; node <= ACTION_DRAIN; node++) {
                struct inventory_outlier outlier = {.node = (char *)"n1",
                                                    .uuid = (char *)"a",
                                                    .verdict = (enum verdict)verdict,
                                                    .action = (enum action)gpu,
                                                    .evidence = &ecc,
                                                    .evidence_count = 1};
                struct inventory_node place = {.node = (char *)"n2",
                                               .finding = (char *)"all slow",
                                               .verdict = (enum verdict)verdict,
                                               .action = (enum action)node,
                                               .gpus = gpus,
                                               .gpu_count = COUNT_OF(gpus)};
                const struct inventory inventory = {.outliers = &outlier,
                                                    .outlier_count = 1,
                                                    .node_findings = &place,
                                                    .node_finding_count = 1};
                struct strbuf lines = {0}, list = {0}, refused = {0};
                const bool drains[] = {gpu == ACTION_DRAIN, node == ACTION_DRAIN};
                size_t left = drains[1] ? 0 : node == ACTION_ALERT ? 2 - drains[0] : !drains[0];
                char *own = drain_line_of_gpu(&outlier), *other = drain_line_of_place(&place);
                assert_int_equal(own != NULL, drains[0]);
                assert_int_equal(other != NULL, drains[1]);
                assert_int_equal(report_drain(&inventory, &lines, &refused), left);
                assert_int_equal(report_exclude(&inventory, &list, &refused), left);
                const char *wanted = drains[0] && drains[1] ? "n1,n2\n"
                                     : drains[0]            ? "n1\n"
                                     : drains[1]            ? "n2\n"
                                                            : "";
                assert_string_equal(list.data ? list.data : "", wanted);
                free(own);
                free(other);
                strbuf_fini(&lines);
                strbuf_fini(&list);
            }
}

/* The card of a GPU has its own line, whatever is worse on its node. */
static void own_lines(void **state)
{
    (void)state;
    struct inventory_evidence ecc = finding("health.ecc", "ECC errors: 5", NAN);
    struct inventory_evidence slow = finding("main.bandwidth.read", "cause unknown", -0.2);
    const struct inventory_outlier failing = {.node = (char *)"n1",
                                              .uuid = (char *)"GPU-1",
                                              .verdict = VERDICT_FAILING,
                                              .action = ACTION_DRAIN,
                                              .evidence = &ecc,
                                              .evidence_count = 1};
    struct inventory_outlier degraded = {.node = (char *)"n1",
                                         .uuid = (char *)"GPU-2",
                                         .verdict = VERDICT_DEGRADED,
                                         .action = ACTION_DRAIN,
                                         .evidence = &slow,
                                         .evidence_count = 1};
    char *one = drain_line_of_gpu(&failing), *other = drain_line_of_gpu(&degraded);
    assert_string_equal(one, "scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:failing:"
                             "GPU-1:ECC errors, 5:health.ecc:-\"");
    assert_string_equal(other, "scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:"
                               "degraded:GPU-2:cause unknown:main.bandwidth.read:-20.0%\"");
    free(one);
    free(other);
    degraded.action = ACTION_ALERT;
    assert_null(drain_line_of_gpu(&degraded));
    degraded = failing;
    degraded.node = (char *)"ALL";
    assert_null(drain_line_of_gpu(&degraded));
    degraded.node = NULL;
    assert_null(drain_line_of_gpu(&degraded));
}

/* Any text gives six or seven fields of limited length, and ends with a whole word. */
static void fields(void **state)
{
    (void)state;
    static const struct {
        const char *cause, *expected;
    } cases[] = {
        {"at 0000:1b:00.0: lost, 96 \302\260C", ":at 0000-1b-00.0, lost, 96 _C:"},
        {"", ":-:"},
        {"a word is never cut in its middle, because nobody can read the rest of a sentence then, "
         "and a fraction is no number",
         ":a word is never cut in its middle, because nobody can read the rest of a sentence "
         "then, and a...:"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxx"
         "xxxxxxxxxxxxxx",
         "xxx...:"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct drain_reason reason = {.verdict = VERDICT_MISCONFIGURED,
                                            .uuid = "GPU-12345678-1234-1234-1234-123456789012",
                                            .cause = cases[i].cause,
                                            .metric =
                                                "a.very.long.name.of.a.metric.that.nobody.has.ever",
                                            .deviation = -0.1,
                                            .more_gpus = 1000000};
        struct strbuf text = {0};
        size_t colons = 0;
        drain_reason_put(&text, &reason);
        if (!strstr(text.data, cases[i].expected))
            fail_msg("\"%s\" is not in %s", cases[i].expected, text.data);
        for (size_t at = 0; at < text.length; at++)
            colons += text.data[at] == ':';
        assert_int_equal(colons, 6);
        assert_in_range(text.length, 1, 255);
        strbuf_fini(&text);
    }
}

/* Whatever unit or path has the longest name: its reason names the SM. */
static void wrong_place_is_kept(void **state)
{
    (void)state;
    static const char on[] = "compute.wrong_on.", in[] = "compute.wrong_in.";
    size_t checked = 0;
    for (size_t i = 0; i < metric_row_count; i++) {
        const char *metric = metric_rows[i].key;
        const bool screened = strncmp(metric, on, sizeof on - 1) == 0;
        if (!screened && strncmp(metric, in, sizeof in - 1) != 0)
            continue;
        struct gpu_result *gpu = made_fleet(1, 1);
        char *place = screened ? str_format("compute.wrong_at.%s", metric + sizeof on - 1)
                               : str_copy("compute.wrong_sm");
        measures_add(&gpu->measures, metric, 1200, "", "test");
        struct measure *at = measures_add(&gpu->measures, place, 131, "id", "test");
        facts_set_int(&at->notes, "sub_core", 3);
        facts_set_int(&at->notes, "wrong", 12);
        struct inventory inventory = made_judged(gpu, 1);
        char *line = drain_line_of_gpu(made_outlier(&inventory, gpu->uuid));
        if (!line || !strstr(line, screened ? "most on SM 131, sub-core 3" : "most on SM 131:"))
            fail_msg("%s: %s", metric, line ? line : "no line");
        checked++;
        free(line);
        free(place);
        inventory_fini(&inventory);
        made_free(gpu, 1);
    }
    assert_true(checked > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_nodes),
        cmocka_unit_test(line_of_a_node),
        cmocka_unit_test(whole_model),
        cmocka_unit_test(worst_first),
        cmocka_unit_test(fields),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(by_action),
        cmocka_unit_test(own_lines),
        cmocka_unit_test(wrong_place_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
