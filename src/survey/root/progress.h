/* The progress line on stderr: updated in place on a terminal, printed now and then in a log. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_PROGRESS_H
#define GPUMEMTOPO_SURVEY_ROOT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "survey/root/root.h"

struct progress {
    bool enabled;
    bool terminal;
    bool shown; /* the terminal shows an unfinished line */
    double started_s;
    double last_s;
};

/* What the line shows. */
struct progress_state {
    size_t done, total;
    double elapsed_s;
    const struct root_slowest *slowest; /* NULL: no GPU is being measured */
};

void progress_init(struct progress *progress, bool enabled, double now_s);

/* True if it is time for the next line. */
bool progress_due(const struct progress *progress, double now_s);
void progress_show(struct progress *progress, const struct root *root, double now_s);

/* Makes the line: "12 of 16 GPUs, slowest gpu003 GPU 2 in l2.size since 14 s; 23 s, about 8 s
 * left", cut to `columns`. Names are cleaned (text_put_clean). */
void progress_line(const struct progress_state *state, unsigned columns, struct strbuf *out_line);

/* Erases the line, so that something else can be printed. */
void progress_clear(struct progress *progress);

#endif
