/* Numbers for people: three digits and a prefix. */
#ifndef GPUMEMTOPO_PREDICT_QUANTITY_H
#define GPUMEMTOPO_PREDICT_QUANTITY_H

enum { QUANTITY_MAX = 32 };

/* "17.3M", "146 MB": decimal prefixes; unit: "" or "B". "-" for NaN. Returns out_text. */
const char *quantity_short(double value, const char *unit, char out_text[QUANTITY_MAX]);

/* "380 us", "1.2 ms"; "-" for NaN. */
const char *quantity_seconds(double seconds, char out_text[QUANTITY_MAX]);

/* "25.0"; "-" for NaN. */
const char *quantity_percent(double share, char out_text[QUANTITY_MAX]);

/* Powers of 1024: "54 KiB", "2.5 MiB". */
const char *quantity_bytes(double bytes, char out_text[QUANTITY_MAX]);

#endif
