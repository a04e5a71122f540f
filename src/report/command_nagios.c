/* gpumemtopo-report nagios FILE: the exit codes are those of a monitoring plugin. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "inventory/anonymous.h"
#include "report/command.h"
#include "report/nagios.h"

/* If nobody says otherwise: a daily survey may be late by a day. */
static const double default_max_age_h = 48;

/* Without allocation, since memory may be what is lacking. The answer belongs on stdout, where a
 * monitor looks for it. */
int command_nagios_failed(const struct err *err)
{
    char text[ERR_LINE_MAX], line[ERR_LINE_MAX + 32];
    int length = snprintf(line, sizeof line, "GPUMEMTOPO UNKNOWN - %s\n",
                          err_format(err, text, sizeof text));
    for (int i = 0; i < length; i++) /* '|' begins the performance data */
        line[i] = line[i] == '|' ? '/' : line[i];
    io_write_all(STDOUT_FILENO, line, (size_t)length);
    return NAGIOS_UNKNOWN;
}

static int read_limits(const struct command_options *options, struct nagios_limits *out,
                       struct err *err)
{
    double hours = default_max_age_h;
    if (options->max_age && (str_parse_f64(options->max_age, &hours) || hours < 0))
        return err_set(err, -EINVAL, "--max-age is a number of hours, not \"%.40s\"",
                       options->max_age);
    *out = (struct nagios_limits){.now_s = (int64_t)(clock_utc_ms() / 1000),
                                  .max_age_s = 3600 * hours,
                                  .warn_watch = options->warn_watch};
    return 0;
}

int command_nagios(const struct command_options *options)
{
    struct inventory inventory;
    struct nagios_limits limits;
    struct strbuf line = {0};
    struct err err = {0};
    enum nagios_state state = NAGIOS_UNKNOWN;
    if (read_limits(options, &limits, &err) ||
        inventory_read_file(options->files[0], &inventory, &err))
        return command_nagios_failed(&err);
    if (options->anonymous &&
        anonymous_inventories((struct inventory *const[]){&inventory}, 1, NULL)) {
        inventory_fini(&inventory);
        err_no_memory(&err);
        return command_nagios_failed(&err);
    }
    int rc = report_nagios(&inventory, &limits, &line, &state, &err);
    inventory_fini(&inventory);
    if (rc) {
        strbuf_fini(&line);
        return command_nagios_failed(&err);
    }
    return command_write(&line, NULL) == EXIT_DONE ? (int)state : NAGIOS_UNKNOWN;
}
