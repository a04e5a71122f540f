/* Runs the predictions of a plan in threads: each takes the next one until none is left. */
#include "predict/jobs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "predict/progress.h"

struct jobs {
    struct plan *plan;
    struct progress progress; /* of what the first thread runs */
    pthread_mutex_t lock;     /* for all that follows */
    size_t next;              /* the first prediction that nobody has taken */
    size_t failed;            /* the first one that failed; plan->count: none */
    int rc;
    struct err err; /* of that one */
};

struct worker {
    struct jobs *jobs;
    struct kernel_launch launch;
    pthread_t thread;
    bool first, started;
};

/* Takes the next prediction and prepares it; NULL: none is left, or one has failed. */
static struct prediction *take(struct worker *w, struct model_config *out_config)
{
    struct jobs *jobs = w->jobs;
    struct plan *plan = jobs->plan;
    struct prediction *taken = NULL;
    pthread_mutex_lock(&jobs->lock);
    while (jobs->next < plan->count && plan->predictions[jobs->next].reason[0])
        jobs->next++;
    if (jobs->next < plan->count && !jobs->rc) {
        taken = &plan->predictions[jobs->next++];
        *out_config = taken->machine.config;
        out_config->l1.size = taken->l1_bytes;
        progress_begin(&jobs->progress, taken, w->first ? out_config : NULL);
    }
    pthread_mutex_unlock(&jobs->lock);
    return taken;
}

/* Of several failures the one that comes first without threads is told. */
static void note_failure(struct jobs *jobs, const struct prediction *p, int rc,
                         const struct err *err)
{
    size_t number = (size_t)(p - jobs->plan->predictions);
    pthread_mutex_lock(&jobs->lock);
    if (number < jobs->failed) {
        jobs->failed = number;
        jobs->rc = rc;
        jobs->err = *err;
    }
    pthread_mutex_unlock(&jobs->lock);
}

static int run_one(struct worker *w, struct prediction *p, const struct model_config *config,
                   struct err *err)
{
    struct jobs *jobs = w->jobs;
    pthread_mutex_lock(&jobs->lock); /* launching a trace writes to its source */
    int rc = plan_launch(jobs->plan, &jobs->plan->programs[p->program], &w->launch, err);
    pthread_mutex_unlock(&jobs->lock);
    rc = rc ? rc : model_run(config, &w->launch, &p->counts, err);
    if (!rc)
        p->bound = bound_of(&p->counts, &p->machine);
    return rc;
}

static void *work(void *worker)
{
    struct worker *w = worker;
    struct model_config config;
    struct prediction *p;
    while ((p = take(w, &config))) {
        struct err err = {0};
        int rc = run_one(w, p, &config, &err);
        if (rc)
            note_failure(w->jobs, p, rc, &err);
    }
    return NULL;
}

/* If a thread cannot be had, the others do its work. */
static void run_all(struct jobs *jobs, struct worker *workers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        workers[i].jobs = jobs;
        workers[i].first = i == 0;
        workers[i].started =
            i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    work(&workers[0]);
    for (size_t i = 1; i < count; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
}

int jobs_run(struct plan *plan, struct err *err)
{
    size_t possible = plan->count - plan->impossible, count = plan->options->jobs;
    count = count < possible ? count : possible;
    struct jobs jobs = {.plan = plan, .failed = plan->count};
    struct worker *workers = mem_array(count ? count : 1, sizeof *workers);
    if (!workers)
        return err_no_memory(err);
    progress_init(&jobs.progress, plan->options->quiet, possible);
    pthread_mutex_init(&jobs.lock, NULL);
    run_all(&jobs, workers, count ? count : 1);
    pthread_mutex_destroy(&jobs.lock);
    progress_clear(&jobs.progress);
    free(workers);
    if (jobs.rc && err)
        *err = jobs.err;
    return jobs.rc;
}
