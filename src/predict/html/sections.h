/* The parts of the page. Each appends nothing if it has nothing to show. */
#ifndef GPUMEMTOPO_PREDICT_HTML_SECTIONS_H
#define GPUMEMTOPO_PREDICT_HTML_SECTIONS_H

#include "predict/prediction.h"

/* Predictions of one kernel: each model as it is, followed by its changes. */
struct section_kernel {
    const struct prediction *predictions;
    size_t count, number;
};

/* The kernel at predictions[*at], which moves on to the next one. False: none is left. */
bool section_next(const struct prediction *predictions, size_t count, size_t *at,
                  struct section_kernel *out_kernel);

/* True for a prediction that was made for the GPU as it is. */
bool section_is_plain(const struct prediction *prediction);

/* The shortest bound of the kernel on any GPU as it is; NaN if there is none. */
double section_shortest(const struct section_kernel *kernel);

/* The model's id; with its file if there are several inventories. */
void section_model(struct strbuf *out, const struct prediction *prediction, bool with_file);

void section_all_kernels(struct strbuf *out, const struct prediction *predictions, size_t count,
                         bool with_file);
void section_models(struct strbuf *out, const struct section_kernel *kernel, bool with_file);
void section_curves(struct strbuf *out, const struct section_kernel *kernel);
void section_what_if(struct strbuf *out, const struct section_kernel *kernel, bool with_file);
void section_assumed(struct strbuf *out, const struct prediction *predictions, size_t count,
                     bool with_file);
void section_absent(struct strbuf *out, const struct prediction *predictions, size_t count);

#endif
