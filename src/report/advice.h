/* What to do next with a GPU or a node, and whether its vendor would replace it. */
#ifndef GPUMEMTOPO_REPORT_ADVICE_H
#define GPUMEMTOPO_REPORT_ADVICE_H

#include "inventory/inventory.h"

/* One row of the table of sentences. The first row that fits the verdict and one of the
 * findings of an entry counts. */
struct advice {
    enum verdict verdict;
    const char *metric; /* how the metric begins; "": any, also none */
    const char *next;   /* what to do */
    const char *vendor; /* whether the vendor would replace it */
};
extern const struct advice advice_rows[];
extern const size_t advice_row_count;

const struct advice *advice_of_gpu(const struct inventory_outlier *entry);
const struct advice *advice_of_place(const struct inventory_node *place);

#endif
