/* The commands of gpumemtopo-report that have a file of their own. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_H
#define GPUMEMTOPO_REPORT_COMMANDS_H

enum {
    EXIT_DONE = 0,
    EXIT_NO_REPORT = 1,
    EXIT_BAD_INPUT = 2,
};

/* Take what follows the command's name; return the exit code. */
int report_run_drain(int count, char **arguments);
int report_run_merge(int count, char **arguments);

#endif
