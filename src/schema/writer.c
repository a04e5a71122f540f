/* Writes YAML or JSON piece by piece. */
#include "schema/writer.h"

#include <inttypes.h>
#include <string.h>

#include "schema/scalar.h"
#include "schema/utf8.h"

enum { CONTINUED = 4 }; /* columns by which a line that continues another one is indented more */

/* Bytes that are not UTF-8 become U+FFFD; "<" is escaped so that the text can be embedded in
 * HTML. */
static void json_put_string(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "\"");
    while (*text) {
        size_t run = 0;
        while (text[run] >= ' ' && text[run] < 0x7f && !strchr("\"\\<", text[run]))
            run++;
        strbuf_append(out, text, run);
        text += run;
        if (!*text)
            break;
        uint32_t code = 0;
        size_t length = utf8_decode(text, &code);
        if (!length)
            strbuf_puts(out, "\xef\xbf\xbd");
        else if (code == '"' || code == '\\')
            strbuf_printf(out, "\\%c", (int)code);
        else if (code < 0x20 || code == '<' || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
                 code == 0x2029)
            strbuf_printf(out, "\\u%04x", (unsigned)code);
        else
            strbuf_append(out, text, length);
        text += length ? length : 1;
    }
    strbuf_puts(out, "\"");
}

static void writer_put_text(struct writer *writer, const char *text)
{
    if (writer->format == WRITER_JSON && text)
        json_put_string(writer->out, text);
    else
        scalar_put_text(writer->out, text);
}

static void writer_new_line(struct strbuf *out, int indent)
{
    static const char spaces[] = "                                                                ";
    strbuf_puts(out, "\n");
    for (; indent > 0; indent -= (int)sizeof spaces - 1) {
        size_t part = (size_t)indent < sizeof spaces - 1 ? (size_t)indent : sizeof spaces - 1;
        strbuf_append(out, spaces, part);
    }
}

/* Everything before a value: separator, line, key. `nested`: the value begins on the next line. */
static void writer_begin(struct writer *writer, const char *key, bool nested)
{
    struct writer_level *level = &writer->levels[writer->depth];
    bool yaml = writer->format == WRITER_YAML;
    if (writer->flush)
        writer->flush(writer->user, writer->out);
    if (!writer->depth)
        return;
    if (level->begun && (level->flow || !yaml))
        strbuf_puts(writer->out, level->flow && !writer->next_line ? ", " : ",");
    if (writer->next_line)
        writer_new_line(writer->out, level->indent + CONTINUED);
    writer->next_line = false;
    /* The first key of a map that is an item of a list stands behind the dash, and the first one of
     * the document has no line before it. */
    bool same_line = yaml && !level->begun && !level->list &&
                     (writer->depth == 1 || writer->levels[writer->depth - 1].list);
    if (!level->flow && !same_line)
        writer_new_line(writer->out, level->indent);
    if (!level->flow && yaml && level->list)
        strbuf_puts(writer->out, "- ");
    level->begun = true;
    if (key) {
        if (writer->known_key && yaml)
            strbuf_puts(writer->out, key);
        else
            writer_put_text(writer, key);
        writer->known_key = false;
        strbuf_puts(writer->out, nested && yaml ? ":" : ": ");
    }
}

static void writer_open(struct writer *writer, const char *key, bool list, enum writer_style style)
{
    bool yaml = writer->format == WRITER_YAML;
    bool flow = yaml && (style == WRITER_FLOW || writer->levels[writer->depth].flow);
    writer_begin(writer, key, !flow);
    if (flow || !yaml)
        strbuf_puts(writer->out, list ? "[" : "{");
    int indent = writer->depth || !yaml ? writer->levels[writer->depth].indent + 2 : 0;
    if (writer->depth + 1 < WRITER_DEPTH_MAX)
        writer->depth++;
    writer->levels[writer->depth] =
        (struct writer_level){.list = list, .flow = flow, .indent = indent};
}

void writer_map(struct writer *writer, const char *key, enum writer_style style)
{
    writer_open(writer, key, false, style);
}

void writer_list(struct writer *writer, const char *key, enum writer_style style)
{
    writer_open(writer, key, true, style);
}

void writer_end(struct writer *writer)
{
    const struct writer_level *level = &writer->levels[writer->depth];
    bool yaml = writer->format == WRITER_YAML;
    if (!yaml && level->begun && !level->flow)
        writer_new_line(writer->out, level->indent - 2);
    if (level->flow || !yaml)
        strbuf_puts(writer->out, level->list ? "]" : "}");
    if (!--writer->depth)
        strbuf_puts(writer->out, "\n");
}

void writer_text(struct writer *writer, const char *key, const char *text)
{
    writer_begin(writer, key, false);
    writer_put_text(writer, text);
}

void writer_number(struct writer *writer, const char *key, double value)
{
    writer_begin(writer, key, false);
    scalar_put_number(writer->out, value);
}

void writer_i64(struct writer *writer, const char *key, int64_t value)
{
    writer_begin(writer, key, false);
    strbuf_printf(writer->out, "%" PRId64, value);
}

void writer_u64(struct writer *writer, const char *key, uint64_t value)
{
    writer_begin(writer, key, false);
    strbuf_printf(writer->out, "%" PRIu64, value);
}

void writer_bool(struct writer *writer, const char *key, bool value)
{
    writer_raw(writer, key, value ? "true" : "false");
}

void writer_raw(struct writer *writer, const char *key, const char *value)
{
    writer_begin(writer, key, false);
    strbuf_puts(writer->out, value);
}

static size_t writer_column(const struct strbuf *out)
{
    size_t column = 0;
    while (column < out->length && out->data[out->length - column - 1] != '\n')
        column++;
    return column;
}

/* A list that is broken into lines. items: as they are written, each with a NUL behind it. */
struct wrapped {
    struct writer *writer;
    struct strbuf items;
    size_t count, columns; /* columns: of a row; 0: no rows */
};

/* Whether the list begins a line with its key: it would not fit behind what is there (of a list of
 * rows, the first row), but into a line; or not even its first item would fit. */
static bool wrapped_begins_line(const struct wrapped *list, const char *key)
{
    const struct writer *writer = list->writer;
    const struct writer_level *level = &writer->levels[writer->depth];
    const char *item = list->items.data;
    if (writer->format != WRITER_YAML || !level->flow || !level->begun || !list->count)
        return false;
    size_t first = strlen(item), unit = 0, items = list->columns ? list->columns : list->count;
    for (size_t i = 0; i < items && unit <= WRITER_COLUMNS; i++, item += strlen(item) + 1)
        unit += strlen(item) + (i ? 2 : 0);
    size_t lead = (key ? strlen(key) + 2 : 0) + (list->columns ? 2 : 1);
    size_t end = list->columns ? 2 : 1; /* brackets, or a comma */
    size_t here = writer_column(writer->out) + 2 + lead;
    size_t there = (size_t)level->indent + CONTINUED + lead;
    if (here + unit + end <= WRITER_COLUMNS)
        return false;
    return there + unit + end <= WRITER_COLUMNS || here + first + 1 > WRITER_COLUMNS;
}

static void wrapped_new_line(const struct wrapped *list, int more, size_t *column)
{
    int indent = list->writer->levels[list->writer->depth].indent + CONTINUED + more;
    strbuf_puts(list->writer->out, ",");
    writer_new_line(list->writer->out, indent);
    *column = (size_t)indent;
}

/* Writes the list and releases it. */
static void wrapped_put(struct wrapped *list, const char *key)
{
    struct strbuf *out = list->writer->out;
    bool yaml = list->writer->format == WRITER_YAML;
    int more = list->columns ? 1 : 0; /* by which lines within a row are indented more */
    list->writer->next_line = wrapped_begins_line(list, key);
    writer_begin(list->writer, key, false);
    strbuf_puts(out, list->columns && list->count ? "[[" : "[");
    size_t column = writer_column(out);
    const char *item = list->items.data;
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strlen(item);
        bool row = i && list->columns && i % list->columns == 0;
        if (row)
            strbuf_puts(out, "]");
        if (i && yaml && (row || column + length + 3 > WRITER_COLUMNS)) {
            wrapped_new_line(list, row ? 0 : more, &column);
        } else if (i) {
            strbuf_puts(out, ", ");
            column += 2;
        }
        if (row) {
            strbuf_puts(out, "[");
            column++;
        }
        strbuf_append(out, item, length);
        column += length;
        item += length + 1;
    }
    strbuf_puts(out, list->columns && list->count ? "]]" : "]");
    strbuf_fini(&list->items);
}

void writer_rows(struct writer *writer, const char *key, const double *values, size_t count,
                 size_t columns)
{
    struct wrapped list = {.writer = writer, .count = count, .columns = columns};
    for (size_t i = 0; i < count; i++) {
        scalar_put_number(&list.items, values[i]);
        strbuf_append(&list.items, "", 1);
    }
    wrapped_put(&list, key);
}

void writer_numbers(struct writer *writer, const char *key, const double *values, size_t count)
{
    writer_rows(writer, key, values, count, 0);
}

void writer_texts(struct writer *writer, const char *key, char *const *texts, size_t count)
{
    struct wrapped list = {.writer = writer, .count = count};
    struct writer inner = {.out = &list.items, .format = writer->format};
    for (size_t i = 0; i < count; i++) {
        writer_put_text(&inner, texts[i]);
        strbuf_append(&list.items, "", 1);
    }
    wrapped_put(&list, key);
}
