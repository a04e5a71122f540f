/* Single loads of many samples together: their centre without spikes, and the threshold between two
 * kinds of loads. */
#include "probes/method/pool.h"

#include <math.h>

#include "base/portable_math.h"
#include "cpd/cpd.h"

/* Ordinary loads lie within SPIKE_SIGMA deviations, or there are as many beyond on the fast side.
 * Loads beyond SPIKE_SIGMA_SURE are certainly spikes, so that a few spikes are not lost in the
 * difference between both sides. */
static const double SPIKE_SIGMA = 3, SPIKE_SIGMA_SURE = 5;

/* A coarse timer shows values at least COARSE_STEP bins apart, each with at least COARSE_SHARE of
 * the loads, and together COARSE_TOGETHER. Its step matters if loads scatter by less than
 * COARSE_SIGMAS steps; within ORDINARY_STEPS there are no spikes. */
static const double COARSE_STEP = 4, COARSE_SHARE = 0.02, COARSE_TOGETHER = 0.5;

static const double COARSE_SIGMAS = 1.5, ORDINARY_STEPS = 2.5;

/* The slowest loads, which include the spikes. */
static const double TAIL_SHARE = 0.1;

/* Two peaks are at least this far apart (as a share of the near one, and in steps of the timer).
 * The middle third between them has at most VALLEY_SHARE of the loads, and fewer than around either
 * peak; the smaller peak has at least PEAK_SHARE_MIN. Peaks are searched in the body; slower loads
 * are a tail. */
static const double PEAK_GAP_SHARE = 0.03, PEAK_GAP_STEPS = 3, VALLEY_SHARE = 0.08;

static const double PEAK_OVER_VALLEY = 3, PEAK_SHARE_MIN = 0.2, BODY_SHARE = 0.95;

void pool_add(struct pool *pool, const struct device_sample *sample)
{
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        pool->counts[sample->bins[i].bin] += sample->bins[i].count;
        pool->all += sample->bins[i].count;
    }
}

void pool_add_load(struct pool *pool, double cycles)
{
    pool->counts[device_bin_of((uint32_t)cycles)]++;
    pool->all++;
}

void pool_cut(struct pool *pool, double cycles)
{
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++) {
        if (device_bin_cycles(bin) <= cycles)
            continue;
        pool->all -= pool->counts[bin];
        pool->counts[bin] = 0;
    }
}

void pool_join(struct pool *pool, const struct pool *other)
{
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++)
        pool->counts[bin] += other->counts[bin];
    pool->all += other->all;
}

static uint32_t next_used(const struct pool *pool, uint32_t bin)
{
    while (bin < DEVICE_BIN_COUNT && !pool->counts[bin])
        bin++;
    return bin;
}

/* The smallest distance between two readings: at least the step of the timer. */
static double reading_step(const struct pool *pool)
{
    double step = INFINITY;
    uint32_t bin = next_used(pool, 0), next;
    for (; (next = next_used(pool, bin + 1)) < DEVICE_BIN_COUNT; bin = next)
        step = fmin(step, device_bin_cycles(next) - device_bin_cycles(bin));
    return step;
}

/* The step of the timer if it is the reason why loads differ: the smallest distance between values
 * that many loads have. Otherwise 0. */
static double coarse_step(const struct pool *pool)
{
    double before = NAN, step = INFINITY, together = 0;
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT;
         bin = next_used(pool, bin + 1)) {
        if (bin + 1 == DEVICE_BIN_COUNT ||
            (double)pool->counts[bin] < COARSE_SHARE * (double)pool->all)
            continue;
        double cycles = device_bin_cycles(bin);
        double least = COARSE_STEP * (device_bin_cycles(bin + 1) - cycles);
        if (!isnan(before) && cycles - before < least)
            return 0;
        step = isnan(before) ? step : fmin(step, cycles - before);
        before = cycles;
        together += (double)pool->counts[bin];
    }
    return isfinite(step) && together >= COARSE_TOGETHER * (double)pool->all ? step : 0;
}

static double bin_width(uint32_t bin)
{
    bin -= bin + 1 == DEVICE_BIN_COUNT;
    return device_bin_cycles(bin + 1) - device_bin_cycles(bin);
}

/* A bin reaches half way to its used neighbours, so that a timer with larger steps does no harm,
 * but no further than half such a step. In the tail, where the few loads above may be spikes, the
 * step below is used. */
double pool_quantile(const struct pool *pool, double q)
{
    double wanted = q * (double)pool->all, seen = 0, low = NAN, step = coarse_step(pool);
    double before = 0; /* distance from the used bin below */
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT;) {
        uint32_t next = next_used(pool, bin + 1);
        double middle = device_bin_cycles(bin), count = (double)pool->counts[bin];
        double gap = next < DEVICE_BIN_COUNT ? device_bin_cycles(next) - middle : 0;
        bool tail = (double)pool->all - seen - count < TAIL_SHARE * (double)pool->all;
        double step_here = step > 0 ? step : tail ? fmax(before, bin_width(bin)) : INFINITY;
        double high = middle + fmin(gap, step_here) / 2;
        low = isnan(low) ? 2 * middle - high : fmax(low, middle - step_here / 2);
        if (seen + count >= wanted)
            return low + (high - low) * (wanted - seen) / count;
        seen += count;
        low = high;
        before = gap;
        bin = next;
    }
    return low;
}

static double share_between(const struct pool *pool, double from, double to)
{
    uint64_t count = 0;
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++) {
        double cycles = device_bin_cycles(bin);
        if (pool->counts[bin] && cycles > from && cycles < to)
            count += pool->counts[bin];
    }
    return (double)count / (double)pool->all;
}

double pool_lower_mean(const struct pool *pool, double share)
{
    double left = share * (double)pool->all, count = left, sum = 0;
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT && left > 0;
         bin = next_used(pool, bin + 1)) {
        double taken = fmin(left, (double)pool->counts[bin]);
        sum += taken * device_bin_cycles(bin);
        left -= taken;
    }
    return sum / (count - left);
}

double pool_mean(const struct pool *pool)
{
    return pool_lower_mean(pool, 1);
}

double pool_share_below(const struct pool *pool, double cycles)
{
    return share_between(pool, -INFINITY, nextafter(cycles, INFINITY));
}

/* The division of the body into two sides with the largest variance between them. */
struct parting {
    double share;     /* share of all loads that is below */
    double low, high; /* means of the body's two sides */
};

static struct parting best_parting(const struct pool *pool)
{
    struct parting best = {0};
    double body = BODY_SHARE * (double)pool->all,
           total = BODY_SHARE * pool_lower_mean(pool, BODY_SHARE);
    double seen = 0, sum = 0, most = 0;
    total *= (double)pool->all;
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT;
         bin = next_used(pool, bin + 1)) {
        seen += (double)pool->counts[bin];
        sum += (double)pool->counts[bin] * device_bin_cycles(bin);
        if (seen >= body)
            break;
        double low = sum / seen, high = (total - sum) / (body - seen);
        double between = seen * (body - seen) * (high - low) * (high - low);
        if (between > most) {
            most = between;
            best = (struct parting){.share = seen / (double)pool->all, .low = low, .high = high};
        }
    }
    return best;
}

double pool_reading(const struct pool *pool, double q)
{
    double wanted = q * (double)pool->all, seen = 0, width = 0;
    uint32_t bin = next_used(pool, 0);
    while (seen + (double)pool->counts[bin] < wanted &&
           next_used(pool, bin + 1) < DEVICE_BIN_COUNT) {
        seen += (double)pool->counts[bin];
        bin = next_used(pool, bin + 1);
    }
    if (bin > 0 && bin + 1 < DEVICE_BIN_COUNT)
        width = (device_bin_cycles(bin + 1) - device_bin_cycles(bin - 1)) / 2;
    width = width > 1 ? width : 0;
    return device_bin_cycles(bin) + width * ((wanted - seen) / (double)pool->counts[bin] - 0.5);
}

/* Share of the loads in a third of the gap, around `centre`. */
static double share_around(const struct pool *pool, double cycles, double gap)
{
    return share_between(pool, cycles - gap / 6, cycles + gap / 6);
}

bool pool_peaks(const struct pool *pool, double *out_near, double *out_far)
{
    const struct parting parting = best_parting(pool);
    double gap = parting.high - parting.low, middle = (parting.high + parting.low) / 2;
    double low = share_around(pool, parting.low, gap), high = share_around(pool, parting.high, gap);
    double valley = share_around(pool, middle, gap);
    bool apart = gap > PEAK_GAP_SHARE * parting.low && gap > PEAK_GAP_STEPS * reading_step(pool);
    bool both = parting.share >= PEAK_SHARE_MIN && parting.share <= 1 - PEAK_SHARE_MIN;
    if (!apart || !both || valley > VALLEY_SHARE || fmin(low, high) < PEAK_OVER_VALLEY * valley)
        return false;
    *out_near = pool_reading(pool, parting.share / 2);
    *out_far = pool_reading(pool, (1 + parting.share) / 2);
    return true;
}

/* Of all loads, slow ones too, about their mean. */
static double pool_deviation(const struct pool *pool)
{
    const double mean = pool_mean(pool);
    double sum = 0;
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++)
        sum += (double)pool->counts[bin] * square(device_bin_cycles(bin) - mean);
    return pool->all > 1 ? sqrt(sum / (double)(pool->all - 1)) : 0;
}

void pool_note_distribution(const struct pool *pool, double overhead, struct facts *notes)
{
    facts_set_real(notes, "p50", pool_reading(pool, 0.5) - overhead);
    facts_set_real(notes, "p95", pool_reading(pool, 0.95) - overhead);
    facts_set_real(notes, "sd", facts_decimals(pool_deviation(pool), 2));
}

/* A coarse timer reads the right mean, since loads begin at any point of its step. The scatter of
 * the loads is what the step does not explain. */
static struct pool_centre coarse_centre(const struct pool *pool, double median, double sigma,
                                        double step)
{
    double sum = 0, squares = 0, count = 0, spikes = 0;
    double limit = fmax(ORDINARY_STEPS * step, SPIKE_SIGMA * sigma);
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT;
         bin = next_used(pool, bin + 1)) {
        double cycles = device_bin_cycles(bin), loads = (double)pool->counts[bin];
        if (fabs(cycles - median) > limit) {
            spikes += cycles > median ? loads : -loads;
            continue;
        }
        count += loads;
        sum += loads * cycles;
        squares += loads * cycles * cycles;
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    double phase = (mean - floor(mean / step) * step) / step;
    double own = variance - step * step * phase * (1 - phase);
    return (struct pool_centre){.cycles = mean,
                                .error = sqrt(variance / count),
                                .sigma = own > 0 ? sqrt(own) : 0,
                                .spike_share = fmax(0, spikes / (double)pool->all),
                                .step = step};
}

/* Loads slower than the median by more than this, less those that are faster by as much. */
static double excess_beyond(const struct pool *pool, double median, double cycles)
{
    return share_between(pool, median + cycles, INFINITY) -
           share_between(pool, -INFINITY, median - cycles);
}

struct pool_centre pool_centre(const struct pool *pool)
{
    double median = pool_quantile(pool, 0.5);
    double above = pool_quantile(pool, 0.75) - median;
    struct pool_centre centre = {.sigma = above / CPD_QUARTILE_SIGMA};
    double step = coarse_step(pool);
    if (centre.sigma < COARSE_SIGMAS * step)
        return coarse_centre(pool, median, centre.sigma, step);
    centre.spike_share =
        fmax(0, fmax(excess_beyond(pool, median, SPIKE_SIGMA * centre.sigma),
                     excess_beyond(pool, median, SPIKE_SIGMA_SURE * centre.sigma)));
    centre.cycles = pool_quantile(pool, (1 - centre.spike_share) / 2);
    centre.error = CPD_MEDIAN_ERROR * centre.sigma / sqrt((double)pool->all);
    return centre;
}

/* Tells two levels apart by the latency of a load, from the distributions of both. */

/* Shares that differ by less count as equal: a few loads of thousands. */
static const double EQUAL_SHARE = 0.002;

struct contrast contrast_between(const struct pool *faster, const struct pool *slower)
{
    double middle = (pool_centre(faster).cycles + pool_centre(slower).cycles) / 2;
    double stray = 1, slip = 0, least = INFINITY, distance = INFINITY;
    struct contrast best = {.threshold = middle};
    for (uint32_t bin = 0; bin + 1 < DEVICE_BIN_COUNT; bin++) {
        stray -= (double)faster->counts[bin] / (double)faster->all;
        slip += (double)slower->counts[bin] / (double)slower->all;
        double threshold = (device_bin_cycles(bin) + device_bin_cycles(bin + 1)) / 2;
        double apart = fabs(threshold - middle), wrong = stray + slip;
        bool better =
            wrong < least - EQUAL_SHARE || (wrong < least + EQUAL_SHARE && apart < distance);
        if (!better)
            continue;
        least = fmin(least, wrong);
        distance = apart;
        best = (struct contrast){threshold, fmax(0, stray), slip};
    }
    return best;
}
