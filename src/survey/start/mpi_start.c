/* Starts MPI, with a time limit. */
#include "survey/start/mpi_start.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "survey/comm/comm_mpi.h"

struct patience {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool started;  /* MPI is up */
    bool given_up; /* the time is over; only one of the two is ever set */
    double patience_s;
    void (*give_up)(void *user);
    void *user;
};

static void *watch(void *user)
{
    enum { LOOK_EVERY_NS = 200000000 };
    struct patience *patience = user;
    struct clock_awake clock = {0};
    pthread_mutex_lock(&patience->mutex);
    while (!patience->started && !patience->given_up) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_EVERY_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&patience->changed, &patience->mutex, &until);
        patience->given_up = !patience->started &&
                             clock_awake_tick(&clock, clock_monotonic_s()) > patience->patience_s;
    }
    pthread_mutex_unlock(&patience->mutex);
    if (patience->given_up)
        patience->give_up(patience->user);
    return NULL;
}

static void stay_silent(double seconds)
{
    const double least_s = 1;
    double pause_s = seconds > least_s ? seconds : least_s;
    struct timespec pause = {.tv_sec = (time_t)pause_s,
                             .tv_nsec = (long)(1e9 * (pause_s - floor(pause_s)))};
    while (nanosleep(&pause, &pause))
        ;
}

int mpi_start(int *argc, char ***argv, bool unfenced, double patience_s,
              void (*give_up)(void *user), void *user, struct err *err)
{
    struct patience patience = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                .changed = PTHREAD_COND_INITIALIZER,
                                .patience_s = patience_s,
                                .give_up = give_up,
                                .user = user};
    pthread_t thread;
    double begun_s = clock_monotonic_s();
    bool watched = pthread_create(&thread, NULL, watch, &patience) == 0;
    int rc = comm_mpi_start(argc, argv, err);
    pthread_mutex_lock(&patience.mutex);
    patience.started = !patience.given_up;
    pthread_cond_signal(&patience.changed);
    pthread_mutex_unlock(&patience.mutex);
    while (patience.given_up)
        pause(); /* the other thread ends the process */
    if (watched)
        pthread_join(thread, NULL);
    if (!rc && unfenced)
        stay_silent(clock_monotonic_s() - begun_s);
    return rc;
}
