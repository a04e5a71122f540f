/* Ends the process when a step that cannot be interrupted takes too long. */
#include "survey/watchdog.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char *volatile last_line;
static void (*volatile last_call)(void);
static volatile sig_atomic_t last_code;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (last_line) {
        ssize_t written = write(STDERR_FILENO, last_line, strlen(last_line));
        (void)written;
    }
    if (last_call)
        last_call();
    _exit(last_code);
}

void watchdog_start(unsigned seconds, const char *line, void (*last)(void), int exit_code)
{
    /* Not blocked meanwhile: `last` may start another program, which would inherit that. */
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER};
    sigemptyset(&action.sa_mask);
    last_line = line;
    last_call = last;
    last_code = exit_code;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

void watchdog_stop(void)
{
    alarm(0);
}
