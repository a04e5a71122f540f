/* Runs the predictions of a plan. */
#ifndef GPUMEMTOPO_PREDICT_JOBS_H
#define GPUMEMTOPO_PREDICT_JOBS_H

#include "predict/plan.h"

/* Fills all predictions that have no reason against them. Results and errors do not depend on the
 * number of jobs. */
int jobs_run(struct plan *plan, struct err *err);

#endif
