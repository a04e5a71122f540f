/* The levels of TLBs: how many pages each holds, of which size, and what a miss costs.
 *
 * The pages of a chase are spread over all memory, so that each has an entry of its own in every
 * TLB. As their number rises, the latency rises wherever a TLB has no more entries. */
#include "probes/method/tlb_levels.h"

#include <errno.h>
#include <math.h>

#include "base/quadrature.h"

/* A rise counts from so many standard errors, and from so many cycles on. */
static const double ERRORS_MIN = 5, CYCLES_MIN = 2, ALL_SHARE = 0.9;
enum { PAGE_BYTES_MIN = 1024 };

struct point {
    uint64_t pages;
    double mean, error;
};

struct sweep {
    struct point points[TLB_SWEEP_MAX];
    size_t count;
};

static int measure_point(struct probe_context *context, uint64_t stride, uint64_t pages,
                         struct point *out_point, struct err *err)
{
    struct page_cycles cycles;
    int rc = page_chase_measure(context, stride, pages, &cycles, err);
    if (rc)
        return rc;
    *out_point = (struct point){.pages = pages, .mean = cycles.mean, .error = cycles.error};
    return 0;
}

/* Two numbers of pages per octave: 4, 6, 8, 12, ... */
static int run_sweep(struct probe_context *context, const struct page_chase *chase,
                     struct sweep *sweep, struct err *err)
{
    sweep->count = 0;
    for (uint64_t pages = 4; pages <= chase->pages_max && sweep->count < TLB_SWEEP_MAX;
         pages += pages & (pages - 1) ? pages / 3 : pages / 2) {
        uint64_t stride = page_chase_stride(chase, pages);
        if (stride < PAGE_BYTES_MIN)
            break;
        int rc = measure_point(context, stride, pages, &sweep->points[sweep->count++], err);
        if (rc)
            return rc;
    }
    return 0;
}

static double tolerance(double error, double other)
{
    return fmax(CYCLES_MIN, ERRORS_MIN * sqrt(error * error + other * other));
}

/* A TLB that replaces at random rises slowly; where the rise is nearly over and grows again, the
 * next level begins. */
static bool next_begins(const struct sweep *sweep, size_t i, double rise)
{
    const struct point *p = sweep->points;
    if (i + 2 >= sweep->count)
        return false;
    double step = p[i + 1].mean - p[i].mean;
    return step < rise / 4 && p[i + 2].mean - p[i + 1].mean > 2 * step;
}

/* From point i on the latency rises: until it no longer does. */
static size_t end_of_rise(const struct sweep *sweep, size_t i, double base)
{
    const struct point *p = sweep->points;
    while (i + 1 < sweep->count &&
           p[i + 1].mean - p[i].mean > tolerance(p[i].error, p[i + 1].error)) {
        bool last = next_begins(sweep, i, p[i].mean - base);
        i++;
        if (last)
            break;
    }
    return i;
}

/* Pages at an unlucky distance may use few sets of a TLB: they miss before it is full. So a rise
 * counts only if it is still there at the next number of pages. */
static void drop_peaks(struct sweep *sweep)
{
    for (size_t i = 0; i + 1 < sweep->count; i++)
        if (sweep->points[i].mean > sweep->points[i + 1].mean) {
            sweep->points[i].mean = sweep->points[i + 1].mean;
            sweep->points[i].error = sweep->points[i + 1].error;
        }
}

/* A fall is no level: pages closer together than an entry reaches share it. */
static void find_rises(const struct sweep *sweep, struct tlb_levels *levels)
{
    const struct point *p = sweep->points;
    struct point base = p[0];
    levels->smallest_cycles = 0;
    for (size_t i = 1; i < sweep->count; i++) {
        double rise = p[i].mean - base.mean, least = tolerance(base.error, p[i].error);
        levels->smallest_cycles = fmax(levels->smallest_cycles, least);
        if (rise > least && levels->count < TLB_LEVELS_MAX) {
            size_t end = end_of_rise(sweep, i, base.mean);
            struct tlb_level *level = &levels->levels[levels->count++];
            *level = (struct tlb_level){.hit_pages = p[i - 1].pages,
                                        .miss_pages = p[end].pages,
                                        .far_pages = p[sweep->count - 1].pages,
                                        .base_cycles = base.mean,
                                        .miss_cycles = p[end].mean - base.mean,
                                        .error = quadrature(base.error, p[end].error)};
            if (levels->count > 1)
                level[-1].far_pages = level->hit_pages;
            i = end;
            base = p[i];
        } else if (rise < -least || p[i].error < base.error) {
            base = p[i];
        }
    }
}

/* How much longer than before the level the loads of so many pages take. */
static int rise_of(struct probe_context *context, const struct tlb_level *level, uint64_t stride,
                   uint64_t pages, double *out_cycles, struct err *err)
{
    struct point point;
    int rc = measure_point(context, stride, pages, &point, err);
    if (rc)
        return rc;
    *out_cycles = point.mean - level->base_cycles;
    return 0;
}

static uint64_t power_below(uint64_t bytes)
{
    uint64_t power = 1;
    while (power <= bytes / 2)
        power *= 2;
    return power;
}

/* The smallest number of pages that shows nearly all of the level, at two distances: one may be
 * unlucky. */
static int narrow(struct probe_context *context, const struct page_chase *chase,
                  struct tlb_level *level, struct err *err)
{
    uint64_t low = level->hit_pages, high = level->miss_pages;
    const uint64_t odd = page_chase_stride(chase, high), strides[] = {odd, power_below(odd)};
    while (high - low > 1 + low / 128) {
        uint64_t middle = low + (high - low) / 2;
        bool all = true;
        for (int i = 0; i < 2 && all; i++) {
            double cycles;
            int rc = rise_of(context, level, strides[i], middle, &cycles, err);
            if (rc)
                return rc;
            all = cycles > ALL_SHARE * level->miss_cycles;
        }
        if (all)
            high = middle;
        else
            low = middle;
    }
    level->miss_pages = high;
    return 0;
}

/* A little more pages than all that miss; at half the distance that an entry covers they share
 * entries, so that all fit. */
static int find_page(struct probe_context *context, const struct page_chase *chase,
                     struct tlb_level *level, struct err *err)
{
    uint64_t pages = level->miss_pages + level->miss_pages / 4;
    uint64_t stride = power_below(page_chase_stride(chase, pages));
    bool missed = false;
    for (; stride >= PAGE_BYTES_MIN; stride /= 2) {
        double cycles;
        int rc = rise_of(context, level, stride, pages, &cycles, err);
        if (rc)
            return rc;
        if (cycles <= level->miss_cycles / 2)
            break;
        level->page_cycles = cycles;
        missed = true;
    }
    level->page_bytes = missed && stride >= PAGE_BYTES_MIN ? 2 * stride : 0;
    return 0;
}

/* Pages two apart may use every other set only, so that half as many seemed to fit. If so, pages at
 * half the distance all miss too when there are more than twice as many; otherwise two in turn
 * share an entry, and only half of the loads miss. */
static int halve_page(struct probe_context *context, const struct page_chase *chase,
                      struct tlb_level *level, struct err *err)
{
    while (level->page_bytes / 2 >= PAGE_BYTES_MIN) {
        uint64_t stride = level->page_bytes / 2, pages = 2 * level->miss_pages;
        double cycles;
        pages += pages / 4;
        if (pages > page_chase_room(chase, stride) || pages > chase->pages_max)
            break;
        int rc = rise_of(context, level, stride, pages, &cycles, err);
        if (rc)
            return rc;
        if (cycles <= 0.75 * level->page_cycles)
            break;
        level->page_bytes = stride;
        level->miss_pages *= 2;
    }
    return 0;
}

int tlb_levels_find(struct probe_context *context, struct tlb_levels *out_levels, struct err *err)
{
    struct sweep sweep;
    struct tlb_levels levels = {0};
    int rc = page_chase_open(context, &levels.chase, err);
    if (rc)
        return rc;
    rc = run_sweep(context, &levels.chase, &sweep, err);
    if (rc)
        return rc;
    if (sweep.count < 2)
        return err_set(err, -ENODATA, "too little memory for it");
    levels.pages = sweep.points[sweep.count - 1].pages;
    drop_peaks(&sweep);
    find_rises(&sweep, &levels);
    for (size_t i = 0; i < levels.count; i++) {
        rc = narrow(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
        rc = find_page(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
        rc = halve_page(context, &levels.chase, &levels.levels[i], err);
        if (rc)
            return rc;
    }
    *out_levels = levels;
    return 0;
}
