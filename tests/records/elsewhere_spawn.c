/* Loaded into a survey by LD_PRELOAD: where it would start itself as a worker, OTHER_WORKER is
 * started. */
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

int posix_spawn(pid_t *out_pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    int (*libc_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                      const posix_spawnattr_t *, char *const[], char *const[]);
    *(void **)&libc_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    if (strcmp(path, "/proc/self/exe") == 0)
        path = getenv("OTHER_WORKER");
    return libc_spawn(out_pid, path, actions, attributes, argv, env);
}
