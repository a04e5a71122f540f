/* The sections of the page, each appended to `out`. */
#ifndef GPUMEMTOPO_REPORT_HTML_SECTIONS_H
#define GPUMEMTOPO_REPORT_HTML_SECTIONS_H

#include "judge/reference.h"
#include "report/html/data.h"

/* A small picture of the series as ticks or bars; `mine` and `wanted` (NaN: none) are marked. */
void html_strip(struct strbuf *out, const struct html_series *series, double mine, double wanted);

/* What the judge found. Outliers and accused nodes, slots and models are cards, which have the id
 * "o", or "p" for a place, and their number in the inventory. */
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
