/* Predictions in the format that was asked for: table, YAML, JSON, or a page without scripts. */
#ifndef GPUMEMTOPO_PREDICT_PREDICTION_PAGE_H
#define GPUMEMTOPO_PREDICT_PREDICTION_PAGE_H

#include "predict/prediction.h"

/* Appends the page. It has no script, needs no network, and works on screen (light and dark), phone
 * and paper. Strings from files appear as text. */
void prediction_page(const struct prediction *predictions, size_t count, struct strbuf *out);

enum prediction_format { PREDICTION_TABLE, PREDICTION_YAML, PREDICTION_JSON, PREDICTION_HTML };

/* Appends all of them. */
void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, struct strbuf *out_text);

#endif
