/* What a sweep of a file shows. */
#ifndef GPUMEMTOPO_PROBES_CACHES_SWEEP_FINDINGS_H
#define GPUMEMTOPO_PROBES_CACHES_SWEEP_FINDINGS_H

#include "probes/caches/sweep_file.h"

struct file_finding {
    bool known, sure;
    double value, step;
    double hit, miss; /* cycles, timer included */
    char why[200];
};

/* Of a file of each figure; it has rows. */
void sweep_find_fetch(const struct sweep_file *file, struct file_finding *f);
void sweep_find_line(const struct sweep_file *file, struct file_finding *f);
void sweep_find_onset(const struct sweep_file *file, struct file_finding *f);
void sweep_find_latency(const struct sweep_file *file, struct file_finding *f);

/* Loads that are much faster than the memory itself hit a cache before it: then nothing is sure. */
void sweep_check_level(const struct sweep_file *file, struct file_finding *f);

#endif
