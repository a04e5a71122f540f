/* An inventory as the page wants it: GPUs by model and node, distributions, who is how odd. */
#ifndef GPUMEMTOPO_REPORT_HTML_DATA_H
#define GPUMEMTOPO_REPORT_HTML_DATA_H

#include "inventory/inventory.h"

/* All values of one metric among a model's GPUs. */
struct html_series {
    const char *metric, *unit;
    double *sorted;
    size_t count, capacity;
};

struct html_model {
    const struct inventory_model *model;
    struct html_series *series; /* in the order of the GPUs' values */
    size_t series_count, series_capacity;
};

enum html_oddity { HTML_FINE, HTML_WATCHED, HTML_ODD, HTML_VERY_ODD, HTML_WORST, HTML_UNKNOWN };

/* One GPU with what the lists say of it. */
struct html_gpu {
    const struct inventory_gpu *gpu;
    const struct inventory_outlier *outlier, *watch; /* NULL: none */
    const struct inventory_node *place;              /* accused as a whole */
    double score;                                    /* largest in size; NaN none */
    enum html_oddity oddity;
};

struct html_data {
    const struct inventory *inventory;
    struct html_model *models; /* as in the inventory */
    struct html_gpu *gpus;     /* by node, then index, then PCI address */
    size_t node_count;         /* distinct ones among the GPUs */
};

/* 0 or -ENOMEM; html_data_fini in either case. The inventory outlives the data. */
int html_data_init(struct html_data *data, const struct inventory *inventory);
void html_data_fini(struct html_data *data);

/* NULL where there is none. */
const struct html_model *html_data_model(const struct html_data *data, const char *id);
const struct html_series *html_data_series(const struct html_model *model, const char *metric);

/* Of sorted values; NaN of none. */
double html_quantile(const struct html_series *series, double share);

#endif
