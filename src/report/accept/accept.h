/* Compares an inventory with an order: what is missing, other, below, faulty, or not shown. */
#ifndef GPUMEMTOPO_REPORT_ACCEPT_ACCEPT_H
#define GPUMEMTOPO_REPORT_ACCEPT_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "report/accept/order.h"

enum accept_class {
    ACCEPT_MISSING,   /* fewer nodes or GPUs than ordered */
    ACCEPT_OTHER,     /* something else than ordered, or more */
    ACCEPT_BELOW,     /* a fact or figure is certainly worse than ordered */
    ACCEPT_FAULTY,    /* the GPU or node is alerted or drained */
    ACCEPT_NOT_SHOWN, /* not measured, or not certain enough to decide */
    ACCEPT_CLASSES
};

/* "missing", "not shown", ... */
const char *accept_class_name(enum accept_class class);

/* Texts that are not owned point into order and inventory. */
struct accept_finding {
    enum accept_class class;
    const char *node, *uuid, *model; /* NULL: does not apply */
    int32_t index;                   /* of the GPU on its node; -1: does not apply */
    const char *what;                /* figure, fact, "GPUs", ... */
    char *ordered, *found, *reason;  /* owned; NULL: nothing to say */
};

/* A figure of the GPUs of one model that have it with certainty. */
struct accept_figure {
    const struct order_figure *order;
    const char *unit; /* NULL: not known */
    size_t count;
    double least, median, most; /* NaN if there is none */
    double spread; /* (largest - smallest) / median of a board part, the widest one; NaN: none */
};

struct accept_model {
    const struct order_model *order;
    size_t found;    /* GPUs of this model that belong to the order */
    size_t measured; /* completely, and not while another process used them */
    struct accept_figure *figures;
};

struct accept {
    const struct order *order;
    const struct inventory *inventory;
    struct accept_finding *findings; /* by class, then as found */
    size_t finding_count, finding_room;
    size_t counts[ACCEPT_CLASSES];
    size_t met;                  /* comparisons without a finding */
    size_t ignored_nodes;        /* on nodes that are no part of the order */
    size_t allowed_outliers;     /* outliers of verdicts that the order allows */
    struct accept_model *models; /* as in the order */
};

/* order and inventory must outlive the result, which is released with accept_fini. -EINVAL if the
 * order names nodes and the inventory has pseudonyms. */
int accept_compare(const struct order *order, const struct inventory *inventory,
                   struct accept *out_accept, struct err *err);
void accept_fini(struct accept *accept);

/* "As ordered", "Not as ordered", "Incomplete: ...", or both. */
const char *accept_verdict(const struct accept *accept);

/* The file that was compared, to be named in the reports. */
struct accept_source {
    const char *inventory_path, *order_path;
    const char *inventory_sha256, *order_sha256; /* in hexadecimal digits */
    const char *version;                         /* of this program */
};

/* Append the result for people, and as a page to be signed. */
void accept_put_text(const struct accept *accept, const struct accept_source *source,
                     struct strbuf *out_text);
void accept_put_page(const struct accept *accept, const struct accept_source *source,
                     struct strbuf *out_page);

#endif
