/* A sweep of a file (sweep_files.h), and what it shows. */
#ifndef GPUMEMTOPO_PROBES_CACHES_SWEEP_FINDINGS_H
#define GPUMEMTOPO_PROBES_CACHES_SWEEP_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

/* One chase. */
struct file_row {
    double x, y; /* of Line Size: stride and array; otherwise y is 0 */
    const double *loads;
    size_t count;
};

enum file_figure { FIGURE_FETCH, FIGURE_LINE, FIGURE_SIZE, FIGURE_LATENCY, FIGURE_COUNT };

struct sweep_file {
    enum file_figure figure;
    char *folder, *gpu, *memory;
    struct file_row *rows;
    size_t count;
    double *numbers; /* of all rows */
    size_t left_out; /* lines that are no numbers, or have no end */
};

struct file_finding {
    bool known, sure;
    double value, step;
    double hit, miss; /* cycles, timer included */
    char why[200];
};

/* Another file of the same GPU and memory, released with sweep_file_fini; false if there is none.
 */
bool sweep_file_sibling(const struct sweep_file *file, enum file_figure figure,
                        struct sweep_file *out_sibling);
void sweep_file_fini(struct sweep_file *file);

/* Of a file of each figure; it has rows. */
void sweep_find_fetch(const struct sweep_file *file, struct file_finding *f);
void sweep_find_line(const struct sweep_file *file, struct file_finding *f);
void sweep_find_onset(const struct sweep_file *file, struct file_finding *f);
void sweep_find_latency(const struct sweep_file *file, struct file_finding *f);

/* Loads that are much faster than the memory itself hit a cache before it: then nothing is sure. */
void sweep_check_level(const struct sweep_file *file, struct file_finding *f);

#endif
