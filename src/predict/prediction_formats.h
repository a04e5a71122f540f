/* The formats of predictions. */
#ifndef GPUMEMTOPO_PREDICT_PREDICTION_FORMATS_H
#define GPUMEMTOPO_PREDICT_PREDICTION_FORMATS_H

#include "predict/prediction.h"

enum prediction_format { PREDICTION_TABLE, PREDICTION_YAML, PREDICTION_JSON, PREDICTION_HTML };

/* Appends all of them. */
void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, struct strbuf *out_text);

void prediction_put_table(const struct prediction *predictions, size_t count, struct strbuf *out);
void prediction_put_data(const struct prediction *predictions, size_t count, bool json,
                         struct strbuf *out);

#endif
