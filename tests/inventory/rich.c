/* Invented data with everything in it that a file must survive. */
#include "rich.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

const char *const rich_texts[] = {
    "",
    " ",
    " leading",
    "trailing ",
    "yes",
    "No",
    "ON",
    "off",
    "y",
    "null",
    "~",
    "true",
    "False",
    "12",
    "-3",
    "9.0",
    "1e5",
    ".5",
    ".inf",
    ".NaN",
    "0x1f",
    "0o17",
    "1_000",
    "12:30:45",
    "0000:1b:00.0",
    "2026-11-14",
    "2026-11-14T12:00:00Z",
    "0.1.0",
    "550.54.14",
    "1.2.",
    "a: b",
    "a #b",
    "a:",
    "#x",
    "- x",
    "-",
    "--flag=value",
    "? x",
    "&anchor",
    "*alias",
    "!tag",
    "%directive",
    "@at",
    "`tick",
    "[x]",
    "{x: y}",
    "a, b",
    "a]b",
    "<<",
    "=",
    "---",
    "...",
    "|",
    ">",
    "'single'",
    "\"double\"",
    "back\\slash",
    "tab\there",
    "line\nbreak",
    "line\r\nbreak\n",
    "\x01\x02\x1b[31mred\x07\x7f",
    "C1 \xc2\x85\xc2\x9b",
    "separators \xe2\x80\xa8\xe2\x80\xa9",
    "byte order mark \xef\xbb\xbf",
    "non-character \xef\xbf\xbe\xef\xbf\xbf",
    "umlaut \xc3\xa4, han \xe6\xbc\xa2, face \xf0\x9f\x98\x80",
    "NVIDIA H200",
    "Tesla V100-SXM2-32GB (rev. 2)",
    "<script>alert(1)</script>",
    "$(reboot); `reboot`",
};
const unsigned rich_text_count = sizeof rich_texts / sizeof *rich_texts;

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static char *copy(const char *text)
{
    return must(str_copy(text));
}

static void fill_facts(struct facts *facts)
{
    facts_set_text(facts, "compute_capability", "9.0");
    facts_set_int(facts, "sms", 132);
    facts_set_int(facts, "smallest", INT64_MIN);
    facts_set_int(facts, "largest", INT64_MAX);
    facts_set_real(facts, "clock_mhz", 1980.5);
    facts_set_real(facts, "whole", 500.0);
    facts_set_real(facts, "broken", NAN);
    facts_set_bool(facts, "ecc", true);
    facts_set_bool(facts, "mig", false);
    facts_set_unknown(facts, "l2_bytes", "not supported");
    facts_set_text(facts, "odd key: #", "on");
}

static void fill_sizes(struct measures *measures)
{
    struct measure *m = must(measures_add(measures, "l1_data.size", 210000, "B", "chase+cpd"));
    m->spread = 0;
    m->confidence = 0.999;
    m->n = 15;
    facts_set_unknown(&m->notes, "reported", "no such attribute");
    facts_set_int(&m->notes, "nominal", 229376);
    facts_set_int(&m->notes, "carveout", 32768);
    m = must(measures_add(measures, "main.latency", 812.34375, "cycles", "chase"));
    m->spread = 1.0 / 3;
    m->n = UINT32_MAX;
    measure_set_status(m, MEASURE_NOISY, "two of \"five\" runs\nwere odd");
    facts_set_real(&m->notes, "ns", 410.27450000000005);
    m = must(measures_add(measures, "l1_data.reach", 1e17, "B", "chase"));
    m->bound = MEASURE_AT_LEAST;
    m->confidence = 1;
    m = must(measures_add(measures, "l1_data.per_sm", 1, "", "interference"));
    m->confidence = 0.5;
}

static void fill_measures(struct measures *measures)
{
    static const char *const shared[] = {"texture", "read_only", "off"};
    fill_sizes(measures);
    must(measures_add_words(measures, "l1_data.shared_with", shared, 3, "interference"));
    must(measures_add_words(measures, "l2.shared_with", NULL, 0, "interference"));
    struct measure *m =
        must(measures_add_words(measures, "texture.shared_with", shared, 1, "interference"));
    measure_set_status(m, MEASURE_NOISY, "one run disagreed");
    m = must(measures_add_words(measures, "constant_l1.shared_with", shared, 1, "interference"));
    measure_set_status(m, MEASURE_FAILED, "no answer");
    m = must(measures_add(measures, "main.bandwidth.read", 4534.5, "GB/s", "stream"));
    m->spread = 12;
    m->confidence = 0.97;
    must(measures_add(measures, "main.bandwidth.write", 0.1, "GB/s", "stream"));
    must(measures_add_missing(measures, "constant_l15.size", MEASURE_UNSUPPORTED, "none: here"));
    must(measures_add_missing(measures, "shared.size", MEASURE_FAILED, NULL));
    must(measures_add(measures, "l2.latency", INFINITY, "cycles", "chase"));
    /* A metric beside a group of its own name, names without and with odd dots. */
    must(measures_add(measures, "tlb", 2, "", NULL));
    must(measures_add(measures, "tlb.reach", -0.0, NULL, "chase"));
    must(measures_add(measures, "tlb.reach.l1", 5e-324, NULL, "chase"));
    must(measures_add(measures, "odd..dots.", 1e-7, "B", "chase"));
    must(measures_add(measures, "a.b.c.d.e.f.g.h.i", 123456789012345678.0, "B", "chase"));
    must(measures_add(measures, "x.value", 7, "B", "chase"));
}

void rich_result(struct gpu_result *out_result)
{
    struct gpu_result *r = out_result;
    memset(r, 0, sizeof *r);
    r->uuid = copy("GPU-00000000-0000-0000-0000-000000000001");
    r->node = copy("gpu003\nroot");
    r->pci = copy("0000:1b:00.0");
    r->index = -1;
    r->rank = 10;
    r->name = copy("NVIDIA H200");
    r->status = GPU_CRASHED;
    r->reason = copy("");
    r->elapsed_s = 6.25;
    r->run.first_status = GPU_CRASHED;
    r->run.first_reason = copy("worker killed by signal 11");
    r->run.gpus_allocated = 8;
    fill_facts(&r->hardware);
    facts_set_text(&r->board, "serial", "1650000000001");
    facts_set_int(&r->health, "ecc_uncorrected_dram", 3);
    facts_set_unknown(&r->health, "remap_pending", "not supported");
    facts_set_real(&r->timings, "l2.size", 0.25);
    fill_measures(&r->measures);
}

static void fill_model(struct inventory_model *model)
{
    model->id = copy("nvidia-h200");
    model->name = copy("NVIDIA H200");
    model->key = copy("10de:2335:10de:18be:NVIDIA H200");
    model->count = 2;
    fill_facts(&model->identity);
    facts_set_int(&model->config, "power_limit_w", 700);
    facts_set_bool(&model->health, "remap_pending", false);
    model->populations = must(mem_array(2, sizeof *model->populations));
    model->population_count = 2;
    for (size_t i = 0; i < 2; i++) {
        struct inventory_population *population = &model->populations[i];
        population->by = must(str_copy("board.part"));
        population->count = 1;
        facts_set_real(&population->figures, "main.latency", i ? 652.5 : 689);
    }
    model->populations[0].value = must(str_copy("692: \"000\""));
    fill_measures(&model->memory);
    for (size_t i = 0; i < model->memory.count; i++)
        model->memory.items[i].gpus = model->memory.items[i].n ? 2 : 0;
}

static void fill_gpu(struct inventory_gpu *gpu, unsigned number)
{
    gpu->uuid = must(str_format("GPU-%08u", number));
    gpu->node = copy("gpu003");
    gpu->pci = must(str_format("0000:%02x:00.0", number));
    gpu->index = number ? (int32_t)number : -1;
    gpu->rank = (int32_t)number;
    gpu->model = number < 2 ? copy("nvidia-h200") : NULL;
    gpu->status = number == 1 ? GPU_OUTLIER : number == 2 ? GPU_TIMED_OUT : GPU_OK;
    if (number == 2)
        return;
    facts_set_text(&gpu->board, "driver", "550.54.14");
    facts_set_text(&gpu->board, "inforom", "G520.0200.00.05");
    facts_set_text(&gpu->board, "serial", "1650000000001");
    facts_set_unknown(&gpu->board, "part", "not permitted");
    if (number)
        facts_set_int(&gpu->config, "power_limit_w", 500);
    if (number)
        facts_set_bool(&gpu->health, "remap_pending", true);
    if (number)
        facts_set_int(&gpu->hardware, "sms", 130);
    gpu->noted = must(mem_array(1, sizeof *gpu->noted));
    gpu->noted_count = 1;
    gpu->noted[0].metric = copy("compute.wrong_at.special");
    facts_set_int(&gpu->noted[0].notes, "sub_core", 2);
    facts_set_text(&gpu->noted[0].notes, "bits", "0x00002000");
    gpu->values = must(mem_array(4, sizeof *gpu->values));
    gpu->value_count = 4;
    gpu->values[0] = (struct inventory_value){copy("main.bandwidth.read"), 3051, 12};
    gpu->values[1] =
        (struct inventory_value){copy("main.latency"), NAN, 0.30000000000000004, MEASURE_FAILED};
    gpu->values[2] = (struct inventory_value){copy("l2.latency"), 212.5, 9, MEASURE_NOISY};
    gpu->values[3] =
        (struct inventory_value){copy("l2.size"), 65536, 0, MEASURE_OK, MEASURE_AT_LEAST};
}

static void fill_outlier(struct inventory_outlier *outlier, unsigned number, size_t findings)
{
    outlier->uuid = must(str_format("GPU-%08u", number));
    outlier->node = copy("gpu003");
    outlier->pci = must(str_format("0000:%02x:00.0", number));
    outlier->model = copy("nvidia-h200");
    outlier->verdict = findings ? VERDICT_MISCONFIGURED : VERDICT_UNKNOWN;
    outlier->loss = findings ? 0.327 : NAN;
    outlier->action = findings ? ACTION_DRAIN : ACTION_TELL;
    outlier->evidence = must(mem_array(findings, sizeof *outlier->evidence));
    outlier->evidence_count = findings;
    for (size_t i = 0; i < findings; i++)
        outlier->evidence[i] = (struct inventory_evidence){
            .metric = copy("main.bandwidth.read"),
            .value = 3051,
            .expected = 4534,
            .unit = copy("GB/s"),
            .deviation = -0.327,
            .score = i ? NAN : -41.2,
            .basis = copy(i ? "rule" : "fleet"),
            .cause = i ? NULL : copy("memory clock 1593 MHz, model runs at 3201 MHz"),
            .confirmed = i ? copy("by its repetitions") : NULL,
        };
}

/* One finding per hostile text, and one of 64 KiB. */
static void fill_nodes(struct inventory *inventory)
{
    size_t count = rich_text_count + 1;
    inventory->node_findings = must(mem_array(count, sizeof *inventory->node_findings));
    inventory->node_finding_count = count;
    for (size_t i = 0; i < rich_text_count; i++) {
        struct inventory_node *node = &inventory->node_findings[i];
        node->node = must(str_format("n%zu", i));
        node->finding = copy(rich_texts[i]);
        node->verdict = VERDICT_UNKNOWN;
        node->loss = NAN;
        node->action = ACTION_TELL;
        node->gpus = must(mem_array(1, sizeof *node->gpus));
        node->gpus[0] = copy("GPU-00000000");
        node->gpu_count = 1;
    }
    free(inventory->node_findings[1].gpus[0]);
    inventory->node_findings[1].gpus[0] = copy("GPU-00000001");
    inventory->node_findings[1].verdict = VERDICT_DEGRADED;
    inventory->node_findings[1].loss = 0.021;
    inventory->node_findings[1].action = ACTION_ALERT;
    struct inventory_node *node = &inventory->node_findings[count - 1];
    node->verdict = VERDICT_BUILT_SLOWER;
    node->loss = NAN;
    node->action = ACTION_TELL;
    node->finding = must(mem_array(65537, 1));
    memset(node->finding, '"', 65536);
}

void rich_inventory(struct inventory *out_inventory)
{
    static const char *const command[] = {"gpumemtopo-survey", "-o", "a b", "--seed=1", ""};
    struct inventory *v = out_inventory;
    memset(v, 0, sizeof *v);
    v->version = copy("0.1.0");
    v->generated = copy("2026-11-14T12:00:00Z");
    v->command = must(mem_array(5, sizeof *v->command));
    for (; v->command_count < 5; v->command_count++)
        v->command[v->command_count] = copy(command[v->command_count]);
    v->seed = UINT64_MAX;
    v->backend = copy("sim");
    v->measured_by = must(mem_array(2, sizeof *v->measured_by));
    v->measured_by[v->measured_by_count++] = copy("0.0.9");
    v->measured_by[v->measured_by_count++] = copy("0.1.0");
    v->configuration = copy("{judge: {false_alarms: 0.02, metrics: {}}}\n");
    v->total_nodes = 2;
    v->total_ranks = 3;
    v->total_gpus = 3;
    v->total_measured = 2;
    v->total_unmeasured = 1;
    v->total_outliers = 1;
    v->wall_s = 6.1;
    v->exit_code = 4;
    v->models = must(mem_array(1, sizeof *v->models));
    v->model_count = 1;
    fill_model(&v->models[0]);
    v->gpus = must(mem_array(3, sizeof *v->gpus));
    for (; v->gpu_count < 3; v->gpu_count++)
        fill_gpu(&v->gpus[v->gpu_count], (unsigned)v->gpu_count);
    fill_nodes(v);
    v->outliers = must(mem_array(1, sizeof *v->outliers));
    v->outlier_count = 1;
    fill_outlier(&v->outliers[0], 1, 2);
    v->watch = must(mem_array(1, sizeof *v->watch));
    v->watch_count = 1;
    fill_outlier(&v->watch[0], 0, 0);
    v->unmeasured = must(mem_array(2, sizeof *v->unmeasured));
    v->unmeasured_count = 1;
    v->unmeasured[0] = (struct inventory_unmeasured){
        .node = copy("gpu003"),
        .rank = -1,
        .uuid = copy("GPU-00000002"),
        .status = GPU_TIMED_OUT,
        .reason = copy("no answer in 120 s during l2.size"),
    };
}
