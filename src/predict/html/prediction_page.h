/* Predictions as one self-contained HTML page. */
#ifndef GPUMEMTOPO_PREDICT_HTML_PREDICTION_PAGE_H
#define GPUMEMTOPO_PREDICT_HTML_PREDICTION_PAGE_H

#include "predict/prediction.h"

/* Appends the page. It has no script, needs no network, and works on screen (light and dark), phone
 * and paper. Strings from files appear as text. */
void prediction_page(const struct prediction *predictions, size_t count, struct strbuf *out);

#endif
