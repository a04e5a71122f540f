/* The progress line on stderr. */
#include "survey/root/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "markup/text.h"

static const double terminal_every_s = 0.2, log_every_s = 10;

enum { COLUMNS_USUAL = 80, COLUMNS_LOG = 200, NAME_COLUMNS = 30 };

static void progress_put(const char *text)
{
    int rc = io_write_all(STDERR_FILENO, text, strlen(text));
    (void)rc; /* a progress line that cannot be shown does not matter */
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

bool progress_due(const struct progress *progress, double now_s)
{
    double every_s = progress->terminal ? terminal_every_s : log_every_s;
    return progress->enabled && now_s - progress->last_s >= every_s;
}

void progress_line(const struct progress_state *state, unsigned columns, struct strbuf *out_line)
{
    struct strbuf line = {0};
    size_t left = state->total - state->done;
    strbuf_printf(&line, "%zu of %zu GPUs", state->done, state->total);
    if (state->slowest) {
        strbuf_puts(&line, ", slowest ");
        text_put_clean(&line, state->slowest->gpu->node, NAME_COLUMNS);
        if (state->slowest->gpu->index >= 0)
            strbuf_printf(&line, " GPU %d", (int)state->slowest->gpu->index);
        strbuf_puts(&line, " in ");
        text_put_clean(&line, state->slowest->probe, NAME_COLUMNS);
        strbuf_printf(&line, " since %.0f s", state->slowest->since_s);
    }
    strbuf_printf(&line, "; %.0f s", state->elapsed_s);
    if (state->done && left)
        strbuf_printf(&line, ", about %.0f s left",
                      state->elapsed_s / (double)state->done * (double)left);
    text_put_clean(out_line, line.data, columns);
    strbuf_fini(&line);
}

void progress_show(struct progress *progress, const struct root *root, double now_s)
{
    const struct root_view view = root_view(root);
    struct root_slowest slowest;
    const struct progress_state state = {
        .done = view.gpu_done,
        .total = view.gpu_total,
        .elapsed_s = now_s - progress->started_s,
        .slowest = root_slowest(root, &slowest) ? &slowest : NULL,
    };
    struct strbuf line = {0};
    progress->last_s = now_s;
    strbuf_puts(&line, progress->terminal ? "\r" : "");
    unsigned columns = io_columns(STDERR_FILENO);
    progress_line(&state,
                  progress->terminal ? (columns > 1 ? columns : COLUMNS_USUAL) - 1 : COLUMNS_LOG,
                  &line);
    if (progress->terminal) {
        strbuf_puts(&line, "\x1b[K");
        progress_put(line.data ? line.data : "");
        progress->shown = true;
    } else if (line.data)
        log_info("%s", line.data);
    strbuf_fini(&line);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        progress_put("\r\x1b[K");
    progress->shown = false;
}
