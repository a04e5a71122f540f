/* The site's policy: what it makes of verdicts and losses, what it refuses, and what judging a
 * fleet gives with it. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "judge/policy.h"
#include "made.h"

static int policy_of(const char *text, struct policy *policy, struct err *err)
{
    struct yaml_doc *doc = NULL;
    if (yaml_read_text(text, strlen(text), "p.yaml", &yaml_limits_config, &doc, err))
        fail_msg("%s: %s", text, err->text);
    int rc = policy_read(yaml_get(yaml_root(doc), "policy"), policy, err);
    yaml_destroy(doc);
    return rc;
}

#define OF(name) VERDICT_##name
#define DO(name) ACTION_##name

static void actions(void **state)
{
    (void)state;
    static const char usual[] = "other: 1\n", two[] = "policy: {tell: 1 %, drain: 8 %}\n";
    static const char own[] = "policy: {degraded: {alert: 3 %, drain: 8 %}, failing: alert}\n";
    static const char late[] = "policy: {tell: 3 %}\n", early[] = "policy: {drain: 0.005}\n";
    static const char none[] =
        "policy: {unknown: nothing, built_slower: nothing, degraded: tell}\n";
    static const struct {
        const char *policy;
        enum verdict verdict;
        double loss;
        bool unsure;
        enum action action;
    } cases[] = {
        {usual, OF(FAILING), NAN, false, DO(DRAIN)},
        {usual, OF(FAILING), 0.001, false, DO(DRAIN)},
        {usual, OF(FAILING), NAN, true, DO(TELL)},
        {usual, OF(DEGRADED), 0.0099, false, DO(NOTHING)},
        {usual, OF(DEGRADED), 0.01, false, DO(TELL)},
        {usual, OF(DEGRADED), 0.0199, false, DO(TELL)},
        {usual, OF(DEGRADED), 0.02, false, DO(ALERT)},
        {usual, OF(DEGRADED), 0.0499, false, DO(ALERT)},
        {usual, OF(DEGRADED), 0.05, false, DO(DRAIN)},
        {usual, OF(DEGRADED), 0.9, true, DO(TELL)},
        {usual, OF(DEGRADED), 0.001, true, DO(NOTHING)},
        {usual, OF(DEGRADED), NAN, false, DO(ALERT)},
        {usual, OF(MISCONFIGURED), NAN, false, DO(ALERT)},
        {usual, OF(MISCONFIGURED), 0.06, false, DO(DRAIN)},
        {usual, OF(MISMATCHED), 0.5, false, DO(ALERT)},
        {usual, OF(MISMATCHED), 0.001, false, DO(NOTHING)},
        {usual, OF(UNSTEADY), NAN, false, DO(ALERT)},
        {usual, OF(BUILT_SLOWER), 0.021, false, DO(TELL)},
        {usual, OF(BUILT_SLOWER), 0.5, false, DO(TELL)},
        {usual, OF(UNKNOWN), NAN, false, DO(TELL)},
        {two, OF(DEGRADED), 0.06, false, DO(ALERT)},
        {two, OF(DEGRADED), 0.08, false, DO(DRAIN)},
        {two, OF(MISCONFIGURED), 0.079, false, DO(ALERT)},
        {two, OF(FAILING), NAN, false, DO(DRAIN)},
        {own, OF(DEGRADED), 0.025, false, DO(TELL)},
        {own, OF(DEGRADED), 0.07, false, DO(ALERT)},
        {own, OF(MISCONFIGURED), 0.07, false, DO(DRAIN)},
        {own, OF(FAILING), NAN, false, DO(ALERT)},
        {late, OF(DEGRADED), 0.025, false, DO(NOTHING)},
        {late, OF(DEGRADED), 0.03, false, DO(ALERT)},
        {early, OF(DEGRADED), 0.005, false, DO(DRAIN)},
        {early, OF(DEGRADED), 0.004, false, DO(NOTHING)},
        {none, OF(UNKNOWN), NAN, false, DO(NOTHING)},
        {none, OF(FAILING), NAN, true, DO(NOTHING)},
        {none, OF(BUILT_SLOWER), 0.03, false, DO(NOTHING)},
        {none, OF(DEGRADED), 0.3, false, DO(TELL)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct policy policy;
        struct err err = {0};
        if (policy_of(cases[i].policy, &policy, &err))
            fail_msg("%s: %s", cases[i].policy, err.text);
        enum action action =
            policy_action(&policy, cases[i].verdict, cases[i].loss, !cases[i].unsure);
        if (action != cases[i].action)
            fail_msg("case %zu: %s, expected %s", i, action_name(action),
                     action_name(cases[i].action));
        policy_fini(&policy);
    }
}

/* The shipped file says what a file without a policy has. */
static void shipped(void **state)
{
    (void)state;
    struct yaml_doc *doc = NULL;
    struct policy usual, given;
    struct err err = {0};
    assert_int_equal(yaml_read_file(SURVEY_CONFIG, &yaml_limits_config, &doc, &err), 0);
    assert_non_null(yaml_get(yaml_root(doc), "policy"));
    assert_int_equal(policy_read(yaml_get(yaml_root(doc), "policy"), &given, &err), 0);
    assert_int_equal(policy_read(NULL, &usual, &err), 0);
    static const double losses[] = {NAN, 0, 0.01, 0.02, 0.05, 1};
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        for (size_t i = 0; i < COUNT_OF(losses); i++)
            for (int sure = 0; sure < 2; sure++)
                assert_int_equal(policy_action(&given, (enum verdict)verdict, losses[i], sure),
                                 policy_action(&usual, (enum verdict)verdict, losses[i], sure));
    assert_int_equal(given.weight_count, 0);
    policy_fini(&given);
    yaml_destroy(doc);
}

static void jobs(void **state)
{
    (void)state;
    static const char text[] =
        "policy:\n  job: b\n  jobs: {a: {main: 0}, b: {main: 0.5, host: 0, l2: 1}}\n";
    static const struct {
        const char *metric;
        double cost;
    } cases[] = {{"main.bandwidth.read", 0.04},
                 {"host.bandwidth.h2d", 0},
                 {"l2.latency", 0.08},
                 {"clock.sm", 0.08},
                 {"main_other", 0.08}};
    struct policy policy;
    struct err err = {0};
    if (policy_of(text, &policy, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(policy_cost(&policy, cases[i].metric, 0.08) == cases[i].cost);
    policy_fini(&policy);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"policy: {broken: drain}\n",
         "p.yaml:1:10: unknown key \"broken\"; expected one of job, jobs, tell, "},
        {"policy: {degarded: drain}\n", "did you mean \"degraded\"?"},
        {"policy: [drain]\n", "p.yaml:1:9: expected a mapping (key: value), found a list"},
        {"policy:\n  degraded: reboot\n",
         "p.yaml:2:13: expected one of nothing, tell, alert, drain; found \"reboot\""},
        {"policy: {unknown: drain}\n",
         "p.yaml:1:19: expected one of nothing, tell; found \"drain\""},
        {"policy: {built_slower: alert}\n", "expected one of nothing, tell; found \"alert\""},
        {"policy: {unknown: {alert: 1 %}}\n", "unknown key \"alert\""},
        {"policy: {tell: 3 %, alert: 2 %}\n",
         "p.yaml:1:28: alert from 2 % on is below tell from 3 % on: expected tell <= alert <= "
         "drain"},
        {"policy:\n  alert: 6 %\n  drain: 5 %\n",
         "p.yaml:3:10: drain from 5 % on is below alert from 6 % on"},
        {"policy: {tell: 3 %, drain: 2 %}\n", "drain from 2 % on is below tell from 3 % on"},
        {"policy: {degraded: {tell: 9 %, drain: 8 %}}\n",
         "p.yaml:1:39: drain from 8 % on is below tell from 9 % on"},
        {"policy: {drain: -1 %}\n",
         "p.yaml:1:17: expected a share from 0 % to 100 %, found \"-1 %\""},
        {"policy: {drain: 101 %}\n", "expected a share from 0 % to 100 %, found \"101 %\""},
        {"policy: {drain: 5}\n", "expected a share from 0 % to 100 %, found \"5\""},
        {"policy: {drain: much}\n",
         "p.yaml:1:17: expected a share such as 5 % or 0.05, found \"much\""},
        {"policy: {drain: 5 % %}\n", "expected a share such as 5 % or 0.05"},
        {"policy: {drain: 5 per cent}\n", "expected a share such as 5 % or 0.05"},
        {"policy: {drain: nan}\n", "expected a share"},
        {"policy: {drain: \"\"}\n", "expected a share such as 5 % or 0.05"},
        {"policy: {drain: [5]}\n", "expected a share such as 5 % or 0.05"},
        {"policy: {job: a}\n", "p.yaml:1:15: expected the name of one of `jobs`, found \"a\""},
        {"policy: {job: a, jobs: {b: {main: 1}}}\n", "expected the name of one of `jobs`"},
        {"policy: {jobs: {b: {maim: 1}}}\n",
         "p.yaml:1:21: expected the first word of a judged figure, such as main, l2 or host; "
         "found \"maim\""},
        {"policy: {jobs: {b: {main: 2}}}\n", "p.yaml:1:27: 2 is outside 0 to 1"},
        {"policy: {jobs: {b: 1}}\n", "expected a mapping"},
        {"policy: {jobs: 1}\n", "expected a mapping"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct policy policy;
        struct err err = {0};
        char shown[1024];
        if (!policy_of(cases[i].text, &policy, &err))
            fail_msg("not refused: %s", cases[i].text);
        if (!strstr(err_format(&err, shown, sizeof shown), cases[i].message))
            fail_msg("%s: %s, expected %s", cases[i].text, shown, cases[i].message);
    }
}

/* A fleet of 50 nodes with eight GPUs each. Some cards have 64 and 68 SMs on the parts of L2 and
 * lose 2.1 % of what kernels with equal work per SM get. On four nodes something is wrong. */
enum { BIG = 400, PER_NODE = 8, SLOW = 83, WRONG = 164, REMAP = 245 };

static void figure(struct gpu_result *gpu, const char *metric, double value)
{
    measures_add(&gpu->measures, metric, value, "", "m");
}

static void rename_place(struct gpu_result *gpu, size_t i)
{
    free(gpu->node);
    free(gpu->pci);
    gpu->node = str_format("n%02zu", i / PER_NODE);
    gpu->pci = str_format("0000:%02zx:00.0", i % PER_NODE);
}

static struct gpu_result *big_fleet(size_t uneven)
{
    struct gpu_result *gpus = made_fleet_of(BIG, 7, 0, 0.002);
    for (size_t i = 0; i < BIG; i++) {
        struct gpu_result *gpu = &gpus[i];
        /* Spread over the nodes, and not on the GPUs that have something else. */
        const bool is_uneven = i * uneven % BIG < uneven;
        const double equal = is_uneven ? 0.979 : 1;
        rename_place(gpu, i);
        figure(gpu, "sm.count", 132);
        figure(gpu, "l2.parts", 2);
        figure(gpu, "l2.part_sms", is_uneven ? 64 : 66);
        figure(gpu, "main.bandwidth_equal.read",
               measures_get(&gpu->measures, "main.bandwidth.read")->value * equal);
        figure(gpu, "main.bandwidth_equal.write",
               measures_get(&gpu->measures, "main.bandwidth.write")->value * equal);
        figure(gpu, "compute.wrong", i == WRONG ? 12 : 0);
    }
    static const char *const slow[] = {"main.bandwidth.read", "main.bandwidth.write",
                                       "main.bandwidth_equal.read", "main.bandwidth_equal.write"};
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        made_scale(&gpus[SLOW], slow[i], 0.92);
    figure(&gpus[WRONG], "compute.wrong_in.fp32", 12);
    figure(&gpus[WRONG], "compute.wrong_sm", 17);
    facts_set_bool(&gpus[REMAP].health, "remap_pending", true);
    return gpus;
}

static void exactly_four_nodes(void **state)
{
    (void)state;
    static const size_t uneven[] = {0, 4, 16, 32}; /* 0, 1, 4 and 8 % */
    for (size_t c = 0; c < COUNT_OF(uneven); c++) {
        struct gpu_result *gpus = big_fleet(uneven[c]);
        struct judge_config config = *made_config();
        const struct judge_basis basis = {.config = &config};
        struct inventory inventory = {0};
        struct err err = {0};
        bool drained[BIG / PER_NODE] = {false};
        size_t sentences = 0;
        policy_read(NULL, &config.policy, NULL);
        /* The last node has seven. */
        assert_int_equal(made_judge(gpus, BIG - 1, true, &basis, &inventory, &err), 0);
        judge_missing_gpus(&basis, &inventory);
        assert_int_equal(inventory_action(&inventory), ACTION_DRAIN);
        for (size_t i = 0; i < inventory.outlier_count; i++) {
            const struct inventory_outlier *outlier = &inventory.outliers[i];
            assert_int_equal(outlier->action, ACTION_DRAIN); /* nobody else is alerted */
            drained[atoi(outlier->node + 1)] = true;
        }
        for (size_t i = 0; i < inventory.node_finding_count; i++) {
            const struct inventory_node *place = &inventory.node_findings[i];
            if (place->action == ACTION_DRAIN)
                drained[atoi(place->node + 1)] = true;
            if (place->verdict != VERDICT_BUILT_SLOWER)
                continue;
            char *text = str_format("%zu of %d GPUs of alpha-100 have 64 and 68 SMs on the parts "
                                    "of L2: kernels with equal work per SM lose 2.1 %%; what the "
                                    "memory delivers is the same",
                                    uneven[c], BIG - 1);
            assert_string_equal(place->finding, text);
            assert_int_equal(place->action, ACTION_TELL);
            assert_true(fabs(place->loss - 0.021) < 0.0005);
            free(text);
            sentences++;
        }
        assert_int_equal(sentences, uneven[c] > 0);
        const int wanted[] = {SLOW / PER_NODE, WRONG / PER_NODE, REMAP / PER_NODE,
                              (BIG - 1) / PER_NODE};
        size_t count = 0;
        for (size_t i = 0; i < COUNT_OF(drained); i++)
            count += drained[i];
        assert_int_equal(count, COUNT_OF(wanted));
        for (size_t i = 0; i < COUNT_OF(wanted); i++)
            assert_true(drained[wanted[i]]);
        inventory_fini(&inventory);
        made_free(gpus, BIG);
    }
}

/* A setting takes the action of what its GPU lost by it: they are in one entry. */
static void settings_cost_what_was_lost(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        enum action action;
    } cases[] = {
        {"other: 1\n", DO(DRAIN)},
        {"policy: {tell: 1 %, alert: 15 %, drain: 20 %}\n", DO(TELL)},
        {"policy: {tell: 15 %, alert: 16 %, drain: 20 %}\n", DO(NOTHING)},
    };
    enum { COUNT = 64, LOW = 9 };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = made_fleet_of(COUNT, 3, 0, 0.001);
        struct judge_config config = *made_config();
        struct inventory inventory = {0};
        struct err err = {0};
        assert_int_equal(policy_of(cases[i].policy, &config.policy, &err), 0);
        for (size_t k = 0; k < COUNT; k++)
            facts_set_int(&gpus[k].config, "power_limit_w", k == LOW ? 400 : 700);
        made_clock(&gpus[LOW], 0.9);
        const struct judge_basis basis = {.config = &config};
        assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
        const char *uuid = gpus[LOW].uuid;
        const struct inventory_outlier *acted = made_outlier(&inventory, uuid);
        const struct inventory_outlier *told = made_watched(&inventory, uuid);
        assert_int_equal(acted != NULL, cases[i].action >= DO(ALERT));
        assert_int_equal(told != NULL, cases[i].action == DO(TELL));
        const struct inventory_outlier *entry = acted ? acted : told;
        if (entry) {
            assert_int_equal(entry->action, cases[i].action);
            assert_non_null(made_finding(entry, "config.power_limit_w"));
            assert_non_null(made_finding(entry, "clock.sm"));
        }
        inventory_fini(&inventory);
        policy_fini(&config.policy);
        made_free(gpus, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(actions),
                                       cmocka_unit_test(shipped),
                                       cmocka_unit_test(jobs),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(exactly_four_nodes),
                                       cmocka_unit_test(settings_cost_what_was_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
