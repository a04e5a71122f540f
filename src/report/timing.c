/* The line that lists the time per probe. */
#include "report/timing.h"

#include <stdlib.h>

#include "base/mem.h"
#include "markup/text.h"
#include "report/style.h"

enum { INDENT = 5 };

/* Shorter times are summed up. */
static const double SHOWN_S = 0.0005;

static int by_time(const void *a, const void *b)
{
    double x = (*(const struct fact *const *)a)->real, y = (*(const struct fact *const *)b)->real;
    return (x < y) - (x > y);
}

static void print_sorted(const struct gpu_result *gpu, const struct fact **laps,
                         struct strbuf *out_text)
{
    struct strbuf line = {0};
    size_t count = gpu->timings.count;
    double rest_s = 0;
    strbuf_printf(&line, "%.2f s on %s:", gpu->elapsed_s, gpu->uuid);
    for (size_t i = 0; i < count; i++)
        laps[i] = &gpu->timings.items[i];
    qsort(laps, count, sizeof *laps, by_time);
    for (size_t i = 0; i < count; i++) {
        if (laps[i]->real >= SHOWN_S)
            strbuf_printf(&line, " %s %.3f,", laps[i]->key, laps[i]->real);
        else
            rest_s += laps[i]->real;
    }
    strbuf_printf(&line, " others %.3f", rest_s);
    strbuf_puts(out_text, "\nTime ");
    text_put_wrapped(out_text, line.data ? line.data : "", INDENT, INDENT, REPORT_WIDTH);
    out_text->failed = out_text->failed || line.failed;
    strbuf_fini(&line);
}

void timing_print(const struct gpu_result *slowest, struct strbuf *out_text)
{
    if (!slowest->timings.count)
        return;
    const struct fact **laps = mem_array(slowest->timings.count, sizeof *laps);
    if (laps)
        print_sorted(slowest, laps, out_text);
    else
        out_text->failed = true;
    free(laps);
}
