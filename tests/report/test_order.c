/* Orders: what is read, and where and how a bad file is refused. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <string.h>

#include "report/accept/order.h"

static int read(const char *text, struct order *out, struct err *err)
{
    return order_read_text(text, strlen(text), "o.yaml", made_config(), out, err);
}

#define HEAD "gpumemtopo_order: {schema: 1}\n"

static void whole(void **state)
{
    (void)state;
    static const char text[] =
        "gpumemtopo_order: {schema: 1, number: A-1, supplier: S, customer: C, delivered: D}\n"
        "models:\n"
        "  - {name: Alpha, parts: [p1, p2], memory: 80 GiB, sms: 132, l2: 50 MiB,\n"
        "     memory_bus_bits: 5120, pcie: {generation: 5}, nvlinks: 18, power_limit_w: 700,\n"
        "     figures: {main.latency: {at_most: 700, unit: cycles},\n"
        "               main.bandwidth.read: {at_least: 10, unit: GB/s, spread: 0.05}}}\n"
        "  - {name: Beta, count: 3}\n"
        "nodes:\n"
        "  - {names: \"a*\", count: 2, gpus: {Alpha: 4, Beta: 1}}\n"
        "  - {names: b, count: 1, gpus: {Beta: 1}}\n"
        "other_nodes: ignored\n"
        "outliers_allowed: [misconfigured, mismatched]\n";
    struct order order = {0};
    struct err err = {0};
    assert_int_equal(read(text, &order, &err), 0);
    assert_string_equal(order.number, "A-1");
    assert_string_equal(order.delivered, "D");
    assert_int_equal(order.model_count, 2);
    const struct order_model *alpha = &order.models[0];
    assert_int_equal(alpha->count, 8); /* of the nodes */
    assert_int_equal(alpha->part_count, 2);
    assert_true(alpha->facts[ORDER_MEMORY] == 80.0 * 1024 * 1024 * 1024);
    assert_true(alpha->facts[ORDER_L2] == 50.0 * 1024 * 1024);
    assert_true(alpha->facts[ORDER_PCIE_GENERATION] == 5);
    assert_true(isnan(alpha->facts[ORDER_PCIE_WIDTH]));
    assert_true(alpha->facts[ORDER_NVLINKS] == 18 && alpha->facts[ORDER_POWER_LIMIT] == 700);
    assert_int_equal(alpha->figure_count, 2);
    assert_true(alpha->figures[0].at_most == 700 && isnan(alpha->figures[0].at_least));
    assert_true(isnan(alpha->figures[0].spread) && alpha->figures[1].spread == 0.05);
    assert_int_equal(order.models[1].count, 3);
    assert_true(isnan(order.models[1].facts[ORDER_MEMORY]));
    assert_int_equal(order.nodes[0].gpus[1], 1);
    assert_int_equal(order.nodes[1].gpus[0], 0);
    assert_true(order.other_nodes_ignored);
    assert_true(order.outliers_allowed[VERDICT_MISCONFIGURED]);
    assert_false(order.outliers_allowed[VERDICT_FAILING]);
    order_fini(&order);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, column;
        const char *part;
    } cases[] = {
        {"", 1, 1, "the file is empty"},
        {"# nothing\n", 0, 0, ""},
        {"[]\n", 1, 1, "expected a mapping"},
        {HEAD, 1, 1, "key \"models\" is missing"},
        {"models: [{name: A, count: 1}]\n", 1, 1, "key \"gpumemtopo_order\" is missing"},
        {"gpumemtopo_order: {schema: 2}\nmodels: [{name: A, count: 1}]\n", 1, 19, "newer"},
        {HEAD "models: []\n", 2, 9, "at least one model"},
        {HEAD "model: []\n", 2, 1, "did you mean \"models\""},
        {HEAD "models: [{nam: A, count: 1}]\n", 2, 11, "did you mean \"name\""},
        {HEAD "models: [{name: A}]\n", 2, 10, "key \"count\" is missing"},
        {HEAD "models: [{name: \"\", count: 1}]\n", 2, 10, "the name that the driver reports"},
        {HEAD "models: [{name: A, count: 0}]\n", 2, 27, "count: "},
        {HEAD "models: [{name: A, count: -1}]\n", 2, 27, "count: "},
        {HEAD "models:\n  - {name: A, count: 1}\n  - {name: A, count: 2}\n", 4, 5,
         "a second entry"},
        {HEAD "models: [{name: A, count: 1, memory: 141 GB}]\n", 2, 38, "powers of ten or of two"},
        {HEAD "models: [{name: A, count: 1, memory: 141G}]\n", 2, 38, "powers of ten or of two"},
        {HEAD "models: [{name: A, count: 1, memory: much}]\n", 2, 38, "expected a size"},
        {HEAD "models: [{name: A, count: 1, pcie: {}}]\n", 2, 36, "generation, width or both"},
        {HEAD "models: [{name: A, count: 1, pcie: {lanes: 16}}]\n", 2, 37, "unknown key \"lanes\""},
        {HEAD "models: [{name: A, count: 1, parts: []}]\n", 2, 37, "at least one part"},
        {HEAD "models: [{name: A, count: 1, figures: {main.latncy: {at_most: 1, unit: cycles}}}]\n",
         2, 40, "did you mean \"main.latency\""},
        {HEAD "models: [{name: A, count: 1, figures: {zzz: {at_most: 1, unit: s}}}]\n", 2, 40,
         "unknown figure \"zzz\"; judge.metrics"},
        {HEAD "models: [{name: A, count: 1, figures: {main.latency: {}}}]\n", 2, 54,
         "expected at_least, at_most or spread"},
        {HEAD "models: [{name: A, count: 1, figures: {main.latency: {at_most: 1}}}]\n", 2, 54,
         "key \"unit\" is missing"},
        {HEAD "models: [{name: A, count: 1, figures: {main.latency: {at_most: .nan, unit: s}}}]\n",
         2, 64, "at_most: "},
        {HEAD "models: [{name: A, count: 1, figures: {main.latency: {at_most: 1, at_least: 2, "
              "unit: s}}}]"
              "\n",
         2, 54, "at_least is larger"},
        {HEAD "models: [{name: A, count: 1, figures: {main.latency: {spread: 0.1}}}]\n", 2, 10,
         "needs at least two GPUs"},
        {HEAD "models: [{name: A, count: 1}]\nnodes: []\n", 3, 8, "at least one entry"},
        {HEAD
         "models: [{name: Alpha, count: 1}]\nnodes: [{names: n, count: 1, gpus: {Alhpa: 1}}]\n",
         3, 37, "did you mean \"Alpha\""},
        {HEAD "models: [{name: A, count: 1}]\nnodes: [{names: n, count: 2, gpus: {A: 4}}]\n", 2, 10,
         "count is 1, but the nodes have 8"},
        {HEAD
         "models: [{name: A}, {name: B, count: 1}]\nnodes: [{names: n, count: 2, gpus: {A: 4}}]\n",
         2, 21, "no entry of nodes has \"B\""},
        {HEAD "models: [{name: A}]\nnodes: [{names: \"\", count: 2, gpus: {A: 4}}]\n", 3, 17,
         "expected a name"},
        {HEAD "models: [{name: A}]\nnodes: [{names: \"*a*a*a*a*a*a*\", count: 2, gpus: {A: 4}}]\n",
         3, 17, "at most 6 stars"},
        {HEAD "models: [{name: A}]\nnodes: [{names: n, count: 1000000, gpus: {A: 1024}}]\n", 2, 10,
         "more than 1000000 GPUs"},
        {HEAD "models: [{name: A, count: 1}]\nother_nodes: ignored\n", 3, 14, "needs nodes"},
        {HEAD "models: [{name: A, count: 1}]\nother_nodes: maybe\n", 3, 14, "refused, ignored"},
        {HEAD "models: [{name: A, count: 1}]\noutliers_allowed: [bad]\n", 3, 20, "misconfigured"},
        {HEAD "models: [{name: &a A, count: 1}]\nx: *a\n", 0, 0, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct order order = {.model_count = 77};
        struct err err = {0};
        int rc = read(cases[i].text, &order, &err);
        if (!rc || !strstr(err.text, cases[i].part) || strcmp(err.file, "o.yaml") != 0 ||
            (cases[i].line && (err.line != cases[i].line || err.column != cases[i].column)))
            fail_msg("case %zu: %d, %s:%d:%d: %s; expected %d:%d, \"%s\"", i, rc, err.file,
                     err.line, err.column, err.text, cases[i].line, cases[i].column, cases[i].part);
        assert_int_equal(order.model_count, 77); /* untouched */
    }
}

static void missing_file(void **state)
{
    (void)state;
    struct order order = {0};
    struct err err = {0};
    assert_int_not_equal(order_read_file("/no/such/order.yaml", made_config(), &order, &err), 0);
    assert_non_null(strstr(err.text, "cannot open"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(refused),
                                       cmocka_unit_test(missing_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
