/* Spreads a batch of jobs over the SMs: one job after the other, or interleaved if SMs share
 * caches. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/sim/gpu.h"
#include "device/sim/job_run.h"

/* Loads that a job executes before another one in flight gets its turn. */
enum { QUANTUM_LOADS = 16, SERIAL_LOADS = 1 << 30 };

/* Where the jobs of one wave run: jobs first .. first + count - 1. */
struct wave {
    size_t first, count;
    uint32_t sms[SIM_SMS_MAX][DEVICE_AGENTS_MAX];
    bool taken[SIM_SMS_MAX];
};

/* First free SM from `from` on, wrapping around; sm_count when none is free. */
static uint32_t free_sm(const struct wave *wave, uint32_t sm_count, uint32_t from)
{
    for (uint32_t i = 0; i < sm_count; i++)
        if (!wave->taken[(from + i) % sm_count])
            return (from + i) % sm_count;
    return sm_count;
}

/* False: the job has to wait for an SM. */
static bool place_job(struct wave *wave, const struct device_job *job, uint32_t sm_count,
                      uint32_t at_once)
{
    const struct device_agent *agents = job->agents;
    /* Spread evenly: with half as many jobs as SMs, each pair of SMs gets one. */
    uint32_t preferred = (uint32_t)((uint64_t)wave->count * sm_count / at_once);
    uint32_t sm = agents[0].sm >= 0 ? (uint32_t)agents[0].sm : free_sm(wave, sm_count, preferred);
    if (sm == sm_count || wave->taken[sm])
        return false;
    uint32_t other = sm;
    if (job->agent_count > 1 && agents[1].sm != DEVICE_SM_SAME) {
        wave->taken[sm] = true;
        other = agents[1].sm >= 0 ? (uint32_t)agents[1].sm : free_sm(wave, sm_count, sm + 1);
        bool waits = other == sm_count || (other != sm && wave->taken[other]);
        wave->taken[sm] = false;
        if (waits)
            return false;
    }
    wave->taken[sm] = wave->taken[other] = true;
    wave->sms[wave->count][0] = sm;
    wave->sms[wave->count][1] = other;
    wave->count++;
    return true;
}

static void build_wave(struct wave *wave, const struct device_batch *batch, size_t first,
                       uint32_t sm_count)
{
    uint32_t at_once = batch->at_once && batch->at_once < sm_count ? batch->at_once : sm_count;
    memset(wave->taken, 0, sizeof wave->taken);
    wave->first = first;
    wave->count = 0;
    while (first + wave->count < batch->job_count && wave->count < at_once &&
           place_job(wave, &batch->jobs[first + wave->count], sm_count, at_once))
        ;
}

static bool uses_wide_cache(const struct sim_model *model, const struct device_job *job)
{
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct sim_path *path = &model->paths[job->steps[i].array.path];
        for (uint32_t k = 0; k < path->cache_count; k++)
            if (model->caches[path->caches[k]].scope != SIM_SCOPE_SM)
                return true;
    }
    return false;
}

static bool must_interleave(const struct sim_model *model, const struct device_batch *batch,
                            const struct wave *wave)
{
    size_t users = 0;
    for (size_t i = 0; i < wave->count; i++)
        users += uses_wide_cache(model, &batch->jobs[wave->first + i]);
    return users > 1;
}

static void wait_once(double *seconds)
{
    struct timespec left = {.tv_sec = (time_t)*seconds,
                            .tv_nsec = (long)((*seconds - floor(*seconds)) * 1e9)};
    *seconds = 0;
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static void suffer_faults(struct gpu *gpu)
{
    if (gpu->model.wait_s > 0)
        wait_once(&gpu->model.wait_s);
    if (gpu->model.hang_after >= 0 && gpu->job_number >= (uint64_t)gpu->model.hang_after)
        for (;;)
            pause();
    if (gpu->model.crash_after >= 0 && gpu->job_number >= (uint64_t)gpu->model.crash_after) {
        /* As a fault in a driver library does: no handler of the program is called. */
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
}

static void empty_l2(struct gpu *gpu)
{
    for (int i = 0; i < SIM_PARTS_MAX && gpu->l2[i]; i++)
        cache_reset(gpu->l2[i], gpu->l2[i]->geometry.size);
}

/* slot: the run and the contexts to use. */
static int start(struct gpu *gpu, const struct device_batch *batch, const struct wave *wave,
                 size_t i, size_t slot, struct device_answer *answers, struct err *err)
{
    const struct device_job *job = &batch->jobs[wave->first + i];
    struct run *run = &gpu->runs[slot];
    struct sm_context *contexts = &gpu->contexts[slot * DEVICE_AGENTS_MAX];
    bool same = wave->sms[i][0] == wave->sms[i][1];
    suffer_faults(gpu);
    if (job->cold_l2)
        empty_l2(gpu);
    run->agents[0].context = &contexts[0];
    run->agents[1].context = same ? &contexts[0] : &contexts[1];
    run->agents[0].sm = wave->sms[i][0];
    run->agents[1].sm = wave->sms[i][1];
    return run_begin(run, gpu, job, &answers[wave->first + i], gpu->job_number++, err);
}

static int run_serially(struct gpu *gpu, const struct device_batch *batch, const struct wave *wave,
                        struct device_answer *answers, double *latest_ns, struct err *err)
{
    for (size_t i = 0; i < wave->count; i++) {
        struct run *run = &gpu->runs[0];
        int rc = start(gpu, batch, wave, i, 0, answers, err);
        run->alone = true;
        while (!rc && (rc = run_some(run, SERIAL_LOADS, err)) > 0)
            rc = 0;
        run_abandon(run);
        if (rc)
            return rc;
        *latest_ns = run->now_ns > *latest_ns ? run->now_ns : *latest_ns;
    }
    return 0;
}

/* The job that has executed the fewest loads; count when all are done. */
static size_t least_advanced(const struct run *runs, const bool *active, size_t count)
{
    size_t least = count;
    for (size_t i = 0; i < count; i++)
        if (active[i] && (least == count || runs[i].now_ns < runs[least].now_ns))
            least = i;
    return least;
}

static int run_interleaved(struct gpu *gpu, const struct device_batch *batch,
                           const struct wave *wave, struct device_answer *answers,
                           double *latest_ns, struct err *err)
{
    bool active[SIM_SMS_MAX] = {false};
    int rc = 0;
    size_t begun = 0, next;
    for (; !rc && begun < wave->count; begun++) {
        rc = start(gpu, batch, wave, begun, begun, answers, err);
        active[begun] = true;
    }
    while (rc >= 0 && (next = least_advanced(gpu->runs, active, begun)) < begun) {
        rc = run_some(&gpu->runs[next], QUANTUM_LOADS, err);
        active[next] = rc > 0;
    }
    for (size_t i = 0; i < begun; i++) {
        run_abandon(&gpu->runs[i]);
        *latest_ns = gpu->runs[i].now_ns > *latest_ns ? gpu->runs[i].now_ns : *latest_ns;
    }
    return rc;
}

int gpu_run_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    struct gpu *gpu = (struct gpu *)device;
    struct wave *wave = mem_array(1, sizeof *wave);
    int rc = 0;
    for (size_t first = 0; !rc && first < batch->job_count; first += wave->count) {
        build_wave(wave, batch, first, gpu->model.sms);
        gpu->launch_number++;
        gpu_update(gpu);
        bool together = must_interleave(&gpu->model, batch, wave);
        double latest_ns = gpu->busy_ns;
        size_t runs = together ? wave->count : 1;
        gpu->runs = mem_grow(gpu->runs, &gpu->run_count, runs, sizeof *gpu->runs);
        gpu->contexts = mem_grow(gpu->contexts, &gpu->context_count, runs * DEVICE_AGENTS_MAX,
                                 sizeof *gpu->contexts);
        rc = together ? run_interleaved(gpu, batch, wave, answers, &latest_ns, err)
                      : run_serially(gpu, batch, wave, answers, &latest_ns, err);
        gpu->busy_ns = latest_ns;
    }
    if (rc)
        device_answers_fini(answers, batch->job_count);
    free(wave);
    return rc;
}
