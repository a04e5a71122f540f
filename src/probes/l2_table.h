/* Latencies of single loads of L2, element by element, and the levels that they part into. No
 * device is needed for it. */
#ifndef GPUMEMTOPO_PROBES_L2_TABLE_H
#define GPUMEMTOPO_PROBES_L2_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "device/device.h"
#include "probes/l2.h"

enum { L2_REPEATS_MAX = 30 };

/* Latencies of the same elements, repeat by repeat; or, with one repeat, of many elements.
 * Zero-initialised is empty. */
struct l2_table {
    double *cycles; /* repeats rows of `elements` */
    size_t repeats, elements;
};

/* How the elements of a table part into a lower and an upper level. */
struct l2_levels {
    bool two;
    double parting;
    struct l2_latency low, high; /* low only, where there is one */
};

/* So many elements must be on one side to speak for it, as a share. */
extern const double L2_TABLE_AGREEMENT;

/* Makes room, in place of what was there; repeats: at most L2_REPEATS_MAX. 0 or -ENOMEM. */
int l2_table_init(struct l2_table *table, size_t repeats, size_t elements, struct err *err);
void l2_table_fini(struct l2_table *table);

/* The latencies that a sample kept, as one repeat. */
void l2_table_put(struct l2_table *table, size_t repeat, const struct device_sample *sample);

/* Of one element, over the repeats first, first + step, ... */
double l2_table_median(const struct l2_table *table, size_t element, size_t first, size_t step);

/* Parts the elements by `parted`, and gives the levels that `table` (the same elements) has on
 * both sides. near: what the gap is held against, 0: no parting is looked for. 0 or -ENOMEM. */
int l2_table_levels(const struct l2_table *table, const struct l2_table *parted, double near,
                    struct l2_levels *out_levels, struct err *err);

/* Share of all latencies above so many cycles. */
double l2_table_share_above(const struct l2_table *table, double cycles);

/* Deviation of single loads from their element's median, in standard deviations of a normal
 * scatter. 0 or -ENOMEM. */
int l2_table_scatter(const struct l2_table *table, double *out_sigma, struct err *err);

#endif
