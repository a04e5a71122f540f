/* Where the files that come with the program are. */
#ifndef GPUMEMTOPO_BASE_SHIPPED_H
#define GPUMEMTOPO_BASE_SHIPPED_H

#include "base/err.h"

/* The path of a shipped file or folder ("survey.yaml", "models"): in $GPUMEMTOPO_CONFIG_DIR where
 * that is set, else in ../share/gpumemtopo beside the program, else in the source tree it was built
 * from. An installed program must be relocatable, so this is looked up at run time. -ENOENT, which
 * names the places; *out_path freed with free(). */
int shipped_path(const char *name, char **out_path, struct err *err);

#endif
