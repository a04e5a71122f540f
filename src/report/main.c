/* gpumemtopo-report: what can be done with inventories, without MPI and without a GPU. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "report/basis.h"
#include "report/commands.h"
#include "report/diff.h"
#include "report/summary.h"
#include "report/validate.h"

enum { EXIT_WORSE = 3, EXIT_MISSING = 4 };

static const char usage[] =
    "Usage: gpumemtopo-report COMMAND [ARGS]\n"
    "Works on inventories that gpumemtopo-survey wrote.\n"
    "\n"
    "Commands:\n"
    "  show FILE          a short summary: models, outliers, unmeasured\n"
    "  merge [-o FILE] DIR|FILE...\n"
    "                     one inventory out of spool files and inventories;\n"
    "                     --config, --reference, --baseline as of the survey\n"
    "  diff OLD NEW       what moved, came, went and changed between two\n"
    "  drain FILE         scontrol lines that drain nodes with failing or\n"
    "                     degraded GPUs; nothing is executed\n"
    "  validate FILE...   check files against the schema and themselves\n"
    "\n"
    "Options:\n"
    "  -h, --help         show this help\n"
    "      --version      show the version\n"
    "\n"
    "Exit codes: 0 done; 1 no report could be made; 2 bad usage or bad input file;\n"
    "diff: 3 a GPU is worse than it was; 4 one is gone or no longer measured;\n"
    "merge: 3 outliers; 4 GPUs not measured, ranks lost or files skipped.\n";

/* -ENOMEM is the program's trouble; everything else is about the file. */
static int exit_code(int rc)
{
    return !rc ? EXIT_DONE : rc == -ENOMEM ? EXIT_NO_REPORT : EXIT_BAD_INPUT;
}

static int validate_file(const char *path)
{
    struct inventory inventory;
    struct err err = {0};
    int rc = inventory_read_file(path, &inventory, &err);
    if (!rc) {
        rc = report_validate(&inventory, &err);
        if (rc)
            err_prefix(&err, "%s", path);
        inventory_fini(&inventory);
    }
    if (rc)
        log_failure(&err);
    return exit_code(rc);
}

static int run_validate(int count, char **paths)
{
    int worst = EXIT_DONE;
    for (int i = 0; i < count; i++) {
        int code = validate_file(paths[i]);
        worst = code == EXIT_DONE || worst == EXIT_NO_REPORT ? worst : code;
    }
    return worst;
}

/* Texts are printed at the end, so that a failure leaves nothing on stdout. */
static int print_text(struct strbuf *text)
{
    int code = EXIT_DONE;
    if (text->failed || fwrite(text->data, 1, text->length, stdout) != text->length ||
        fflush(stdout)) {
        log_error("cannot print: %s", text->failed ? "out of memory" : strerror(errno));
        code = EXIT_NO_REPORT;
    }
    strbuf_fini(text);
    return code;
}

static int run_show(int count, char **paths)
{
    struct inventory inventory;
    struct err err = {0};
    struct strbuf text = {0};
    (void)count;
    int rc = inventory_read_file(paths[0], &inventory, &err);
    if (rc) {
        log_failure(&err);
        return exit_code(rc);
    }
    report_summary(&inventory, &text);
    inventory_fini(&inventory);
    return print_text(&text);
}

static int run_diff(int count, char **paths)
{
    struct report_basis basis = {0};
    struct inventory before = {0}, after = {0};
    struct report_diff diff = {0};
    struct err err = {0};
    struct strbuf text = {0};
    (void)count;
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (!rc)
        rc = inventory_read_file(paths[0], &before, &err);
    if (!rc)
        rc = inventory_read_file(paths[1], &after, &err);
    if (!rc)
        rc = report_diff(&before, &after, &basis.config, &text, &diff, &err);
    inventory_fini(&before);
    inventory_fini(&after);
    report_basis_fini(&basis);
    if (rc) {
        strbuf_fini(&text);
        log_failure(&err);
        return exit_code(rc);
    }
    int code = print_text(&text);
    if (code != EXIT_DONE)
        return code;
    return diff.missing ? EXIT_MISSING : diff.worse ? EXIT_WORSE : EXIT_DONE;
}

static const struct {
    const char *name;
    int arguments_min, arguments_max;
    int (*run)(int count, char **arguments);
} commands[] = {
    {"drain", 1, 1, report_run_drain},
    {"merge", 1, 1000000, report_run_merge},
    {"show", 1, 1, run_show},
    {"diff", 2, 2, run_diff},
    {"validate", 1, 1000000, run_validate},
};
enum { COMMAND_COUNT = COUNT_OF(commands) };

static int run_command(const char *name, int count, char **arguments)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) != 0)
            continue;
        if (count < commands[i].arguments_min || count > commands[i].arguments_max) {
            log_error("%s takes %s; see gpumemtopo-report --help", name,
                      commands[i].arguments_max == 1   ? "one file"
                      : commands[i].arguments_max == 2 ? "two files"
                                                       : "at least one file");
            return EXIT_BAD_INPUT;
        }
        return commands[i].run(count, arguments);
    }
    const char *near = str_nearest(name, names, COMMAND_COUNT);
    if (near)
        log_error("unknown command \"%.60s\"; did you mean \"%s\"?", name, near);
    else
        log_error("unknown command \"%.60s\"; see gpumemtopo-report --help", name);
    return EXIT_BAD_INPUT;
}

/* Output that nobody can read is a failure, not a success (a full disk behind a pipe). */
static int print(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) ? EXIT_NO_REPORT : EXIT_DONE;
}

int main(int argc, char **argv)
{
    log_set_prefix("gpumemtopo-report");
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print(usage);
    if (strcmp(argv[1], "--version") == 0)
        return print("gpumemtopo-report " GPUMEMTOPO_VERSION "\n");
    return run_command(argv[1], argc - 2, argv + 2);
}
