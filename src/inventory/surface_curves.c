/* Curves of a surface as text. */
#include "inventory/surface_curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "GB/s by ";

static void print_row(struct strbuf *out, const char *name, const double *values, size_t count,
                      const char *format)
{
    strbuf_printf(out, "%s:", name);
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, " ");
        if (isnan(values[i]))
            strbuf_puts(out, "-");
        else
            strbuf_printf(out, format, values[i]);
    }
}

void surface_curves_print(const struct surface_curves *curves, struct strbuf *out_text)
{
    strbuf_puts(out_text, HEAD);
    print_row(out_text, curves->axis, curves->xs, curves->x_count, "%.0f");
    for (size_t i = 0; i < curves->count; i++) {
        strbuf_puts(out_text, "; ");
        print_row(out_text, curves->names[i], curves->gbs[i], curves->x_count, "%.4g");
    }
}

/* Reads "name: 1 2 -" up to the next ';' or the end; NULL if it is no such row. */
static const char *read_row(const char *at, char name[SURFACE_CURVES_NAME_MAX], double *values,
                            size_t *out_count)
{
    const char *colon = strchr(at, ':');
    size_t count = 0;
    if (!colon || (size_t)(colon - at) >= SURFACE_CURVES_NAME_MAX)
        return NULL;
    memcpy(name, at, (size_t)(colon - at));
    name[colon - at] = '\0';
    for (at = colon + 1; *at == ' '; count++) {
        char *end = (char *)at + 1;
        double value = *end == '-' ? NAN : strtod(at, &end);
        end += *end == '-';
        if (count == SURFACE_CURVES_XS_MAX || end == at || isinf(value))
            return NULL;
        values[count] = value;
        at = end;
    }
    *out_count = count;
    return *at == ';' || !*at ? at : NULL;
}

bool surface_curves_read(const char *text, struct surface_curves *out_curves)
{
    *out_curves = (struct surface_curves){.count = 0};
    if (strncmp(text, HEAD, sizeof HEAD - 1) != 0)
        return false;
    const char *at =
        read_row(text + sizeof HEAD - 1, out_curves->axis, out_curves->xs, &out_curves->x_count);
    for (size_t i = 0; at && i < out_curves->x_count; i++)
        if (!(out_curves->xs[i] > 0) || (i && !(out_curves->xs[i] >= out_curves->xs[i - 1])))
            return false;
    while (at && *at) {
        size_t count = 0, i = out_curves->count;
        if (i == SURFACE_CURVES_MAX || strncmp(at, "; ", 2) != 0)
            return false;
        at = read_row(at + 2, out_curves->names[i], out_curves->gbs[i], &count);
        if (count != out_curves->x_count)
            return false;
        out_curves->count++;
    }
    return at && out_curves->count && out_curves->x_count > 1;
}
