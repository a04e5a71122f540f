/* Lines that drain nodes: which nodes, and nothing that a shell would heed. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/drain.h"

static size_t spared;

static struct inventory_finding finding(const char *metric, const char *cause, double deviation)
{
    return (struct inventory_finding){
        .metric = (char *)metric, .cause = (char *)cause, .deviation = deviation};
}

static void which_nodes(void **state)
{
    (void)state;
    struct inventory_finding slow = finding("main.bandwidth.read", "unexplained", -0.327);
    struct inventory_finding ecc = finding("health.ecc", "ECC errors: 5", NAN);
    struct inventory_outlier outliers[] = {
        {.node = (char *)"n2",
         .uuid = (char *)"GPU-1",
         .kind = KIND_DEGRADED,
         .findings = &slow,
         .finding_count = 1},
        {.node = (char *)"n1", .kind = KIND_MISCONFIGURED, .findings = &slow, .finding_count = 1},
        {.node = (char *)"n2",
         .uuid = (char *)"GPU-2",
         .kind = KIND_FAILING,
         .findings = &ecc,
         .finding_count = 1},
        {.node = (char *)"n3", .kind = KIND_MISMATCHED, .findings = &slow, .finding_count = 1},
        {.node = NULL, .kind = KIND_FAILING},
    };
    struct inventory_node nodes[] = {
        {.node = (char *)"n4",
         .finding = (char *)"all slow",
         .accused = true,
         .kind = KIND_DEGRADED},
        {.node = (char *)"n5", .finding = (char *)"no GPU visible on this node"},
        {.node = NULL, .finding = (char *)"slot 3", .accused = true, .kind = KIND_DEGRADED},
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
         .accused = true,
         .kind = KIND_DEGRADED,
         .gpus = bad,
         .gpu_count = COUNT_OF(bad)},
        {.finding = (char *)"all odd",
         .accused = true,
         .kind = KIND_MISCONFIGURED,
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
    struct inventory_finding odd =
        finding("x:y'z", "x\"; reboot; $(id) `id` \\ ! \n\033[31m<script>", 1e9);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct inventory_outlier outlier = {.node = (char *)names[i], .kind = KIND_FAILING};
        const struct inventory inventory = {.outliers = &outlier, .outlier_count = 1};
        struct strbuf lines = {0}, refused = {0};
        spared = report_drain(&inventory, &lines, &refused);
        assert_int_equal(lines.length, 0);
        assert_int_not_equal(refused.length, 0);
        assert_null(memchr(refused.data, '\033', refused.length));
        strbuf_fini(&lines);
        strbuf_fini(&refused);
    }
    struct inventory_outlier outlier = {
        .node = (char *)"n1", .kind = KIND_FAILING, .findings = &odd, .finding_count = 1};
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
    struct inventory_finding ecc = finding("health.ecc", NULL, NAN);
    struct inventory_finding odd = finding("m", "scontrol update NodeName=n3 State=DRAIN", NAN);
    struct inventory_outlier outliers[] = {
        {.node = (char *)"n2", .kind = KIND_FAILING, .findings = &ecc, .finding_count = 1},
        {.node = (char *)"n10", .kind = KIND_FAILING, .findings = &odd, .finding_count = 1},
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

/* The worst finding of a node is told: kind, then size. Not the first GPU by name or slot. */
static void worst_first(void **state)
{
    (void)state;
    struct inventory_finding small = finding("l2.latency", "unexplained", 0.05);
    struct inventory_finding large[] = {
        finding("main.bandwidth.read", "memory clock 1300 MHz, model runs at 2600 MHz", -0.5),
        finding("main.bandwidth.write", "the same", -0.49), finding("l2.latency", "the same", 0.1)};
    struct inventory_outlier outliers[] = {{.node = (char *)"n1",
                                            .uuid = (char *)"GPU-1",
                                            .kind = KIND_DEGRADED,
                                            .findings = &small,
                                            .finding_count = 1},
                                           {.node = (char *)"n1",
                                            .uuid = (char *)"GPU-2",
                                            .kind = KIND_DEGRADED,
                                            .findings = large,
                                            .finding_count = COUNT_OF(large)}};
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

/* Small losses alone are no reason to drain, but everything else is. */
static void small_losses(void **state)
{
    (void)state;
    static const struct {
        struct inventory_finding findings[2];
        size_t count;
        bool drained;
    } cases[] = {
        {{{.metric = (char *)"main.bandwidth.read", .deviation = -0.049}}, 1, false},
        {{{.metric = (char *)"main.bandwidth.read", .deviation = -0.051}}, 1, true},
        {{{.metric = (char *)"main.latency", .deviation = 0.049}}, 1, false},
        {{{.metric = (char *)"main.latency", .deviation = 0.051}}, 1, true},
        {{{.metric = (char *)"main.latency", .deviation = 0.02},
          {.metric = (char *)"l2.bandwidth.read", .deviation = -0.02}},
         2,
         false},
        {{{.metric = (char *)"main.latency", .deviation = 0.02},
          {.metric = (char *)"l2.bandwidth.read", .deviation = -0.06}},
         2,
         true},
        {{{.metric = (char *)"main.bandwidth.read", .deviation = -0.02},
          {.metric = (char *)"health.remap_pending", .deviation = NAN, .basis = (char *)"rule"}},
         2,
         true},
        {{{.metric = (char *)"links.latency", .deviation = 0.02, .basis = (char *)"rule"}},
         1,
         true},
        {{{.metric = (char *)"l2.size", .deviation = -0.04}}, 1, true},
        {{{.metric = (char *)"main.bandwidth.read", .deviation = NAN}}, 1, true},
        {{{0}}, 0, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct inventory_outlier outlier = {.node = (char *)"n1",
                                            .uuid = (char *)"GPU-1",
                                            .kind = KIND_DEGRADED,
                                            .findings =
                                                (struct inventory_finding *)cases[i].findings,
                                            .finding_count = cases[i].count};
        const struct inventory inventory = {.outliers = &outlier, .outlier_count = 1};
        struct strbuf lines = {0}, list = {0}, refused = {0};
        char *own = drain_line_of_gpu(&outlier);
        spared = report_drain(&inventory, &lines, &refused);
        if ((lines.length > 0) != cases[i].drained || (own != NULL) != cases[i].drained)
            fail_msg("case %zu: %s", i, lines.length ? "drained" : "not drained");
        assert_int_equal(spared, !cases[i].drained);
        spared = report_exclude(&inventory, &list, &refused);
        assert_int_equal(list.length > 0, cases[i].drained);
        assert_int_equal(spared, !cases[i].drained);
        free(own);
        strbuf_fini(&lines);
        strbuf_fini(&list);
    }
}

/* Of a place, too. A GPU that is bad otherwise is not counted among those that are left out. */
static void small_places(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "2 of 2 GPUs: main.latency 549 cycles, expected 523 cycles (+4.9 %): heat",
        "2 of 2 GPUs: main.latency 550 cycles, expected 523 cycles (+5.1 %): heat"};
    struct inventory_finding ecc = finding("health.ecc", "ECC errors: 5", NAN);
    struct inventory_outlier outlier = {.node = (char *)"n1",
                                        .uuid = (char *)"a",
                                        .kind = KIND_FAILING,
                                        .findings = &ecc,
                                        .finding_count = 1};
    char *gpus[] = {(char *)"a", (char *)"b"};
    for (size_t large = 0; large < 2; large++)
        for (size_t outliers = 0; outliers < 2; outliers++) {
            struct inventory_node place = {.node = (char *)"n1",
                                           .finding = (char *)texts[large],
                                           .accused = true,
                                           .kind = KIND_DEGRADED,
                                           .gpus = gpus,
                                           .gpu_count = COUNT_OF(gpus)};
            const struct inventory inventory = {.outliers = &outlier,
                                                .outlier_count = outliers,
                                                .node_findings = &place,
                                                .node_finding_count = 1};
            struct strbuf lines = {0}, refused = {0};
            char *own = drain_line_of_place(&place);
            spared = report_drain(&inventory, &lines, &refused);
            assert_int_equal(lines.length > 0, large || outliers);
            assert_int_equal(own != NULL, large);
            assert_int_equal(spared, large ? 0 : 2 - outliers);
            free(own);
            strbuf_fini(&lines);
        }
}

/* The card of a GPU has its own line, whatever is worse on its node. */
static void own_lines(void **state)
{
    (void)state;
    struct inventory_finding ecc = finding("health.ecc", "ECC errors: 5", NAN);
    struct inventory_finding slow = finding("main.bandwidth.read", "unexplained", -0.2);
    const struct inventory_outlier failing = {.node = (char *)"n1",
                                              .uuid = (char *)"GPU-1",
                                              .kind = KIND_FAILING,
                                              .findings = &ecc,
                                              .finding_count = 1};
    struct inventory_outlier degraded = {.node = (char *)"n1",
                                         .uuid = (char *)"GPU-2",
                                         .kind = KIND_DEGRADED,
                                         .findings = &slow,
                                         .finding_count = 1};
    char *one = drain_line_of_gpu(&failing), *other = drain_line_of_gpu(&degraded);
    assert_string_equal(one, "scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:failing:"
                             "GPU-1:ECC errors, 5:health.ecc:-\"");
    assert_string_equal(other, "scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:"
                               "degraded:GPU-2:unexplained:main.bandwidth.read:-20.0%\"");
    free(one);
    free(other);
    degraded.kind = KIND_MISCONFIGURED;
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
        const struct drain_reason reason = {.kind = KIND_MISCONFIGURED,
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_nodes),  cmocka_unit_test(line_of_a_node),
        cmocka_unit_test(whole_model),  cmocka_unit_test(worst_first),
        cmocka_unit_test(fields),       cmocka_unit_test(hostile_names),
        cmocka_unit_test(small_losses), cmocka_unit_test(small_places),
        cmocka_unit_test(own_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
