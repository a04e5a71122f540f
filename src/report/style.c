/* Width, colours and box characters of the output. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/style.h"

static unsigned style_clamp_width(unsigned long columns)
{
    if (columns < REPORT_WIDTH_MIN)
        return REPORT_WIDTH_MIN;
    return columns > REPORT_WIDTH_MAX ? REPORT_WIDTH_MAX : (unsigned)columns;
}

static unsigned width_of(int fd, bool terminal)
{
    uint64_t columns = 0;
    struct winsize size;
    if (str_parse_u64(getenv("COLUMNS"), &columns) == 0 && columns)
        return style_clamp_width(columns);
    if (terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        return style_clamp_width(size.ws_col);
    return REPORT_WIDTH;
}

static bool style_is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* Depends on the environment (LC_ALL, ...) at run time. */
static bool style_has_boxes(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale)
        return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8;
}

struct report_style report_style_for(int fd)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(fd);
    bool dumb = !term || strcmp(term, "dumb") == 0;
    return (struct report_style){
        .width = width_of(fd, terminal),
        .colour = terminal && !dumb && !style_is_set("NO_COLOR"),
        .boxes = style_has_boxes(),
    };
}

void report_begin_paint(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint)
{
    static const char *const codes[] = {"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[2m"};
    if (style && style->colour)
        strbuf_puts(buffer, codes[paint]);
}

void report_end_paint(struct strbuf *buffer, const struct report_style *style)
{
    if (style && style->colour)
        strbuf_puts(buffer, "\x1b[0m");
}

void report_put_painted(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint, const char *text)
{
    report_begin_paint(buffer, style, paint);
    strbuf_puts(buffer, text);
    report_end_paint(buffer, style);
}
