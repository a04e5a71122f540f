/* What the probes of clusters have in common: sizes, and the ways of SMs to each other. */
#include "probes/method/clusters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/repeats.h"

enum { FIT_ROUNDS = 50, REPEATS = 3 };

const uint32_t clusters_sizes[CLUSTERS_SIZES] = {2, 4, 8, 16};

uint32_t clusters_size_max(const struct probe_context *context)
{
    const struct measure *m = measures_get(context->measures, "cluster.size_max");
    return m && measure_status_valued(m->status) ? (uint32_t)m->value : 0;
}

/* Bytes per cycle, mean of the SMs. */
static int measure_rate(struct probe_context *context, const struct device_cluster *asked,
                        double bytes, double *out_rate, struct err *err)
{
    struct device_cluster_answer answer;
    int rc = device_run_cluster(context->device, asked, &answer, err);
    if (rc)
        return rc;
    double cycles = 0;
    for (size_t i = 0; i < answer.cycle_count; i++)
        cycles += (double)answer.cycles[i];
    *out_rate = cycles > 0 ? bytes * (double)answer.cycle_count / cycles : 0;
    device_cluster_answer_fini(&answer);
    return *out_rate > 0 ? 0 : err_set(err, -ENODATA, "the clocks of the SMs did not advance");
}

int clusters_measure_rates(struct probe_context *context, const char *metric,
                           const struct device_cluster *asked, double bytes, const char *method,
                           struct err *err)
{
    double rates[REPEATS];
    struct err own = {0};
    for (int i = 0; i < REPEATS; i++) {
        int rc = measure_rate(context, asked, bytes, &rates[i], &own);
        if (rc)
            return repeats_end(context, metric, rc, &own, err);
    }
    struct measure *m = repeats_add(context, metric, rates, REPEATS, "B/cycle", method);
    return m && !repeats_settle(m) ? 0 : err_no_memory(err);
}

int cluster_ways_init(struct cluster_ways *ways, size_t sms, struct err *err)
{
    *ways = (struct cluster_ways){.sms = sms,
                                  .cycles = mem_array(sms * sms + 1, sizeof *ways->cycles),
                                  .way = mem_array(sms + 1, sizeof *ways->way)};
    if (ways->cycles && ways->way)
        return 0;
    cluster_ways_fini(ways);
    return err_no_memory(err);
}

void cluster_ways_fini(struct cluster_ways *ways)
{
    free(ways->cycles);
    free(ways->way);
    *ways = (struct cluster_ways){0};
}

void cluster_ways_add(struct cluster_ways *ways, size_t x, size_t y, double cycles)
{
    double *cell = &ways->cycles[x * ways->sms + y];
    *cell = *cell > 0 ? fmin(*cell, cycles) : cycles;
}

/* Mean of what the pairs of an SM leave to it; NAN if it has none. */
static double way_of(const struct cluster_ways *ways, size_t x)
{
    double sum = 0;
    size_t count = 0;
    for (size_t y = 0; y < ways->sms; y++) {
        const double pair[] = {ways->cycles[x * ways->sms + y], ways->cycles[y * ways->sms + x]};
        for (int i = 0; i < 2 && y != x; i++)
            if (pair[i] > 0) {
                sum += pair[i] - ways->base - ways->way[y];
                count++;
            }
    }
    return count ? sum / (double)count : NAN;
}

/* The mean of the ways goes into the base. */
static void centre(struct cluster_ways *ways)
{
    double sum = 0;
    size_t count = 0;
    for (size_t x = 0; x < ways->sms; x++)
        if (isfinite(ways->way[x])) {
            sum += ways->way[x];
            count++;
        }
    for (size_t x = 0; x < ways->sms && count; x++)
        ways->way[x] -= sum / (double)count;
    ways->base += count ? 2 * sum / (double)count : 0;
}

static void sum_pairs(struct cluster_ways *ways, double *out_mean, double *out_squares)
{
    double sum = 0, squares = 0;
    ways->pairs = 0;
    ways->least = INFINITY;
    ways->most = -INFINITY;
    for (size_t i = 0; i < ways->sms * ways->sms; i++) {
        size_t x = i / ways->sms, y = i % ways->sms;
        if (x == y || ways->cycles[i] <= 0)
            continue;
        double rest = ways->cycles[i] - ways->base - ways->way[x] - ways->way[y];
        sum += ways->cycles[i];
        squares += rest * rest;
        ways->least = fmin(ways->least, ways->cycles[i]);
        ways->most = fmax(ways->most, ways->cycles[i]);
        ways->pairs++;
    }
    *out_mean = ways->pairs ? sum / (double)ways->pairs : 0;
    *out_squares = squares;
}

void cluster_ways_fit(struct cluster_ways *ways)
{
    double squares;
    ways->base = 0;
    sum_pairs(ways, &ways->base, &squares);
    for (int round = 0; round < FIT_ROUNDS; round++)
        for (size_t x = 0; x < ways->sms; x++) {
            /* Half of the step: two SMs that have only each other would overshoot in turn. */
            double way = way_of(ways, x);
            ways->way[x] = isfinite(way) ? (ways->way[x] + way) / 2 : NAN;
        }
    centre(ways);
    double mean;
    sum_pairs(ways, &mean, &squares);
    ways->residual = ways->pairs ? sqrt(squares / (double)ways->pairs) : 0;
}
