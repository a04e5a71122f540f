/* The formats of predictions. */
#ifndef GPUMEMTOPO_PREDICT_PREDICTION_FORMATS_H
#define GPUMEMTOPO_PREDICT_PREDICTION_FORMATS_H

#include "predict/prediction.h"

void prediction_put_table(const struct prediction *predictions, size_t count, struct strbuf *out);
void prediction_put_data(const struct prediction *predictions, size_t count, bool json,
                         struct strbuf *out);

#endif
