/* Loaded before the libraries of a rank: makes one call of the system or of MPI fail, the one that
 * GPUMEMTOPO_TEST_FAILS names, under a launcher only on rank 0. Or it kills the rank
 * GPUMEMTOPO_TEST_RANK at the point GPUMEMTOPO_TEST_DIES:
 *
 *   start      before main
 *   init       in MPI_Init, when it has spoken to Slurm by PMIx
 *   listing    when it has started the worker that lists its GPUs
 *   report     when it is about to give the inventory its name
 *
 * With MPI_OF_RANK it is compiled with the headers of the rank's MPI, but not linked with it. MPI
 * can then tell the others of a dead rank by errors: the call that GPUMEMTOPO_TEST_PEER_FAILS names
 * fails on them whenever it concerns that rank. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef MPI_OF_RANK
#include <mpi.h>
#endif

static const char *own_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    const char *rank = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !rank; i++)
        rank = getenv(names[i]);
    return rank;
}

static bool fails(const char *call)
{
    const char *named = getenv("GPUMEMTOPO_TEST_FAILS"), *rank = own_rank();
    return named && strcmp(named, call) == 0 && (!rank || strcmp(rank, "0") == 0);
}

/* -1: none dies. */
static int dead_rank(void)
{
    const char *dead = getenv("GPUMEMTOPO_TEST_DIES") ? getenv("GPUMEMTOPO_TEST_RANK") : NULL;
    return dead ? atoi(dead) : -1;
}

static void die_at(const char *point)
{
    const char *wanted = getenv("GPUMEMTOPO_TEST_DIES"), *rank = own_rank();
    if (wanted && rank && strcmp(wanted, point) == 0 && atoi(rank) == dead_rank() &&
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
    static bool listed;
    if (fails("posix_spawn"))
        return EAGAIN;
    int code = real(pid, path, actions, attributes, argv, environment);
    if (strcmp(argv[0], "gpumemtopo-worker") == 0)
        die_at("listing");
    if (!code && fails("listing") && !listed)
        kill(*pid, SIGSTOP);
    listed = true; /* a rank's first process lists its GPUs */
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

#ifdef MPI_OF_RANK

static bool fails_for(const char *call, int peer)
{
    const char *named = getenv("GPUMEMTOPO_TEST_PEER_FAILS"), *rank = own_rank();
    return named && strcmp(named, call) == 0 && peer == dead_rank() && rank && atoi(rank) != peer;
}

/* The function of MPI itself, which is loaded after this library. */
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, "P" #name))

static int probed_source = -1; /* of the message that MPI_Improbe gave last */
static MPI_Request dead_requests[1024];
static size_t request_count;

/* Of those that MPI_Test fails for. */
static int remember_request(int code, int peer, const MPI_Request *request)
{
    enum { ROOM = sizeof dead_requests / sizeof *dead_requests };
    if (code == MPI_SUCCESS && fails_for("MPI_Test", peer) && request_count < ROOM)
        dead_requests[request_count++] = *request;
    return code;
}

/* As an MPI that tolerates faults answers on MPI_ANY_SOURCE, once a rank is dead; or all fails.
 * Both begin after the first message: a rank that was never heard is waited for much longer. */
int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    enum { WELL = 3 };
    static int calls;
    if (source != MPI_ANY_SOURCE && fails_for("MPI_Improbe", source))
        return MPI_ERR_OTHER;
    if (source == MPI_ANY_SOURCE && fails_for("MPI_Improbe", dead_rank()))
        return MPI_ERR_OTHER;
    if ((fails("MPI_ANY_SOURCE") && source == MPI_ANY_SOURCE) || fails("MPI_Improbe"))
        if (probed_source >= 0 && ++calls > WELL)
            return MPI_ERR_OTHER;
    int code = REAL(MPI_Improbe)(source, tag, comm, flag, message, status);
    if (code == MPI_SUCCESS && *flag)
        probed_source = status->MPI_SOURCE;
    return code;
}

int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message,
               MPI_Request *request)
{
    if (fails_for("MPI_Imrecv", probed_source))
        return MPI_ERR_OTHER;
    int code = REAL(MPI_Imrecv)(buffer, count, type, message, request);
    return remember_request(code, probed_source, request);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (fails_for("MPI_Isend", to))
        return MPI_ERR_OTHER;
    return remember_request(REAL(MPI_Isend)(buffer, count, type, to, tag, comm, request), to,
                            request);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    for (size_t i = 0; i < request_count; i++)
        if (dead_requests[i] == *request)
            return MPI_ERR_OTHER;
    return REAL(MPI_Test)(request, flag, status);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return fails("MPI_Init_thread") ? MPI_ERR_OTHER
                                    : REAL(MPI_Init_thread)(argc, argv, required, provided);
}

/* With words of its own, as when a rank is missing. */
int MPI_Finalize(void)
{
    static const char words[] = "words of MPI\n";
    ssize_t written = fails("MPI_Finalize") ? write(STDERR_FILENO, words, sizeof words - 1) : 0;
    (void)written;
    return REAL(MPI_Finalize)();
}

#endif

/* A worker that has said all, in a driver that does not let go of it. */
__attribute__((destructor)) static void leave(void)
{
    enum { LONG_S = 60 };
    if (fails("exit") && strcmp(program_invocation_name, "gpumemtopo-worker") == 0)
        sleep(LONG_S);
}
