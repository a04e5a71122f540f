/* The commands of gpumemtopo-report. */
#include <stdlib.h>

#include "base/log.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/html/html.h"
#include "report/json.h"
#include "report/prometheus.h"
#include "report/racks.h"
#include "report/validate.h"

static int validate_world(const char *path)
{
    struct world world;
    struct err err = {0};
    int rc = world_read_file(path, &world, &err);
    if (rc)
        log_failure(&err);
    else
        world_fini(&world);
    return command_exit_code(rc);
}

static int validate_read(const struct inventory *inventory, const char *path)
{
    struct err err = {0};
    int rc = report_validate(inventory, &err);
    if (rc) {
        err_prefix(&err, "%s", path);
        log_failure(&err);
    }
    return command_exit_code(rc);
}

static int validate_file(const char *path)
{
    struct inventory inventory;
    int code = command_read(path, &inventory);
    if (code)
        return code;
    code = validate_read(&inventory, path);
    inventory_fini(&inventory);
    return code;
}

static int run_validate(const struct command_options *options)
{
    int worst = EXIT_DONE;
    for (int i = 0; i < options->file_count; i++) {
        const char *path = options->files[i];
        int code = world_is_file(path) ? validate_world(path) : validate_file(path);
        worst = code == EXIT_DONE || worst == EXIT_NO_REPORT ? worst : code;
    }
    return worst;
}

static int run_json(const struct command_options *options)
{
    struct inventory inventory;
    struct strbuf text = {0};
    struct err err = {0};
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
    } else if (report_json(&inventory, &text, &err)) {
        log_failure(&err);
        code = EXIT_NO_REPORT;
    }
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

/* Duplicate samples would make the collector reject the whole file. */
static int run_prometheus(const struct command_options *options)
{
    struct inventory inventory, *const given[] = {&inventory};
    struct strbuf text = {0};
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    code = validate_read(&inventory, options->files[0]);
    if (!code)
        code = command_anonymise(options, given, 1, NULL);
    if (!code)
        report_prometheus(&inventory, options->openmetrics, &text);
    inventory_fini(&inventory);
    return code ? code : command_write(&text, options->output);
}

#define FIELD(name) offsetof(struct command_options, name)
#define OUTPUT_FLAG                                                                                \
    {                                                                                              \
        "--output", 'o', "OUT", "where to (default: stdout)", FIELD(output)                        \
    }

#define ANONYMOUS_FLAG                                                                             \
    {                                                                                              \
        "--anonymous", 0, NULL, "pseudonyms instead of hosts, UUIDs, serials and addresses",       \
            FIELD(anonymous)                                                                       \
    }

static const struct command_flag show_flags[] = {
    {"--topology", 0, NULL, "draw the models' memory hierarchies", FIELD(topology)},
    {"--compare", 0, NULL, "compare two models of one file, or one of each of two files",
     FIELD(compare)},
    {"--model", 0, "ID[,ID]", "which model to draw, or which to compare", FIELD(model)},
    {"--color", 0, "WHEN", "auto (default), always or never", FIELD(colour)},
    {"--width", 0, "COLUMNS", "default: the terminal's, or 100", FIELD(width)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag accept_flags[] = {
    {"--order", 0, "ORDER", "what was ordered; needed", FIELD(order)},
    OUTPUT_FLAG,
    {"--html", 0, "PAGE", "also a page to be printed and signed", FIELD(html)},
    {"--config", 'c', "CONFIG", "survey configuration, with the figures (default: as shipped)",
     FIELD(config)},
    {0},
};

static const struct command_flag diff_flags[] = {ANONYMOUS_FLAG, {0}};

static const struct command_flag html_flags[] = {
    OUTPUT_FLAG,
    ANONYMOUS_FLAG,
    {"--reference", 0, "DIR", "expected values by model (default: as shipped)", FIELD(reference)},
    {"--racks", 0, "RACKS", "a file with lines NODE RACK [SWITCH]: outliers by rack", FIELD(racks)},
    {0},
};

static const struct command_flag merge_flags[] = {
    OUTPUT_FLAG,
    ANONYMOUS_FLAG,
    {"--config", 'c', "CONFIG", "survey configuration (default: the survey's own)", FIELD(config)},
    {"--reference", 0, "DIR", "expected values by model (default: as shipped)", FIELD(reference)},
    {"--baseline", 0, "OLD", "an earlier inventory: report drift against it", FIELD(baseline)},
    {"--world", 0, "WORLD", "figures of GPUs elsewhere, if there are few here; may be repeated",
     FIELD(world), true},
    {0},
};

static const struct command_flag share_flags[] = {
    OUTPUT_FLAG,
    {"--config", 'c', "CONFIG", "survey configuration (default: as shipped)", FIELD(config)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag json_flags[] = {
    OUTPUT_FLAG,
    ANONYMOUS_FLAG,
    {"--mt4g", 0, NULL, "one model's topology with the keys of MT4G", FIELD(mt4g)},
    {"--model", 0, "ID", "which model (needed where there are several)", FIELD(model)},
    {0},
};

static const struct command_flag prometheus_flags[] = {
    OUTPUT_FLAG,
    {"--openmetrics", 0, NULL, "the format OpenMetrics, for what is pushed", FIELD(openmetrics)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag history_flags[] = {
    OUTPUT_FLAG,
    {"--json", 0, NULL, "everything, as JSON", FIELD(json)},
    {"--gpu", 0, "GPU", "since when is NODE:INDEX, NODE:PCI or a UUID different", FIELD(gpu)},
    {"--metric", 0, "METRIC", "only this figure of the GPU", FIELD(metric)},
    {"--html", 0, "PAGE", "also draw the figures of the GPU", FIELD(html)},
    {"--store", 0, "DIR", "add each FILE to this folder, and read all that it keeps", FIELD(store)},
    {"--keep-all", 0, NULL, "do not thin out the store", FIELD(keep_all)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag rma_flags[] = {
    {"--output", 'o', "OUT", "where to (default: gpumemtopo-rma-UUID.tar; -: stdout)",
     FIELD(output)},
    {"--record", 0, "RECORD", "the record of the survey, to be added", FIELD(record)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag nagios_flags[] = {
    {"--max-age", 0, "HOURS", "an older inventory is UNKNOWN (default: 48; 0: any age)",
     FIELD(max_age)},
    {"--warn-watch", 0, NULL, "watched GPUs are a WARNING", FIELD(warn_watch)},
    ANONYMOUS_FLAG,
    {0},
};

static const struct command_flag undrain_flags[] = {
    {"--drained", 0, "LIST", "drained nodes, as sinfo lists them (see the man page); needed",
     FIELD(drained)},
    {0},
};

static const struct command_flag no_flags[] = {{0}};

const struct command command_table[] = {
    {"show", "FILE", "a summary: models, outliers, unmeasured", 1, 1, show_flags, command_show},
    {"merge", "DIR|FILE...", "make one inventory from spool files and inventories", 1,
     COMMAND_FILES_MAX, merge_flags, command_merge},
    {"diff", "OLD NEW", "compare two inventories of the same GPUs", 2, 2, diff_flags, command_diff},
    {"history", "FILE...", "over time: repeat offenders, trends, moved cards", 1, COMMAND_FILES_MAX,
     history_flags, command_history},
    {"accept", "FILE", "hold a delivery against its order", 1, 1, accept_flags, command_accept},
    {"drain", "FILE", "print scontrol commands that drain bad nodes", 1, 1, no_flags,
     command_drain},
    {"exclude", "FILE", "print the same nodes as a list for --exclude", 1, 1, no_flags,
     command_exclude},
    {"undrain", "FILE...", "print scontrol commands that resume healthy nodes", 1,
     COMMAND_FILES_MAX, undrain_flags, command_undrain},
    {"rma", "FILE UUID", "an archive about one GPU, for its vendor", 2, 2, rma_flags, command_rma},
    {"nagios", "FILE", "one line and exit code for a monitoring system", 1, 1, nagios_flags,
     command_nagios, command_nagios_failed},
    {"html", "FILE", "a page: outliers, map, drawings, tables", 1, 1, html_flags, run_html},
    {"json", "FILE", "the inventory as JSON", 1, 1, json_flags, run_json},
    {"prometheus", "FILE", "metrics for the textfile collector", 1, 1, prometheus_flags,
     run_prometheus},
    {"share", "FILE...", "figures by model, without identity, for --world", 1, COMMAND_FILES_MAX,
     share_flags, command_share},
    {"validate", "FILE...", "check files for errors and contradictions", 1, COMMAND_FILES_MAX,
     no_flags, run_validate},
    {0},
};
