/* Jobs for probes, and what their samples say. */
#include "probes/method/chase.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/sort.h"

enum { FEW_ELEMENTS = 128, FEW_PASSES = 3 };

struct device_job chase_job(void)
{
    return (struct device_job){.agent_count = 1, .agents = {{.sm = DEVICE_SM_ANY}}};
}

struct device_step *chase_add(struct device_job *job, enum device_step_kind kind,
                              const struct device_array *array, uint64_t loads)
{
    struct device_step *step = &job->steps[job->step_count++];
    *step = (struct device_step){.kind = kind, .array = *array, .loads = loads};
    uint64_t end = device_step_end_bytes(step);
    if (array->path == DEVICE_SHARED && job->shared_bytes < end)
        job->shared_bytes = end;
    return step;
}

struct device_job chase_twice(const struct device_array *array, uint64_t loads_min)
{
    struct device_job job = chase_job();
    uint64_t elements = array->size_bytes / array->stride_bytes;
    uint64_t passes = elements ? (loads_min + elements - 1) / elements : 1;
    /* A small cache may still hold what the kernel loaded at its start: the constant L1 of the H200
     * evicts that last. */
    chase_add(&job, DEVICE_WARM, array, elements < FEW_ELEMENTS ? FEW_PASSES * elements : 0);
    chase_add(&job, DEVICE_CHASE, array, elements * (passes ? passes : 1));
    return job;
}

/* A record may have fewer latencies than were requested. */
static int check_kept(const struct device_job *jobs, const struct device_answer *answers,
                      size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t s = 0; s < answers[i].sample_count; s++) {
            const struct device_sample *sample = &answers[i].samples[s];
            uint64_t wanted = jobs[i].steps[sample->step].keep;
            wanted = wanted < sample->loads ? wanted : sample->loads;
            if (sample->kept_count < wanted)
                return err_set(err, -ENODATA, "%u latencies kept where %llu were asked for",
                               sample->kept_count, (unsigned long long)wanted);
        }
    return 0;
}

int chase_run(struct probe_context *context, const struct device_job *jobs, size_t count,
              uint32_t at_once, struct device_answer **out_answers, struct err *err)
{
    const struct device_batch batch = {.jobs = jobs, .job_count = count, .at_once = at_once};
    struct device_answer *answers = mem_array(count, sizeof *answers);
    int rc = device_run(context->device, &batch, answers, err);
    if (rc) {
        free(answers);
        return rc;
    }
    rc = check_kept(jobs, answers, count, err);
    if (rc) {
        chase_free(answers, count);
        return rc;
    }
    *out_answers = answers;
    return 0;
}

void chase_free(struct device_answer *answers, size_t count)
{
    device_answers_fini(answers, count);
    free(answers);
}

double chase_share_above(const struct device_sample *sample, double cycles)
{
    uint64_t above = 0, all = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        all += sample->bins[i].count;
        if (device_bin_cycles(sample->bins[i].bin) > cycles)
            above += sample->bins[i].count;
    }
    return all ? (double)above / (double)all : NAN;
}

double chase_mean(const struct device_sample *sample)
{
    double sum = 0, all = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        sum += sample->bins[i].count * device_bin_cycles(sample->bins[i].bin);
        all += sample->bins[i].count;
    }
    return all > 0 ? sum / all : NAN;
}

double chase_middle_mean(const struct device_sample *sample)
{
    double all = 0, seen = 0, sum = 0, weight = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++)
        all += sample->bins[i].count;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        double low = fmax(seen, all / 4);
        seen += sample->bins[i].count;
        double part = fmin(seen, all * 3 / 4) - low;
        if (part <= 0)
            continue;
        sum += part * device_bin_cycles(sample->bins[i].bin);
        weight += part;
    }
    return weight > 0 ? sum / weight : NAN;
}

static int compare_cycles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double chase_undisturbed(double *cycles, size_t count, uint64_t loads, double spike_share)
{
    double sum = 0;
    size_t kept = (size_t)llround(portable_pow(1 - spike_share, (double)loads) * (double)count);
    size_t from = kept / 4, to = kept - from;
    sort_stable(cycles, count, sizeof *cycles, compare_cycles);
    if (!to)
        return cycles[0];
    for (size_t i = from; i < to; i++)
        sum += cycles[i];
    return sum / (double)(to - from);
}
