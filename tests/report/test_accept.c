/* Deliveries against orders: what is missing, other, below, faulty, and what is not shown. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/accept/accept.h"

enum { COUNT = 16 };

#define HEAD "gpumemtopo_order: {schema: 1, number: A-1}\n"
#define NODES "nodes: [{names: \"n0[0-3]\", count: 4, gpus: {Alpha 100: 4}}]\n"

/* Changes the results before they are judged, or the inventory afterwards; NULL: nothing. */
typedef void spoil_gpus(struct gpu_result *gpus);
typedef void spoil_inventory(struct inventory *inventory);

struct test_case {
    const char *name, *order;
    spoil_gpus *before;
    spoil_inventory *after;
    size_t counts[ACCEPT_CLASSES];
    const char *parts[4]; /* of the text */
};

/* Joins lines that were broken. */
static char *unwrap(char *text)
{
    static const char wrap[] = "\n      ";
    for (char *at; (at = strstr(text, wrap));) {
        *at = ' ';
        memmove(at + 1, at + strlen(wrap), strlen(at + strlen(wrap)) + 1);
    }
    return text;
}

static char *compared(const struct test_case *test, size_t out_counts[ACCEPT_CLASSES])
{
    static const struct accept_source source = {"in.yaml", "o.yaml", "00", "11", "9.9"};
    struct gpu_result *gpus = made_fleet_of(COUNT, 3, 0.0001, 0.0005);
    struct order order = {0};
    struct accept accept = {0};
    struct strbuf text = {0}, page = {0};
    struct err err = {0};
    if (test->before)
        test->before(gpus);
    struct inventory inventory = made_judged(gpus, COUNT);
    if (test->after)
        test->after(&inventory);
    if (order_read_text(test->order, strlen(test->order), "o", made_config(), &order, &err) ||
        accept_compare(&order, &inventory, &accept, &err))
        fail_msg("%s: %s", test->name, err.text);
    accept_put_text(&accept, &source, &text);
    accept_put_page(&accept, &source, &page);
    assert_false(text.failed || page.failed);
    memcpy(out_counts, accept.counts, sizeof accept.counts);
    accept_fini(&accept);
    order_fini(&order);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
    strbuf_fini(&page);
    return unwrap(text.data);
}

static struct inventory_value *value_of(struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (strcmp(gpu->values[i].metric, metric) == 0)
            return &gpu->values[i];
    fail_msg("no %s", metric);
    return NULL;
}

static void slow(struct gpu_result *gpus)
{
    made_scale(&gpus[5], "main.bandwidth.read", 0.9);
}

static void narrow(struct gpu_result *gpus)
{
    facts_set_int(&gpus[2].config, "pcie_width", 8);
    for (size_t i = 0; i < COUNT; i++)
        facts_set_bool(&gpus[i].config, "pcie_under_load", true);
}

static void narrow_idle(struct gpu_result *gpus)
{
    narrow(gpus);
    facts_set_bool(&gpus[2].config, "pcie_under_load", false);
}

static void no_nvlinks(struct gpu_result *gpus)
{
    for (size_t i = 0; i < COUNT; i++)
        facts_set_unknown(&gpus[i].health, "nvlinks_active", "not supported");
}

static void crashed(struct gpu_result *gpus)
{
    gpus[7].status = GPU_CRASHED;
    gpus[7].reason = str_copy("worker killed");
    measures_fini(&gpus[7].measures);
}

static void busy(struct gpu_result *gpus)
{
    gpus[7].status = GPU_BUSY;
    gpus[7].reason = str_copy("1 other process");
}

static void other_model(struct gpu_result *gpus)
{
    free(gpus[9].name);
    free(gpus[9].model_key);
    gpus[9].name = str_copy("Alpha 80");
    gpus[9].model_key = str_copy("10de:2:2:Alpha 80");
}

static void rename_node(struct inventory_gpu *gpu, const char *node)
{
    free(gpu->node);
    gpu->node = str_copy(node);
}

static void moved(struct inventory *inventory)
{
    rename_node(&inventory->gpus[0], "n01");
}

static void node_renamed(struct inventory *inventory)
{
    for (size_t i = 0; i < 4; i++)
        rename_node(&inventory->gpus[i], "login1");
}

static void noisy(struct inventory *inventory)
{
    value_of(&inventory->gpus[3], "main.bandwidth.read")->status = MEASURE_NOISY;
}

static void bounded(struct inventory *inventory)
{
    value_of(&inventory->gpus[3], "main.bandwidth.read")->bound = MEASURE_AT_LEAST;
}

/* Above the floor of 4000 by less than its own spread. */
static void near(struct inventory *inventory)
{
    struct inventory_value *value = value_of(&inventory->gpus[3], "main.bandwidth.read");
    value->value = 4001;
    value->spread = 5;
}

static void near_below(struct inventory *inventory)
{
    near(inventory);
    value_of(&inventory->gpus[3], "main.bandwidth.read")->value = 3999;
}

static void surely_below(struct inventory *inventory)
{
    near(inventory);
    value_of(&inventory->gpus[3], "main.bandwidth.read")->value = 3990;
}

static void not_measured_at_all(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        strcpy(value_of(&inventory->gpus[i], "main.bandwidth.read")->metric, "x");
}

static void not_measured_on_one(struct inventory *inventory)
{
    strcpy(value_of(&inventory->gpus[3], "main.bandwidth.read")->metric, "x");
}

/* A rank of n03 did not tell its GPUs, one of which is not in the inventory. */
static void lost_rank(struct inventory *inventory)
{
    inventory_gpu_fini(&inventory->gpus[--inventory->gpu_count]);
    free(inventory->unmeasured);
    inventory->unmeasured = mem_array(1, sizeof *inventory->unmeasured);
    inventory->unmeasured[0] = (struct inventory_unmeasured){
        .node = str_copy("n03"), .rank = 15, .status = GPU_LOST, .reason = str_copy("rank lost")};
    inventory->unmeasured_count = 1;
}

static void lost_somewhere(struct inventory *inventory)
{
    lost_rank(inventory);
    free(inventory->unmeasured[0].node);
    inventory->unmeasured[0].node = NULL;
}

static void one_less(struct inventory *inventory)
{
    inventory_gpu_fini(&inventory->gpus[--inventory->gpu_count]);
}

static void none(struct inventory *inventory)
{
    while (inventory->gpu_count)
        one_less(inventory);
}

static void unknown_model(struct inventory *inventory)
{
    free(inventory->gpus[1].model);
    inventory->gpus[1].model = NULL;
}

static void set_read(struct inventory *inventory, size_t gpu, const char *part, double value)
{
    struct inventory_value *read = value_of(&inventory->gpus[gpu], "main.bandwidth.read");
    read->value = value;
    read->spread = 1;
    if (part)
        facts_set_text(&inventory->gpus[gpu].board, "part", part);
}

/* Two board parts 10 % apart, each within 1 %. */
static void two_parts(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        set_read(inventory, i, i % 2 ? "A" : "B", (i % 2 ? 4000 : 4400) + 2 * (double)i);
}

static void one_part(struct inventory *inventory)
{
    two_parts(inventory);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        facts_set_text(&inventory->gpus[i].board, "part", "A");
}

static void no_part(struct inventory *inventory)
{
    two_parts(inventory);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        facts_remove(&inventory->gpus[i].board, "part");
}

/* As far apart as before, but each board part is scattered itself. */
static void two_scattered_parts(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        set_read(inventory, i, i % 2 ? "A" : "B", i % 4 < 2 ? 4000 : 4400);
}

static void slow_in_its_part(struct inventory *inventory)
{
    two_parts(inventory);
    set_read(inventory, 4, NULL, 4010); /* as the cards of the other part */
}

static void alone_like_others(struct inventory *inventory)
{
    two_parts(inventory);
    set_read(inventory, 4, "C", 4010);
}

static void alone_and_unlike(struct inventory *inventory)
{
    two_parts(inventory);
    set_read(inventory, 4, "C", 3700);
}

static void all_alone(struct inventory *inventory)
{
    two_parts(inventory);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const char part[] = {'A', (char)('A' + i), '\0'};
        facts_set_text(&inventory->gpus[i].board, "part", part);
    }
}

#define FLOOR                                                                                      \
    HEAD "models: [{name: Alpha 100, figures: {main.bandwidth.read: {at_least: 4000, unit: "       \
         "GB/s}}}]\n" NODES
#define PLAIN HEAD "models: [{name: Alpha 100, count: 16}]\n"
#define SPREAD                                                                                     \
    HEAD "models: [{name: Alpha 100, figures: {main.bandwidth.read: {spread: 0.05}}}]\n" NODES
#define PCIE HEAD "models: [{name: Alpha 100, pcie: {generation: 5, width: 16}}]\n" NODES

/* counts: missing, other, below, faulty, not shown */
static const struct test_case cases[] = {
    {"plain", PLAIN, NULL, NULL, {0}, {"As ordered\n", "16 ordered, 16 found, 16 measured"}},
    {"floor", FLOOR, NULL, NULL, {0}, {"As ordered\n"}},
    {"slow",
     FLOOR,
     slow,
     NULL,
     {0, 0, 1, 1, 0},
     {"n01:1 GPU-005 main.bandwidth.read: ordered at least 4000 GB/s, found 39", "degraded"}},
    {"noisy", FLOOR, NULL, noisy, {0, 0, 0, 0, 1}, {"Incomplete", "(noisy)"}},
    {"lower bound", FLOOR, NULL, bounded, {0, 0, 0, 0, 1}, {"(only a lower bound)"}},
    {"near", FLOOR, NULL, near, {0, 0, 0, 0, 1}, {"4001 GB/s +- 5 GB/s (too near"}},
    {"near below", FLOOR, NULL, near_below, {0, 0, 0, 0, 1}, {"3999 GB/s +- 5 GB/s (too"}},
    {"surely below", FLOOR, NULL, surely_below, {0, 0, 1, 0, 0}, {"Not as ordered\n", "3990 GB/s"}},
    {"no figure",
     FLOOR,
     NULL,
     not_measured_at_all,
     {0, 0, 0, 0, 1},
     {"Alpha 100 main.bandwidth.read: ordered at least 4000 GB/s, found not measured (no GPU"}},
    {"no figure of one",
     FLOOR,
     NULL,
     not_measured_on_one,
     {0, 0, 0, 0, 1},
     {"n00:3 GPU-003 main.bandwidth.read", "(not in the inventory)"}},
    {"crashed", FLOOR, crashed, NULL, {0, 0, 0, 0, 1}, {"found crashed (worker killed)", "Incom"}},
    {"busy", FLOOR, busy, NULL, {0, 0, 0, 0, 1}, {"found busy (another process computed"}},
    {"other unit",
     HEAD "models: [{name: Alpha 100, count: 16, figures: {main.latency: {at_most: 400, unit: "
          "ns}}}]\n",
     NULL,
     NULL,
     {0, 0, 0, 0, 16},
     {"(measured in \"cycles\","}},
    {"spread", SPREAD, NULL, NULL, {0}, {"As ordered\n"}},
    {"too far apart",
     SPREAD,
     slow,
     NULL,
     {0, 0, 1, 1, 0},
     {"n01:1 GPU-005 main.bandwidth.read: ordered spread at most 5 %, found spread 10",
      "on n01:1"}},
    {"two board parts", SPREAD, NULL, two_parts, {0}, {"As ordered\n"}},
    {"one board part", SPREAD, NULL, one_part, {0, 0, 1, 0, 0}, {"found spread 10"}},
    {"no board part", SPREAD, NULL, no_part, {0, 0, 1, 0, 0}, {"found spread 10"}},
    {"two scattered board parts",
     SPREAD,
     NULL,
     two_scattered_parts,
     {0, 0, 2, 0, 0},
     {"(board part A: from 4000 GB/s on n00:1 to 4400 GB/s on", "(board part B: from 4000 GB/s"}},
    {"slow in its board part",
     SPREAD,
     NULL,
     slow_in_its_part,
     {0, 0, 1, 0, 0},
     {"n01:0 GPU-004 main.bandwidth.read: ordered spread at most 5 %, found spread 9",
      "(board part B: from 4010 GB/s on n01:0 to"}},
    {"alone, like others", SPREAD, NULL, alone_like_others, {0}, {"As ordered\n"}},
    {"alone, unlike others",
     SPREAD,
     NULL,
     alone_and_unlike,
     {0, 0, 0, 0, 1},
     {"n01:0 GPU-004 main.bandwidth.read: ordered spread at most 5 %, found spread 7.5",
      "(the only GPU with board part C, and unlike the others)"}},
    {"all alone", SPREAD, NULL, all_alone, {0, 0, 1, 0, 0}, {"found spread 10"}},
    {"spread of all but one", SPREAD, crashed, NULL, {0, 0, 0, 0, 2}, {"(15 of 16 GPUs have it)"}},
    {"lanes",
     PCIE,
     narrow,
     NULL,
     {0, 0, 1, 1, 0},
     {"n00:2 GPU-002 PCIe lanes: ordered at least 16, found 8"}},
    {"lanes of an idle link",
     PCIE,
     narrow_idle,
     NULL,
     {0, 0, 0, 0, 1},
     {"found 8 (read while the link was idle)"}},
    {"no fact",
     HEAD "models: [{name: Alpha 100, nvlinks: 18}]\n" NODES,
     no_nvlinks,
     NULL,
     {0, 0, 0, 0, 1},
     {"Alpha 100 active NVLinks: ordered at least 18, found not known (the driver tells"}},
    {"memory",
     HEAD "models: [{name: Alpha 100, memory: 141 GiB}]\n" NODES,
     NULL,
     NULL,
     {0, 0, 16, 0, 0},
     {"memory: ordered at least 141 GiB, found 140.4 GiB"}},
    {"part",
     HEAD "models: [{name: Alpha 100, count: 16, parts: [P]}]\n",
     NULL,
     NULL,
     {0, 0, 0, 0, 16},
     {"board part: ordered P, found not known"}},
    {"other model",
     PLAIN,
     other_model,
     NULL,
     {1, 1, 0, 0, 0},
     {"Alpha 100 GPUs: ordered 16, found 15",
      "n02:1 GPU-009 model: ordered Alpha 100, found Alpha 80"}},
    {"other model on a node",
     FLOOR,
     other_model,
     NULL,
     {1, 1, 0, 0, 0},
     {"n02 Alpha 100 GPUs: ordered 4, found 3"}},
    {"misspelt model",
     HEAD "models: [{name: Alpha 1000, count: 16}]\n",
     NULL,
     NULL,
     {1, 16, 0, 0, 0},
     {"ordered 16, found 0 (the inventory has \"Alpha 100\": is the name right?)"}},
    {"two models",
     HEAD "models: [{name: Beta, count: 2}, {name: Alpha 100, count: 16}]\n",
     NULL,
     NULL,
     {1, 0, 0, 0, 0},
     {"Beta: 2 ordered, 0 found", "Alpha 100: 16 ordered, 16 found"}},
    {"too many",
     HEAD "models: [{name: Alpha 100, count: 15}]\n",
     NULL,
     NULL,
     {0, 1, 0, 0, 0},
     {"ordered 15, found 16"}},
    {"moved",
     FLOOR,
     NULL,
     moved,
     {1, 1, 0, 0, 0},
     {"n00 Alpha 100 GPUs: ordered 4, found 3", "n01 Alpha 100 GPUs: ordered 4, found 5"}},
    {"moved, no nodes", PLAIN, NULL, moved, {0}, {"As ordered\n"}},
    {"another node",
     FLOOR,
     NULL,
     node_renamed,
     {1, 1, 0, 0, 0},
     {"n0[0-3] nodes: ordered 4, found 3", "login1 node: ordered not ordered, found 4 GPUs"}},
    {"another node, ignored",
     FLOOR "other_nodes: ignored\n",
     NULL,
     node_renamed,
     {1, 0, 0, 0, 0},
     {"ignored: 1 node\n"}},
    {"one less",
     FLOOR,
     NULL,
     one_less,
     {1, 0, 0, 0, 0},
     {"n03 Alpha 100 GPUs: ordered 4, found 3"}},
    {"one less, a rank is lost",
     FLOOR,
     NULL,
     lost_rank,
     {0, 0, 0, 0, 2},
     {"Incomplete", "found 3 (1 rank did not tell", "n03 rank: ordered measured, found lost"}},
    {"one less, a rank is lost somewhere",
     FLOOR,
     NULL,
     lost_somewhere,
     {0, 0, 0, 0, 2},
     {"Incomplete", "found 3 (1 rank did not tell"}},
    {"none", PLAIN, NULL, none, {1, 0, 0, 0, 0}, {"16 ordered, 0 found"}},
    {"none, with nodes", FLOOR, NULL, none, {1, 0, 0, 0, 0}, {"n0[0-3] nodes: ordered 4, found 0"}},
    {"unknown model",
     PLAIN,
     NULL,
     unknown_model,
     {1, 0, 0, 0, 1},
     {"n00:1 GPU-001 model: ordered Alpha 100, found not known"}},
    {"allowed",
     SPREAD "outliers_allowed: [degraded]\n",
     slow,
     NULL,
     {0, 0, 1, 0, 0},
     {"Outliers of verdicts that the order allows: 1\n"}},
};

static void deliveries(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t counts[ACCEPT_CLASSES];
        char *text = compared(&cases[i], counts);
        for (size_t k = 0; k < COUNT_OF(cases[i].parts) && cases[i].parts[k]; k++)
            if (!strstr(text, cases[i].parts[k]))
                fail_msg("%s: \"%s\" is not in\n%s", cases[i].name, cases[i].parts[k], text);
        if (memcmp(counts, cases[i].counts, sizeof counts) != 0)
            fail_msg("%s: other counts\n%s", cases[i].name, text);
        free(text);
    }
}

static void pseudonyms(void **state)
{
    (void)state;
    static const char with[] = FLOOR, without[] = PLAIN;
    struct inventory inventory = {.anonymous = true};
    struct order order = {0};
    struct accept accept = {0};
    struct err err = {0};
    assert_int_equal(order_read_text(with, strlen(with), "o", made_config(), &order, &err), 0);
    assert_int_not_equal(accept_compare(&order, &inventory, &accept, &err), 0);
    assert_non_null(strstr(err.text, "pseudonyms"));
    order_fini(&order);
    err_clear(&err);
    assert_int_equal(order_read_text(without, strlen(without), "o", made_config(), &order, &err),
                     0);
    assert_int_equal(accept_compare(&order, &inventory, &accept, &err), 0);
    accept_fini(&accept);
    order_fini(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(deliveries), cmocka_unit_test(pseudonyms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
