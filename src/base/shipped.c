/* Finds the files that are installed with the program. */
#include "base/shipped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* "" when the path of the program is unknown; NULL when out of memory. */
static char *beside_program(const char *name)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return str_copy("");
    *slash = '\0';
    return str_format("%s/../share/gpumemtopo/%s", path, name);
}

int shipped_path(const char *name, char **out_path, struct err *err)
{
    const char *folder = getenv("GPUMEMTOPO_CONFIG_DIR");
    if (folder && *folder) {
        char *path = str_format("%s/%s", folder, name);
        if (!path)
            return err_no_memory(err);
        *out_path = path;
        return 0;
    }
    char *places[] = {beside_program(name), str_format("%s/%s", GPUMEMTOPO_SOURCE_CONFIGS, name)};
    char *found = NULL;
    bool known = places[0] && places[1];
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (known && !found && access(places[i], F_OK) == 0)
            found = places[i];
        else
            free(places[i]);
    }
    if (!known)
        return err_no_memory(err);
    if (!found)
        return err_set(err, -ENOENT,
                       "%s not found in ../share/gpumemtopo beside the program: name its folder in "
                       "GPUMEMTOPO_CONFIG_DIR",
                       name);
    *out_path = found;
    return 0;
}
