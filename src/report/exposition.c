/* Text formats of metrics: what Prometheus and node_exporter read, and OpenMetrics. */
#include "report/exposition.h"

#include <string.h>

#include "schema/scalar.h"

static void put_help(const struct exposition *to, const char *name, size_t length, const char *help)
{
    strbuf_printf(to->out, "# HELP %.*s ", (int)length, name);
    for (; *help; help++) {
        if (*help == '\n')
            strbuf_puts(to->out, "\\n");
        else if (*help == '\\' || (*help == '"' && to->openmetrics))
            strbuf_printf(to->out, "\\%c", *help);
        else
            strbuf_append(to->out, help, 1);
    }
    strbuf_puts(to->out, "\n");
}

void exposition_gauge(const struct exposition *to, const char *name, const char *unit,
                      const char *help)
{
    put_help(to, name, strlen(name), help);
    strbuf_printf(to->out, "# TYPE %s gauge\n", name);
    if (to->openmetrics && unit && *unit)
        strbuf_printf(to->out, "# UNIT %s %s\n", name, unit);
}

/* OpenMetrics has a type for it, and names the family without the ending of its samples. */
void exposition_info(const struct exposition *to, const char *name, const char *help)
{
    size_t length = strlen(name) - (to->openmetrics ? strlen("_info") : 0);
    put_help(to, name, length, help);
    strbuf_printf(to->out, "# TYPE %.*s %s\n", (int)length, name,
                  to->openmetrics ? "info" : "gauge");
}

void exposition_label(const struct exposition *to, const char *lead, const char *text)
{
    strbuf_puts(to->out, lead);
    for (text = text ? text : ""; *text;) {
        size_t plain = strcspn(text, "\n\"\\");
        strbuf_append(to->out, text, plain);
        text += plain;
        if (*text)
            strbuf_puts(to->out, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        text += *text != '\0';
    }
    strbuf_puts(to->out, "\"");
}

void exposition_value(const struct exposition *to, const char *lead, double value)
{
    strbuf_puts(to->out, lead);
    scalar_put_number(to->out, value);
    strbuf_puts(to->out, "\n");
}

void exposition_end(const struct exposition *to)
{
    if (to->openmetrics)
        strbuf_puts(to->out, "# EOF\n");
}
