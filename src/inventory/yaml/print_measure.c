/* Facts and measures as YAML. */
#include "inventory/yaml/print_measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/scalar.h"

void inventory_print_fact(struct strbuf *buffer, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_BOOL:
        strbuf_puts(buffer, fact->flag ? "true" : "false");
        break;
    case FACT_INT:
        strbuf_printf(buffer, "%" PRId64, fact->integer);
        break;
    case FACT_REAL:
        scalar_put_number(buffer, fact->real);
        break;
    case FACT_TEXT:
        scalar_put_text(buffer, fact->text);
        break;
    default:
        strbuf_puts(buffer, "null");
    }
}

static void print_pair(struct strbuf *buffer, const struct fact *fact)
{
    scalar_put_text(buffer, fact->key);
    strbuf_puts(buffer, ": ");
    inventory_print_fact(buffer, fact);
}

void inventory_print_facts(struct strbuf *buffer, const struct facts *facts)
{
    strbuf_puts(buffer, "{");
    for (size_t i = 0; i < facts->count; i++) {
        strbuf_puts(buffer, i ? ", " : "");
        print_pair(buffer, &facts->items[i]);
    }
    strbuf_puts(buffer, "}");
}

static void print_words(struct strbuf *buffer, const struct measure *measure)
{
    strbuf_puts(buffer, "[");
    for (size_t i = 0; i < measure->word_count; i++) {
        strbuf_puts(buffer, i ? ", " : "");
        scalar_put_text(buffer, measure->words[i]);
    }
    strbuf_puts(buffer, "]");
}

static void print_named(struct strbuf *buffer, const char *name, const char *text)
{
    strbuf_printf(buffer, ", %s: ", name);
    scalar_put_text(buffer, text);
}

static void print_evidence(struct strbuf *buffer, const struct measure *measure)
{
    bool number = measure->kind == MEASURE_NUMBER;
    bool sure = measure->confidence >= 0 && measure->confidence <= 1;
    if (number) {
        strbuf_puts(buffer, ", spread: ");
        scalar_put_number(buffer, measure->spread);
    }
    strbuf_puts(buffer, ", confidence: ");
    scalar_put_number(buffer, sure ? measure->confidence : NAN);
    strbuf_printf(buffer, ", n: %" PRIu32, measure->n);
}

/* A measure with a value that is not finite is printed as failed: null needs a status that explains
 * it. */
static enum measure_status effective_status(const struct measure *measure)
{
    if (measure_status_valued(measure->status) && measure->kind == MEASURE_NUMBER &&
        !isfinite(measure->value))
        return MEASURE_FAILED;
    return measure->status;
}

static void print_status(struct strbuf *buffer, const struct measure *measure,
                         enum measure_status status)
{
    const char *reason = measure->reason;
    if (status != MEASURE_OK)
        print_named(buffer, "status", measure_status_name(status));
    if (status != measure->status && !reason)
        reason = "not a finite number";
    if (status != MEASURE_OK || reason)
        print_named(buffer, "reason", reason);
}

static void print_measure(struct strbuf *buffer, const struct measure *measure)
{
    enum measure_status status = effective_status(measure);
    bool valued = measure_status_valued(status);
    if (measure->kind == MEASURE_WORDS && status == MEASURE_OK) {
        print_words(buffer, measure);
        return;
    }
    strbuf_puts(buffer, "{value: ");
    if (!valued)
        strbuf_puts(buffer, "null");
    else if (measure->kind == MEASURE_WORDS)
        print_words(buffer, measure);
    else
        scalar_put_number(buffer, measure->value);
    bool measured = valued && measure->kind == MEASURE_NUMBER;
    if (measure->unit || measured)
        print_named(buffer, "unit", measure->unit);
    if (valued)
        print_evidence(buffer, measure);
    if (measure->method || measured)
        print_named(buffer, "method", measure->method);
    print_status(buffer, measure, status);
    if (valued && measure->bound == MEASURE_AT_LEAST)
        strbuf_puts(buffer, ", bound: at_least");
    for (size_t i = 0; i < measure->notes.count; i++) {
        strbuf_puts(buffer, ", ");
        print_pair(buffer, &measure->notes.items[i]);
    }
    strbuf_puts(buffer, "}");
}

/* A measure, and the part of its metric below the group being printed. */
struct printed_measure {
    const struct measure *measure;
    const char *rest;
    bool done;
};

enum { NESTING_MAX = 6 };

static bool begins_with(const char *rest, const char *word, size_t length)
{
    return strncmp(rest, word, length) == 0 && rest[length] == '.' && rest[length + 1];
}

/* Length of the name of the group at the beginning of `rest`. 0 if `rest` is a key itself: it has
 * no further dot, or there is a measure named like the group ("a" beside "a.b"). */
static size_t group_length(const struct printed_measure *entries, size_t count, const char *rest,
                           int level)
{
    size_t length = strcspn(rest, ".");
    if (level >= NESTING_MAX || !begins_with(rest, rest, length))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(entries[i].rest, rest, length) == 0 && !entries[i].rest[length])
            return 0;
    return length;
}

static void print_level(struct strbuf *buffer, struct printed_measure *entries, size_t count,
                        int indent, int level);

static void print_group(struct strbuf *buffer, struct printed_measure *entries, size_t count,
                        const char *name, size_t length, int indent, int level)
{
    struct printed_measure *members = mem_array(count, sizeof *members);
    char *key = str_copy_n(name, length);
    if (!members || !key) {
        buffer->failed = true;
        goto out;
    }
    size_t member_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!begins_with(entries[i].rest, name, length))
            continue;
        members[member_count++] =
            (struct printed_measure){entries[i].measure, entries[i].rest + length + 1};
        entries[i].done = true;
    }
    strbuf_printf(buffer, "%*s", indent, "");
    scalar_put_text(buffer, key);
    strbuf_puts(buffer, ":\n");
    print_level(buffer, members, member_count, indent + 2, level + 1);
out:
    free(members);
    free(key);
}

static void print_level(struct strbuf *buffer, struct printed_measure *entries, size_t count,
                        int indent, int level)
{
    for (size_t i = 0; i < count && !buffer->failed; i++) {
        if (entries[i].done)
            continue;
        const char *rest = entries[i].rest;
        size_t length = group_length(entries, count, rest, level);
        if (length) {
            print_group(buffer, entries, count, rest, length, indent, level);
            continue;
        }
        strbuf_printf(buffer, "%*s", indent, "");
        scalar_put_text(buffer, rest);
        strbuf_puts(buffer, ": ");
        print_measure(buffer, entries[i].measure);
        strbuf_puts(buffer, "\n");
    }
}

void inventory_print_measures(struct strbuf *buffer, const struct measures *measures, int indent)
{
    if (!measures->count) {
        strbuf_puts(buffer, " {}\n");
        return;
    }
    struct printed_measure *entries = mem_array(measures->count, sizeof *entries);
    if (!entries) {
        buffer->failed = true;
        return;
    }
    for (size_t i = 0; i < measures->count; i++)
        entries[i] = (struct printed_measure){&measures->items[i], measures->items[i].metric};
    strbuf_puts(buffer, "\n");
    print_level(buffer, entries, measures->count, indent, 0);
    free(entries);
}
