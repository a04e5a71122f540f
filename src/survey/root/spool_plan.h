/* The survey as rank 0 plans it, spooled before anything is measured, so that what is missing later
 * has a name. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_SPOOL_PLAN_H
#define GPUMEMTOPO_SURVEY_ROOT_SPOOL_PLAN_H

#include <stddef.h>

#include "base/err.h"
#include "survey/rank/spooling.h"
#include "survey/root/nodes.h"
#include "survey/root/ranks.h"

/* Where it goes, and what is told beside it; config: name and text of the configuration. */
struct spool_plan {
    struct spooling *spooling; /* NULL: nowhere */
    const char *config_name, *config_text;
    char *const *command;
    size_t command_count;
};

/* Called when GPUs are assigned and nothing is measured: what is collected by then is ranks of
 * which nothing is known. -ENOMEM; what cannot be written is in spooling->failed. */
int spool_plan_write(const struct spool_plan *spool, const struct comm *comm,
                     const struct ranks *ranks, const struct node_list *nodes, struct err *err);

#endif
