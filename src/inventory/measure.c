/* Measured attributes, kept in the order in which they were first added. */
#include "inventory/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

const char *const measure_status_names[] = {"ok", "noisy", "unsupported", "failed", NULL};
static const char *const measure_kind_names[] = {"number", "words", NULL};
const char *const measure_bound_names[] = {"exact", "at_least", NULL};

/* A number with status ok or noisy must be finite, and its spread finite and not negative. */
static bool measure_is_sound(const void *object)
{
    const struct measure *m = object;
    return m->kind != MEASURE_NUMBER || !measure_status_valued(m->status) ||
           (isfinite(m->value) && isfinite(m->spread) && m->spread >= 0);
}

/* An invalid measure is sent as failed; otherwise the reader would refuse the whole GPU. */
static void measure_repair(void *object)
{
    static char not_finite[] = "not a finite number";
    struct measure *m = object;
    if (!measure_is_sound(m)) {
        m->status = MEASURE_FAILED;
        m->reason = not_finite;
    }
    if (!(m->confidence >= 0 && m->confidence <= 1))
        m->confidence = NAN;
}

/* The number, the words, or null. */
static void measure_print_value(struct writer *writer, const char *key, const void *object)
{
    const struct measure *m = object;
    bool valued = measure_status_valued(m->status);
    if (!valued || m->kind == MEASURE_NUMBER) {
        writer_number(writer, key, valued ? m->value : NAN);
        return;
    }
    writer_list(writer, key, WRITER_FLOW);
    for (size_t i = 0; i < m->word_count; i++)
        writer_text(writer, NULL, m->words[i]);
    writer_end(writer);
}

static int measure_read_value(const struct yaml_node *node, void *object, struct err *err)
{
    struct measure *m = object;
    if (yaml_kind(node) != YAML_SEQUENCE)
        return schema_read_number(node, &m->value, err);
    m->kind = MEASURE_WORDS;
    return schema_read_texts(node, &m->words, &m->word_count, err);
}

static const struct schema_form measure_value_form = {measure_print_value, measure_read_value};

/* What can happen between two runs and does not show inside one (where memory lies, which shape of
 * a stream is chosen), as a share; and how many half ranges of three rounds cover the rest. Of
 * seven H200s with ten runs each, every figure stays within this in 97 % of the runs or more,
 * except host.latency (93 %). */
static const double BETWEEN_RUNS = 0.01, SPREADS = 3;

double measure_error(double value, double spread)
{
    return spread > 0 ? fmax(SPREADS * spread, BETWEEN_RUNS * fabs(value)) : 0;
}

static void measure_print_error(struct writer *writer, const char *key, const void *object)
{
    const struct measure *m = object;
    writer_number(writer, key, measure_digits(measure_error(m->value, m->spread), 3));
}

/* It follows from value and spread. */
static int measure_read_error(const struct yaml_node *node, void *object, struct err *err)
{
    double ignored;
    (void)object;
    return schema_read_number(node, &ignored, err);
}

static const struct schema_form measure_error_form = {measure_print_error, measure_read_error};

/* Evidence is written with a value only: a spread if there were repetitions, a confidence if it can
 * be derived. */
static bool measure_shows(const void *object, const struct schema_field *field)
{
    const struct measure *m = object;
    bool valued = measure_status_valued(m->status);
    bool number = valued && m->kind == MEASURE_NUMBER;
    bool confident = valued && !isnan(m->confidence);
    if (field->form == &measure_error_form)
        return number && confident && m->spread > 0;
    switch (field->offset) {
    case offsetof(struct measure, unit):
        return m->unit || number;
    case offsetof(struct measure, spread):
        return number && (confident || m->spread != 0);
    case offsetof(struct measure, confidence):
        return confident;
    case offsetof(struct measure, n):
        return valued && m->n;
    case offsetof(struct measure, gpus):
        return valued && m->gpus;
    case offsetof(struct measure, method):
        return m->method || number;
    case offsetof(struct measure, status):
        return m->status != MEASURE_OK;
    case offsetof(struct measure, reason):
        return m->status != MEASURE_OK || m->reason;
    case offsetof(struct measure, bound):
        return valued && m->bound == MEASURE_AT_LEAST;
    default:
        return true;
    }
}

static const struct schema_field measure_fields[] = {
    {"metric", FIELD_TEXT(struct measure, metric), .flags = SCHEMA_KEY | SCHEMA_WIRE_ONLY},
    {"kind", FIELD_ENUM(struct measure, kind, measure_kind_names), .flags = SCHEMA_WIRE_ONLY},
    {"words", FIELD_TEXTS(struct measure, words, word_count), .flags = SCHEMA_WIRE_ONLY,
     .max = WIRE_ITEMS_MAX},
    {"value", FIELD_F64(struct measure, value), .form = &measure_value_form,
     .flags = SCHEMA_NULL | SCHEMA_ANY,
     .json_schema = "\"anyOf\": [{\"$ref\": \"#/$defs/figure_or_null\"}, {\"$ref\": "
                    "\"#/$defs/words\"}]",
     .words = "the value: a number, or a list of words"},
    {"unit", FIELD_TEXT(struct measure, unit), .flags = SCHEMA_NULL | SCHEMA_OPTIONAL,
     .words = "B, cycles, GB/s, ...; empty for counts"},
    {"spread", FIELD_F64(struct measure, spread),
     .flags = SCHEMA_NULL | SCHEMA_OPTIONAL | SCHEMA_ANY,
     .json_schema = "\"$ref\": \"#/$defs/figure_or_null\"",
     .words = "half-width, in the unit: of a GPU's own repetitions; of several GPUs, how far they "
              "lie apart; absent: measured once"},
    {"error", FIELD_F64(struct measure, spread), .form = &measure_error_form,
     .flags = SCHEMA_OPTIONAL | SCHEMA_FILE_ONLY,
     .words = "half-width in which other runs lie (95 %); absent: repetitions were equal, or there "
              "were none"},
    {"confidence", FIELD_F64(struct measure, confidence), .flags = SCHEMA_NULL | SCHEMA_OPTIONAL,
     .max = 1, .json_schema = "\"type\": \"number\", \"minimum\": 0, \"maximum\": 1",
     .words = "that the value is right; absent (in older files null): the driver reports it, it is "
              "a count or a name, or it was measured once"},
    {"n", FIELD_U32(struct measure, n), .flags = SCHEMA_OPTIONAL,
     .words = "repetitions, or samples, behind the value of a GPU (the median of its GPUs); in "
              "files without `gpus`: the GPUs"},
    {"gpus", FIELD_U32(struct measure, gpus), .flags = SCHEMA_OPTIONAL,
     .words = "GPUs of the model that have the figure"},
    {"method", FIELD_TEXT(struct measure, method), .flags = SCHEMA_NULL | SCHEMA_OPTIONAL,
     .words = "how it was measured"},
    {"status", FIELD_ENUM(struct measure, status, measure_status_names), .flags = SCHEMA_OPTIONAL,
     .words = "absent: ok"},
    {"reason", FIELD_TEXT(struct measure, reason), .flags = SCHEMA_NULL | SCHEMA_OPTIONAL,
     .privacy = SCHEMA_PRIVATE_TEXT, .words = "why the status is not ok"},
    {"bound", FIELD_ENUM(struct measure, bound, measure_bound_names), .flags = SCHEMA_OPTIONAL,
     .min = MEASURE_AT_LEAST, .max = MEASURE_AT_LEAST,
     .words = "the value is a lower bound; absent: it is exact"},
    {"notes", FIELD_FACTS(struct measure, notes), .flags = SCHEMA_INLINE | SCHEMA_LISTS,
     .privacy = SCHEMA_PRIVATE_TEXT,
     .words = "any further keys are notes: reported, nominal, carveout, ns and the like"},
};
const struct schema measure_schema = {
    .name = "measure",
    .size = sizeof(struct measure),
    SCHEMA_FIELDS(measure_fields),
    .words = "One measured attribute of a memory.",
    .style = WRITER_FLOW,
    .rules = "\"allOf\": [{\"if\": {\"properties\": {\"status\": {\"enum\": [\"unsupported\", "
             "\"failed\"]}}, \"required\": [\"status\"]}, \"then\": {\"properties\": {\"value\": "
             "{\"type\": \"null\"}}, \"required\": [\"reason\"]}, \"else\": {\"properties\": "
             "{\"value\": {\"type\": [\"number\", \"array\"]}}}}, {\"if\": {\"properties\": "
             "{\"value\": {\"type\": \"number\"}}}, \"then\": {\"required\": [\"unit\", "
             "\"method\"]}}]",
    .shows = measure_shows,
    .repair = measure_repair,
    .sound = measure_is_sound,
};

const char *measure_status_name(enum measure_status status)
{
    return measure_status_names[status];
}

bool measure_status_valued(enum measure_status status)
{
    return status == MEASURE_OK || status == MEASURE_NOISY;
}

const char measure_reported[] = "reported";

bool measure_is_reported(const struct measure *measure)
{
    return str_equal(measure->method, measure_reported);
}

static struct measure *measures_find(const struct measures *measures, const char *metric)
{
    for (size_t i = 0; i < measures->count; i++)
        if (strcmp(measures->items[i].metric, metric) == 0)
            return &measures->items[i];
    return NULL;
}

/* Adds a copy of `shape`, strings and words included. */
static struct measure *measures_add_copy(struct measures *measures, const struct measure *shape)
{
    struct measure copy;
    schema_copy(&measure_schema, &copy, shape);
    struct measure *slot = measures_find(measures, copy.metric);
    if (slot) {
        measure_fini(slot);
    } else {
        measures->items = mem_grow(measures->items, &measures->capacity, measures->count + 1,
                                   sizeof *measures->items);
        slot = &measures->items[measures->count++];
    }
    *slot = copy;
    return slot;
}

struct measure *measures_add(struct measures *measures, const char *metric, double value,
                             const char *unit, const char *method)
{
    return measures_add_copy(measures, &(struct measure){.metric = (char *)metric,
                                                         .value = value,
                                                         .unit = (char *)unit,
                                                         .confidence = NAN,
                                                         .n = 1,
                                                         .method = (char *)method});
}

struct measure *measures_add_missing(struct measures *measures, const char *metric,
                                     enum measure_status status, const char *reason)
{
    return measures_add_copy(measures, &(struct measure){.metric = (char *)metric,
                                                         .status = status,
                                                         .confidence = NAN,
                                                         .reason = (char *)reason});
}

struct measure *measures_add_words(struct measures *measures, const char *metric,
                                   const char *const *words, size_t count, const char *method)
{
    return measures_add_copy(measures, &(struct measure){.metric = (char *)metric,
                                                         .kind = MEASURE_WORDS,
                                                         .words = (char **)words,
                                                         .word_count = count,
                                                         .confidence = NAN,
                                                         .n = 1,
                                                         .method = (char *)method});
}

void measure_set_status(struct measure *measure, enum measure_status status, const char *reason)
{
    char *copy = str_copy(reason);
    free(measure->reason);
    measure->reason = copy;
    measure->status = status;
}

const struct measure *measures_get(const struct measures *measures, const char *metric)
{
    return measures_find(measures, metric);
}

bool measure_same_memory(const char *metric, const char *other)
{
    size_t length = strcspn(metric, ".");
    return length == strcspn(other, ".") && strncmp(metric, other, length) == 0;
}

bool measures_value(const struct measures *measures, const char *metric, double *out_value)
{
    const struct measure *measure = measures_find(measures, metric);
    if (!measure || measure->kind != MEASURE_NUMBER || !measure_status_valued(measure->status))
        return false;
    *out_value = measure->value;
    return true;
}

void measure_fini(struct measure *measure)
{
    schema_fini(&measure_schema, measure);
}

void measures_fini(struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++)
        measure_fini(&measures->items[i]);
    free(measures->items);
    memset(measures, 0, sizeof *measures);
}

void measure_note_pairs(struct measure *measure, const char *key, const double *at,
                        const double *values, size_t count)
{
    char *at_key = str_format("%s_at", key);
    facts_set_numbers(&measure->notes, at_key, at, count);
    facts_set_numbers(&measure->notes, key, values, count);
    free(at_key);
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

void measures_numbers(const struct measures *measures, struct facts *out_numbers)
{
    for (size_t i = 0; i < measures->count; i++) {
        const struct measure *m = &measures->items[i];
        if (m->kind != MEASURE_NUMBER || m->bound != MEASURE_EXACT || !isfinite(m->value) ||
            !measure_status_valued(m->status))
            continue;
        if (m->status == MEASURE_OK)
            facts_set_real(out_numbers, m->metric, m->value);
        if (isfinite(m->spread)) {
            char *name = str_format("%s" MEASURE_SPREAD, m->metric);
            facts_set_real(out_numbers, name, m->spread);
            free(name);
        }
    }
}
