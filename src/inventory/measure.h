/* One measured attribute of a memory: value, unit, status, confidence, sample count, method. */
#ifndef GPUMEMTOPO_INVENTORY_MEASURE_H
#define GPUMEMTOPO_INVENTORY_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/schema.h"

enum measure_status {
    MEASURE_OK,
    MEASURE_NOISY,       /* has a value, but repetitions disagree */
    MEASURE_UNSUPPORTED, /* this GPU has no such thing */
    MEASURE_FAILED,      /* could not be obtained */
};

enum measure_kind {
    MEASURE_NUMBER,
    MEASURE_WORDS, /* a list of words: which memories share storage */
};

extern const char *const measure_status_names[5]; /* by status, then NULL */

/* Whether the value is exact or a lower bound. */
enum measure_bound { MEASURE_EXACT, MEASURE_AT_LEAST };
extern const char *const measure_bound_names[3];

struct measure {
    char *metric; /* "l1_data.size", "main.bandwidth.read" */
    enum measure_kind kind;
    enum measure_status status;
    char *reason; /* NULL, or why the status is not ok */
    double value; /* meaningless when unsupported or failed */
    enum measure_bound bound;
    char *unit;        /* "B", "cycles", "GB/s", "" for counts; NULL for words */
    double spread;     /* of the repetitions on this GPU: half-width, in `unit` */
    double confidence; /* 0..1; NaN: reported, counted, a name, or measured only once */
    uint32_t n;        /* repetitions or samples behind the value, on one GPU; 0: not known */
    uint32_t gpus;     /* of a model: its GPUs that have the figure; 0: a GPU's own result */
    char *method;      /* "chase+cpd", ... */
    char **words;
    size_t word_count;
    struct facts notes; /* reported, nominal, carveout, ns, ...: further figures beside the value */
};

extern const struct schema measure_schema;

/* Ordered as added; zero-initialised is empty. */
struct measures {
    struct measure *items;
    size_t count;
    size_t capacity;
};

/* The row of a member of this type. */
#define FIELD_MEASURES(s, member)                                                                  \
    .type = SCHEMA_STRUCT, .of = &measure_schema, .list = true, .grows = true,                     \
    SCHEMA_ITEMS(s, member.items, member.count, struct measure)

/* Measures as a nested mapping, split at the dots of the metrics ("l1_data.size"). */
void measures_print(struct writer *writer, const char *key, const struct measures *measures);
int measures_read(const struct yaml_node *node, struct measures *measures, struct err *err);

/* Adds a number (or, with measures_add_missing, the lack of one) and returns the entry, so that the
 * caller can set further fields. The pointer is valid until the next add. An
 * existing entry of that metric is replaced. Strings are copied. Until the caller says otherwise,
 * it was measured once: no confidence, n is 1. */
struct measure *measures_add(struct measures *measures, const char *metric, double value,
                             const char *unit, const char *method);
struct measure *measures_add_missing(struct measures *measures, const char *metric,
                                     enum measure_status status, const char *reason);
struct measure *measures_add_words(struct measures *measures, const char *metric,
                                   const char *const *words, size_t count, const char *method);

/* Sets status and reason of an entry. */
void measure_set_status(struct measure *measure, enum measure_status status, const char *reason);

/* Whether two metrics are of one memory: "main.latency" and "main.bandwidth.read". */
bool measure_same_memory(const char *metric, const char *other);

const struct measure *measures_get(const struct measures *measures, const char *metric);

/* True and the value if the metric exists, is a number, and is ok or noisy. */
bool measures_value(const struct measures *measures, const char *metric, double *out_value);

void measure_fini(struct measure *measure);
void measures_fini(struct measures *measures);

/* Removes meaningless digits: value and notes are rounded to six significant digits (whole numbers
 * stay), the spread to three, the confidence to four decimals. Rounding comes before judging, so
 * that the file has what was judged. */
void measure_round(struct measure *measure);

/* The half-width in which other runs lie, 93 to 100 % of them on real cards (METHOD.md, "Error"); 0
 * if the repetitions were equal. */
double measure_error(double value, double spread);

/* Rounds to `digits` significant digits; whole numbers, NaN and infinities stay. */
double measure_digits(double value, int digits);

/* Notes values over another quantity as two lists: `key`, and `key`_at with that quantity. */
void measure_note_pairs(struct measure *measure, const char *key, const double *at,
                        const double *values, size_t count);

/* The unit of the rate of an SM: additions, multiplications and what else a lane does. A
 * multiply-add is two. */
#define MEASURE_OPERATIONS "op/cycle"

/* The end of the name of a figure's spread, as a metric of its own. */
#define MEASURE_SPREAD ".spread"

/* Sets a fact for every measure that is an exact number with status ok, and one for its spread,
 * also if it is noisy. */
void measures_numbers(const struct measures *measures, struct facts *out_numbers);

/* Whether the driver reports the value, and nothing measures it. */
bool measure_is_reported(const struct measure *measure);
extern const char measure_reported[]; /* the method of such a measure */

/* True for the statuses that have a value: ok and noisy. */
bool measure_status_valued(enum measure_status status);

/* "ok", "noisy", "unsupported", "failed" */
const char *measure_status_name(enum measure_status status);

#endif
