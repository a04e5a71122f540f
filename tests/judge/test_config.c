/* The judge's configuration: reading it, and refusing what is wrong. */
#include "../check.h"

#include <string.h>

#include "base/yaml.h"
#include "judge/judge.h"

static int read_text(const char *text, struct judge_config *config, struct err *err)
{
    struct yaml_doc *doc;
    assert_int_equal(yaml_read_text(text, strlen(text), "j.yaml", &yaml_limits_config, &doc, err),
                     0);
    int rc = judge_config_read(yaml_root(doc), NULL, config, err);
    yaml_destroy(doc);
    return rc;
}

static struct yaml_doc *parsed(const char *text)
{
    struct yaml_doc *doc;
    struct err err = {0};
    assert_int_equal(yaml_read_text(text, strlen(text), "j.yaml", &yaml_limits_config, &doc, &err),
                     0);
    return doc;
}

/* policy: NULL for none. */
static void read_both(const char *judge, const char *policy, struct judge_config *config)
{
    struct yaml_doc *a = parsed(judge), *b = policy ? parsed(policy) : NULL;
    struct err err = {0};
    assert_int_equal(judge_config_read(yaml_root(a), b ? yaml_root(b) : NULL, config, &err), 0);
    yaml_destroy(a);
    yaml_destroy(b);
}

/* What is kept of a configuration is one. */
static void read_own(const char *own, struct judge_config *config)
{
    struct yaml_doc *doc = parsed(own);
    const struct yaml_node *root = yaml_root(doc);
    struct err err = {0};
    assert_int_equal(
        judge_config_read(yaml_get(root, "judge"), yaml_get(root, "policy"), config, &err), 0);
    yaml_destroy(doc);
}

static const struct judge_metric *metric_of(const struct judge_config *config, const char *name)
{
    for (size_t i = 0; i < config->metric_count; i++)
        if (strcmp(config->metrics[i].metric, name) == 0)
            return &config->metrics[i];
    fail_msg("no metric %s", name);
    return NULL;
}

/* The catalogue has the metrics; the configuration changes what it names. */
static void changes_the_catalogue(void **state)
{
    (void)state;
    struct judge_config config;
    struct err err = {0};
    assert_int_equal(read_text("false_alarms: 0.01\n", &config, &err), 0);
    assert_int_equal(config.metric_count, metric_row_count);
    const struct judge_metric *clock = metric_of(&config, "clock.sm");
    assert_true(clock->worse == JUDGE_LOWER && clock->floor < clock->accuse);
    judge_config_fini(&config);
    assert_int_equal(read_text("false_alarms: 0.01\nmetrics:\n"
                               "  main.latency: {floor: 0.5}\n"
                               "  clock.sm: {floor: 0.02}\n",
                               &config, &err),
                     0);
    assert_int_equal(config.metric_count, metric_row_count);
    const struct judge_metric *latency = metric_of(&config, "main.latency");
    assert_true(latency->worse == JUDGE_HIGHER && latency->floor == 0.5 && latency->accuse == 0.5);
    assert_true(latency->follows[JUDGE_SM_CLOCK] > 0);
    clock = metric_of(&config, "clock.sm");
    assert_true(clock->floor == 0.02 && clock->accuse > 0.02);
    judge_config_fini(&config);
}

static void reads(void **state)
{
    (void)state;
    struct judge_config config;
    struct err err = {0};
    assert_int_equal(read_text("false_alarms: 0.01\nmetrics:\n"
                               "  a.size: {worse: lower, floor: 0.03, accuse: 0.05, few: 0.2}\n"
                               "  a.latency: {worse: higher, floor: 0.02, accuse: 0.02, "
                               "peak_share: 0.8, follows: {sm_clock: 0.6, pcie: 1}}\n"
                               "  a.line: {worse: any, floor: 0.01}\n"
                               "  a.clock: {worse: none}\n",
                               &config, &err),
                     0);
    assert_int_equal(config.metric_count, metric_row_count + 4);
    const struct judge_metric *metrics = &config.metrics[metric_row_count];
    assert_string_equal(metrics[0].metric, "a.size");
    assert_int_equal(metrics[0].worse, JUDGE_LOWER);
    assert_int_equal(metrics[1].worse, JUDGE_HIGHER);
    assert_int_equal(metrics[2].worse, JUDGE_ANY);
    assert_int_equal(metrics[3].worse, JUDGE_NONE);
    assert_true(metrics[0].floor == 0.03 && metrics[0].accuse == 0.05);
    assert_true(metrics[0].few == 0.2 && metrics[2].few == 0);
    assert_true(metrics[2].accuse == 0.01); /* the floor, where nothing else is said */
    assert_true(metrics[0].follows[JUDGE_SM_CLOCK] == 0);
    assert_true(metrics[1].follows[JUDGE_SM_CLOCK] == 0.6);
    assert_true(metrics[1].follows[JUDGE_PCIE] == 1);
    assert_true(metrics[1].peak_share == 0.8);
    assert_int_equal(config.node_size_count, 0);
    judge_config_fini(&config);
    assert_int_equal(
        read_text("false_alarms: 0.01\ngpus_per_node: 8\nmetrics: {}\n", &config, &err), 0);
    assert_int_equal(config.node_size_count, 1);
    assert_string_equal(config.node_sizes[0].pattern, "*");
    assert_int_equal(config.node_sizes[0].gpus, 8);
    judge_config_fini(&config);
    assert_int_equal(
        read_text("false_alarms: 0.01\ngpus_per_node: {viz*: 2, \"*\": 4}\nmetrics: {}\n", &config,
                  &err),
        0);
    assert_int_equal(config.node_size_count, 2);
    assert_string_equal(config.node_sizes[0].pattern, "viz*");
    assert_int_equal(config.node_sizes[1].gpus, 4);
    judge_config_fini(&config);
}

/* What differs from the defaults is kept, and read again gives the same. */
static void keeps_what_differs(void **state)
{
    (void)state;
    static const struct {
        const char *judge, *policy, *own;
    } cases[] = {
        {"{}", NULL, NULL},
        {"false_alarms: 0.01\nmetrics: {main.latency: {floor: 0.01}}", "tell: 1 %\n", NULL},
        {"false_alarms: 0.02", NULL, "{judge: {false_alarms: 0.02, metrics: {}}}\n"},
        {"gpus_per_node: {viz*: 1, \"*\": 8}", NULL,
         "{judge: {false_alarms: 0.01, gpus_per_node: {\"viz*\": 1, \"*\": 8}, metrics: {}}}\n"},
        {"metrics: {l2.line: {floor: 0}, main.latency: {floor: 0.02}, mine: {worse: any, floor: "
         "0.1}}",
         NULL,
         "{judge: {false_alarms: 0.01, metrics: {main.latency: {floor: 0.02}, mine: {worse: any, "
         "floor: 0.1}}}}\n"},
        {"{}", "drain: 8 %\ndegraded: {alert: 3 %}\n",
         "{judge: {false_alarms: 0.01, metrics: {}}, policy: {drain: 8 %, degraded: {alert: 3 "
         "%}}}\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct judge_config config, again;
        read_both(cases[i].judge, cases[i].policy, &config);
        if (!cases[i].own) {
            assert_null(config.own);
            judge_config_fini(&config);
            continue;
        }
        assert_string_equal(config.own, cases[i].own);
        read_own(config.own, &again);
        assert_string_equal(again.own, cases[i].own);
        judge_config_fini(&again);
        judge_config_fini(&config);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"false_alarms: 2\nmetrics: {}\n", "j.yaml:1:15: false_alarms: 2 is outside 1e-12 to 1"},
        {"false_alarms: 0.01\nmetrics: {a: {floor: 0}}\n", "j.yaml:2:14: key \"worse\" is missing"},
        {"false_alarms: 0.01\ngpus_per_node: -1\nmetrics: {}\n",
         "j.yaml:2:16: expected a whole number, found \"-1\""},
        {"false_alarms: 0.01\ngpus_per_node: {a: x}\nmetrics: {}\n",
         "j.yaml:2:20: expected a whole number, found \"x\""},
        {"false_alarms: 0.01\ngpus_per_node: [8]\nmetrics: {}\n",
         "j.yaml:2:16: expected a mapping (key: value), found a list"},
        {"false_alarms: 0.01\nmetrics: []\n",
         "j.yaml:2:10: expected a mapping (key: value), found a list"},
        {"false_alarms: 0.01\nmetrics: {a: {worse: up, floor: 0}}\n",
         "j.yaml:2:22: worse: expected one of lower, higher, any, none; found \"up\""},
        {"false_alarms: 0.01\nmetrics: {b: {worse: none}, a: {worse: any, floor: -1}}\n",
         "j.yaml:2:52: floor: -1 is outside 0 to 1"},
        {"false_alarms: 0.01\nmetrics: {a: {worse: any, accuse: 0}}\n",
         "j.yaml:2:14: key \"floor\" is missing"},
        {"false_alarms: 0.01\nmetrics: {a: {worse: none, follows: {sm_clok: 1}}}\n",
         "j.yaml:2:38: unknown key \"sm_clok\"; did you mean \"sm_clock\"?"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct judge_config config;
        struct err err = {0};
        char shown[1024];
        assert_true(read_text(cases[i].text, &config, &err) < 0);
        assert_string_equal(err_format(&err, shown, sizeof shown), cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_the_catalogue),
                                       cmocka_unit_test(reads), cmocka_unit_test(refuses),
                                       cmocka_unit_test(keeps_what_differs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
