/* Expected values of a model, from its specification or from an acceptance test. */
#ifndef GPUMEMTOPO_JUDGE_REFERENCE_H
#define GPUMEMTOPO_JUDGE_REFERENCE_H

#include <stddef.h>

#include "base/err.h"

enum reference_kind {
    REFERENCE_HARDWARE, /* a fact that the driver reports: at least this */
    REFERENCE_PEAK,     /* the specified peak of a metric; healthy GPUs reach a share of it */
    REFERENCE_VALUE,    /* the value of a metric, measured on a healthy GPU */
};

struct reference_entry {
    enum reference_kind kind;
    char *key; /* "sms", "main.bandwidth.read" */
    double value;
    double tolerance; /* REFERENCE_VALUE: share by which a GPU may be worse */
    char *source;
};

struct judge_reference {
    char **names; /* that the driver reports for the model */
    size_t name_count;
    struct reference_entry *entries;
    size_t entry_count;
};

/* Empty if zero-initialised. */
struct judge_references {
    struct judge_reference *items;
    size_t count, capacity;
};

/* Reads all *.yaml files of a folder. -ENOENT or another errno if the folder cannot be read;
 * -EINVAL with the position for a bad file, or for a model that two files name. Released with
 * judge_references_fini. */
int judge_references_read(const char *folder, struct judge_references *out_references,
                          struct err *err);
void judge_references_fini(struct judge_references *references);

/* The reference of a model; NULL if there is none. */
const struct judge_reference *judge_references_find(const struct judge_references *references,
                                                    const char *name);

#endif
