/* What the parts of the page share. */
#include "predict/html/sections.h"

#include <math.h>

#include "markup/html_text.h"

bool section_next(const struct prediction *predictions, size_t count, size_t *at,
                  struct section_kernel *out_kernel)
{
    size_t first = *at;
    if (first == count)
        return false;
    while (*at < count && predictions[*at].program == predictions[first].program)
        ++*at;
    *out_kernel = (struct section_kernel){.predictions = &predictions[first],
                                          .count = *at - first,
                                          .number = predictions[first].program};
    return true;
}

bool section_is_plain(const struct prediction *p)
{
    return !p->what_if && !p->reason[0];
}

double section_shortest(const struct section_kernel *kernel)
{
    double shortest = NAN;
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            shortest = fmin(shortest, kernel->predictions[i].bound.longest);
    return shortest;
}

void section_model(struct strbuf *out, const struct prediction *p, bool with_file)
{
    html_text(out, p->model, HTML_NAME);
    if (!with_file)
        return;
    strbuf_puts(out, " <span class=dim>");
    html_text(out, p->inventory, HTML_NAME);
    strbuf_puts(out, "</span>");
}
