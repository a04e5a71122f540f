/* Keeps a rank's connection to the launcher open after the rank has died. */
#include "survey/start/pmix_keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* Slurm ends the keeper with the node's last task. This limit is for the case that it does not. */
enum { HOLD_S = 3600 };

static int leash = -1; /* the rank's end of a pipe to the keeper */

static bool is_socket(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

/* dup2 of a descriptor onto itself clears CLOEXEC in the new process. */
static int add_sockets(posix_spawn_file_actions_t *actions)
{
    DIR *folder = opendir("/proc/self/fd");
    int rc = folder ? 0 : errno;
    for (struct dirent *entry; !rc && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(folder) && is_socket(fd))
            rc = posix_spawn_file_actions_adddup2(actions, fd, fd);
    }
    if (folder)
        closedir(folder);
    return rc;
}

/* The keeper must not hold the rank's output: a launcher waits until its tasks' output is
 * closed. */
static int add_standard(posix_spawn_file_actions_t *actions, int pipe_end)
{
    int rc = posix_spawn_file_actions_adddup2(actions, pipe_end, STDIN_FILENO);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc)
        return rc;
    return posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

/* 0 or a positive errno. */
static int spawn_keeper(int pipe_end)
{
    char *const argv[] = {(char *)"gpumemtopo-keeper", (char *)KEEPER_ARGUMENT, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = add_standard(&actions, pipe_end);
    if (rc)
        goto out;
    rc = add_sockets(&actions);
    if (rc)
        goto out;
    rc = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
out:
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

void pmix_keeper_start(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return;
    int rc = spawn_keeper(ends[0]);
    close(ends[0]);
    if (rc)
        close(ends[1]);
    else
        leash = ends[1];
}

void pmix_keeper_release(void)
{
    ssize_t written = leash < 0 ? 0 : write(leash, "", 1);
    (void)written;
}

int pmix_keeper_main(void)
{
    char byte;
    signal(SIGTERM, SIG_IGN); /* meant for the rank, which tells the keeper when to leave */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    ssize_t n = 0;
    while ((n = read(STDIN_FILENO, &byte, 1)) < 0 && errno == EINTR)
        ;
    for (unsigned left = n == 0 ? HOLD_S : 0; left;)
        left = sleep(left);
    return 0;
}
