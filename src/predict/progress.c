/* The progress line on a terminal. */
#include "predict/progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "markup/text.h"
#include "predict/quantity.h"

static const double every_s = 0.2;

enum { COLUMNS_USUAL = 80 };

static void put(const char *text)
{
    int rc = io_write_all(STDERR_FILENO, text, strlen(text));
    (void)rc; /* a progress line that cannot be shown does not matter */
}

static unsigned terminal_columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1u : COLUMNS_USUAL - 1u;
}

void progress_init(struct progress *progress, bool quiet, size_t total)
{
    *progress = (struct progress){.enabled = !quiet && isatty(STDERR_FILENO), .total = total};
}

/* What matters most stands first: a narrow terminal cuts the end. */
void progress_text(const struct progress *progress, struct model_state state, double elapsed_s,
                   struct strbuf *out_text)
{
    const struct prediction *p = progress->prediction;
    char text[QUANTITY_MAX], changed[WHAT_IF_TEXT_MAX];
    strbuf_printf(out_text, "%zu of %zu: %s, %.0f %% of its blocks", progress->number,
                  progress->total, p->kernel, 100 * state.share);
    if (state.share > 0)
        strbuf_printf(out_text, ", about %.0f s left",
                      ceil(elapsed_s * (1 - state.share) / state.share));
    if (elapsed_s > 0)
        strbuf_printf(out_text, ", %s lines/s",
                      quantity_short((double)state.lines / elapsed_s, "", text));
    strbuf_printf(out_text, ", on %s", p->model);
    if (p->what_if) {
        what_if_text(p->what_if, changed);
        strbuf_printf(out_text, " with %s", changed);
    }
}

static void tell(void *context, struct model_state state)
{
    struct progress *progress = context;
    struct strbuf text = {0}, line = {0};
    double now_s = clock_monotonic_s();
    if (now_s - progress->last_s < every_s)
        return;
    progress->last_s = now_s;
    progress_text(progress, state, now_s - progress->started_s, &text);
    strbuf_puts(&line, "\r");
    text_put_clean(&line, text.data ? text.data : "", terminal_columns());
    strbuf_puts(&line, "\x1b[K");
    if (line.data && !line.failed)
        put(line.data);
    progress->shown = true;
    strbuf_fini(&text);
    strbuf_fini(&line);
}

void progress_begin(struct progress *progress, const struct prediction *prediction,
                    struct model_config *config)
{
    progress->begun++;
    if (!config)
        return;
    progress->prediction = prediction;
    progress->number = progress->begun;
    progress->started_s = clock_monotonic_s();
    if (!progress->enabled)
        return;
    config->tell = tell;
    config->tell_context = progress;
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        put("\r\x1b[K");
    progress->shown = false;
}
