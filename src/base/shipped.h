/* Finds the files that are installed with the program. */
#ifndef GPUMEMTOPO_BASE_SHIPPED_H
#define GPUMEMTOPO_BASE_SHIPPED_H

#include "base/err.h"

/* The path of a shipped file or folder ("survey.yaml", "models"): in $GPUMEMTOPO_CONFIG_DIR if that
 * is set. Else in ../share/gpumemtopo beside the program, else in the source tree that it was built
 * from; in packages (-Dpackage=true) in /etc/gpumemtopo, else in ../share/gpumemtopo. Looked up at
 * run time, so that an installation can be moved. -ENOENT with a text that says where it was
 * searched. *out_path is freed with free(). */
int shipped_path(const char *name, char **out_path, struct err *err);

/* The path of a plug-in: in the folder for plug-ins, which is known relative to the program; else,
 * but not in packages, beside the program. NULL: it is not there. Freed with free(). */
char *shipped_plugin(const char *name);

#endif
