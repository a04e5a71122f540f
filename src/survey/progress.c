/* The progress line on stderr. */
#include "survey/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static const double terminal_every_s = 0.2, log_every_s = 10;

static void put(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* a progress line that cannot be shown is no loss */
}

void progress_init(struct progress *progress, bool enabled, double now_s)
{
    *progress = (struct progress){
        .enabled = enabled,
        .terminal = isatty(STDERR_FILENO),
        .started_s = now_s,
        .last_s = now_s,
    };
}

void progress_show(struct progress *progress, size_t done, size_t total, double now_s)
{
    char line[96];
    double every_s = progress->terminal ? terminal_every_s : log_every_s;
    if (!progress->enabled || now_s - progress->last_s < every_s)
        return;
    progress->last_s = now_s;
    double elapsed_s = now_s - progress->started_s;
    if (!progress->terminal) {
        log_info("%zu of %zu GPUs done, %.0f s", done, total, elapsed_s);
        return;
    }
    snprintf(line, sizeof line, "\r%zu of %zu GPUs done, %.0f s\x1b[K", done, total, elapsed_s);
    put(line);
    progress->shown = true;
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        put("\r\x1b[K");
    progress->shown = false;
}
