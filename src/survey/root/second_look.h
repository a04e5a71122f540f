/* GPUs that look bad are measured again before they are accused. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_SECOND_LOOK_H
#define GPUMEMTOPO_SURVEY_ROOT_SECOND_LOOK_H

#include "survey/root/judging.h"
#include "survey/root/root.h"

/* Asks for the probes behind every figure by which a GPU would be accused. out_count: the GPUs that
 * were asked for. To be called after judging_compare. -ENOMEM. */
int second_look_ask(const struct judging *judging, struct root *root, size_t *out_count,
                    struct err *err);

#endif
