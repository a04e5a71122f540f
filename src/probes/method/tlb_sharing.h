/* How many SMs share a TLB with SM 0. */
#ifndef GPUMEMTOPO_PROBES_METHOD_TLB_SHARING_H
#define GPUMEMTOPO_PROBES_METHOD_TLB_SHARING_H

#include "probes/method/tlb_sets.h"

struct tlb_sharing {
    uint32_t sms; /* with SM 0; 0: not told */
};

/* SM 0 fills the level with other pages, another SM loads some, and SM 0 times these: they hit
 * where the level is shared. */
int tlb_sharing_measure(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_sets *sets, struct tlb_sharing *out_sharing,
                        struct err *err);

#endif
