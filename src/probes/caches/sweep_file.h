/* A sweep that others measured (sweep_files.h says what is in such a file). */
#ifndef GPUMEMTOPO_PROBES_CACHES_SWEEP_FILE_H
#define GPUMEMTOPO_PROBES_CACHES_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

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

/* -ENOMSG: not a sweep, by its name. */
int sweep_file_read(const char *path, struct sweep_file *out_file, struct err *err);
void sweep_file_fini(struct sweep_file *file);

/* Another file of the same GPU and memory, released with sweep_file_fini; false if there is none.
 */
bool sweep_file_sibling(const struct sweep_file *file, enum file_figure figure,
                        struct sweep_file *out_sibling);

#endif
