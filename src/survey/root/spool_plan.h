/* Spools the plan of the survey before anything is measured, so that a missing result can be named
 * later. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_SPOOL_PLAN_H
#define GPUMEMTOPO_SURVEY_ROOT_SPOOL_PLAN_H

#include <stddef.h>

#include "base/err.h"
#include "survey/rank/spooling.h"
#include "survey/root/nodes.h"
#include "survey/root/ranks.h"

/* Where the plan is written, and what else is written with it: command line, and name and text of
 * the configuration. */
struct spool_plan {
    struct spooling *spooling; /* NULL: nowhere */
    const char *config_name, *config_text;
    char *const *command;
    size_t command_count;
};

/* Call it when GPUs are assigned and nothing is measured: `unmeasured` then has only ranks of which
 * nothing is known. -ENOMEM; a write error is in spooling->failed. */
int spool_plan_write(const struct spool_plan *spool, const struct comm *comm,
                     const struct ranks *ranks, const struct node_list *nodes, struct err *err);

#endif
