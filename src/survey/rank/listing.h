/* The list of a rank's GPUs: asked of a worker, told to rank 0. */
#ifndef GPUMEMTOPO_SURVEY_RANK_LISTING_H
#define GPUMEMTOPO_SURVEY_RANK_LISTING_H

#include "base/err.h"
#include "survey/comm/message.h"
#include "survey/rank/job.h"

/* What becomes of the worker, which is over, in the announcement: GPUs and nodes, or what failed.
 * -ENOMEM. */
int listing_adopt(struct job *job, const struct survey_options *options, struct announce *announce,
                  struct err *err);

/* Seconds that the worker has. No more than one that measures, where the user set a limit: the
 * survey is to end soon after it. */
double listing_limit_s(const struct survey_options *options);

/* Host, boot id, how many workers at once. -ENOMEM. */
int listing_introduce(const struct survey_options *options, struct announce *out_announce,
                      struct err *err);

#endif
