/* The list of a rank's GPUs: a worker makes it, rank 0 gets it. */
#ifndef GPUMEMTOPO_SURVEY_RANK_LISTING_H
#define GPUMEMTOPO_SURVEY_RANK_LISTING_H

#include "base/err.h"
#include "survey/comm/message.h"
#include "survey/rank/job.h"

/* Fills the announcement from the worker's answer: GPUs and nodes, or why listing failed.
 * -ENOMEM. */
int listing_adopt(struct job *job, const struct survey_options *options, struct announce *announce,
                  struct err *err);

/* True if the worker that listed ended without a list: a driver that fails is asked twice. Not
 * after a time-out: rank 0 does not wait that long. */
bool listing_is_tried_again(const struct job *job, const struct survey_options *options);

/* Time limit of the listing worker, in seconds. At most the time limit for measuring a GPU, if the
 * user set one: the survey must end soon after that. */
double listing_limit_s(const struct survey_options *options);

/* Fills in host, boot id, and how many workers run at once. -ENOMEM. */
int listing_introduce(const struct survey_options *options, struct announce *out_announce,
                      struct err *err);

#endif
