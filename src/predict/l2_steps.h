/* L2 with partitions, banks, ports and miss registers: what the SMs ask for in a tick, step by
 * step.
 */
#ifndef GPUMEMTOPO_PREDICT_L2_STEPS_H
#define GPUMEMTOPO_PREDICT_L2_STEPS_H

#include "predict/hierarchy.h"

struct l2_steps;

/* The partitions and banks are those of the hierarchy's configuration. NULL: out of memory. */
struct l2_steps *l2_steps_create(struct hierarchy *hierarchy);
void l2_steps_destroy(struct l2_steps *steps); /* accepts NULL */

/* Sends a line of an SM through L1; what goes on to L2 waits there for l2_steps_serve. `warp` is
 * the priority, the lowest goes first. *level is raised to where the line comes from, now or then.
 */
void l2_steps_add(struct l2_steps *steps, struct cache_request *request, uint32_t warp,
                  enum hierarchy_level *level);

/* Serves all that waits. */
void l2_steps_serve(struct l2_steps *steps);

/* Adds steps, merges and failed reservations to the hierarchy's counts. */
void l2_steps_finish(const struct l2_steps *steps);

#endif
