/* The progress line on stderr: updated in place on a terminal, now and then in a log. */
#ifndef GPUMEMTOPO_SURVEY_PROGRESS_H
#define GPUMEMTOPO_SURVEY_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool enabled;
    bool terminal;
    bool shown; /* an unfinished line stands on the terminal */
    double started_s;
    double last_s;
};

void progress_init(struct progress *progress, bool enabled, double now_s);
void progress_show(struct progress *progress, size_t done, size_t total, double now_s);

/* Wipes the line, so that something else can be said. */
void progress_clear(struct progress *progress);

#endif
