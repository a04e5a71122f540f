/* The sections of the page, each appended to `out`. Errors only set out->failed. */
#ifndef GPUMEMTOPO_REPORT_HTML_SECTIONS_H
#define GPUMEMTOPO_REPORT_HTML_SECTIONS_H

#include "judge/reference.h"
#include "report/drain.h"
#include "report/html/data.h"

/* A small picture of the series as ticks or bars; `mine` and `wanted` (NaN: none) are marked. */
void html_strip(struct strbuf *out, const struct html_series *series, double mine, double wanted);

/* Outliers as cards, each finding with its distribution; accused nodes; watch; unmeasured. A card
 * has the id "o", or "p" for a place, and its number in the inventory. */
void html_outliers(struct strbuf *out, const struct html_data *data);
void html_places(struct strbuf *out, const struct html_data *data);
/* The command that drains for this card alone. Takes over `line`; NULL: none. */
void html_drain(struct strbuf *out, const struct html_data *data, char *line);
void html_racks(struct strbuf *out, const struct html_data *data);
void html_rack(struct strbuf *out, const struct html_data *data,
               const char *node); /* ", rack r1" */
void html_watch(struct strbuf *out, const struct html_data *data);
void html_unmeasured(struct strbuf *out, const struct html_data *data);

/* Map of nodes and GPU indices. */
void html_heat(struct strbuf *out, const struct html_data *data);

/* The matrix of links of each node, with the findings about them; nothing if none was measured. */
void html_links(struct strbuf *out, const struct html_data *data);

/* One model: drawing, tables, distributions, curves, SM maps. references may be NULL. */
void html_model_section(struct strbuf *out, const struct html_data *data,
                        const struct html_model *model, const struct judge_references *references);

/* The drawing of the hierarchy of a model as SVG; its sweeps; its load; its caches of instructions;
 * its SMs. */
void html_topology(struct strbuf *out, const struct inventory_model *model);
void html_curves(struct strbuf *out, const struct inventory_model *model);
void html_load(struct strbuf *out, const struct inventory_model *model);
void html_gpu_load(struct strbuf *out, const struct inventory_gpu *gpu); /* of an outlier */
void html_surfaces(struct strbuf *out, const struct inventory_model *model);
void html_code(struct strbuf *out, const struct inventory_model *model);
void html_clusters(struct strbuf *out, const struct inventory_model *model);
void html_maps(struct strbuf *out, const struct inventory_model *model);
void html_die_map(struct strbuf *out, const struct inventory_model *model);

/* All GPUs; differences from the majority of the model; origin of the file. */
void html_gpus(struct strbuf *out, const struct html_data *data);
void html_gpus_many(struct strbuf *out, const struct html_data *data); /* tens of thousands */
void html_differences(struct strbuf *out, const struct html_data *data);
void html_provenance(struct strbuf *out, const struct html_data *data);

#endif
