/* The probe that tests the whole memory: wrong words, regions that are slower than the others, and
 * the latency of each region.
 *
 * A region is a range of the allocation. The GPU spreads neighbouring addresses over all channels
 * and banks of its memory, so a region is no part of the board: a slow one has weak rows, or pages
 * that were replaced. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/checks/ecc_counts.h"
#include "probes/method/repeats.h"

enum {
    PATTERNS = 2, /* an address and its inverse: every bit is once 0 and once 1 */
    REGIONS_MIN = 16,
    REGIONS_MAX = 1024, /* that the inventory lists and the page draws */
    LOADS = 1024,       /* per region */
};

static const uint64_t REGION_BYTES = UINT64_C(1) << 30;

enum kind { WRITES, READS, LATENCIES, KINDS };

/* A region is slow if it is slower than the median one by at least this share, and by
 * whole_bound_of(regions) standard deviations of all regions, in every pass of a kind. With two
 * passes of each kind and normal scatter, chance does this in less than FALSE_ALARMS of all GPUs.
 * Latencies also depend on the SM that loads: on H200s the worst of 135 regions had up to 3.9 %
 * more. */
static const double slow_shares[KINDS] = {0.02, 0.02, 0.05};

static const double FALSE_ALARMS = 1e-6;

struct errors {
    uint64_t words;  /* a word that two patterns find wrong counts twice */
    uint64_t offset; /* of the lowest one */
    uint64_t bits;
};

/* One pass over all regions of full size: ns, or cycles of a load. */
struct times {
    double *each;
    double median, scale;
};

struct whole {
    struct probe_context *context;
    struct device_memory_test test;
    struct device_memory_map map;
    size_t full; /* regions of full size */
    struct times passes[KINDS][DEVICE_PATTERN_COUNT];
    size_t pass_count[KINDS];
    double bound; /* in standard deviations */
};

/* What was asked for, unless that makes too few regions, or too many. */
static uint64_t choose_region_bytes(const struct probe_context *context)
{
    uint64_t asked = context->options->region_bytes, bytes = asked ? asked : REGION_BYTES;
    double memory_bytes;
    if (!measures_value(context->measures, "main.size", &memory_bytes))
        return bytes;
    while (bytes > DEVICE_REGION_MIN && memory_bytes < REGIONS_MIN * (double)bytes)
        bytes /= 2;
    while (memory_bytes > REGIONS_MAX * (double)bytes)
        bytes *= 2;
    return bytes;
}

/* Three kinds of passes, two of each, and n regions: 3 n q^2 = FALSE_ALARMS, where q is the
 * probability that one pass is beyond the bound. q <= exp(-bound^2 / 2) / 2 for a normal
 * distribution. */
static double whole_bound_of(size_t regions)
{
    double q = sqrt(FALSE_ALARMS / (KINDS * fmax((double)regions, 1)));
    return sqrt(-2 * portable_log(2 * q));
}

static double whole_time_of(const struct whole *whole, enum kind kind, size_t pass, size_t region)
{
    const struct device_region *r = &whole->map.regions[region];
    if (kind == LATENCIES)
        return (double)r->cycles[pass] / whole->test.loads;
    return (double)(kind == READS ? r->read_ns[pass] : r->write_ns[pass]);
}

static void whole_read_pass(struct whole *whole, enum kind kind, size_t pass)
{
    struct times *times = &whole->passes[kind][pass];
    times->each = mem_array(whole->full, sizeof *times->each);
    for (size_t i = 0; i < whole->full; i++)
        times->each[i] = whole_time_of(whole, kind, pass, i);
    times->median = cpd_median(times->each, whole->full);
    times->scale = CPD_MAD_SIGMA * cpd_mad(times->each, whole->full);
}

/* By how much a region is slower than the median one, in its best pass of this kind; 0 if that may
 * be chance. */
static double whole_loss_of(const struct whole *whole, size_t region, enum kind kind)
{
    double least = INFINITY;
    for (size_t p = 0; p < whole->pass_count[kind]; p++) {
        const struct times *times = &whole->passes[kind][p];
        double more = times->each[region] - times->median;
        if (more < slow_shares[kind] * times->median || more < whole->bound * times->scale)
            return 0;
        least = fmin(least, more / times->median);
    }
    return isfinite(least) ? least : 0;
}

static struct measure *whole_add(const struct whole *whole, const char *metric, double value,
                                 const char *unit, const char *method)
{
    struct measure *m = measures_add(whole->context->measures, metric, value, unit, method);
    m->n = whole->test.patterns;
    return m;
}

static void report_tested(const struct whole *whole)
{
    double bytes = 0;
    for (size_t i = 0; i < whole->map.region_count; i++)
        bytes += (double)whole->map.regions[i].bytes;
    struct measure *m = whole_add(whole, "main.whole.tested", bytes, "B",
                                  "written with patterns, read back and compared");
    facts_set_int(&m->notes, "free", (int64_t)whole->map.free_bytes);
    facts_set_int(&m->notes, "patterns", whole->test.patterns);
}

static struct errors sum_errors(const struct whole *whole)
{
    struct errors sum = {0};
    for (size_t i = 0; i < whole->map.region_count; i++) {
        const struct device_region *region = &whole->map.regions[i];
        if (region->wrong_words && !sum.words)
            sum.offset = i * whole->test.region_bytes + region->wrong_offset;
        sum.words += region->wrong_words;
        sum.bits |= region->wrong_bits;
    }
    return sum;
}

static void report_errors(const struct whole *whole)
{
    struct errors errors = sum_errors(whole);
    struct measure *m = whole_add(whole, "main.whole.errors", (double)errors.words, "",
                                  "wrong words of 8 bytes, over all patterns");
    if (!errors.words)
        return;
    char *bits = str_format("%#llx", (unsigned long long)errors.bits);
    facts_set_text(&m->notes, "bits", bits);
    free(bits);
    whole_add(whole, "main.whole.first_error", (double)errors.offset, "B",
              "offset of the lowest wrong word in the memory that was tested");
}

static double mean_of(const struct whole *whole, enum kind kind, size_t region)
{
    double sum = 0;
    for (size_t p = 0; p < whole->pass_count[kind]; p++)
        sum += whole->passes[kind][p].each[region];
    return sum / (double)whole->pass_count[kind];
}

/* By region: GB/s or cycles, averaged over the passes of one kind. */
static void whole_note_map(const struct whole *whole, enum kind kind, struct measure *m,
                           const char *key)
{
    double *map = mem_array(whole->full, sizeof *map);
    for (size_t i = 0; i < whole->full; i++) {
        double mean = mean_of(whole, kind, i);
        map[i] =
            facts_decimals(kind == LATENCIES ? mean : (double)whole->test.region_bytes / mean, 0);
    }
    facts_set_numbers(&m->notes, key, map, whole->full);
    free(map);
}

static void whole_note_rates(const struct whole *whole, struct measure *m)
{
    if (!whole->full)
        return;
    facts_set_int(&m->notes, "region_bytes", (int64_t)whole->test.region_bytes);
    whole_note_map(whole, WRITES, m, "write_map");
    whole_note_map(whole, READS, m, "read_map");
}

static const struct slow_metric {
    enum kind first, last;
    const char *count, *count_method, *place, *place_method;
} by_rate = {WRITES,
             READS,
             "main.whole.slow_regions",
             "slower than the median region in every pass of writing, or of reading",
             "main.whole.slowest_region",
             "offset of the slowest region in the memory that was tested"},
  by_latency = {LATENCIES,
                LATENCIES,
                "main.whole.late_regions",
                "latency higher than that of the median region, twice",
                "main.whole.latency_worst_region",
                "offset of the region with the highest latency in the memory that was tested"};

static void report_slow(const struct whole *whole, const struct slow_metric *metric)
{
    size_t slow = 0, worst = 0;
    double most = 0;
    for (size_t i = 0; i < whole->full; i++) {
        double loss =
            fmax(whole_loss_of(whole, i, metric->first), whole_loss_of(whole, i, metric->last));
        slow += loss > 0;
        worst = loss > most ? i : worst;
        most = fmax(loss, most);
    }
    struct measure *m = whole_add(whole, metric->count, (double)slow, "", metric->count_method);
    if (metric == &by_rate)
        whole_note_rates(whole, m);
    if (!slow)
        return;
    facts_set_real(&m->notes, "loss", most);
    whole_add(whole, metric->place, (double)(worst * whole->test.region_bytes), "B",
              metric->place_method);
}

static void whole_report_latency(const struct whole *whole)
{
    double *cycles = mem_array(whole->full, sizeof *cycles), worst = 0;
    for (size_t i = 0; i < whole->full; i++) {
        cycles[i] = mean_of(whole, LATENCIES, i);
        worst = fmax(worst, cycles[i]);
    }
    struct measure *m = repeats_add(whole->context, "main.whole.latency", cycles, whole->full,
                                    "cycles", "dependent loads at random places of each region");
    if (m)
        m->spread = CPD_MAD_SIGMA * cpd_mad(cycles, whole->full);
    facts_set_real(&m->notes, "worst_cycles", worst);
    whole_note_map(whole, LATENCIES, m, "map");
    free(cycles);
    if (whole->pass_count[LATENCIES] > 1)
        report_slow(whole, &by_latency);
}

static void whole_report(struct whole *whole)
{
    while (whole->full < whole->map.region_count &&
           whole->map.regions[whole->full].bytes == whole->test.region_bytes)
        whole->full++;
    whole->bound = whole_bound_of(whole->full);
    /* Without cycles of a second chase, one chase was made: whether a region is late is not known.
     */
    bool again = whole->full && whole->map.regions[0].cycles[1];
    whole->pass_count[WRITES] = whole->pass_count[READS] = whole->test.patterns;
    whole->pass_count[LATENCIES] = again ? DEVICE_CHASES : 1;
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (size_t p = 0; p < whole->pass_count[kind]; p++)
            whole_read_pass(whole, kind, p);
    report_tested(whole);
    report_errors(whole);
    if (whole->map.ecc_known)
        ecc_counts_add(whole->context->measures, "main.whole.ecc_corrected",
                       "main.whole.ecc_uncorrected", &whole->map.ecc_before, &whole->map.ecc_after,
                       whole->test.patterns);
    report_slow(whole, &by_rate);
    if (!whole->full)
        return;
    whole_report_latency(whole);
}

static int whole_run(struct probe_context *context, struct err *err)
{
    struct whole whole = {
        .context = context,
        .test = {.patterns =
                     context->options->profile == PROFILE_FULL ? DEVICE_PATTERN_COUNT : PATTERNS,
                 .region_bytes = choose_region_bytes(context),
                 .loads = LOADS,
                 .seed = probe_seed(context)},
    };
    struct err own = {0};
    int rc = device_test_memory(context->device, &whole.test, &whole.map, &own);
    if (rc)
        return repeats_end(context, "main.whole.errors", rc, &own, err);
    whole_report(&whole);
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (size_t p = 0; p < DEVICE_PATTERN_COUNT; p++)
            free(whole.passes[kind][p].each);
    device_memory_map_fini(&whole.map);
    return rc;
}

const struct probe probe_memory_whole = {
    .description = {"memory.whole", "all free memory, written, read back and compared",
                    PROFILE_FULL},
    .depends = {"main.size"},
    .metrics = {"main.whole.tested", "main.whole.errors", "main.whole.first_error",
                "main.whole.ecc_corrected", "main.whole.ecc_uncorrected", "main.whole.slow_regions",
                "main.whole.slowest_region", "main.whole.latency", "main.whole.late_regions",
                "main.whole.latency_worst_region"},
    .last = true, /* it takes all memory */
    .run = whole_run,
};
