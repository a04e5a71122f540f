/* A GPU that differs from the measured one: the changes of --what-if. */
#ifndef GPUMEMTOPO_PREDICT_WHAT_IF_H
#define GPUMEMTOPO_PREDICT_WHAT_IF_H

#include <stddef.h>

#include "base/err.h"

enum { WHAT_IF_PARTS_MAX = 8, WHAT_IF_WORD_MAX = 32, WHAT_IF_LIST_MAX = 64 };
enum { WHAT_IF_TEXT_MAX = WHAT_IF_PARTS_MAX * 2 * WHAT_IF_WORD_MAX };

/* Several figures at once: l1_data.size=64K+l1_data.ways=4. */
struct what_if {
    struct {
        char key[WHAT_IF_WORD_MAX], value[WHAT_IF_WORD_MAX];
    } parts[WHAT_IF_PARTS_MAX];
    size_t count;
};

struct what_if_list {
    struct what_if items[WHAT_IF_LIST_MAX];
    size_t count;
};

/* Appends to the list one item for each combination of values in KEY=VALUE[,VALUE...][+KEY=...].
 * -EINVAL says which part of the text is wrong. Whether keys and values make sense for a GPU is
 * checked by machine_init. */
int what_if_read(const char *text, struct what_if_list *list, struct err *err);

/* What this key is changed to; NULL: not changed, also if what_if is NULL. */
const char *what_if_value(const struct what_if *what_if, const char *key);

/* "l1_data.size=64K+l1_data.ways=4" */
void what_if_text(const struct what_if *what_if, char out_text[WHAT_IF_TEXT_MAX]);

#endif
