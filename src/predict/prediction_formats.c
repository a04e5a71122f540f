/* Writes predictions in the format that was asked for. */
#include "predict/prediction_formats.h"

#include "predict/html/prediction_page.h"

void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, struct strbuf *out_text)
{
    switch (format) {
    case PREDICTION_TABLE:
        prediction_put_table(predictions, count, out_text);
        break;
    case PREDICTION_YAML:
    case PREDICTION_JSON:
        prediction_put_data(predictions, count, format == PREDICTION_JSON, out_text);
        break;
    case PREDICTION_HTML:
        prediction_page(predictions, count, out_text);
        break;
    }
}
