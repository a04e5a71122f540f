/* Parts of the two summaries. */
#ifndef GPUMEMTOPO_REPORT_SUMMARY_PARTS_H
#define GPUMEMTOPO_REPORT_SUMMARY_PARTS_H

#include "report/entries.h"

/* UUIDs, to be asked for. Released with uuid_set_fini. */
struct uuid_set {
    const char **items; /* sorted */
    size_t count;
};
struct uuid_set uuid_set_of(const struct inventory_outlier *entries, size_t count);
bool uuid_set_has(const struct uuid_set *set, const char *uuid); /* uuid may be NULL */
void uuid_set_fini(struct uuid_set *set);

/* How many nodes `drain` would drain. */
size_t summary_count_drained(const struct inventory *inventory);

/* How many GPUs were measured, the verdict, and what may be missing. */
void summary_put_head(struct strbuf *out, const struct report_style *style,
                      const struct inventory *inventory);

/* A table with a few figures of each model. */
void summary_put_models(struct strbuf *out, const struct report_style *style,
                        const struct inventory *inventory);

#endif
