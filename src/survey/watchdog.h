/* Ends the process when a step that cannot be interrupted takes too long. */
#ifndef GPUMEMTOPO_SURVEY_WATCHDOG_H
#define GPUMEMTOPO_SURVEY_WATCHDOG_H

/* After `seconds` the process writes `line` (NULL: nothing; must stay valid) to stderr, calls
 * `last` (NULL: nothing) in a signal handler and leaves with exit_code, without any cleaning up.
 * One at a time. Uses SIGALRM. */
void watchdog_start(unsigned seconds, const char *line, void (*last)(void), int exit_code);
void watchdog_stop(void);

#endif
