/* The page: the inventory arranged for it (data.c), and its sections, each appended to `out`. */
#ifndef GPUMEMTOPO_REPORT_HTML_SECTIONS_H
#define GPUMEMTOPO_REPORT_HTML_SECTIONS_H

#include "inventory/inventory.h"
#include "judge/reference.h"
#include "report/racks.h"

/* All values of one metric of the GPUs of a model. */
struct html_series {
    const char *metric, *unit;
    bool is_name; /* of an SM, a program ...: it is not drawn */
    double *sorted;
    size_t count, capacity;
};

struct html_model {
    const struct inventory_model *model;
    struct html_series *series; /* in the order of the values of the GPUs */
    size_t series_count, series_capacity;
};

/* What is to be done with a GPU; HTML_UNKNOWN: it was not measured or not judged. */
enum html_oddity { HTML_FINE, HTML_TOLD, HTML_ALERTED, HTML_DRAINED, HTML_UNKNOWN };

/* One GPU with its entries in the lists. */
struct html_gpu {
    const struct inventory_gpu *gpu;
    const struct inventory_outlier *outlier, *watch; /* NULL: none */
    const struct inventory_node *place;              /* node, slot or model that is acted on */
    uint64_t shared; /* bit i: finding i of the outlier is that of a place as well */
    bool has_card, place_has_card;
    double score; /* largest absolute score; NaN: none */
    enum html_oddity oddity;
};

struct html_data {
    const struct inventory *inventory;
    const struct racks *racks; /* NULL: no map */
    struct html_model *models; /* in the order of the inventory */
    struct html_gpu *gpus;     /* by node, then index, then PCI address */
    size_t node_count;         /* number of different nodes */
    /* What gets cards, the strongest action first: outliers with a finding that no place has, and
     * places that are acted on. */
    const struct inventory_outlier **cards;
    const struct inventory_node **places;
    size_t card_count, place_count;
};

/* The number of cards of each list is limited, because cards have pictures. */
enum { HTML_CARDS_MAX = 200 };

/* The inventory must outlive the data, which is released with html_data_fini. */
void html_data_init(struct html_data *data, const struct inventory *inventory);
void html_data_fini(struct html_data *data);

/* NULL if there is none. */
const struct html_model *html_data_model(const struct html_data *data, const char *id);
const struct html_series *html_data_series(const struct html_model *model, const char *metric);

/* The GPUs from `first` to the returned index - 1 are on one node. */
size_t html_data_node_end(const struct html_data *data, size_t first);

/* A judged value of a GPU; NaN: it has none. */
double html_data_value(const struct inventory_gpu *gpu, const char *metric);

/* The colour of a cell, " class=a" or the like: the darker, the more of the rising steps the loss
 * exceeds; "" if it exceeds none. */
enum { HTML_SHADES = 4 };
const char *html_shade(double loss, const double steps[HTML_SHADES]);

/* The values must be sorted; NaN if there are none. */
double html_quantile(const struct html_series *series, double share);

/* A small picture of the series as ticks or bars; `mine` and `wanted` (NaN: none) are marked. */
void html_strip(struct strbuf *out, const struct html_series *series, double mine, double wanted);

/* What the judge found. Outliers, and nodes, slots and models that are acted on, are cards, which
 * have the id "o", or "p" for a place, and their number in the inventory. */
void html_outliers(struct strbuf *out, const struct html_data *data);
void html_places(struct strbuf *out, const struct html_data *data);
void html_watch(struct strbuf *out, const struct html_data *data);
void html_unmeasured(struct strbuf *out, const struct html_data *data);

/* Map of nodes and GPU indices; counts by rack and switch; ", rack r1" of a node. */
void html_heat(struct strbuf *out, const struct html_data *data);
void html_racks(struct strbuf *out, const struct html_data *data);
void html_rack(struct strbuf *out, const struct html_data *data, const char *node);

/* The matrix of links of each node, with the findings about them; nothing if none was measured. */
void html_links(struct strbuf *out, const struct html_data *data);

/* One model: drawing, tables, distributions, curves, maps. references may be NULL. */
void html_model_section(struct strbuf *out, const struct html_data *data,
                        const struct html_model *model, const struct judge_references *references);

/* The drawing of the hierarchy of a model as SVG; its sweeps; its load, and that of a GPU; its
 * bandwidth by what is in flight; maps of its SMs and of its memory. */
void html_topology(struct strbuf *out, const struct inventory_model *model);
void html_sweeps(struct strbuf *out, const struct inventory_model *model);
void html_load(struct strbuf *out, const struct inventory_model *model);
void html_gpu_load(struct strbuf *out, const struct inventory_gpu *gpu);
void html_surfaces(struct strbuf *out, const struct inventory_model *model);
void html_maps(struct strbuf *out, const struct inventory_model *model);

/* All GPUs; differences from the majority of the model. */
void html_gpus(struct strbuf *out, const struct html_data *data);
void html_differences(struct strbuf *out, const struct html_data *data);

#endif
