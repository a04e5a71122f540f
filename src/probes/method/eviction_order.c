/* The order of misses in one set that has one line too many. */
#include "probes/method/eviction_order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

int eviction_order_init(struct eviction_order *order, uint32_t ways)
{
    *order = (struct eviction_order){.ways = ways};
    order->way_of = mem_array(ways + 1, sizeof *order->way_of);
    order->counts = mem_array(ways, sizeof *order->counts);
    order->steps = mem_array(ways, sizeof *order->steps);
    order->line_in = mem_array(ways, sizeof *order->line_in);
    if (order->way_of && order->counts && order->steps && order->line_in)
        return 0;
    eviction_order_fini(order);
    return -ENOMEM;
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

static void imitate_job(struct eviction_order *order, const struct eviction_null *null,
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
        imitate_job(order, null, &rng);
}

/* Chi-squared of two rows of counts as a normal deviate (Wilson and Hilferty). */
static double differ(const uint64_t *a, uint64_t all_a, const uint64_t *b, uint64_t all_b,
                     uint32_t cells)
{
    double chi2 = 0, freedom = -1, x = (double)all_a, y = (double)all_b;
    for (uint32_t i = 0; i < cells; i++) {
        double sum = (double)(a[i] + b[i]);
        if (sum <= 0)
            continue;
        chi2 += pow((double)a[i] * sqrt(y / x) - (double)b[i] * sqrt(x / y), 2) / sum;
        freedom++;
    }
    if (freedom < 1 || !all_a || !all_b)
        return 0;
    double spread = 2 / (9 * freedom);
    return (cbrt(chi2 / freedom) - (1 - spread)) / sqrt(spread);
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
    return most - sqrt(2 * log(cells));
}

double eviction_order_unequal(const struct eviction_order *order,
                              const struct eviction_order *other)
{
    return fmax(differ(order->counts, order->total, other->counts, other->total, order->ways),
                stands_out(order->counts, order->total, other->counts, other->total, order->ways));
}

double eviction_order_dependent(const struct eviction_order *order,
                                const struct eviction_order *other)
{
    return differ(order->steps, order->stepped, other->steps, other->stepped, order->ways);
}
