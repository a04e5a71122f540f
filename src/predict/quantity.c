/* Numbers for people. */
#include "predict/quantity.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

const char *quantity_short(double value, const char *unit, char out_text[QUANTITY_MAX])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t at = 0;
    if (isnan(value))
        return "-";
    for (; fabs(value) >= 999.5 && at + 1 < COUNT_OF(prefixes); at++)
        value /= 1000;
    snprintf(out_text, QUANTITY_MAX, "%.3g%s%s%s", value, *unit ? " " : "", prefixes[at], unit);
    return out_text;
}

const char *quantity_seconds(double seconds, char out_text[QUANTITY_MAX])
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t at = 0;
    if (isnan(seconds))
        return "-";
    while (at + 1 < COUNT_OF(units) && seconds < 0.9995 * units[at].unit)
        at++;
    snprintf(out_text, QUANTITY_MAX, "%.3g %s", seconds / units[at].unit, units[at].name);
    return out_text;
}

const char *quantity_percent(double share, char out_text[QUANTITY_MAX])
{
    if (isnan(share))
        return "-";
    snprintf(out_text, QUANTITY_MAX, "%.1f", 100 * share);
    return out_text;
}

const char *quantity_bytes(double bytes, char out_text[QUANTITY_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t at = 0;
    if (isnan(bytes))
        return "-";
    for (; bytes >= 1024 && at + 1 < COUNT_OF(units); at++)
        bytes /= 1024;
    snprintf(out_text, QUANTITY_MAX, "%.4g %s", bytes, units[at]);
    return out_text;
}
