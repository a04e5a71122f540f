/* Which SMs share a cache of instructions with one SM. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CODE_SHARING_H
#define GPUMEMTOPO_PROBES_METHOD_CODE_SHARING_H

#include <stdbool.h>

#include "probes/probe.h"

/* Code of one copy fits into the level alone; that of both together does not. */
struct code_sharing_question {
    uint32_t sm;
    uint32_t length;
    double gain; /* additional cycles of one instruction that the level does not have */
};

struct code_sharing {
    bool *shares; /* by SM; the SM itself too */
    uint32_t count;
    uint32_t unclear; /* SMs that disturb too little to share, and too much not to */
    uint32_t slowed;  /* SMs that disturb also with the same code: not by the cache's size */
};

/* out_sharing: released by code_sharing_fini, also after an error. */
int code_sharing_find(struct probe_context *context, const struct code_sharing_question *question,
                      struct code_sharing *out_sharing, struct err *err);

/* Notes which SMs share it (SM 0 among them), and what part of the GPU they are, if that is known:
 * 0 or -ENOMEM. */
int code_sharing_note(const struct probe_context *context, const struct code_sharing *sharing,
                      struct measure *m);
void code_sharing_fini(struct code_sharing *sharing);

#endif
