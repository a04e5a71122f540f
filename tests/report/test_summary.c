/* The summary: what it says, and that no name can break its lines or drive the terminal. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "markup/text.h"
#include "report/advice.h"
#include "report/entries.h"
#include "report/summary.h"
#include "rich.h"

static void quantities_are_human(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *unit, *text;
    } rows[] = {
        {128, "B", "128 B"},
        {1024, "B", "1 KiB"},
        {210000, "B", "205.1 KiB"},
        {50.0 * 1024 * 1024, "B", "50 MiB"},
        {141.0 * 1024 * 1024 * 1024, "B", "141 GiB"},
        {36.24, "cycles", "36.24 cycles"},
        {4534.4, "GB/s", "4534 GB/s"},
        {12345.6, "cycles", "12346 cycles"},
        {2, "", "2"},
        {0.5, NULL, "0.5"},
        {-2048, "B", "-2 KiB"},
        {NAN, "B", "-"},
        {3, "\x1b[31m", "3 ?[31m"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf text = {0};
        text_put_quantity(&text, rows[i].value, rows[i].unit);
        if (strcmp(text.data, rows[i].text) != 0)
            fail_msg("row %zu: %s, expected %s", i, text.data, rows[i].text);
        strbuf_fini(&text);
    }
}

/* Nothing below a threshold is shown as the threshold. */
static void percentages_are_cut(void **state)
{
    (void)state;
    static const double rows[][2] = {{0.0796, 7.9},   {0.08, 8},        {0.07999, 7.9}, {0.29, 29},
                                     {-0.0796, -7.9}, {-0.023, -2.3},   {0, 0},         {0.0004, 0},
                                     {1.1, 110},      {12.3456, 1234.5}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_true(fabs(text_percent(rows[i][0]) - rows[i][1]) < 1e-9);
}

static void foreign_text_is_cleaned(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned columns;
        const char *clean;
    } rows[] = {
        {"plain", 10, "plain"},
        {NULL, 10, "-"},
        {"", 10, ""},
        {"exactly ten", 11, "exactly ten"},
        {"cut off here", 8, "cut o..."},
        {"abc", 2, "ab"},
        {"\x1b[31mred\n\t\x7f", 20, "?[31mred???"},
        {"C1 \xc2\x9b!", 20, "C1 ?!"},
        {"bidi \xe2\x80\xae!", 20, "bidi ?!"},
        {"bad \xff\xc3.", 20, "bad ??."},
        {"\xc3\xa4", 20, "\xc3\xa4"},
        {"\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 6, "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2"},
        {"\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 5, "\xe6\xbc\xa2..."},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf text = {0};
        strbuf_puts(&text, "");
        text_put_clean(&text, rows[i].text, rows[i].columns);
        if (strcmp(text.data, rows[i].clean) != 0)
            fail_msg("row %zu: %s, expected %s", i, text.data, rows[i].clean);
        strbuf_fini(&text);
    }
}

/* Every verdict has a row that always fits; the document has the table. */
/* A long finding is shown whole: what the second look at a wrong result saw, part by part. */
static void parts_have_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *lines;
    } rows[] = {
        {"", "\n"},
        {"one; two", "one; two\n"},
        {"one; two; three", "one;\n  two;\n  three\n"},
        {"one\ntwo; three;four", "one?two; three;four\n"},
        {"launches of the screen of the FP64 units with a wrong result: 22, most on SM 117, "
         "sub-core "
         "2: 65 of 72; wrong again in 13 of 16 launches; lane 7, step 0, word 7: 0x22bae172 "
         "instead "
         "of 0x22bac172, of operands 0xa3396f7b 0x7c17ada4 0xef41972a 0x7c17ada4 0xef41972a; bits "
         "0x00002000; at 1740 MHz, 312 W, 52 degrees C",
         "launches of the screen of the FP64 units with a wrong result: 22, most on SM\n"
         "  117, sub-core 2: 65 of 72;\n"
         "  wrong again in 13 of 16 launches;\n"
         "  lane 7, step 0, word 7: 0x22bae172 instead of 0x22bac172, of operands\n"
         "  0xa3396f7b 0x7c17ada4 0xef41972a 0x7c17ada4 0xef41972a;\n"
         "  bits 0x00002000;\n"
         "  at 1740 MHz, 312 W, 52 degrees C\n"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct strbuf parts = {0}, lines = {0};
        text_put_parts(&parts, rows[i].text, REPORT_SENTENCE_MAX);
        text_put_wrapped(&lines, parts.data ? parts.data : "", 0, 2, 80);
        assert_string_equal(lines.data, rows[i].lines);
        strbuf_fini(&parts);
        strbuf_fini(&lines);
    }
}

static void advice_is_documented(void **state)
{
    (void)state;
    FILE *file = fopen(DOCUMENT, "r");
    struct strbuf text = {0}, table = {0};
    char part[4096];
    assert_non_null(file);
    for (size_t n; (n = fread(part, 1, sizeof part, file));)
        strbuf_append(&text, part, n);
    fclose(file);
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        const struct inventory_outlier none = {.verdict = (enum verdict)verdict};
        assert_string_equal(advice_of_gpu(&none)->metric, "");
    }
    for (size_t i = 0; i < advice_row_count; i++) {
        const struct advice *row = &advice_rows[i];
        strbuf_printf(&table, "| `%s` | %s%s%s | %s | %s |\n", verdict_name(row->verdict),
                      *row->metric ? "`" : "", *row->metric ? row->metric : "any other",
                      *row->metric ? "`" : "", row->next, row->vendor);
    }
    if (!strstr(text.data, table.data))
        fail_msg("docs/outliers.md does not have this table:\n%s", table.data);
    strbuf_fini(&text);
    strbuf_fini(&table);
}

static void expect_in_order(const char *text, const char *const *parts, size_t count)
{
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, parts[i]);
        if (!found)
            fail_msg("missing or out of order: %s in\n%s", parts[i], text);
        at = found + 1;
    }
}

static void first_what_needs_action(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "3 GPUs on 2 nodes (simulated): 2 measured, 1 not measured; 6.1 s\n",
        "  1 GPU and 1 node need action (1 degraded, 1 misconfigured), 1 node to drain; 1 to watch",
        "\nDEGRADED (1): no node is drained for it; look at cooling,",
        "\n  n1 ",
        "\nMISCONFIGURED (1): drain the node; give the GPU the settings of the others\n",
        "\n  gpu003 01:00.0  main.bandwidth.read 3051 of 4534 GB/s -32.7 %: memory clock 1593",
        "\n                  main.bandwidth.read 3051 of 4534 GB/s -32.7 %: no cause known\n",
        "\nNOT MEASURED\n  gpu003 ",
        "timed_out: no answer in 120 s during l2.size\n",
        "\nNODES AND MODELS\n  n0:\n",
        "\n  and 62 more\n",
        "\nTO WATCH: nothing is to be done\n  gpu003 00:00.0",
        "\nMODELS              NVIDIA H200 (2)\n",
        "\n  L1 data           132 x 205.1 KiB\n",
        "\n  main memory       410.3 ns (noisy), 4534 GB/s\n",
        "\nNext: gpumemtopo-report show --all 'my fleet.yaml'\n",
        "\n      gpumemtopo-report drain 'my fleet.yaml'    # prints commands\n",
    };
    struct inventory inventory;
    struct strbuf text = {0};
    rich_inventory(&inventory);
    report_summary(&inventory, "my fleet.yaml", NULL, &text);
    expect_in_order(text.data, parts, COUNT_OF(parts));
    inventory_fini(&inventory);
    strbuf_fini(&text);
}

/* The largest loss first; what is only alerted apart; what is an outlier is not listed again. */
static void outliers_are_sorted(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "7 GPUs on 1 node: 7 measured; 0.0 s\n",
        "  5 GPUs and 1 node need action (1 failing, 5 degraded), 2 nodes to drain; 1 to watch; 1 ",
        "FAILING (1): drain the node;",
        "  n 02:00.0 ",
        "DEGRADED (3): drain the node;",
        "  m          all of it",
        "  n 03:00.0 ",
        "  n 01:00.0 ",
        "DEGRADED (2): no node is drained for it;",
        "  n 00:00.0 ",
        "  n 04:00.0 ",
        "TO WATCH",
        "  n 05:00.0 ",
    };
    static const struct {
        enum verdict verdict;
        double loss;
        enum action action;
    } rows[] = {{VERDICT_DEGRADED, 0.04, ACTION_ALERT},
                {VERDICT_DEGRADED, 0.06, ACTION_DRAIN},
                {VERDICT_FAILING, NAN, ACTION_DRAIN},
                {VERDICT_DEGRADED, 0.08, ACTION_DRAIN},
                {VERDICT_DEGRADED, 0.03, ACTION_ALERT}};
    char names[7][8], pci[7][16];
    struct inventory_gpu gpus[7] = {0};
    struct inventory_outlier outliers[COUNT_OF(rows)] = {0};
    for (int i = 0; i < 7; i++) {
        snprintf(names[i], sizeof names[i], "GPU-%d", i);
        snprintf(pci[i], sizeof pci[i], "0000:%02x:00.0", i);
        gpus[i] = (struct inventory_gpu){.uuid = names[i], .node = (char *)"n", .pci = pci[i]};
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        outliers[i] = (struct inventory_outlier){.uuid = names[i],
                                                 .node = (char *)"n",
                                                 .pci = pci[i],
                                                 .verdict = rows[i].verdict,
                                                 .loss = rows[i].loss,
                                                 .action = rows[i].action};
        gpus[i].status = GPU_OUTLIER;
    }
    struct inventory_outlier watch[2] = {{.uuid = names[5], .node = (char *)"n", .pci = pci[5]},
                                         {.uuid = names[2], .node = (char *)"n"}};
    struct inventory_node node = {.node = (char *)"m",
                                  .finding = (char *)"all of it",
                                  .verdict = VERDICT_DEGRADED,
                                  .loss = 0.01,
                                  .action = ACTION_DRAIN};
    const struct inventory v = {.total_nodes = 1,
                                .total_gpus = 7,
                                .total_measured = 7,
                                .total_outliers = COUNT_OF(rows),
                                .gpus = gpus,
                                .gpu_count = 7,
                                .outliers = outliers,
                                .outlier_count = COUNT_OF(rows),
                                .node_findings = &node,
                                .node_finding_count = 1,
                                .watch = watch,
                                .watch_count = 2};
    struct strbuf text = {0};
    report_summary(&v, NULL, NULL, &text);
    expect_in_order(text.data, parts, COUNT_OF(parts));
    assert_null(strstr(text.data, "Next:"));
    strbuf_fini(&text);
}

/* Models stand beside each other as far as the line goes. */
static void models_fit_the_width(void **state)
{
    (void)state;
    struct inventory_model models[3] = {0};
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        models[i] = (struct inventory_model){.id = (char *)"a-model-of-twenty-two", .count = 3};
        measures_add(&models[i].memory, "main.latency", 1000 + (double)i, "cycles", "m");
    }
    const struct inventory v = {.models = models, .model_count = 3};
    for (unsigned width = 40; width <= 130; width += 30) {
        const struct report_style style = {.width = width};
        struct strbuf text = {0};
        size_t tables = 0;
        report_summary(&v, NULL, &style, &text);
        for (const char *line = text.data; *line; line += strcspn(line, "\n") + 1) {
            assert_true(strcspn(line, "\n") <= width);
            tables += strncmp(line, "MODELS", 6) == 0;
        }
        assert_int_equal(tables, width < 100 ? 3 : width < 130 ? 2 : 1);
        strbuf_fini(&text);
    }
    for (size_t i = 0; i < COUNT_OF(models); i++)
        measures_fini(&models[i].memory);
}

static void summary_says_what_matters(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "3 GPUs on 2 nodes (simulated): 2 measured, 1 not measured; 6.1 s\n",
        "\nNVIDIA H200 (nvidia-h200), 2 measured\n",
        "\n  l1_data        size 205.1 KiB, reach at least ",
        "shared_with",
        "texture+read_only+off\n",
        "latency 812.3 cycles (noisy), bandwidth.read 4534 GB/s",
        "\n  constant_l15   size unsupported\n",
        "\nOutliers:\n  gpu003 0000:01:00.0 GPU-00000001: misconfigured, loss 32.7 %, drain\n",
        "main.bandwidth.read 3051 GB/s, expected 4534 GB/s (-32.7 %): memory clock 1593 MHz,",
        "(-32.7 %, confirmed by its repetitions): no\n        cause known\n",
        "\nPlaces:\n",
        "\nUnmeasured:\n  gpu003 GPU-00000002: timed_out, no answer in 120 s during l2.size\n",
        "\nTo watch: nothing is to be done:\n  gpu",
    };
    struct inventory inventory;
    struct strbuf text = {0};
    rich_inventory(&inventory);
    report_summary_all(&inventory, NULL, &text);
    expect_in_order(text.data, parts, COUNT_OF(parts));
    inventory_fini(&inventory);
    strbuf_fini(&text);
}

static void summary_says_how_findings_were_confirmed(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"2 of 2", "(-32.7 %, seen 2 of 2): memory clock"},
        {"1 of 2", "(-32.7 %, seen 1 of 2): memory clock"},
        {"by 3 figures", "(-32.7 %, confirmed by 3 figures): memory"},
        {"no", "(-32.7 %, not confirmed): memory clock"},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct inventory inventory;
        struct strbuf text = {0};
        rich_inventory(&inventory);
        inventory.outliers[0].evidence[0].confirmed = str_copy(words[i][0]);
        report_summary_all(&inventory, NULL, &text);
        if (!strstr(text.data, words[i][1]))
            fail_msg("missing: %s in\n%s", words[i][1], text.data);
        inventory_fini(&inventory);
        strbuf_fini(&text);
    }
}

static void empty_inventory_has_a_summary(void **state)
{
    (void)state;
    struct inventory inventory = {0};
    struct strbuf text = {0};
    report_summary(&inventory, NULL, NULL, &text);
    assert_string_equal(text.data, "0 GPUs on 0 nodes: 0 measured; 0.0 s\n");
    strbuf_fini(&text);
    report_summary_all(&inventory, NULL, &text);
    assert_string_equal(text.data, "0 GPUs on 0 nodes: 0 measured; 0.0 s\n");
    strbuf_fini(&text);
}

static void lost_ranks_are_counted(void **state)
{
    (void)state;
    static const char *const said[] = {"measured; 0.0 s", "measured, 1 rank lost; 0.0 s",
                                       "measured, 2 ranks lost; 0.0 s"};
    for (uint32_t lost = 0; lost < COUNT_OF(said); lost++) {
        struct inventory inventory = {.total_lost_ranks = lost};
        struct strbuf text = {0};
        report_summary_all(&inventory, NULL, &text);
        assert_non_null(strstr(text.data, said[lost]));
        strbuf_fini(&text);
    }
}

static void busy_ones_are_counted(void **state)
{
    (void)state;
    struct inventory_value value = {.value = 1};
    struct inventory_gpu gpus[3] = {{.status = GPU_BUSY, .values = &value, .value_count = 1},
                                    {.status = GPU_BUSY},
                                    {.status = GPU_OK, .values = &value, .value_count = 1}};
    struct inventory inventory = {.gpus = gpus, .gpu_count = 3, .total_measured = 2};
    struct strbuf text = {0};
    report_summary_all(&inventory, NULL, &text);
    assert_non_null(strstr(text.data, ": 2 measured (1 busy: not judged); "));
    strbuf_fini(&text);
}

static void long_names_of_kinds_are_whole(void **state)
{
    (void)state;
    struct fact settings[] = {
        {.key = (char *)"virtualization", .kind = FACT_TEXT, .text = (char *)"passthrough"},
        {.key = (char *)"confidential_computing",
         .kind = FACT_TEXT,
         .text = (char *)"protected_pcie"}};
    struct inventory_population populations[] = {
        {.by = (char *)"config.virtualization, config.confidential_computing",
         .value = (char *)"virtualization passthrough, confidential computing protected_pcie",
         .count = 4}};
    struct inventory_model model = {
        .id = (char *)"nvidia-rtx-pro-6000-blackwell-server-edition-mig-1g-24gb-gfx",
        .name = (char *)"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb+gfx",
        .config = {.items = settings, .count = 2},
        .populations = populations,
        .population_count = 1,
        .count = 4};
    struct inventory inventory = {.models = &model, .model_count = 1};
    for (unsigned width = 40; width <= 200; width += 20) {
        const struct report_style style = {.width = width};
        struct strbuf text = {0}, joined = {0};
        report_summary_all(&inventory, &style, &text);
        for (const char *line = text.data; *line; line += strcspn(line, "\n") + 1) {
            int length = (int)strcspn(line, "\n"), blanks = (int)strspn(line, " ");
            assert_true((unsigned)length <= width);
            strbuf_printf(&joined, "%.*s ", length - blanks, line + blanks);
        }
        if (width >= 80)
            assert_non_null(strstr(joined.data, model.name));
        else
            assert_non_null(strstr(joined.data, "..., virtualization"));
        assert_non_null(strstr(joined.data, populations[0].value));
        assert_non_null(strstr(joined.data, "protected_pcie ("));
        strbuf_fini(&text);
        strbuf_fini(&joined);
    }
}

static void replace(char **text, const char *with)
{
    free(*text);
    *text = str_copy(with);
}

static void assert_tame(const char *text, const char *name)
{
    size_t columns = 0;
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '\n') {
            columns = 0;
            continue;
        }
        columns += (c & 0xc0) != 0x80;
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)at[1] < 0xa0))
            fail_msg("control character from \"%s\"", name);
        if (columns > REPORT_WIDTH)
            fail_msg("line too long from \"%.40s\" in\n%.2000s", name, text);
    }
}

static void names_cannot_break_the_summary(void **state)
{
    (void)state;
    char *huge = calloc(1, 65537);
    assert_non_null(huge);
    memset(huge, 'x', 65536);
    for (unsigned i = 0; i <= rich_text_count; i++) {
        const char *name = i < rich_text_count ? rich_texts[i] : huge;
        struct inventory v;
        struct strbuf text = {0};
        rich_inventory(&v);
        replace(&v.models[0].name, name);
        replace(&v.models[0].id, name);
        replace(&v.models[0].memory.items[0].metric, name);
        replace(&v.models[0].memory.items[0].unit, name);
        replace(&v.models[0].memory.items[4].words[0], name);
        replace(&v.outliers[0].node, name);
        replace(&v.outliers[0].pci, name);
        replace(&v.outliers[0].uuid, name);
        replace(&v.outliers[0].evidence[0].metric, name);
        replace(&v.outliers[0].evidence[0].cause, name);
        replace(&v.outliers[0].evidence[0].unit, name);
        replace(&v.unmeasured[0].node, name);
        replace(&v.unmeasured[0].uuid, name);
        replace(&v.unmeasured[0].reason, name);
        v.unmeasured_count = 2; /* the second one has no names at all */
        replace(&v.node_findings[0].node, name);
        replace(&v.node_findings[0].finding, name);
        report_summary_all(&v, NULL, &text);
        report_summary(&v, "fleet.yaml", NULL, &text);
        assert_tame(text.data, name);
        assert_true(text.length < 30000);
        inventory_fini(&v);
        strbuf_fini(&text);
    }
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_is_documented),
        cmocka_unit_test(quantities_are_human),
        cmocka_unit_test(percentages_are_cut),
        cmocka_unit_test(foreign_text_is_cleaned),
        cmocka_unit_test(parts_have_lines),
        cmocka_unit_test(first_what_needs_action),
        cmocka_unit_test(outliers_are_sorted),
        cmocka_unit_test(models_fit_the_width),
        cmocka_unit_test(summary_says_what_matters),
        cmocka_unit_test(summary_says_how_findings_were_confirmed),
        cmocka_unit_test(empty_inventory_has_a_summary),
        cmocka_unit_test(lost_ranks_are_counted),
        cmocka_unit_test(busy_ones_are_counted),
        cmocka_unit_test(long_names_of_kinds_are_whole),
        cmocka_unit_test(names_cannot_break_the_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
