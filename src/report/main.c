/* gpumemtopo-report: works on inventories, without MPI and without a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "report/command.h"

static int run_command(int count, char **arguments)
{
    const struct command *command = command_find(arguments[0]);
    struct command_options options = {0};
    struct strbuf text = {0};
    struct err err = {0};
    const char *help = NULL;
    int code = EXIT_BAD_INPUT;
    if (!command)
        return code;
    int rc = command_parse(command, count - 1, arguments + 1, &options, &help, &err);
    if (rc && command->failed) {
        code = command->failed(&err);
    } else if (rc) {
        log_failure(&err);
        code = command_exit_code(rc);
    } else if (help) {
        command_help(command, help, &text);
        code = command_write(&text, NULL);
    } else
        code = command->run(&options);
    free(options.files);
    return code;
}

int main(int argc, char **argv)
{
    struct strbuf text = {0};
    io_fill_standard();
    log_set_prefix("gpumemtopo-report");
    if (argc >= 2 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0 &&
        strcmp(argv[1], "--version") != 0)
        return run_command(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        strbuf_printf(&text, "gpumemtopo-report %s\ninventory: schema %d\nlicence: %s\n",
                      GPUMEMTOPO_VERSION, INVENTORY_SCHEMA, GPUMEMTOPO_LICENCE);
    else
        command_help_all(&text);
    if (argc >= 2)
        return command_write(&text, NULL);
    fputs(text.data ? text.data : "", stderr);
    strbuf_fini(&text);
    return EXIT_BAD_INPUT;
}
