/* What a fleet is judged by: configuration, references and baseline, read from their files. */
#ifndef GPUMEMTOPO_REPORT_BASIS_H
#define GPUMEMTOPO_REPORT_BASIS_H

#include "base/err.h"
#include "judge/judge.h"
#include "judge/reference.h"

/* Zero-initialised is empty. */
struct report_basis {
    struct judge_config config; /* only by report_basis_load_config */
    struct judge_references references;
    struct inventory baseline;
    bool has_baseline;
};

/* References from a folder (NULL: as shipped; none where nothing is shipped) and an earlier
 * inventory (NULL: none). -EINVAL with position for a bad file, the system's code where one cannot
 * be read. report_basis_fini in either case. */
int report_basis_load(const char *reference_folder, const char *baseline_path,
                      struct report_basis *basis, struct err *err);

/* The `judge` mapping of a survey configuration; NULL: as shipped. */
int report_basis_load_config(const char *path, struct report_basis *basis, struct err *err);

/* As the judge takes it; config NULL: the one that was loaded here. */
struct judge_basis report_basis_view(const struct report_basis *basis,
                                     const struct judge_config *config);

void report_basis_fini(struct report_basis *basis);

#endif
