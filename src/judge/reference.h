/* What is known of a model from outside: its specification, or a site's own acceptance test. */
#ifndef GPUMEMTOPO_JUDGE_REFERENCE_H
#define GPUMEMTOPO_JUDGE_REFERENCE_H

#include <stddef.h>

#include "base/err.h"

enum reference_kind {
    REFERENCE_HARDWARE, /* a fact that the driver reports: at least this */
    REFERENCE_PEAK,     /* of a metric, as specified; a share of it is reached */
    REFERENCE_VALUE,    /* of a metric, as measured on a healthy GPU */
};

struct reference_entry {
    enum reference_kind kind;
    char *key; /* "sms", "main.bandwidth.read" */
    double value;
    double tolerance; /* REFERENCE_VALUE: share that it may be worse by */
    char *source;
};

struct judge_reference {
    char **names; /* as the driver names the model */
    size_t name_count;
    struct reference_entry *entries;
    size_t entry_count;
};

/* Zero-initialised is empty. */
struct judge_references {
    struct judge_reference *items;
    size_t count, capacity;
};

/* Reads all *.yaml files of a folder. -ENOENT and the like for the folder; -EINVAL with position
 * for a bad file, and for a model that two files name. Released with judge_references_fini. */
int judge_references_read(const char *folder, struct judge_references *out_references,
                          struct err *err);
void judge_references_fini(struct judge_references *references);

/* NULL: nothing is known of the model. */
const struct judge_reference *judge_references_find(const struct judge_references *references,
                                                    const char *name);

#endif
