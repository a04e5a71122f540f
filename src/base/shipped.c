/* Finds the files that are installed with the program. */
#include "base/shipped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const places[] = {GPUMEMTOPO_SHIPPED_PLACES};
static const char *const plugin_places[] = {GPUMEMTOPO_PLUGIN_PLACES};

static char *path_in(const char *place, const char *name)
{
    if (*place == '/')
        return str_format("%s/%s", place, name);
    char own[4096];
    /* The folder of the program, "" when it is unknown. */
    ssize_t length = readlink("/proc/self/exe", own, 4095);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    *(slash ? slash : own) = '\0';
    return *own ? str_format("%s/%s/%s", own, place, name) : str_copy("");
}

int shipped_path(const char *name, char **out_path, struct err *err)
{
    const char *folder = getenv("GPUMEMTOPO_CONFIG_DIR");
    bool told = folder && *folder;
    for (size_t i = 0; i < (told ? 1 : COUNT_OF(places)); i++) {
        char *path = told ? str_format("%s/%s", folder, name) : path_in(places[i], name);
        if (told || access(path, F_OK) == 0) {
            *out_path = path;
            return 0;
        }
        free(path);
    }
    return err_set(err, -ENOENT,
                   "%s not found in ../share/gpumemtopo beside the program: name its folder in "
                   "GPUMEMTOPO_CONFIG_DIR",
                   name);
}

char *shipped_plugin(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(plugin_places); i++) {
        char *path = path_in(plugin_places[i], name);
        if (access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}
