/* Policies under which not every load of an overflowing set misses: the order of the misses says
 * which way each of them took. */
#include "probes/caches/replacement_order.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/rng.h"
#include "probes/caches/miss_counts.h"
#include "probes/method/chase.h"

bool replacement_one_set(const struct study *study, const struct cache_sets *sets)
{
    return sets->index != CACHE_SETS_HASHED && study->id != STUDY_CONSTANT_L15;
}

struct device_array replacement_rows(const struct study *study, const struct cache_sets *sets,
                                     uint64_t from, uint64_t to)
{
    uint64_t line = study->line_bytes;
    uint64_t step = replacement_one_set(study, sets) ? sets->period : sets->fits / sets->ways;
    uint64_t first = replacement_one_set(study, sets) ? sets->group[0] : 0;
    return (struct device_array){.path = study->path,
                                 .offset_bytes = (first + from * step) * line,
                                 .size_bytes = (to - from) * step * line,
                                 .stride_bytes =
                                     replacement_one_set(study, sets) ? step * line : line};
}

/* The order of misses in one set that has one line too many. */

void eviction_order_init(struct eviction_order *order, uint32_t ways)
{
    *order = (struct eviction_order){.ways = ways};
    order->way_of = mem_array(ways + 1, sizeof *order->way_of);
    order->counts = mem_array(ways, sizeof *order->counts);
    order->steps = mem_array(ways, sizeof *order->steps);
    order->line_in = mem_array(ways, sizeof *order->line_in);
}

void eviction_order_fini(struct eviction_order *order)
{
    free(order->way_of);
    free(order->counts);
    free(order->steps);
    free(order->line_in);
    *order = (struct eviction_order){0};
}

void eviction_order_begin(struct eviction_order *order)
{
    for (uint32_t i = 0; i < order->ways; i++)
        order->way_of[i] = i;
    order->begun = order->broken = order->last_known = false;
}

void eviction_order_add(struct eviction_order *order, uint32_t line, bool missed)
{
    if (order->broken)
        return;
    if (!order->begun) { /* the line that never was there must miss */
        order->begun = true;
        order->loaded = line;
        order->broken = !missed || line != order->ways;
        return;
    }
    if (!missed)
        return;
    if (line == order->loaded) { /* it was loaded, and nothing came since */
        order->broken = true;
        return;
    }
    uint32_t way = order->way_of[line];
    order->way_of[order->loaded] = way;
    order->loaded = line;
    order->counts[way]++;
    order->total++;
    if (order->last_known) {
        order->steps[(way + order->ways - order->last_way) % order->ways]++;
        order->stepped++;
    }
    order->last_way = way;
    order->last_known = true;
}

static uint32_t draw_way(const struct eviction_null *null, uint32_t ways, struct rng *rng)
{
    if (!null->shares)
        return (uint32_t)rng_below(rng, ways);
    double left = rng_uniform(rng);
    uint32_t way = 0;
    while (way + 1 < ways && left >= null->shares[way])
        left -= null->shares[way++];
    return way;
}

static void eviction_imitate_job(struct eviction_order *order, const struct eviction_null *null,
                                 struct rng *rng)
{
    uint32_t absent = order->ways, *line_in = order->line_in;
    for (uint32_t i = 0; i < order->ways; i++)
        line_in[i] = i;
    eviction_order_begin(order);
    for (uint64_t k = 0; k < null->loads; k++) {
        uint32_t line = (uint32_t)((order->ways + k) % (order->ways + 1));
        bool missed = line == absent;
        if (missed) {
            uint32_t way = draw_way(null, order->ways, rng);
            absent = line_in[way];
            line_in[way] = line;
        }
        double wrong = missed ? null->slip : null->stray;
        eviction_order_add(order, line, missed != (rng_uniform(rng) < wrong));
    }
}

void eviction_order_imitate(struct eviction_order *order, const struct eviction_null *null)
{
    struct rng rng;
    rng_init(&rng, null->seed, "imitate");
    for (uint64_t job = 0; job < null->jobs; job++)
        eviction_imitate_job(order, null, &rng);
}

/* Chi-squared of two rows of counts as a normal deviate (Wilson and Hilferty). */
static double eviction_differ(const uint64_t *a, uint64_t all_a, const uint64_t *b, uint64_t all_b,
                              uint32_t cells)
{
    double chi2 = 0, freedom = -1, x = (double)all_a, y = (double)all_b;
    for (uint32_t i = 0; i < cells; i++) {
        double sum = (double)(a[i] + b[i]);
        if (sum <= 0)
            continue;
        chi2 += square((double)a[i] * sqrt(y / x) - (double)b[i] * sqrt(x / y)) / sum;
        freedom++;
    }
    if (freedom < 1 || !all_a || !all_b)
        return 0;
    double spread = 2 / (9 * freedom);
    return (portable_cbrt(chi2 / freedom) - (1 - spread)) / sqrt(spread);
}

/* The way whose count differs most, in standard deviations beyond those that chance gives to the
 * largest of so many. Where there are many ways, chi-squared does not see a single one. */
static double stands_out(const uint64_t *a, uint64_t all_a, const uint64_t *b, uint64_t all_b,
                         uint32_t cells)
{
    double most = 0, ratio = (double)all_a / fmax((double)all_b, 1);
    for (uint32_t i = 0; i < cells; i++) {
        double expected = (double)b[i] * ratio;
        double chance = sqrt(fmax(expected * (1 + ratio), 1));
        most = fmax(most, fabs((double)a[i] - expected) / chance);
    }
    return most - sqrt(2 * portable_log(cells));
}

double eviction_order_unequal(const struct eviction_order *order,
                              const struct eviction_order *other)
{
    return fmax(
        eviction_differ(order->counts, order->total, other->counts, other->total, order->ways),
        stands_out(order->counts, order->total, other->counts, other->total, order->ways));
}

double eviction_order_dependent(const struct eviction_order *order,
                                const struct eviction_order *other)
{
    return eviction_differ(order->steps, order->stepped, other->steps, other->stepped, order->ways);
}

enum {
    EVICTIONS = 9000, /* a share of one half is then known to 0.005 */
    EVICTIONS_FEW = 3000,
    JOBS_MAX = 4096,
    IMITATED = 4, /* times as many jobs as were followed */
    FIT_ROUNDS = 8,
};

/* Loads of one job that follow the order of misses: few enough that strays rarely mix up ways. */
static const double STRAYS_PER_JOB = 0.03;

/* Timed loads in all, where each is executed by itself, and where not. */
static const double LOADS_MOST = 4e6, LOADS_MOST_REAL = 4e7;

/* Deviations by which chance may look unequal or dependent; fewer are alike. More than CLEAR are
 * not only seen by luck. */
static const double BY_CHANCE = 4, ALIKE = 1, CLEAR = 6;

/* How much more often one way goes than each other one, as in Fermi's L1: that must be seen. */
static const double BIAS = 3;

/* Shares that differ by less than this part of an equal one may come from misjudged loads. */
static const double BIAS_LEAST = 0.25;

/* The jobs that follow one set: the array, which of its elements are in the set, how many loads
 * fill it, how many are timed, and how many of those are in the set. */
struct followed {
    struct device_array array;
    uint64_t elements, fill, loads, in_set;
    uint32_t *line_of; /* line of the set + 1; 0: another set */
    size_t jobs;
};

static void plan_followed(const struct study *study, const struct cache_sets *sets,
                          struct followed *f)
{
    bool alone = replacement_one_set(study, sets);
    double stray = fmax(sets->stray, 5e-4), per_set = (double)sets->ways + 1;
    f->array = alone ? replacement_rows(study, sets, 0, sets->ways + 1)
                     : (struct device_array){.path = study->path,
                                             .size_bytes = (sets->fits + 1) * study->line_bytes,
                                             .stride_bytes = study->line_bytes};
    f->elements = alone ? sets->ways + 1 : sets->fits + 1;
    f->fill = f->elements - 1;
    double share = per_set / (double)f->elements; /* of the loads that are in the set */
    double loads = fmax(STRAYS_PER_JOB / stray, 4 * per_set) / share;
    f->loads = (uint64_t)fmin(loads, MISS_COUNTS_KEEP);
    double each = fmax((double)f->loads * share * sets->miss_share - 2, 0.5);
    double wanted = sets->ways > REPLACEMENT_WAYS_MAX ? EVICTIONS_FEW : EVICTIONS;
    double most =
        (study->loads_are_expensive ? LOADS_MOST : LOADS_MOST_REAL) / (double)(f->loads + f->fill);
    f->jobs = (size_t)fmax(fmin(fmin(wanted / each, most), JOBS_MAX), 1);
    f->line_of = mem_array(f->elements, sizeof *f->line_of);
    for (uint64_t i = 0; i <= sets->ways; i++)
        f->line_of[alone ? i : sets->group[i]] = (uint32_t)i + 1;
    for (uint64_t k = 0; k < f->loads; k++)
        f->in_set += f->line_of[(f->fill + k) % f->elements] > 0;
}

static int eviction_follow(struct probe_context *context, const struct study *study,
                           const struct followed *f, struct eviction_order *order, struct err *err)
{
    struct device_answer *answers = NULL;
    struct device_job *jobs = mem_array(f->jobs, sizeof *jobs);
    for (size_t i = 0; i < f->jobs; i++) {
        jobs[i] = miss_counts_job(study);
        chase_add(&jobs[i], DEVICE_WARM, &f->array, f->fill);
        miss_counts_time(&jobs[i], study, &f->array, f->loads);
    }
    int rc = chase_run(context, jobs, f->jobs, study->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < f->jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[0];
        eviction_order_begin(order);
        for (uint32_t k = 0; k < sample->kept_count; k++) {
            uint32_t line = f->line_of[(f->fill + k) % f->elements];
            if (line)
                eviction_order_add(order, line - 1, sample->kept[k] > 0);
        }
    }
    chase_free(answers, f->jobs);
    return 0;
}

/* Follows an imitated policy with these shares in the same way, with so many times as many jobs. */
static void imitate(struct probe_context *context, const struct study *study,
                    const struct cache_sets *sets, const struct followed *f, const double *shares,
                    uint32_t times, struct eviction_order *out)
{
    const struct eviction_null null = {.shares = shares,
                                       .stray = sets->stray,
                                       .slip = study->slip_share,
                                       .loads = f->in_set,
                                       .jobs = times * f->jobs,
                                       .seed = probe_analysis_seed(context)};
    eviction_order_imitate(out, &null);
}

/* The shares of the ways with which imitated counts are as those seen: in short jobs some evictions
 * are not seen, of some ways more often than of others. `own` has the last imitation. */
static void fit_shares(struct probe_context *context, const struct study *study,
                       const struct cache_sets *sets, const struct followed *f,
                       const struct eviction_order *order, struct replacement *r,
                       struct eviction_order *own)
{
    for (uint32_t i = 0; i < order->ways; i++)
        r->shares[i] = (double)order->counts[i] / (double)order->total;
    for (int round = 0;; round++) {
        double sum = 0;
        eviction_order_fini(own);
        eviction_order_init(own, order->ways);
        imitate(context, study, sets, f, r->shares, IMITATED, own);
        if (round == FIT_ROUNDS || eviction_order_unequal(order, own) < ALIKE)
            return;
        for (uint32_t i = 0; i < order->ways; i++) {
            double seen = (double)order->counts[i] / (double)order->total;
            r->shares[i] *= seen * (double)own->total / fmax((double)own->counts[i], 1);
            sum += r->shares[i];
        }
        for (uint32_t i = 0; i < order->ways; i++)
            r->shares[i] /= sum;
    }
}

/* Whether a bias would be seen in as many jobs as were followed: strays may mix up the ways. */
static void would_see_bias(struct probe_context *context, const struct study *study,
                           const struct cache_sets *sets, const struct followed *f,
                           const struct eviction_order *equal, bool *out_seen)
{
    struct eviction_order biased;
    double *shares = mem_array(equal->ways, sizeof *shares);
    eviction_order_init(&biased, equal->ways);
    for (uint32_t i = 0; i < equal->ways; i++)
        shares[i] = (i == 1 ? BIAS : 1) / (equal->ways - 1 + BIAS);
    imitate(context, study, sets, f, shares, 1, &biased);
    *out_seen = eviction_order_unequal(&biased, equal) > CLEAR;
    eviction_order_fini(&biased);
    free(shares);
}

/* The share that differs most from an equal one, as a part of that. */
static double largest_bias(const double *shares, uint32_t ways)
{
    double most = 0;
    for (uint32_t i = 0; i < ways; i++)
        most = fmax(most, fabs(shares[i] * ways - 1));
    return most;
}

/* Ways that are taken independently of each other are random, with equal shares or not. */
static void judge_order(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, const struct followed *f,
                        const struct eviction_order *order, struct replacement *r)
{
    struct eviction_order equal = {0}, own = {0};
    r->n = (uint32_t)order->total;
    r->policy = REPLACEMENT_NOT_LRU;
    if (order->total < 10ull * order->ways || order->stepped < 5ull * order->ways) {
        snprintf(r->reason, sizeof r->reason, "only %llu evictions of %u ways were followed",
                 (unsigned long long)order->total, order->ways);
        return;
    }
    eviction_order_init(&equal, order->ways);
    imitate(context, study, sets, f, NULL, IMITATED, &equal);
    bool biased = eviction_order_unequal(order, &equal) > BY_CHANCE;
    bool countable = order->ways <= REPLACEMENT_WAYS_MAX, seen = true;
    if (biased && countable) {
        fit_shares(context, study, sets, f, order, r, &own);
        seen = largest_bias(r->shares, order->ways) > BIAS_LEAST;
    } else if (!biased) {
        would_see_bias(context, study, sets, f, &equal, &seen);
    }
    double dependent = eviction_order_dependent(order, biased && countable ? &own : &equal);
    if (dependent > BY_CHANCE)
        snprintf(r->reason, sizeof r->reason,
                 "which way goes depends on the one before (%.0f standard deviations)", dependent);
    else if (biased && !countable)
        snprintf(r->reason, sizeof r->reason, "some ways go more often than others");
    else if (!seen)
        snprintf(r->reason, sizeof r->reason,
                 "ways go in no order; whether all as often, %llu evictions do not tell",
                 (unsigned long long)order->total);
    else
        r->policy = biased ? REPLACEMENT_BIASED : REPLACEMENT_RANDOM;
    eviction_order_fini(&equal);
    eviction_order_fini(&own);
}

int replacement_by_order(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, struct replacement *r, struct err *err)
{
    struct eviction_order order;
    struct followed f = {0};
    eviction_order_init(&order, (uint32_t)sets->ways);
    plan_followed(study, sets, &f);
    int rc = eviction_follow(context, study, &f, &order, err);
    if (!rc)
        judge_order(context, study, sets, &f, &order, r);
    free(f.line_of);
    eviction_order_fini(&order);
    return rc;
}
