/* The files that follow from the tables of inventory and catalogue: `describe ROOT` writes them,
 * `describe
 * --check ROOT` says which of them differ from the tables (exit code 1). */
#include <stdio.h>
#include <string.h>

#include "base/out_file.h"
#include "base/yaml.h"
#include "catalogue/facts.h"
#include "inventory/inventory.h"

/* docs/FACTS.md: what each fact is, where it comes from, what it means. */

static const char *const set_names[INVENTORY_FACTS_COUNT] = {[INVENTORY_HARDWARE] = "hardware",
                                                             [INVENTORY_BOARD] = "board",
                                                             [INVENTORY_CONFIG] = "config",
                                                             [INVENTORY_HEALTH] = "health"};

static void put_source(struct strbuf *out, const struct nvml_question *nvml)
{
    if (nvml->symbol)
        strbuf_printf(out, "`%s`", nvml->symbol);
    else
        strbuf_puts(out, "code");
}

static void put_compared(struct strbuf *out, struct fact_manner manner)
{
    const char *kind = verdict_name(manner.verdict);
    if (manner.compared == COMPARED_DIFFERENT)
        strbuf_printf(out, "other than most of the model: %s", kind);
    else if (manner.compared == COMPARED_LOWER)
        strbuf_printf(out, "lower than most of the model: %s", kind);
    else if (manner.compared == COMPARED_KIND)
        strbuf_puts(out, "divides the model into populations");
    if (manner.by_board && manner.compared != COMPARED_NOT)
        strbuf_puts(out, ", among equal board parts");
}

static void put_growth(struct strbuf *out, const struct health_row *row)
{
    switch (row->growth.rule) {
    case GROWTH_EVERY:
        strbuf_puts(out, "reported");
        break;
    case GROWTH_COMPARED:
        strbuf_printf(out, "by %g and far more than on the model: reported", row->growth.least);
        break;
    case GROWTH_BY_RULE:
        strbuf_puts(out, "by its rule");
        break;
    case GROWTH_NONE:
        break;
    }
}

static void put_health(struct strbuf *out, enum health_fact fact)
{
    const struct health_row *row = &catalogue_health[fact];
    strbuf_printf(out, "| `%s` | %s | ", row->key, row->words);
    put_source(out, &row->nvml);
    strbuf_puts(out, " | ");
    if (row->rule == RULE_FAULT)
        strbuf_printf(out, "%s: %s", row->is_flag ? "true" : "above 0", verdict_name(row->verdict));
    else if (row->rule == RULE_HINT)
        strbuf_puts(out, "above 0: watched");
    if (row->compared)
        put_compared(out, catalogue_manner(INVENTORY_HEALTH, row->key));
    strbuf_puts(out, " | ");
    put_growth(out, row);
    strbuf_printf(out, " | %s | ", row->is_counter ? "yes" : "");
    if (fact >= HEALTH_NUMBERS)
        strbuf_puts(out, "follows");
    else if (row->is_flag)
        strbuf_puts(out, row->sim.healthy != 0 ? "true" : "false");
    else
        strbuf_printf(out, "%g", row->sim.healthy);
    strbuf_puts(out, " |\n");
}

static void print_facts(struct strbuf *out)
{
    strbuf_puts(out, "# Facts of a GPU\n\n"
                     "Made from the tables of `src/catalogue/facts.c` by `meson compile describe`; "
                     "a test compares this page\n"
                     "with them. Facts are what the driver reports. *Source* `code`: read or "
                     "computed by a function of\n"
                     "`src/device/cuda`. An empty *rule*: no row decides; functions of "
                     "`src/judge/evidence` check some of these\n"
                     "facts, see [JUDGE.md](JUDGE.md).\n\n"
                     "## Health\n\n"
                     "*Grew*: what it means that a value grew since the baseline. *Exported*: to "
                     "Prometheus, as a counter.\n"
                     "*Simulated*: what a healthy simulated GPU reports; `follows`: from the "
                     "simulation or from a fault.\n\n"
                     "| key | what it is | source | rule | grew | exported | simulated |\n"
                     "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int fact = 0; fact < HEALTH_FACTS; fact++)
        put_health(out, (enum health_fact)fact);
    strbuf_puts(
        out, "\n## Hardware, board and settings\n\n"
             "Others need no row: facts of `hardware` and `config` must not differ from those of "
             "most GPUs of the model.\n\n"
             "| key | what it is; its words, if no others are possible | source | rule |\n"
             "| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < catalogue_setting_count; i++) {
        const struct setting_row *row = &catalogue_settings[i];
        strbuf_printf(out, "| `%s.%s` | %s", set_names[row->set], row->key,
                      row->words ? row->words : "");
        for (size_t w = 0; row->nvml.words && row->nvml.words[w]; w++)
            strbuf_printf(out, "%s`%s`", w ? ", " : row->words ? ": " : "", row->nvml.words[w]);
        strbuf_puts(out, " | ");
        put_source(out, &row->nvml);
        strbuf_puts(out, " | ");
        put_compared(out, catalogue_manner(row->set, row->key));
        if (row->figures)
            strbuf_printf(out, "; `%s*` is not compared between them", row->figures);
        strbuf_puts(out, " |\n");
    }
}

static const struct described_file {
    const char *path;
    void (*print)(struct strbuf *out_text);
} described_files[] = {
    {"reports/inventory.schema.json", inventory_print_json_schema},
    {"docs/INVENTORY.md", inventory_print_markdown},
    {"docs/FACTS.md", print_facts},
};

/* True if the file is as it should be. */
static bool describe_file(const struct described_file *file, const char *root, bool check)
{
    char path[4096];
    struct strbuf text = {0}, found = {0};
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", root, file->path);
    file->print(&text);
    int rc = check ? yaml_load_text(path, &yaml_limits_config, &found, &err)
                   : out_file_write(path, text.data, text.length, &err);
    bool same = !rc && (!check || (found.length == text.length &&
                                   memcmp(found.data, text.data, text.length) == 0));
    if (rc)
        fprintf(stderr, "%s: %s\n", path, err.text);
    else if (!same)
        fprintf(stderr, "%s differs from the tables: meson compile describe\n", path);
    strbuf_fini(&text);
    strbuf_fini(&found);
    return same;
}

int main(int argc, char **argv)
{
    bool check = argc == 3 && strcmp(argv[1], "--check") == 0, well = true;
    if (argc != 2 && !check) {
        fprintf(stderr, "usage: describe [--check] ROOT\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof described_files / sizeof *described_files; i++)
        well &= describe_file(&described_files[i], argv[argc - 1], check);
    return well ? 0 : 1;
}
