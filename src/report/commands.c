/* The commands of gpumemtopo-report. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/html/html.h"
#include "report/json.h"
#include "report/racks.h"

static int run_json(const struct command_options *options)
{
    struct inventory inventory;
    struct strbuf text = {0};
    if (options->model && !options->mt4g) {
        log_error("json: --model needs --mt4g; without it the whole inventory is written");
        return EXIT_BAD_INPUT;
    }
    int code = command_read_given(options, 0, &inventory);
    if (code)
        return code;
    if (options->mt4g) {
        const struct inventory_model *model =
            command_model(&inventory, options->model, options->files[0]);
        code = model ? EXIT_DONE : EXIT_BAD_INPUT;
        if (model)
            report_json_mt4g(&inventory, model, &text);
    } else
        report_json(&inventory, &text);
    inventory_fini(&inventory);
    if (!code)
        return command_write(&text, options->output);
    strbuf_fini(&text);
    return code;
}

static int run_html(const struct command_options *options)
{
    struct inventory inventory;
    struct report_basis basis = {0};
    struct racks racks = {0};
    struct strbuf text = {0};
    struct err err = {0};
    if (options->racks && options->anonymous) {
        log_error("html: --racks needs the names of nodes; it cannot be used with --anonymous");
        return EXIT_BAD_INPUT;
    }
    int rc = report_basis_load(options->reference, NULL, &basis, &err);
    if (!rc && options->racks)
        rc = racks_read_file(options->racks, &racks, &err);
    if (rc)
        log_failure(&err);
    int code = rc ? command_exit_code(rc) : command_read_given(options, 0, &inventory);
    if (!code) {
        report_html(&inventory, &basis.references, options->racks ? &racks : NULL, &text);
        inventory_fini(&inventory);
        code = command_write(&text, options->output);
    }
    racks_fini(&racks);
    report_basis_fini(&basis);
    return code;
}

/* What several commands have alike. */
#define OUTPUT_OPTION                                                                              \
    {                                                                                              \
        .name = "--output", .letter = 'o', .argument = "OUT", .kind = OPTION_TEXT,                 \
        .offset = offsetof(struct command_options, output), .help = "where to (default: stdout)",  \
        .more = "The output file; the default is the standard output."                             \
    }
#define ANONYMOUS_OPTION                                                                           \
    {                                                                                              \
        .name = "--anonymous", .offset = offsetof(struct command_options, anonymous),              \
        .help = "pseudonyms instead of names and serial numbers",                                  \
        .more = "Write pseudonyms instead of host names, UUIDs, serial numbers and addresses."     \
    }

static const struct option show_options[] = {
    {.name = "--all",
     .offset = offsetof(struct command_options, all),
     .help = "all attributes of the models, all evidence",
     .more = "Print all attributes of each model, and of each GPU that is listed its PCI address, "
             "UUID and all evidence, with what to do next."},
    {.name = "--topology",
     .offset = offsetof(struct command_options, topology),
     .help = "draw the models' memory hierarchies",
     .more = "Draw the memory hierarchy of each model instead. Memories that share storage are in "
             "one box."},
    {.name = "--compare",
     .offset = offsetof(struct command_options, compare),
     .help = "compare two models of one file, or one of each of two files",
     .more = "Print two models side by side, attribute by attribute, with the ratio of the right "
             "value to the left one. With two files, compare one model of each. With one file, "
             "compare two models of it."},
    {.name = "--model",
     .argument = "ID[,ID]",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, model),
     .completes = "none",
     .help = "which model to draw, or which to compare",
     .more = "The model to draw, or the two models to compare."},
    {.name = "--color",
     .argument = "WHEN",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, colour),
     .words = {"auto", "always", "never"},
     .help = "auto (default), always or never",
     .more = "`auto` (the default: on a terminal only), `always` or `never`."},
    {.name = "--width",
     .argument = "COLUMNS",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, width),
     .completes = "none",
     .help = "default: the terminal's, or 100",
     .more = "The width of the output. The default is the width of the terminal, or 100."},
    ANONYMOUS_OPTION,
};

static const struct option accept_options[] = {
    {.name = "--order",
     .argument = "ORDER",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, order),
     .help = "what was ordered; needed",
     .more = "The order; required."},
    OUTPUT_OPTION,
    {.name = "--html",
     .argument = "PAGE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, html),
     .help = "also a page to be printed and signed",
     .more = "Also write a self-contained page to be printed and signed: summary, findings, figures"
             " by model, and place for names, dates and signatures. It names both files with their "
             "SHA-256."},
    {.name = "--config",
     .letter = 'c',
     .argument = "CONFIG",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, config),
     .help = "survey configuration, with the figures (default: as shipped)",
     .more = "The survey configuration, which names the figures. The default is the shipped one."},
};

static const struct option diff_options[] = {
    ANONYMOUS_OPTION,
};

static const struct option html_options[] = {
    OUTPUT_OPTION,
    {.name = "--anonymous",
     .offset = offsetof(struct command_options, anonymous),
     .help = "pseudonyms instead of names and serial numbers",
     .more = "Write pseudonyms instead of host names, UUIDs, serial numbers and addresses. It "
             "cannot be used with `--racks`."},
    {.name = "--reference",
     .argument = "DIR",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, reference),
     .help = "expected values by model (default: as shipped)",
     .more =
         "The folder with the expected values of each model. The default is the shipped folder."},
    {.name = "--racks",
     .argument = "RACKS",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, racks),
     .help = "a file with lines NODE RACK [SWITCH]: outliers by rack",
     .more = "A file of the site with one line per node: its name, its rack and, if known, its "
             "switch, separated by blanks; what follows a # is skipped. The page then counts "
             "outliers by rack and by switch, and names both with each outlier."},
};

static const struct option merge_options[] = {
    OUTPUT_OPTION,
    ANONYMOUS_OPTION,
    {.name = "--config",
     .letter = 'c',
     .argument = "CONFIG",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, config),
     .help = "survey configuration with `judge` and `policy` (default: as shipped)",
     .more = "The survey configuration, by which results are judged again. Inventories do not hold "
             "it: name the one of the survey."},
    {.name = "--reference",
     .argument = "DIR",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, reference),
     .help = "expected values by model (default: as shipped)",
     .more =
         "The folder with the expected values of each model. The default is the shipped folder."},
    {.name = "--baseline",
     .argument = "OLD",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, baseline),
     .help = "an earlier inventory: report drift against it",
     .more = "An earlier inventory of the same GPUs; changes since then are reported."},
    {.name = "--world",
     .argument = "WORLD",
     .kind = OPTION_LIST,
     .offset = offsetof(struct command_options, world),
     .list_max = COMMAND_WORLD_MAX,
     .help = "figures of GPUs elsewhere, or of earlier surveys; may be repeated",
     .more = "Figures of healthy GPUs elsewhere, or of your own in earlier surveys, as `share` "
             "writes them. They count beside those of the fleet, the more the fewer GPUs it has. "
             "The flag may be repeated; the files are combined. The same file twice is refused."},
};

static const struct option share_options[] = {
    OUTPUT_OPTION,
    {.name = "--config",
     .letter = 'c',
     .argument = "CONFIG",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, config),
     .help = "survey configuration (default: as shipped)",
     .more = "The survey configuration, which names the metrics. The default is the shipped one."},
    {.name = "--anonymous",
     .offset = offsetof(struct command_options, anonymous),
     .help = "pseudonyms instead of names and serial numbers",
     .more = "Accepted, and changes nothing: the output never has a name."},
};

static const struct option json_options[] = {
    OUTPUT_OPTION,
    ANONYMOUS_OPTION,
    {.name = "--mt4g",
     .offset = offsetof(struct command_options, mt4g),
     .help = "one model's topology with the keys of MT4G",
     .more = "Print the topology of one model with the keys of MT4G, for programs that read results"
             " of MT4G."},
    {.name = "--model",
     .argument = "ID",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, model),
     .completes = "none",
     .help = "which model (needed where there are several)",
     .more = "The model; required if there are several."},
};

static const struct option csv_options[] = {OUTPUT_OPTION, ANONYMOUS_OPTION};

static const struct option prometheus_options[] = {
    {.name = "--output",
     .letter = 'o',
     .argument = "OUT",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, output),
     .help = "where to (default: stdout)",
     .more = "The output file; the default is the standard output. The file is written completely "
             "or not at all, as the collector needs it."},
    {.name = "--old-labels",
     .offset = offsetof(struct command_options, old_labels),
     .help = "labels Hostname and pci instead of hostname and pci_bus_id",
     .more =
         "The labels Hostname and pci, as dcgm-exporter before 4.9 and earlier versions of this "
         "program name them, instead of hostname and pci_bus_id. Then replace hostname by "
         "Hostname in the rules and the dashboard."},
    {.name = "--openmetrics",
     .offset = offsetof(struct command_options, openmetrics),
     .help = "the format OpenMetrics, for what is pushed",
     .more = "Write the same samples in the format OpenMetrics 1.0, with units and an end mark, for"
             " systems to which it is pushed. The textfile collector does not read it."},
    ANONYMOUS_OPTION,
};

static const struct option history_options[] = {
    OUTPUT_OPTION,
    {.name = "--json",
     .offset = offsetof(struct command_options, json),
     .help = "everything, as JSON",
     .more = "Print everything as JSON; the text has at most 100 entries in each list."},
    {.name = "--gpu",
     .argument = "GPU",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, gpu),
     .completes = "none",
     .help = "since when is NODE:INDEX, NODE:PCI or a UUID different",
     .more = "Tell since when the figures of one GPU are different: the surveys before and after "
             "each change, usual values before and after, and what all GPUs of its model did. GPU "
             "is NODE:INDEX or NODE:PCI (the card that was seen there last), a UUID or its "
             "beginning; with `--anonymous`, a pseudonym. At least ten surveys are needed, three of"
             " them after a change."},
    {.name = "--metric",
     .argument = "METRIC",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, metric),
     .completes = "none",
     .help = "only this figure of the GPU"},
    {.name = "--html",
     .argument = "PAGE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, html),
     .help = "also draw the figures of the GPU",
     .more = "Also write a self-contained page that draws the figures of the GPU."},
    {.name = "--store",
     .argument = "DIR",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, store),
     .help = "add each FILE to this folder, and read all that it keeps",
     .more = "Read all inventories that this folder keeps. Each FILE is added to it first; none "
             "need be given. Then the store is thinned out: all inventories of the last 14 days are"
             " kept, one of each week of the 26 weeks before, and one of each month before that; "
             "also the first and the last one, and those before and after a GPU became or ceased to"
             " be an outlier or unmeasured, or a card moved, came or went. Time counts from the "
             "newest inventory. Several processes may use the store at once. If a file cannot be "
             "added, nothing is removed and the exit status is 1."},
    {.name = "--keep-all",
     .offset = offsetof(struct command_options, keep_all),
     .help = "do not thin out the store"},
    ANONYMOUS_OPTION,
};

static const struct option rma_options[] = {
    {.name = "--output",
     .letter = 'o',
     .argument = "OUT",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, output),
     .help = "where to (default: gpumemtopo-rma-UUID.tar; -: stdout)",
     .more = "The output file; the default is gpumemtopo-rma-UUID.tar, and - is the standard "
             "output."},
    {.name = "--record",
     .argument = "RECORD",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, record),
     .help = "the record of the survey, to be added",
     .more = "The record of the survey (`gpumemtopo-survey --record`), to be added to the archive. "
             "It has the raw samples of all GPUs of the survey. If it is cut off, a warning and "
             "README.txt say so."},
    {.name = "--anonymous",
     .offset = offsetof(struct command_options, anonymous),
     .help = "pseudonyms instead of names and serial numbers",
     .more = "Write pseudonyms instead of host names, UUIDs, serial numbers and addresses. The GPU "
             "is named by its UUID as before. A record has names; it can be added only if record "
             "and inventory were made with `gpumemtopo-survey --anonymous`."},
};

static const struct option nagios_options[] = {
    {.name = "--max-age",
     .argument = "HOURS",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, max_age),
     .completes = "none",
     .help = "an older inventory is UNKNOWN (default: 48; 0: any age)",
     .more = "The age from which an inventory is UNKNOWN; the default is 48. 0: any age will do."},
    {.name = "--warn-watch",
     .offset = offsetof(struct command_options, warn_watch),
     .help = "watched GPUs are a WARNING",
     .more = "Watched GPUs are a WARNING too."},
    ANONYMOUS_OPTION,
};

static const struct option undrain_options[] = {
    {.name = "--drained",
     .argument = "LIST",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct command_options, drained),
     .help = "drained nodes, as sinfo lists them (see the man page); needed",
     .more = "The drained nodes, as `SLURM_TIME_FORMAT=%s sinfo -h -N -t drain -o "
             "'%N|%H|%E'` prints them; required."},
};

#define OPTIONS(table) (table), COUNT_OF(table)
#define NO_OPTIONS NULL, 0

static const char no_pseudonyms[] = "it names nodes for Slurm, which does not know pseudonyms";

const struct command command_table[] = {
    {"show", "FILE", "a summary: what needs action, the models", 1, 1, OPTIONS(show_options),
     command_show},
    {"merge", "DIR|FILE...", "make one inventory from spool files and inventories", 1,
     COMMAND_FILES_MAX, OPTIONS(merge_options), command_merge},
    {"diff", "OLD NEW", "compare two inventories of the same GPUs", 2, 2, OPTIONS(diff_options),
     command_diff},
    {"history", "FILE...", "over time: repeat offenders, trends, moved cards", 1, COMMAND_FILES_MAX,
     OPTIONS(history_options), command_history},
    {"accept", "FILE", "compare a delivery with its order", 1, 1, OPTIONS(accept_options),
     command_accept,
     .no_anonymous = "supplier and customer must know which GPU is meant, not pseudonyms"},
    {"drain", "FILE", "print scontrol commands that drain bad nodes", 1, 1, NO_OPTIONS,
     command_drain, .no_anonymous = no_pseudonyms},
    {"exclude", "FILE", "print the same nodes as a list for --exclude", 1, 1, NO_OPTIONS,
     command_exclude, .no_anonymous = no_pseudonyms},
    {"undrain", "FILE...", "print scontrol commands that resume healthy nodes", 1,
     COMMAND_FILES_MAX, OPTIONS(undrain_options), command_undrain, .no_anonymous = no_pseudonyms},
    {"rma", "FILE UUID", "an archive about one GPU, for its vendor", 2, 2, OPTIONS(rma_options),
     command_rma},
    {"nagios", "FILE", "one line and exit code for a monitoring system", 1, 1,
     OPTIONS(nagios_options), command_nagios, command_nagios_failed},
    {"html", "FILE", "a page: outliers, map, drawings, tables", 1, 1, OPTIONS(html_options),
     run_html},
    {"json", "FILE", "the inventory as JSON", 1, 1, OPTIONS(json_options), run_json},
    {"csv", "FILE...", "the figures of all GPUs, one in a line", 1, COMMAND_FILES_MAX,
     OPTIONS(csv_options), command_csv},
    {"prometheus", "FILE", "metrics for the textfile collector", 1, 1, OPTIONS(prometheus_options),
     command_prometheus},
    {"share", "FILE...", "figures by model, without identity, for --world", 1, COMMAND_FILES_MAX,
     OPTIONS(share_options), command_share},
    {"validate", "FILE...", "check files for errors and contradictions", 1, COMMAND_FILES_MAX,
     NO_OPTIONS, command_validate},
    {0},
};

const struct command *command_find(const char *name)
{
    const char *names[COUNT_OF(command_table)];
    size_t count = 0;
    for (; command_table[count].name; count++) {
        names[count] = command_table[count].name;
        if (strcmp(name, names[count]) == 0)
            return &command_table[count];
    }
    const char *near = str_nearest(name, names, count);
    if (near)
        log_error("unknown command \"%.60s\"; did you mean \"%s\"?", name, near);
    else
        log_error("unknown command \"%.60s\"; see gpumemtopo-report --help", name);
    return NULL;
}

void command_help_all(struct strbuf *out_text)
{
    strbuf_puts(out_text, "Usage: gpumemtopo-report COMMAND [FLAG...] FILE...\n\nCommands:\n");
    for (const struct command *command = command_table; command->name; command++) {
        struct strbuf name = {0};
        strbuf_printf(&name, "%s %s", command->name, command->files);
        strbuf_printf(out_text, "  %-24s %s\n", name.data, command->summary);
        strbuf_fini(&name);
    }
    strbuf_puts(out_text,
                "\nCOMMAND --help prints its flags, --help this, --version the version.\n"
                "Exit codes: 0 done; 1 no report could be made; 2 bad usage or input;\n"
                "diff: 3 worse; 4 gone or not measured; accept: 3 not as ordered; 4 not shown;\n"
                "merge: 3 drain; 4 not measured, lost or skipped; nagios: as "
                "plugins return.\n");
}
