/* What a miss of a TLB costs. */
#ifndef GPUMEMTOPO_PROBES_METHOD_TLB_PENALTY_H
#define GPUMEMTOPO_PROBES_METHOD_TLB_PENALTY_H

#include "probes/method/tlb_sets.h"

enum { TLB_PENALTIES = 3 };

/* What a miss adds to a load whose page is in the next level, measured so many times. */
int tlb_penalty_measure(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_sets *sets,
                        double out_cycles[TLB_PENALTIES], struct err *err);

#endif
