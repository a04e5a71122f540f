/* Runs the predictions of a plan in threads, with a progress line on a terminal: each thread takes
 * the next one until none is left. */
#include "predict/jobs.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "markup/text.h"
#include "predict/model.h"
#include "predict/prediction.h"
#include "predict/quantity.h"

struct progress {
    bool enabled, shown;
    const struct prediction *prediction; /* the one that runs */
    size_t number, total;                /* from 1 on */
    size_t begun;                        /* predictions, also those that are not shown */
    double started_s, last_s;
};

static const double every_s = 0.2;

enum { COLUMNS_USUAL = 80 };

static void put(const char *text)
{
    int rc = io_write_all(STDERR_FILENO, text, strlen(text));
    (void)rc; /* a progress line that cannot be shown does not matter */
}

/* What matters most stands first: a narrow terminal cuts the end. */
static void progress_text(const struct progress *progress, struct model_state state,
                          double elapsed_s, struct strbuf *out_text)
{
    const struct prediction *p = progress->prediction;
    char text[QUANTITY_MAX], changed[WHAT_IF_TEXT_MAX];
    strbuf_printf(out_text, "%zu of %zu: %s, %.0f %% of its blocks", progress->number,
                  progress->total, p->kernel, 100 * state.share);
    if (state.share > 0)
        strbuf_printf(out_text, ", about %.0f s left",
                      ceil(elapsed_s * (1 - state.share) / state.share));
    if (elapsed_s > 0)
        strbuf_printf(out_text, ", %s lines/s",
                      quantity_short((double)state.lines / elapsed_s, "", text));
    strbuf_printf(out_text, ", on %s", p->model);
    if (p->what_if) {
        what_if_text(p->what_if, changed);
        strbuf_printf(out_text, " with %s", changed);
    }
}

static void tell(void *context, struct model_state state)
{
    struct progress *progress = context;
    struct strbuf text = {0}, line = {0};
    double now_s = clock_monotonic_s();
    if (now_s - progress->last_s < every_s)
        return;
    progress->last_s = now_s;
    progress_text(progress, state, now_s - progress->started_s, &text);
    strbuf_puts(&line, "\r");
    unsigned columns = io_columns(STDERR_FILENO);
    text_put_clean(&line, text.data ? text.data : "", (columns > 1 ? columns : COLUMNS_USUAL) - 1);
    strbuf_puts(&line, "\x1b[K");
    put(line.data);
    progress->shown = true;
    strbuf_fini(&text);
    strbuf_fini(&line);
}

/* The next prediction begins. Sets what the model is to tell. config NULL: it is not shown. */
static void progress_begin(struct progress *progress, const struct prediction *prediction,
                           struct model_config *config)
{
    progress->begun++;
    if (!config)
        return;
    progress->prediction = prediction;
    progress->number = progress->begun;
    progress->started_s = clock_monotonic_s();
    if (!progress->enabled)
        return;
    config->tell = tell;
    config->tell_context = progress;
}

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
static struct prediction *jobs_take(struct worker *w, struct model_config *out_config)
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

static void *jobs_work(void *worker)
{
    struct worker *w = worker;
    struct jobs *jobs = w->jobs;
    struct model_config config;
    struct prediction *p;
    while ((p = jobs_take(w, &config))) {
        struct err err = {0};
        pthread_mutex_lock(&jobs->lock); /* launching a trace writes to its source */
        int rc = plan_launch(jobs->plan, &jobs->plan->programs[p->program], &w->launch, &err);
        pthread_mutex_unlock(&jobs->lock);
        rc = rc ? rc : model_run(&config, &w->launch, &p->counts, &err);
        if (!rc)
            p->bound = bound_of(&p->counts, &p->machine);
        size_t number = (size_t)(p - jobs->plan->predictions);
        pthread_mutex_lock(&jobs->lock);
        /* Of several failures, the one that comes first without threads is reported. */
        if (rc && number < jobs->failed) {
            jobs->failed = number;
            jobs->rc = rc;
            jobs->err = err;
        }
        pthread_mutex_unlock(&jobs->lock);
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
            i > 0 && pthread_create(&workers[i].thread, NULL, jobs_work, &workers[i]) == 0;
    }
    jobs_work(&workers[0]);
    for (size_t i = 1; i < count; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
}

int jobs_run(struct plan *plan, struct err *err)
{
    size_t possible = plan->count - plan->impossible, count = plan->options->jobs;
    count = count < possible ? count : possible;
    struct jobs jobs = {
        .plan = plan,
        .failed = plan->count,
        .progress = {.enabled = !plan->options->quiet && isatty(STDERR_FILENO), .total = possible}};
    struct worker *workers = mem_array(count ? count : 1, sizeof *workers);
    pthread_mutex_init(&jobs.lock, NULL);
    run_all(&jobs, workers, count ? count : 1);
    pthread_mutex_destroy(&jobs.lock);
    if (jobs.progress.shown)
        put("\r\x1b[K"); /* removes the line */
    free(workers);
    if (jobs.rc && err)
        *err = jobs.err;
    return jobs.rc;
}
