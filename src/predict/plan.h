/* Everything that one call of the program predicts: kernels by models by changes. */
#ifndef GPUMEMTOPO_PREDICT_PLAN_H
#define GPUMEMTOPO_PREDICT_PLAN_H

#include "inventory/inventory.h"
#include "predict/options.h"
#include "predict/prediction.h"
#include "predict/trace/trace_source.h"

/* What is run: a kernel of the table, or a trace. */
struct plan_program {
    const struct kernel *kernel;
    struct trace_source *trace;
};

struct plan {
    const struct predict_options *options;
    struct inventory inventories[OPTION_LIST_MAX];
    size_t inventory_count;
    struct plan_program *programs;
    size_t program_count;
    struct prediction *predictions; /* for each program in turn */
    size_t count, impossible;       /* impossible: those with a reason */
};

/* Reads the inventories and lists all predictions, before anything is run. A prediction that one
 * model cannot have is listed with its reason. -EINVAL: a file or a name is bad, a change makes
 * sense for no model, or nothing can be predicted at all. plan_fini is needed after failure, too.
 */
int plan_init(struct plan *plan, const struct predict_options *options, struct err *err);
void plan_fini(struct plan *plan);

/* How a program of the plan is launched. */
int plan_launch(const struct plan *plan, const struct plan_program *program,
                struct kernel_launch *out_launch, struct err *err);

#endif
