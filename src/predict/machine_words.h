/* Policies and indices of caches, by the words of inventories and users. */
#ifndef GPUMEMTOPO_PREDICT_MACHINE_WORDS_H
#define GPUMEMTOPO_PREDICT_MACHINE_WORDS_H

#include "base/err.h"
#include "inventory/measure.h"
#include "predict/model.h"

/* Text figures of a model: l1_data.policy, l1_data.index, l2.policy, l2.index. */
enum { MACHINE_WORDS = 4, MACHINE_WORD_TEXT_MAX = 80 };

const char *machine_word_key(size_t row);

/* Sets the policy or index in the configuration. changed: the user's word, or NULL; otherwise the
 * measured one counts (NULL: none). out_assumed: what was assumed instead of a word that is not
 * known; "" if none. -EINVAL: the user's word is unknown. */
int machine_word_read(size_t row, const struct measure *measure, const char *changed,
                      struct model_config *config, char out_assumed[MACHINE_WORD_TEXT_MAX],
                      struct err *err);

#endif
