/* Configuration, references and baseline for judging a fleet, read from their files. */
#ifndef GPUMEMTOPO_REPORT_BASIS_H
#define GPUMEMTOPO_REPORT_BASIS_H

#include "base/err.h"
#include "judge/judge.h"
#include "judge/reference.h"
#include "judge/world.h"

/* Zero-initialised is empty. */
struct report_basis {
    struct judge_config config; /* set only by report_basis_load_config and _read_config */
    struct judge_references references;
    struct inventory baseline;
    bool has_baseline;
    struct world world;
    bool has_world;
    char program[WORLD_PROGRAM_MAX]; /* that measured; "": not known */
};

/* Loads references from a folder (NULL: the shipped ones, if there are any) and an earlier
 * inventory (NULL: none). -EINVAL with position for a bad file, the system error if a file cannot
 * be read. Call report_basis_fini in either case. */
int report_basis_load(const char *reference_folder, const char *baseline_path,
                      struct report_basis *basis, struct err *err);

/* Loads world files and combines them. Errors as world_add_file. */
int report_basis_load_world(const char *const *paths, size_t count, struct report_basis *basis,
                            struct err *err);

/* Loads the `judge` mapping of a survey configuration; NULL: the shipped one. */
int report_basis_load_config(const char *path, struct report_basis *basis, struct err *err);

/* The same from a text. name: what error messages call it. */
int report_basis_read_config(const char *text, const char *name, struct report_basis *basis,
                             struct err *err);

/* The basis in the form that the judge takes. config NULL: the one that was loaded here. */
struct judge_basis report_basis_view(const struct report_basis *basis,
                                     const struct judge_config *config);

void report_basis_fini(struct report_basis *basis);

#endif
