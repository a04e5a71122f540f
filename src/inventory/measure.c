/* Measured attributes, kept in the order in which they were first added. */
#include "inventory/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/names.h"

const char *const measure_status_names[] = {"ok", "noisy", "unsupported", "failed", NULL};

const char *measure_status_name(enum measure_status status)
{
    return measure_status_names[status];
}

bool measure_status_valued(enum measure_status status)
{
    return status == MEASURE_OK || status == MEASURE_NOISY;
}

static struct measure *find(const struct measures *measures, const char *metric)
{
    for (size_t i = 0; i < measures->count; i++)
        if (strcmp(measures->items[i].metric, metric) == 0)
            return &measures->items[i];
    return NULL;
}

/* Takes ownership of *measure; on failure it is released. */
static struct measure *put(struct measures *measures, struct measure *measure)
{
    struct measure *slot = find(measures, measure->metric);
    if (slot) {
        measure_fini(slot);
    } else {
        struct measure *grown =
            mem_grow(measures->items, &measures->capacity, measures->count + 1, sizeof *grown);
        if (!grown) {
            measure_fini(measure);
            return NULL;
        }
        measures->items = grown;
        slot = &grown[measures->count++];
    }
    *slot = *measure;
    return slot;
}

/* Adds a copy of `shape`, strings and words included. */
static struct measure *add_copy(struct measures *measures, const struct measure *shape)
{
    struct measure copy;
    if (measure_copy(&copy, shape))
        return NULL;
    return put(measures, &copy);
}

struct measure *measures_add(struct measures *measures, const char *metric, double value,
                             const char *unit, const char *method)
{
    return add_copy(measures, &(struct measure){.metric = (char *)metric,
                                                .value = value,
                                                .unit = (char *)unit,
                                                .method = (char *)method});
}

struct measure *measures_add_missing(struct measures *measures, const char *metric,
                                     enum measure_status status, const char *reason)
{
    return add_copy(
        measures,
        &(struct measure){.metric = (char *)metric, .status = status, .reason = (char *)reason});
}

struct measure *measures_add_words(struct measures *measures, const char *metric,
                                   const char *const *words, size_t count, const char *method)
{
    return add_copy(measures, &(struct measure){.metric = (char *)metric,
                                                .kind = MEASURE_WORDS,
                                                .words = (char **)words,
                                                .word_count = count,
                                                .method = (char *)method});
}

int measure_set_status(struct measure *measure, enum measure_status status, const char *reason)
{
    char *copy = NULL;
    if (str_copy_to(&copy, reason))
        return -ENOMEM;
    free(measure->reason);
    measure->reason = copy;
    measure->status = status;
    return 0;
}

const struct measure *measures_get(const struct measures *measures, const char *metric)
{
    return find(measures, metric);
}

bool measure_same_memory(const char *metric, const char *other)
{
    size_t length = strcspn(metric, ".");
    return length == strcspn(other, ".") && strncmp(metric, other, length) == 0;
}

bool measures_value(const struct measures *measures, const char *metric, double *out_value)
{
    const struct measure *measure = find(measures, metric);
    if (!measure || measure->kind != MEASURE_NUMBER || !measure_status_valued(measure->status))
        return false;
    *out_value = measure->value;
    return true;
}

static bool copy_words(struct measure *to, const struct measure *from)
{
    to->words = from->word_count ? mem_array(from->word_count, sizeof *to->words) : NULL;
    if (from->word_count && !to->words)
        return false;
    for (; to->word_count < from->word_count; to->word_count++)
        if (str_copy_to(&to->words[to->word_count], from->words[to->word_count]))
            return false;
    return true;
}

int measure_copy(struct measure *to, const struct measure *from)
{
    struct measure copy = *from;
    copy.metric = copy.reason = copy.unit = copy.method = NULL;
    copy.words = NULL;
    copy.word_count = 0;
    memset(&copy.notes, 0, sizeof copy.notes);
    if (str_copy_to(&copy.metric, from->metric) || str_copy_to(&copy.reason, from->reason) ||
        str_copy_to(&copy.unit, from->unit) || str_copy_to(&copy.method, from->method) ||
        !copy_words(&copy, from) || facts_copy(&copy.notes, &from->notes)) {
        measure_fini(&copy);
        return -ENOMEM;
    }
    *to = copy;
    return 0;
}

int measures_copy(struct measures *to, const struct measures *from)
{
    for (size_t i = 0; i < from->count; i++) {
        if (!add_copy(to, &from->items[i])) {
            measures_fini(to);
            return -ENOMEM;
        }
    }
    return 0;
}

void measure_fini(struct measure *measure)
{
    free(measure->metric);
    free(measure->reason);
    free(measure->unit);
    free(measure->method);
    for (size_t i = 0; i < measure->word_count; i++)
        free(measure->words[i]);
    free(measure->words);
    facts_fini(&measure->notes);
    memset(measure, 0, sizeof *measure);
}

void measure_fini_lists(struct measure *measure)
{
    free(measure->words);
    facts_fini_list(&measure->notes);
    memset(measure, 0, sizeof *measure);
}

void measures_fini_lists(struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++)
        measure_fini_lists(&measures->items[i]);
    free(measures->items);
    memset(measures, 0, sizeof *measures);
}

void measures_fini(struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++)
        measure_fini(&measures->items[i]);
    free(measures->items);
    memset(measures, 0, sizeof *measures);
}

double measure_digits(double value, int digits)
{
    if (!isfinite(value) || value == 0 || value == floor(value))
        return value;
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    double rounded = value;
    return str_parse_f64(text, &rounded) ? value : rounded;
}

void measure_round(struct measure *measure)
{
    measure->value = measure_digits(measure->value, 6);
    measure->spread = measure_digits(measure->spread, 3);
    measure->confidence = round(measure->confidence * 1e4) / 1e4;
    for (size_t i = 0; i < measure->notes.count; i++)
        if (measure->notes.items[i].kind == FACT_REAL)
            measure->notes.items[i].real = measure_digits(measure->notes.items[i].real, 6);
}

static int set_spread(const struct measure *m, struct facts *out_numbers)
{
    char *name = str_format("%s" MEASURE_SPREAD, m->metric);
    int rc = name ? facts_set_real(out_numbers, name, m->spread) : -ENOMEM;
    free(name);
    return rc;
}

int measures_numbers(const struct measures *measures, struct facts *out_numbers)
{
    for (size_t i = 0; i < measures->count; i++) {
        const struct measure *m = &measures->items[i];
        if (m->kind != MEASURE_NUMBER || m->bound != MEASURE_EXACT || !isfinite(m->value) ||
            !measure_status_valued(m->status))
            continue;
        if (m->status == MEASURE_OK && facts_set_real(out_numbers, m->metric, m->value))
            return -ENOMEM;
        if (isfinite(m->spread) && set_spread(m, out_numbers))
            return -ENOMEM;
    }
    return 0;
}
