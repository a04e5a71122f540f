/* The inventory's text: layout, exact round trip, and what a bad file is told. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "inventory/inventory.h"
#include "rich.h"

static void print_rich(struct strbuf *out_text)
{
    struct inventory inventory;
    rich_inventory(&inventory);
    inventory_print(&inventory, out_text);
    inventory_fini(&inventory);
    assert_false(out_text->failed);
}

static void read_back(const struct strbuf *text, struct inventory *out_inventory)
{
    struct err err = {0};
    char message[1024];
    if (inventory_read_text(text->data, text->length, "rich", out_inventory, &err))
        fail_msg("%s", err_format(&err, message, sizeof message));
}

static void print_read_print_is_identical(void **state)
{
    (void)state;
    struct strbuf first = {0}, second = {0};
    struct inventory inventory;
    print_rich(&first);
    read_back(&first, &inventory);
    inventory_print(&inventory, &second);
    inventory_fini(&inventory);
    assert_string_equal(first.data, second.data);
    strbuf_fini(&first);
    strbuf_fini(&second);
}

static void every_text_survives(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct inventory inventory;
    print_rich(&text);
    read_back(&text, &inventory);
    for (unsigned i = 0; i < rich_text_count; i++)
        assert_string_equal(inventory.node_findings[i].finding, rich_texts[i]);
    assert_int_equal(strlen(inventory.node_findings[rich_text_count].finding), 65536);
    inventory_fini(&inventory);
    strbuf_fini(&text);
}

static void every_value_survives(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct inventory v;
    print_rich(&text);
    read_back(&text, &v);
    assert_true(v.seed == UINT64_MAX);
    assert_int_equal(v.command_count, 5);
    assert_int_equal(v.exit_code, 4);
    assert_int_equal(v.gpus[0].index, -1);
    assert_null(v.gpus[2].model);
    assert_int_equal(v.gpus[2].status, GPU_TIMED_OUT);
    assert_true(isnan(v.gpus[0].values[1].value));
    assert_true(v.gpus[0].values[1].spread == 0.30000000000000004);
    assert_int_equal(v.gpus[0].noted_count, 1);
    assert_string_equal(v.gpus[0].noted[0].metric, "compute.wrong_at.special");
    assert_string_equal(facts_text(&v.gpus[0].noted[0].notes, "bits"), "0x00002000");
    assert_int_equal(v.gpus[0].values[0].status, MEASURE_OK);
    assert_int_equal(v.gpus[0].values[1].status, MEASURE_FAILED);
    assert_int_equal(v.gpus[0].values[2].status, MEASURE_NOISY);
    assert_int_equal(v.gpus[0].values[3].bound, MEASURE_AT_LEAST);
    assert_true(v.node_findings[1].action >= ACTION_ALERT &&
                v.node_findings[1].verdict == VERDICT_DEGRADED);
    assert_false(v.node_findings[0].action >= ACTION_ALERT);
    assert_true(isnan(v.outliers[0].evidence[1].score));
    assert_null(v.outliers[0].evidence[1].cause);
    assert_int_equal(v.outliers[0].verdict, VERDICT_MISCONFIGURED);
    assert_int_equal(v.unmeasured[0].rank, -1);
    assert_string_equal(facts_text(&v.gpus[0].board, "inforom"), "G520.0200.00.05");
    assert_int_equal(facts_get(&v.gpus[0].board, "part")->kind, FACT_UNKNOWN);
    const struct inventory_model *model = &v.models[0];
    assert_string_equal(facts_text(&model->identity, "compute_capability"), "9.0");
    assert_int_equal(facts_int(&model->identity, "smallest", 0), INT64_MIN);
    assert_true(facts_get(&model->identity, "clock_mhz")->real == 1980.5);
    const struct measure *m = measures_get(&model->memory, "main.latency");
    assert_int_equal(m->status, MEASURE_NOISY);
    assert_true(m->spread == 1.0 / 3);
    assert_true(facts_get(&m->notes, "ns")->real == 410.27450000000005);
    m = measures_get(&model->memory, "l1_data.reach");
    assert_int_equal(m->bound, MEASURE_AT_LEAST);
    m = measures_get(&model->memory, "l2.latency");
    assert_int_equal(m->status, MEASURE_FAILED);
    assert_string_equal(m->reason, "not a finite number");
    m = measures_get(&model->memory, "constant_l15.size");
    assert_int_equal(m->status, MEASURE_UNSUPPORTED);
    assert_string_equal(m->reason, "none: here");
    m = measures_get(&model->memory, "l1_data.shared_with");
    assert_int_equal(m->word_count, 3);
    static const char *const odd[] = {"tlb",        "tlb.reach",         "tlb.reach.l1",
                                      "odd..dots.", "a.b.c.d.e.f.g.h.i", "x.value"};
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        if (!measures_get(&model->memory, odd[i]))
            fail_msg("%s is lost", odd[i]);
    inventory_fini(&v);
    strbuf_fini(&text);
}

static void layout_is_the_contract(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "gpumemtopo: {schema: 4, version: 0.1.0, generated: \"2026-11-14T12:00:00Z\", command: "
        "[gpumemtopo-survey, \"-o\", a b, \"--seed=1\", \"\"], seed: 18446744073709551615, "
        "backend: sim, measured_by: [0.0.9, 0.1.0], configuration: "
        "\"{judge: {false_alarms: 0.02, metrics: {}}}\\n\"}\n"
        "survey: {nodes: 2, ranks: 3, gpus: 3, measured: 2, unmeasured: 1, lost_ranks: 0, "
        "outliers: 1, wall_s: 6.1, exit_code: 4}\n"
        "models:\n"
        "  - id: nvidia-h200\n"
        "    name: NVIDIA H200\n"
        "    key: \"10de:2335:10de:18be:NVIDIA H200\"\n"
        "    count: 2\n"
        "    identity: {compute_capability: \"9.0\", sms: 132,",
        "    config: {power_limit_w: 700}\n"
        "    health: {remap_pending: false}\n"
        "    populations:\n"
        "      - {by: board.part, value: \"692: \\\"000\\\"\", count: 1, figures: {main.latency: "
        "689}}\n"
        "      - {by: board.part, value: null, count: 1, figures: {main.latency: 652.5}}\n"
        "    memory:\n"
        "      l1_data:\n"
        "        size: {value: 210000, unit: B, spread: 0, confidence: 0.999, n: 15, gpus: 2, "
        "method: "
        "chase+cpd, reported: null, nominal: 229376, carveout: 32768}\n",
        "        reach: {value: 1.0e+17, unit: B, spread: 0, confidence: 1, n: 1, gpus: 2, method: "
        "chase, "
        "bound: at_least}\n",
        "        shared_with: {value: [texture, read_only, \"off\"], n: 1, gpus: 2, method: "
        "interference}\n",
        "      main:\n        latency: {value: 812.34375, unit: cycles, spread: "
        "0.3333333333333333, n: 4294967295, gpus: 2, ",
        "        bandwidth:\n          read: {value: 4534.5, unit: GB/s, spread: 12, error: 45.3, "
        "confidence: 0.97, n: 1, ",
        "        size: {value: null, status: unsupported, reason: \"none: here\"}\n",
        "      tlb: {value: 2,",
        "      tlb.reach: {value: 0,",
        "\ngpus:\n"
        "  - uuid: GPU-00000000\n"
        "    node: gpu003\n"
        "    pci: \"0000:00:00.0\"\n"
        "    index: null\n"
        "    rank: 0\n"
        "    model: nvidia-h200\n"
        "    status: ok\n"
        "    serial: \"1650000000001\"\n"
        "    part: null\n"
        "    driver: 550.54.14\n"
        "    board: {inforom: G520.0200.00.05}\n"
        "    config: {}\n"
        "    health: {}\n"
        "    values: {main.bandwidth.read: [3051, 12], main.latency: [null, "
        "0.30000000000000004, failed], l2.latency: [212.5, 9, noisy], l2.size: [65536, 0, "
        "at_least]}\n    noted:\n      - {metric: compute.wrong_at.special, notes: {sub_core: 2, "
        "bits: \"0x00002000\"}}\n",
        "\n    hardware: {sms: 130}\n    config: {power_limit_w: 500}\n",
        "\n    health: {remap_pending: true}\n",
        "\nnodes:\n  - {node: n0, finding: \"\", verdict: unknown, loss: null, action: tell, gpus: "
        "[GPU-00000000]}\n"
        "  - {node: n1,",
        "verdict: degraded, loss: 0.021, action: alert, gpus: [GPU-00000001]}\n",
        "\noutliers:\n"
        "  - uuid: GPU-00000001\n"
        "    node: gpu003\n"
        "    pci: \"0000:01:00.0\"\n"
        "    model: nvidia-h200\n"
        "    verdict: misconfigured\n"
        "    loss: 0.327\n"
        "    action: drain\n"
        "    evidence:\n"
        "      - {metric: main.bandwidth.read, value: 3051, expected: 4534, unit: GB/s, "
        "deviation: -0.327, score: -41.2, basis: fleet, cause: \"memory clock 1593 MHz, model "
        "runs at 3201 MHz\"}\n",
        "\nwatch:\n"
        "  - uuid: GPU-00000000\n"
        "    node: gpu003\n"
        "    pci: \"0000:00:00.0\"\n"
        "    model: nvidia-h200\n"
        "    verdict: unknown\n"
        "    loss: null\n"
        "    action: tell\n"
        "    evidence: []\n"
        "unmeasured:\n"
        "  - {node: gpu003, rank: null, uuid: GPU-00000002, status: timed_out, reason: no answer "
        "in 120 s during l2.size}\n",
    };
    struct strbuf text = {0};
    print_rich(&text);
    const char *at = text.data;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        const char *found = strstr(at, lines[i]);
        if (!found)
            fail_msg("missing or out of order: %s", lines[i]);
        at = found + 1;
    }
    strbuf_fini(&text);
}

/* What is absent of most GPUs. */
static void tries_are_read_back(void **state)
{
    (void)state;
    struct inventory inventory, again;
    struct strbuf text = {0};
    rich_inventory(&inventory);
    inventory.gpus[2].run.first_status = GPU_CRASHED;
    inventory.gpus[2].run.first_reason = str_copy("worker killed by signal 11, at first");
    inventory.gpus[1].run.gpus_allocated = 8;
    inventory.unmeasured[0].gpus_allocated = 4;
    inventory_print(&inventory, &text);
    assert_non_null(strstr(text.data, "\n    status: timed_out\n    first_try: {status: crashed, "
                                      "reason: \"worker killed by signal 11, at first\"}\n"));
    assert_non_null(strstr(text.data, "\n    gpus_allocated: 8\n"));
    assert_non_null(strstr(text.data, "during l2.size, gpus_allocated: 4}\n"));
    read_back(&text, &again);
    assert_int_equal(again.gpus[0].run.first_status, GPU_OK);
    assert_int_equal(again.gpus[0].run.gpus_allocated, 0);
    assert_int_equal(again.gpus[2].run.first_status, GPU_CRASHED);
    assert_string_equal(again.gpus[2].run.first_reason, inventory.gpus[2].run.first_reason);
    assert_int_equal(again.gpus[1].run.gpus_allocated, 8);
    assert_int_equal(again.unmeasured[0].gpus_allocated, 4);
    inventory_fini(&again);
    inventory_fini(&inventory);
    strbuf_fini(&text);
}

static void empty_inventory_has_all_keys(void **state)
{
    (void)state;
    struct inventory empty = {0}, again;
    struct strbuf text = {0};
    char version[] = "0.1.0", generated[] = "2026-11-14T12:00:00Z", backend[] = "sim";
    empty.version = version;
    empty.generated = generated;
    empty.backend = backend;
    inventory_print(&empty, &text);
    assert_string_equal(text.data,
                        "gpumemtopo: {schema: 4, version: 0.1.0, generated: "
                        "\"2026-11-14T12:00:00Z\", command: [], seed: 0, backend: sim}\n"
                        "survey: {nodes: 0, ranks: 0, gpus: 0, measured: 0, unmeasured: 0, "
                        "lost_ranks: 0, outliers: 0, wall_s: 0, exit_code: 0}\n"
                        "models: []\ngpus: []\nnodes: []\noutliers: []\nwatch: []\n"
                        "unmeasured: []\n");
    read_back(&text, &again);
    inventory_fini(&again);
    strbuf_fini(&text);
}

/* A small valid file, into which each row below puts one mistake. */
static const char valid[] =
    "gpumemtopo: {schema: 4, version: 0.1.0, generated: x, command: [a], seed: 1, backend: sim}\n"
    "survey: {nodes: 1, ranks: 1, gpus: 1, measured: 1, unmeasured: 0, lost_ranks: 0, outliers: 0, "
    "wall_s: 1, exit_code: 0}\n"
    "models:\n"
    "  - {id: m, name: M, key: k, count: 1, identity: {sms: 1}, config: {}, health: {}, "
    "memory: {l1: {size: {value: 1, unit: B, "
    "spread: 0, confidence: 1, n: 1, method: x}}}}\n"
    "gpus:\n"
    "  - {uuid: G, node: n, pci: p, index: 0, rank: 0, model: m, status: ok, config: {}, health: "
    "{}, "
    "values: {l1.size: [1, 0]}}\n"
    "nodes: []\n"
    "outliers: []\n"
    "watch: []\n"
    "unmeasured: []\n";

/* valid with the first `from` replaced by `to`. */
static void spoil(const char *from, const char *to, struct strbuf *out_text)
{
    const char *at = strstr(valid, from);
    assert_non_null(at);
    strbuf_append(out_text, valid, (size_t)(at - valid));
    strbuf_puts(out_text, to);
    strbuf_puts(out_text, at + strlen(from));
}

static void bad_files_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } rows[] = {
        {"schema: 4", "schema: 5", "bad:1:22: schema: the file has schema 5, newer than the 4"},
        {"schema: 4", "schema: 5, future: 1", "newer than the 4"},
        {"schema: 4", "schema: 3", "bad:1:22: schema: the file has schema 3, older than the 4"},
        {"schema: 4", "schema: x", "bad:1:22: schema: expected a whole number"},
        {"schema: 4", "schema: 0", "outside"},
        {"schema: 4, ", "", "no key \"schema\""},
        {"gpumemtopo:", "gpumemtopos:", "key \"gpumemtopo\" is missing"},
        {"watch: []\n", "", "key \"watch\" is missing"},
        {"watch:", "wach:", "bad:9:1: unknown key \"wach\"; did you mean \"watch\"?"},
        {"seed: 1", "seed: -1", "seed: expected a whole number"},
        {"command: [a]", "command: a", "command: expected a list"},
        {"version: 0.1.0", "version: null", "version: expected a text"},
        {"exit_code: 0", "exit_code: 5", "exit_code: 5 is outside 0 to 4"},
        {"wall_s: 1", "wall_s: soon", "wall_s: expected a number"},
        {"wall_s: 1", "wall_s: .inf", "wall_s: expected a number"},
        {"nodes: 1", "nodes: 4294967296", "nodes: 4294967296 is outside"},
        {"id: m", "id: null", "id: expected a text"},
        {"identity: {sms: 1}", "identity: {sms: [1]}", "expected a single value"},
        {"identity: {sms: 1}", "identity: {sms: 1, sms: 2}", "occurs twice"},
        {"size: {value: 1,", "size: {", "key \"value\" is missing"},
        {"value: 1,", "value: null,", "needs a status"},
        {"value: 1,", "value: 1, status: failed,", "has no value"},
        {"value: 1,", "value: 1, status: fine,", "expected one of ok, noisy, unsupported, failed"},
        {"value: 1,", "value: 1, bound: at_most,", "expected one of at_least"},
        {"value: 1,", "value: {a: 1},", "expected a number"},
        {"confidence: 1", "confidence: 1.1", "outside 0 to 1"},
        {" unit: B,", "", "key \"unit\" is missing"},
        {"{l1: {size:", "{l1: 3, l2: {size:", "expected a measure"},
        {"{l1: {size:", "{l1: {}, l2: {size:", "empty mapping"},
        {"memory: {l1:", "memory: {l1.size: [a], l1:", "\"l1.size\" occurs twice"},
        {"status: ok", "status: fine", "status: expected one of ok, outlier, timed_out"},
        {"status: ok, ", "", "key \"status\" is missing"},
        {"status: ok", "status: ok, serail: 1", "did you mean \"serial\"?"},
        {"rank: 0", "rank: -1", "rank: expected a whole number"},
        {"[1, 0]", "[1]", "expected [value, spread]"},
        {"[1, 0]", "[1, x]", "expected a number"},
        {"status: ok", "status: ok, links: {gpus: [H, I], state: [ok, ok], read: [1]}",
         "links: read is not a list of 2 numbers"},
        {"status: ok", "status: ok, links: {gpus: [H, I], read: [1, 2]}",
         "links: expected the lists gpus and state"},
        {"nodes: []", "nodes: {}", "nodes: expected a list"},
        {"outliers: []", "outliers: [{}]", "is missing"},
        {"watch: []",
         "watch: [{uuid: a, node: a, pci: a, model: a, verdict: tired, loss: null, action: tell, "
         "evidence: []}]",
         "expected one of failing, degraded, misconfigured, mismatched, unsteady, built_slower, "
         "unknown; found \"tired\""},
        {"watch: []",
         "watch: [{uuid: a, node: a, pci: a, model: a, verdict: failing, loss: null, action: jump, "
         "evidence: []}]",
         "expected one of nothing, tell, alert, drain; found \"jump\""},
        {"unmeasured: []", "unmeasured: [&a x, *a]", "aliases"},
        {"unmeasured: []", "unmeasured: [", "not valid YAML"},
    };
    struct inventory inventory;
    struct err err = {0};
    char message[1024];
    assert_int_equal(inventory_read_text(valid, sizeof valid - 1, "good", &inventory, &err), 0);
    /* A file without `gpus`: n was that. */
    assert_int_equal(inventory.models[0].memory.items[0].gpus, 1);
    assert_int_equal(inventory.models[0].memory.items[0].n, 0);
    inventory_fini(&inventory);
    struct strbuf older = {0};
    spoil("confidence: 1", "confidence: null", &older);
    assert_int_equal(inventory_read_text(older.data, older.length, "good", &inventory, &err), 0);
    assert_true(isnan(inventory.models[0].memory.items[0].confidence));
    inventory_fini(&inventory);
    strbuf_fini(&older);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf text = {0};
        spoil(rows[i].from, rows[i].to, &text);
        memset(&inventory, 0x55, sizeof inventory);
        int rc = inventory_read_text(text.data, text.length, "bad", &inventory, &err);
        err_format(&err, message, sizeof message);
        if (rc != -EINVAL || !strstr(message, rows[i].message))
            fail_msg("row %zu (%s): %d %s", i, rows[i].to, rc, message);
        if (err.line < 1 || *(unsigned char *)&inventory != 0x55)
            fail_msg("row %zu: no position, or the output was touched", i);
        strbuf_fini(&text);
    }
}

/* Cut anywhere, the text is refused or is whole; never a crash, never a leak. */
static void cut_files_are_refused(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof valid - 2; length++) {
        struct inventory inventory;
        struct err err = {0};
        if (inventory_read_text(valid, length, "cut", &inventory, &err) != -EINVAL)
            fail_msg("accepted after %zu bytes", length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_read_print_is_identical),
        cmocka_unit_test(every_text_survives),
        cmocka_unit_test(every_value_survives),
        cmocka_unit_test(layout_is_the_contract),
        cmocka_unit_test(tries_are_read_back),
        cmocka_unit_test(empty_inventory_has_all_keys),
        cmocka_unit_test(bad_files_are_explained),
        cmocka_unit_test(cut_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
