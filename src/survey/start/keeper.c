/* Keeper processes, which hide the death of a rank from the launcher. */
#include "survey/start/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inventory/wire/spool_owner.h"

extern char **environ;

/* When its rank has died, the keeper ends with slurmstepd, which has started the rank. With
 * proctrack/linuxproc that one waits for the keeper, which so must see by itself that the survey is
 * over. The last limit is for the case that it cannot. */
enum { PMIX_OVER_S = 2, PMIX_FREE_S = 30, PMIX_HOLD_S = 600 };

/* The other ranks of a job have begun, and block SIGUSR1, within this time. */
enum { HYDRA_HOLD_S = 2 };

static int pmix_pipe = -1; /* the rank's end of a pipe to its keeper */

/* These signals are meant for the rank, which is in the same process group or step. */
static void keeper_ignore_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

static void keeper_sleep(unsigned seconds)
{
    while (seconds)
        seconds = sleep(seconds);
}

/* Passes all sockets on. dup2 of a descriptor onto itself clears CLOEXEC in the new process. 0 or a
 * positive errno. */
static int keeper_add_sockets(posix_spawn_file_actions_t *actions)
{
    DIR *folder = opendir("/proc/self/fd");
    int rc = folder ? 0 : errno;
    for (struct dirent *entry; !rc && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        struct stat info;
        if (fd > STDERR_FILENO && fd != dirfd(folder) && fstat(fd, &info) == 0 &&
            S_ISSOCK(info.st_mode))
            rc = posix_spawn_file_actions_adddup2(actions, fd, fd);
    }
    if (folder)
        closedir(folder);
    return rc;
}

/* The keeper must not hold the rank's output: a launcher waits until its tasks' output is closed. 0
 * or a positive errno. */
static int keeper_pmix_spawn(int pipe_end, const char *owner)
{
    char launcher[24];
    char *const argv[] = {(char *)"gpumemtopo-keeper", (char *)KEEPER_PMIX_ARGUMENT, launcher,
                          (char *)owner, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    snprintf(launcher, sizeof launcher, "%ld", (long)getppid());
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, pipe_end, STDIN_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!rc)
        rc = keeper_add_sockets(&actions);
    if (!rc)
        rc = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

void keeper_pmix_start(const char *owner)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return;
    int rc = keeper_pmix_spawn(ends[0], owner);
    close(ends[0]);
    if (rc)
        close(ends[1]);
    else
        pmix_pipe = ends[1];
}

void keeper_pmix_release(void)
{
    ssize_t written = pmix_pipe < 0 ? 0 : write(pmix_pipe, "", 1);
    (void)written;
}

int keeper_pmix_main(const char *launcher, const char *owner)
{
    char byte;
    ssize_t n = 0;
    pid_t pid = (pid_t)atol(launcher);
    keeper_ignore_signals();
    while ((n = read(STDIN_FILENO, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n)
        return 0;
    /* The rank has died. */
    int free_s = 0, over_s = 0;
    for (int i = 0; i < PMIX_HOLD_S && free_s < PMIX_FREE_S && over_s < PMIX_OVER_S; i++) {
        if (kill(pid, 0) && errno == ESRCH)
            return 0;
        enum spool_life life = *owner ? spool_owner_life(owner) : SPOOL_LIVES;
        free_s = life == SPOOL_LIVES ? 0 : free_s + 1;
        over_s = life == SPOOL_OVER ? over_s + 1 : 0;
        keeper_sleep(1);
    }
    return 0;
}

void keeper_hydra_start(void)
{
    char *const argv[] = {(char *)"gpumemtopo-keeper", (char *)KEEPER_HYDRA_ARGUMENT, NULL};
    /* When a rank dies, Hydra (with -disable-auto-cleanup) sends SIGUSR1 to the others. MPICH 4.0
     * then asks Hydra which rank it was, and Hydra's proxy fails on its way to answer and ends all
     * ranks. */
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    pid_t rank = fork();
    if (rank <= 0)
        return;
    execv("/proc/self/exe", argv);
    _exit(keeper_hydra_main());
}

int keeper_hydra_main(void)
{
    int status = 0;
    keeper_ignore_signals();
    while (wait(&status) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    keeper_sleep(HYDRA_HOLD_S);
    return 0;
}
