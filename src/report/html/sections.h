/* The parts of the page, each appended to `out`. All fail only by out->failed. */
#ifndef GPUMEMTOPO_REPORT_HTML_SECTIONS_H
#define GPUMEMTOPO_REPORT_HTML_SECTIONS_H

#include "judge/reference.h"
#include "report/html/data.h"

/* A small picture: the series as ticks or bars; mine and wanted (NaN: none) marked on it. */
void html_strip(struct strbuf *out, const struct html_series *series, double mine, double wanted);

/* Outliers as cards, each finding on its distribution; places; watch; unmeasured. A card has the id
 * "o" and its number. Cards have pictures; a fleet with more outliers has another problem. */
enum { HTML_CARDS_MAX = 200 };
void html_outliers(struct strbuf *out, const struct html_data *data);
void html_places(struct strbuf *out, const struct html_data *data);
void html_watch(struct strbuf *out, const struct html_data *data);
void html_unmeasured(struct strbuf *out, const struct html_data *data);

/* Nodes times GPU index. */
void html_heat(struct strbuf *out, const struct html_data *data);

/* One model: drawing, tables, distributions, curves, SM maps. references may be NULL. */
void html_model_section(struct strbuf *out, const struct html_data *data,
                        const struct html_model *model, const struct judge_references *references);

/* The drawing of a model's hierarchy as SVG; its kept sweeps; its SMs. */
void html_topology(struct strbuf *out, const struct inventory_model *model);
void html_curves(struct strbuf *out, const struct inventory_model *model);
void html_sm_maps(struct strbuf *out, const struct inventory_model *model);

/* All GPUs; what differs from the model's majority; where the file comes from. */
void html_gpus(struct strbuf *out, const struct html_data *data);
void html_differences(struct strbuf *out, const struct html_data *data);
void html_provenance(struct strbuf *out, const struct html_data *data);

#endif
