/* Allocation failures in src/report: every command, as a user runs it. It ends with exit code 1 and
 * writes nothing, or it writes the same as without failures. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/yaml.h"
#include "inventory/wire/spool.h"
#include "made.h"
#include "report/command.h"
#include "report/history/history_store.h"
#include "report/nagios.h"
#include "rich.h"
#include "sweep.h"

enum { WORDS_MAX = 12 };

/* A command line. */
struct line {
    char *words[WORDS_MAX];
    int count;
    struct strbuf expected; /* output without failures */
};

static char folder[] = "/tmp/gpumemtopo-memory-XXXXXX";
static char spool[64], rich_path[64], before_path[64], after_path[64], out_path[64], order_path[64],
    drained_path[64], racks_path[64], store_path[64];

static void write_inventory(const struct inventory *inventory, const char *path)
{
    struct err err = {0};
    if (inventory_write_file(inventory, path, &err))
        fail_msg("%s", err.text);
}

static void write_spool(const struct gpu_result *gpus, size_t count)
{
    const struct spool_origin origin = {.survey = (char *)"s1",
                                        .version = (char *)"0.1.0",
                                        .backend = (char *)"sim",
                                        .seed = 7,
                                        .time_ms = 1893456000000}; /* newer than the inventories */
    char *bare[] = {(char *)"login1", (char *)"n00"};
    struct gpu_result unknown = {.rank = 5, .status = GPU_LOST, .reason = (char *)"silent"};
    struct strbuf config = {0};
    struct err err = {0};
    assert_int_equal(yaml_load_text(SURVEY_CONFIG, &yaml_limits_config, &config, &err), 0);
    const struct spool_survey survey = {.config_name = (char *)"survey.yaml",
                                        .config_text = config.data,
                                        .ranks = 8,
                                        .bare_nodes = bare,
                                        .bare_count = COUNT_OF(bare),
                                        .expected = (struct gpu_result *)gpus,
                                        .expected_count = count,
                                        .unknown = &unknown,
                                        .unknown_count = 1};
    for (size_t i = 1; i < count; i++) /* the first GPU has no result */
        assert_int_equal(spool_write_gpu(spool, &origin, &gpus[i], &err), 0);
    assert_int_equal(spool_write_survey(spool, &origin, &survey, &err), 0);
    strbuf_fini(&config);
}

/* Something of every class of findings, in the spoiled fleet. */
static void write_order(void)
{
    static const char text[] =
        "gpumemtopo_order: {schema: 1, number: A-1, supplier: S, customer: C, delivered: D}\n"
        "models:\n"
        "  - name: Alpha 100\n"
        "    parts: [P, Q]\n"
        "    memory: 1 TiB\n"
        "    pcie: {generation: 5, width: 16}\n"
        "    nvlinks: 19\n"
        "    figures: {main.bandwidth.read: {at_least: 4350, unit: GB/s, spread: 0.0001},\n"
        "              main.latency: {at_most: 400, unit: ns}, load.flops: {spread: 0.1}}\n"
        "  - {name: Alpha 1000}\n"
        "nodes: [{names: \"n0*\", count: 20, gpus: {Alpha 100: 5}},\n"
        "        {names: \"m*\", count: 2, gpus: {Alpha 1000: 1}}]\n"
        "outliers_allowed: [mismatched]\n";
    FILE *file = fopen(order_path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void write_drained(void)
{
    FILE *file = fopen(drained_path, "w");
    assert_true(file &&
                fputs("n00|0|gpumemtopo:failing:GPU-001:a cause:-:-\n"
                      "n01|0|gpumemtopo:degraded:GPU-003:a cause:-:-\n",
                      file) >= 0 &&
                fclose(file) == 0);
}

static void write_racks(void)
{
    FILE *file = fopen(racks_path, "w");
    assert_true(file && fputs("n00 r1 s1\nn01 r1 s2\nn02 r2\nm00 r3\n", file) >= 0 &&
                fclose(file) == 0);
}

static struct inventory judged(struct gpu_result *gpus, size_t count)
{
    struct inventory inventory = made_judged(gpus, count);
    inventory.version = str_copy("x");
    inventory.generated = str_copy("2026-01-02T03:04:05Z");
    inventory.backend = str_copy("x");
    inventory.exit_code = inventory.total_unmeasured ? 4 : inventory.total_outliers ? 3 : 0;
    return inventory;
}

/* Eleven surveys, so that a figure can have a change point: the third GPU is slower since the
 * fifth one, and all are since the seventh. */
static void write_store(void)
{
    enum { SURVEYS = 11, STORED = 6 };
    struct history_store store = {0};
    struct err err = {0};
    assert_int_equal(history_store_open(store_path, true, &store, &err), 0);
    for (unsigned day = 1; day <= SURVEYS; day++) {
        struct gpu_result *gpus = made_fleet_of(STORED, day, 0.001, 0.001);
        bool is_new = false;
        if (day >= 5)
            made_scale(&gpus[2], "main.bandwidth.read", 0.8);
        for (size_t i = 0; i < STORED && day >= 7; i++)
            made_scale(&gpus[i], "main.latency", 1.2);
        struct inventory inventory = judged(gpus, STORED);
        struct strbuf text = {0};
        free(inventory.generated);
        inventory.generated = str_format("2026-01-%02uT00:00:00Z", day);
        inventory_print(&inventory, &text);
        assert_int_equal(
            history_store_add(&store, inventory.generated, text.data, text.length, &is_new, &err),
            0);
        assert_true(is_new);
        strbuf_fini(&text);
        inventory_fini(&inventory);
        made_free(gpus, STORED);
    }
    history_store_close(&store);
}

static void damage(const char *uuid)
{
    char *path = spool_gpu_path(spool, uuid);
    assert_int_equal(truncate(path, 100), 0);
    free(path);
}

/* Two states of a fleet, an inventory with every kind of entry, and a spool folder. */
static int make_files(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(MADE_SPOILED, 1);
    struct inventory rich = {0}, before = judged(gpus, MADE_SPOILED);
    if (!mkdtemp(folder))
        return -1;
    snprintf(spool, sizeof spool, "%s/spool", folder);
    snprintf(rich_path, sizeof rich_path, "%s/rich.yaml", folder);
    snprintf(before_path, sizeof before_path, "%s/before.yaml", folder);
    snprintf(after_path, sizeof after_path, "%s/after.yaml", folder);
    snprintf(out_path, sizeof out_path, "%s/out", folder);
    snprintf(drained_path, sizeof drained_path, "%s/drained.txt", folder);
    snprintf(order_path, sizeof order_path, "%s/order.yaml", folder);
    snprintf(racks_path, sizeof racks_path, "%s/racks", folder);
    snprintf(store_path, sizeof store_path, "%s/store", folder);
    write_order();
    write_drained();
    write_racks();
    write_store();
    made_spoil(gpus);
    struct inventory after = judged(gpus, MADE_SPOILED);
    rich_inventory(&rich);
    write_inventory(&rich, rich_path);
    write_inventory(&before, before_path);
    write_inventory(&after, after_path);
    free(gpus[8].node); /* a GPU whose node is unknown */
    gpus[8].node = NULL;
    mkdir(spool, 0777);
    write_spool(gpus, 12);
    damage(gpus[2].uuid);
    inventory_fini(&rich);
    inventory_fini(&before);
    inventory_fini(&after);
    made_free(gpus, MADE_SPOILED);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    char command[160];
    unlink(rich_path);
    unlink(before_path);
    unlink(after_path);
    unlink(out_path);
    unlink(drained_path);
    unlink(order_path);
    unlink(racks_path);
    snprintf(command, sizeof command, "rm -r %s %s", spool, store_path);
    return system(command) ? -1 : rmdir(folder); /* fails if a temporary file is left */
}

/* Runs a command with stdout sent to out_path and stderr to /dev/null. */
static int run_silently(struct line *line)
{
    struct command_options options;
    struct err err = {0};
    bool help;
    const struct command *command = command_find(line->words[0]);
    fflush(stdout);
    int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    int file = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(file, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    int rc = command_parse(command, line->count - 1, line->words + 1, &options, &help, &err);
    int code = rc ? command_exit_code(rc) : command->run(&options);
    free(options.files);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    close(out);
    close(error);
    close(file);
    close(nowhere);
    return code;
}

static void read_out(struct strbuf *out)
{
    char block[65536];
    size_t n = 0;
    FILE *file = fopen(out_path, "rb");
    assert_non_null(file);
    while ((n = fread(block, 1, sizeof block, file)))
        strbuf_append(out, block, n);
    fclose(file);
}

/* Skips the first line of a merged inventory: it contains the current time. */
static const char *body(const struct line *line, const struct strbuf *text)
{
    const char *all = text->data ? text->data : "";
    const char *second = strcmp(line->words[0], "merge") == 0 ? strchr(all, '\n') : NULL;
    return second ? second : all;
}

static int run(void *context)
{
    struct line *line = context;
    struct strbuf text = {0};
    int code = run_silently(line);
    memory_restore();
    read_out(&text);
    if (strcmp(line->words[0], "nagios") == 0 && code == NAGIOS_UNKNOWN) {
        assert_true(!text.data || (strncmp(text.data, "GPUMEMTOPO UNKNOWN - ", 21) == 0 &&
                                   strstr(text.data, "out of memory\n")));
        strbuf_fini(&text);
        assert_int_equal(truncate(out_path, 0), 0); /* it is open in the parent process too */
        return -ENOMEM;
    }
    assert_int_not_equal(code, EXIT_BAD_INPUT);
    if (code == EXIT_NO_REPORT)
        assert_int_equal(text.length, 0);
    else
        assert_string_equal(body(line, &text), body(line, &line->expected));
    strbuf_fini(&text);
    return code == EXIT_NO_REPORT ? -ENOMEM : 0;
}

/* words: ends with NULL. */
static void sweep(const char *name, size_t points, const char *const *words)
{
    struct line line = {0};
    for (; words[line.count]; line.count++)
        line.words[line.count] = (char *)words[line.count];
    int code = run_silently(&line);
    if (code == EXIT_NO_REPORT || code == EXIT_BAD_INPUT)
        fail_msg("%s: exit code %d", name, code);
    read_out(&line.expected);
    memory_sweep(&(struct memory_sweep){.name = name,
                                        .run = run,
                                        .context = &line,
                                        .at_least = 100,
                                        .points = points,
                                        .forks = true});
    strbuf_fini(&line.expected);
}

#define SWEEP(name, points, ...) sweep(name, points, (const char *const[]){__VA_ARGS__, NULL})

static void showing(void **state)
{
    (void)state;
    SWEEP("show", 200, "show", rich_path);
    SWEEP("show, all kinds of findings", 110, "show", "--color", "always", after_path);
    SWEEP("show --topology", 200, "show", "--topology", "--width", "80", rich_path);
    SWEEP("show --compare", 100, "show", "--compare", "--model", "alpha-100,beta", after_path);
    SWEEP("accept", 190, "accept", "--order", order_path, after_path);
    SWEEP("accept --html", 230, "accept", "--order", order_path, "-o", "/dev/null", "--html", "-",
          after_path);
    SWEEP("drain", 70, "drain", after_path);
    SWEEP("exclude", 70, "exclude", after_path);
    SWEEP("undrain", 200, "undrain", "--drained", drained_path, before_path, after_path);
    SWEEP("nagios", 70, "nagios", "--max-age", "0", before_path);
    SWEEP("rma", 130, "rma", after_path, "GPU-003", "-o", "-");
    SWEEP("history", 140, "history", before_path, after_path, rich_path);
    SWEEP("history --store", 140, "history", "--store", store_path, "--gpu", "n00:2");
    SWEEP("history --store --html", 160, "history", "--store", store_path, "--gpu", "n00:2", "-o",
          "/dev/null", "--html", "-");
    SWEEP("history --store --json", 125, "history", "--store", store_path, "--gpu", "n00:2",
          "--json", "--metric", "main.latency");
    SWEEP("history --json", 100, "history", "--json", before_path, after_path);
    SWEEP("validate", 70, "validate", after_path, before_path);
}

static void writing(void **state)
{
    (void)state;
    SWEEP("html", 230, "html", rich_path);
    SWEEP("html --racks", 230, "html", "--racks", racks_path, after_path);
    SWEEP("html, all kinds of findings", 230, "html", "--reference", MODELS, after_path);
    SWEEP("json", 150, "json", rich_path);
    SWEEP("json --mt4g", 70, "json", "--mt4g", "--model", "alpha-100", after_path);
    SWEEP("prometheus", 120, "prometheus", after_path);
    SWEEP("prometheus --openmetrics", 120, "prometheus", "--openmetrics", rich_path);
    SWEEP("share", 120, "share", "--config", SURVEY_CONFIG, before_path, WORLD);
    SWEEP("history --anonymous", 60, "history", "--anonymous", before_path, after_path);
    SWEEP("json --anonymous", 120, "json", "--anonymous", rich_path);
}

static void judging(void **state)
{
    (void)state;
    SWEEP("diff", 370, "diff", before_path, after_path);
    SWEEP("merge", 350, "merge", "--config", SURVEY_CONFIG, spool, before_path);
    SWEEP("merge --baseline", 520, "merge", "--reference", MODELS, "--baseline", before_path,
          "--world", WORLD, spool, rich_path, after_path);
    SWEEP("diff --anonymous", 100, "diff", "--anonymous", before_path, after_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(showing), cmocka_unit_test(writing),
                                       cmocka_unit_test(judging)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
