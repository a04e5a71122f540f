/* Curves to text and back. */
#include "inventory/curve.h"

#include <math.h>
#include <stdio.h>

static const char head_format[] = "hit %lf far %lf miss %lf; bytes cycles missed%n";

void curve_print(const struct curve *curve, struct strbuf *out_text)
{
    strbuf_printf(out_text, "hit %.6g far %.6g miss %.6g; bytes cycles missed", curve->hit,
                  curve->far, curve->miss);
    for (size_t i = 0; i < curve->count; i++) {
        const struct curve_point *p = &curve->points[i];
        strbuf_printf(out_text, "; %.0f %.1f %.4g", p->bytes, p->cycles, p->missed);
    }
}

bool curve_read(const char *text, struct curve *out_curve)
{
    struct curve curve = {0};
    int used = 0;
    if (sscanf(text, head_format, &curve.hit, &curve.far, &curve.miss, &used) != 3 || !used)
        return false;
    for (text += used; *text; text += used) {
        struct curve_point p;
        if (curve.count == CURVE_POINTS_MAX ||
            sscanf(text, "; %lf %lf %lf%n", &p.bytes, &p.cycles, &p.missed, &used) != 3)
            return false;
        if (!isfinite(p.bytes) || !isfinite(p.cycles) || !isfinite(p.missed))
            return false;
        curve.points[curve.count++] = p;
    }
    *out_curve = curve;
    return curve.count > 0;
}
