/* Loaded before the libraries of a rank: makes one call of the system or of MPI fail, the one that
 * GPUMEMTOPO_TEST_FAILS names. Under a launcher only on rank 0. */
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool fails(const char *call)
{
    const char *named = getenv("GPUMEMTOPO_TEST_FAILS"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK");
    return named && strcmp(named, call) == 0 && (!rank || strcmp(rank, "0") == 0);
}

int posix_spawn(pid_t *restrict pid, const char *restrict path,
                const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                char *const environment[restrict])
{
    typedef int function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                         const posix_spawnattr_t *, char *const *, char *const *);
    function *real = (function *)dlsym(RTLD_NEXT, "posix_spawn");
    static bool listed;
    if (fails("posix_spawn"))
        return EAGAIN;
    int code = real(pid, path, actions, attributes, argv, environment);
    if (!code && fails("listing") && !listed)
        kill(*pid, SIGSTOP);
    listed = true; /* a rank's first process lists its GPUs */
    return code;
}

int memfd_create(const char *name, unsigned flags)
{
    typedef int function(const char *, unsigned);
    function *real = (function *)dlsym(RTLD_NEXT, "memfd_create");
    if (!fails("memfd_create"))
        return real(name, flags);
    errno = EMFILE;
    return -1;
}

/* To a worker that sits in the driver no signal comes through. */
int kill(pid_t pid, int number)
{
    typedef int function(pid_t, int);
    function *real = (function *)dlsym(RTLD_NEXT, "kill");
    return pid < 0 && fails("kill") ? 0 : real(pid, number);
}

/* As an MPI that tolerates faults answers on MPI_ANY_SOURCE, once a rank is dead; or all fails. */
int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    enum { WELL = 3 };
    static int calls;
    if ((fails("MPI_ANY_SOURCE") && source == MPI_ANY_SOURCE) || fails("MPI_Improbe"))
        if (++calls > WELL)
            return MPI_ERR_OTHER;
    return PMPI_Improbe(source, tag, comm, flag, message, status);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return fails("MPI_Init_thread") ? MPI_ERR_OTHER
                                    : PMPI_Init_thread(argc, argv, required, provided);
}

/* With words of its own, as when a rank is missing. */
int MPI_Finalize(void)
{
    static const char words[] = "words of MPI\n";
    ssize_t written = fails("MPI_Finalize") ? write(STDERR_FILENO, words, sizeof words - 1) : 0;
    (void)written;
    return PMPI_Finalize();
}

/* A worker that has said all, in a driver that does not let go of it. */
__attribute__((destructor)) static void leave(void)
{
    enum { LONG_S = 60 };
    if (fails("exit") && strcmp(program_invocation_name, "gpumemtopo-worker") == 0)
        sleep(LONG_S);
}
