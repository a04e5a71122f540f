/* Keeps the process that Hydra has started alive when the rank is killed. */
#include "survey/start/hydra_keeper.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

/* The other ranks of a job have begun, and block SIGUSR1, within this time. */
enum { HOLD_S = 2 };

/* When a rank dies, Hydra (with -disable-auto-cleanup) sends SIGUSR1 to the others. MPICH 4.0 then
 * asks Hydra which rank it was, and Hydra's proxy fails on its way to answer and ends all ranks. */
static void block_news_of_deaths(void)
{
    sigset_t news;
    sigemptyset(&news);
    sigaddset(&news, SIGUSR1);
    sigprocmask(SIG_BLOCK, &news, NULL);
}

void hydra_keeper_start(void)
{
    char *const argv[] = {(char *)"gpumemtopo-keeper", (char *)HYDRA_KEEPER_ARGUMENT, NULL};
    block_news_of_deaths();
    pid_t rank = fork();
    if (rank <= 0)
        return;
    execv("/proc/self/exe", argv);
    _exit(hydra_keeper_main());
}

int hydra_keeper_main(void)
{
    int status = 0;
    signal(SIGTERM, SIG_IGN); /* meant for the rank, which is in the same process group */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    while (wait(&status) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    for (unsigned left = HOLD_S; left;)
        left = sleep(left);
    return 0;
}
