/* Facts as text, for causes. */
#include "judge/fact_text.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "catalogue/facts.h"

static const struct {
    const char *ending, *unit;
} units[] = {{"_w", "W"}, {"_mhz", "MHz"}, {"_bytes", "B"}, {"_c", "C"}, {"_bits", "bits"}};

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

const char *fact_text_unit(const char *key)
{
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (ends_in(key, units[i].ending))
            return units[i].unit;
    return "";
}

void fact_text_put_key(struct strbuf *out, const char *key)
{
    const char *words = catalogue_words(key);
    size_t length = strlen(key);
    if (words) {
        strbuf_puts(out, words);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (ends_in(key, units[i].ending))
            length = strlen(key) - strlen(units[i].ending);
    for (size_t i = 0; i < length; i++)
        strbuf_append(out, key[i] == '_' ? " " : &key[i], 1);
}

void fact_text_put_number(struct strbuf *out, double value, const char *unit)
{
    if (strcmp(unit, "B") == 0 && fabs(value) >= 0x1p20) {
        bool giga = fabs(value) >= 0x1p30;
        strbuf_printf(out, "%.4g %s", value / (giga ? 0x1p30 : 0x1p20), giga ? "GiB" : "MiB");
        return;
    }
    if (value == floor(value) && fabs(value) < 1e9)
        strbuf_printf(out, "%.0f", value);
    else
        strbuf_printf(out, "%.4g", value);
    if (*unit)
        strbuf_printf(out, " %s", unit);
}

void fact_text_put_value(struct strbuf *out, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_BOOL:
        strbuf_puts(out, fact->flag ? "on" : "off");
        break;
    case FACT_INT:
        fact_text_put_number(out, (double)fact->integer, fact_text_unit(fact->key));
        break;
    case FACT_REAL:
        fact_text_put_number(out, fact->real, fact_text_unit(fact->key));
        break;
    case FACT_TEXT:
        strbuf_printf(out, "%.60s", fact->text);
        break;
    default:
        strbuf_puts(out, "unknown");
    }
}
