/* Measures as a nested mapping: "main.bandwidth.read" is `read` of `bandwidth` of `main`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/measure.h"

/* A measure, and the part of its metric below the group being printed. */
struct printed_measure {
    const struct measure *measure;
    const char *rest;
    bool done;
};

enum { NESTING_MAX = 6 };

static bool is_in_group(const char *rest, const char *group, size_t length)
{
    return strncmp(rest, group, length) == 0 && rest[length] == '.' && rest[length + 1];
}

/* Length of the name of the group at the beginning of `rest`. 0 if `rest` is a key itself: it has
 * no further dot, or there is a measure named like the group ("a" beside "a.b"). */
static size_t group_length(const struct printed_measure *entries, size_t count, const char *rest,
                           int level)
{
    size_t length = strcspn(rest, ".");
    if (level >= NESTING_MAX || !is_in_group(rest, rest, length))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(entries[i].rest, rest, length) == 0 && !entries[i].rest[length])
            return 0;
    return length;
}

/* A value that is not finite is printed as failed: null needs a status that explains it. */
static void print_measure(struct writer *writer, const char *key, const struct measure *measure)
{
    static char not_finite[] = "not a finite number";
    struct measure m = *measure;
    if (m.kind == MEASURE_NUMBER && measure_status_valued(m.status) && !isfinite(m.value)) {
        m.status = MEASURE_FAILED;
        m.reason = m.reason ? m.reason : not_finite;
    }
    if (!(m.confidence >= 0 && m.confidence <= 1))
        m.confidence = NAN;
    schema_print(&measure_schema, writer, key, &m);
}

static void print_measure_group(struct writer *writer, struct printed_measure *entries,
                                size_t count, int level)
{
    for (size_t i = 0; i < count; i++) {
        const char *rest = entries[i].rest;
        size_t length = entries[i].done ? 0 : group_length(entries, count, rest, level);
        if (entries[i].done)
            continue;
        if (!length) {
            print_measure(writer, rest, entries[i].measure);
            continue;
        }
        struct printed_measure *members = mem_array(count, sizeof *members);
        size_t member_count = 0;
        for (size_t k = 0; k < count; k++) {
            if (!is_in_group(entries[k].rest, rest, length))
                continue;
            members[member_count++] =
                (struct printed_measure){entries[k].measure, entries[k].rest + length + 1};
            entries[k].done = true;
        }
        char *group = str_copy_n(rest, length);
        writer_map(writer, group, WRITER_BLOCK);
        print_measure_group(writer, members, member_count, level + 1);
        writer_end(writer);
        free(group);
        free(members);
    }
}

void measures_print(struct writer *writer, const char *key, const struct measures *measures)
{
    struct printed_measure *entries = mem_array(measures->count, sizeof *entries);
    for (size_t i = 0; i < measures->count; i++)
        entries[i] = (struct printed_measure){&measures->items[i], measures->items[i].metric};
    writer_map(writer, key, measures->count ? WRITER_BLOCK : WRITER_FLOW);
    print_measure_group(writer, entries, measures->count, 0);
    writer_end(writer);
    free(entries);
}

/* What cannot be said of one key alone. */
static int check_measure(const struct yaml_node *node, const struct measure *measure,
                         struct err *err)
{
    static const char *const needed[] = {"unit", "method"};
    bool valued = measure_status_valued(measure->status);
    bool number = measure->kind == MEASURE_NUMBER;
    if (number && valued && isnan(measure->value))
        return yaml_error(node, err, "a value that is null needs a status that says why");
    if (!valued && !isnan(measure->value))
        return yaml_error(node, err, "a measure that is %s has no value: expected null",
                          measure_status_name(measure->status));
    for (size_t i = 0; number && valued && i < COUNT_OF(needed); i++)
        if (!yaml_get(node, needed[i]))
            return yaml_error(node, err, "key \"%s\" is missing", needed[i]);
    return 0;
}

static int read_measure(const char *metric, const struct yaml_node *node, struct measures *measures,
                        struct err *err)
{
    if (measures_get(measures, metric))
        return yaml_error(node, err, "the measure \"%.60s\" occurs twice", metric);
    measures->items = mem_grow(measures->items, &measures->capacity, measures->count + 1,
                               sizeof *measures->items);
    struct measure *measure = &measures->items[measures->count++];
    *measure = (struct measure){.metric = str_copy(metric), .value = NAN, .confidence = NAN};
    if (yaml_kind(node) == YAML_SEQUENCE) { /* so in files that have no `gpus` */
        measure->kind = MEASURE_WORDS;
        return schema_read_texts(node, &measure->words, &measure->word_count, err);
    }
    int rc = schema_read(&measure_schema, node, measure, err);
    if (!measure->gpus) { /* a file in which n was the number of GPUs */
        measure->gpus = measure->n;
        measure->n = 0;
    }
    return rc ? rc : check_measure(node, measure, err);
}

/* A measure contains scalars, or a list as its value; a group contains only measures and groups. */
static bool is_measure(const struct yaml_node *node)
{
    if (yaml_kind(node) != YAML_MAPPING)
        return true;
    const struct yaml_node *value = yaml_get(node, "value");
    if (value && yaml_kind(value) == YAML_SEQUENCE)
        return true;
    for (size_t i = 0; i < yaml_count(node); i++)
        if (yaml_kind(yaml_at(node, i)) == YAML_SCALAR)
            return true;
    return false;
}

static int read_measure_group(const struct yaml_node *group, const char *prefix,
                              struct measures *measures, struct err *err)
{
    int rc = yaml_expect(group, YAML_MAPPING, err);
    for (size_t i = 0; !rc && i < yaml_count(group); i++) {
        const struct yaml_node *node = yaml_at(group, i);
        char *metric = str_format("%s%s%s", prefix, *prefix ? "." : "", yaml_key(group, i));
        if (yaml_kind(node) == YAML_SCALAR)
            rc = yaml_error(node, err, "%.60s: expected a measure {value: ...}", metric);
        else if (yaml_kind(node) == YAML_MAPPING && !yaml_count(node))
            rc = yaml_error(node, err, "%.60s: expected a measure, found an empty mapping", metric);
        else if (is_measure(node))
            rc = read_measure(metric, node, measures, err);
        else
            rc = read_measure_group(node, metric, measures, err);
        free(metric);
    }
    return rc;
}

int measures_read(const struct yaml_node *node, struct measures *measures, struct err *err)
{
    return read_measure_group(node, "", measures, err);
}
