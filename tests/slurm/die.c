/* Preloaded into a survey: kills the rank GPUMEMTOPO_TEST_RANK at the point GPUMEMTOPO_TEST_DIES:
 *
 *   start      before main
 *   init       in MPI_Init, when it has spoken to Slurm
 *   listing    when it has started the worker that lists its GPUs
 *   report     when it is about to give the inventory its name
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die_at(const char *point)
{
    const char *wanted = getenv("GPUMEMTOPO_TEST_DIES"), *rank = getenv("GPUMEMTOPO_TEST_RANK");
    const char *own = getenv("SLURM_PROCID");
    if (wanted && rank && own && strcmp(wanted, point) == 0 && strcmp(rank, own) == 0 &&
        strcmp(program_invocation_short_name, "gpumemtopo-survey") == 0)
        raise(SIGKILL);
}

__attribute__((constructor)) static void die_at_start(void)
{
    die_at("start");
}

typedef void fence_done(int status, void *user); /* as in pmix.h, which need not be installed */
typedef int fence_nb(const void *ranks, size_t rank_count, const void *info, size_t info_count,
                     fence_done *done, void *user);
fence_nb PMIx_Fence_nb;

int PMIx_Fence_nb(const void *ranks, size_t rank_count, const void *info, size_t info_count,
                  fence_done *done, void *user)
{
    void *library = dlopen("libpmix.so.2", RTLD_NOW);
    void *found = library ? dlsym(library, "PMIx_Fence_nb") : NULL;
    fence_nb *real = NULL;
    if (!found)
        abort();
    memcpy(&real, &found, sizeof real);
    die_at("init");
    return real(ranks, rank_count, info, info_count, done, user);
}

int posix_spawn(pid_t *restrict pid, const char *restrict path,
                const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                char *const environment[restrict])
{
    typedef int function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                         const posix_spawnattr_t *, char *const *, char *const *);
    function *real = (function *)dlsym(RTLD_NEXT, "posix_spawn");
    int code = real(pid, path, actions, attributes, argv, environment);
    if (strcmp(argv[0], "gpumemtopo-worker") == 0)
        die_at("listing");
    return code;
}

int rename(const char *from, const char *to)
{
    typedef int function(const char *, const char *);
    function *real = (function *)dlsym(RTLD_NEXT, "rename");
    size_t length = strlen(to);
    if (length > 5 && strcmp(to + length - 5, ".yaml") == 0)
        die_at("report");
    return real(from, to);
}
