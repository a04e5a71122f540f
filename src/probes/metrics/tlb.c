/* TLBs: levels, entries, sets, the size of a page, reach, what a miss costs, and who shares them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "probes/method/repeats.h"
#include "probes/method/tlb_penalty.h"
#include "probes/method/tlb_sharing.h"

enum { NAME_MAX_BYTES = 48, REASON_MAX = 200 };

/* A rise that is no clear level counts as a doubt above this share of the latency. */
static const double SURE = 0.99, DOUBTED = 0.5, UNCLEAR_SHARE = 0.05;
static const char METHOD[] = "pages that miss in a chase of one too many";

/* Adds tlb.l1.entries and the like, with the doubt if there is one. */
static int add(struct probe_context *context, size_t level, const char *what, double value,
               const char *unit, const struct tlb_sets *sets, struct err *err)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.%s", level + 1, what);
    struct measure *m = measures_add(context->measures, metric, value, unit, METHOD);
    if (!m)
        return err_no_memory(err);
    m->n = sets->n;
    m->confidence = *sets->doubt ? DOUBTED : SURE;
    if (*sets->doubt && measure_set_status(m, MEASURE_NOISY, sets->doubt))
        return err_no_memory(err);
    return 0;
}

static int add_missing(struct probe_context *context, size_t level, const char *what,
                       const char *reason, struct err *err)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.%s", level + 1, what);
    return measures_add_missing(context->measures, metric, MEASURE_FAILED, reason)
               ? 0
               : err_no_memory(err);
}

static int report_sets(struct probe_context *context, size_t level, const struct tlb_sets *sets,
                       struct err *err)
{
    static const char *const policies[] = {
        [TLB_UNKNOWN] = "unknown", [TLB_OLDEST] = "lru_or_fifo", [TLB_RANDOM] = "random"};
    const char *reason = *sets->doubt ? sets->doubt : "not told: it does not replace the oldest";
    char metric[NAME_MAX_BYTES];
    int rc = add(context, level, "entries", (double)sets->entries, "", sets, err);
    if (rc)
        return rc;
    rc = sets->sets ? add(context, level, "sets", (double)sets->sets, "", sets, err)
                    : add_missing(context, level, "sets", reason, err);
    if (rc)
        return rc;
    rc = sets->sets ? add(context, level, "ways", (double)sets->ways, "", sets, err)
                    : add_missing(context, level, "ways", reason, err);
    if (rc)
        return rc;
    if (sets->largest > sets->ways) {
        rc = add(context, level, "ways_largest", (double)sets->largest, "", sets, err);
        if (rc)
            return rc;
    }
    if (sets->policy == TLB_UNKNOWN)
        return add_missing(context, level, "policy", reason, err);
    snprintf(metric, sizeof metric, "tlb.l%zu.policy", level + 1);
    const char *word = policies[sets->policy];
    struct measure *m = measures_add_words(context->measures, metric, &word, 1, METHOD);
    if (!m)
        return err_no_memory(err);
    m->n = sets->n;
    m->confidence = *sets->doubt ? DOUBTED : SURE;
    return *sets->doubt && measure_set_status(m, MEASURE_NOISY, sets->doubt) ? err_no_memory(err)
                                                                             : 0;
}

static int report_penalty(struct probe_context *context, const struct tlb_levels *levels,
                          size_t number, const struct tlb_sets *sets, struct err *err)
{
    char metric[NAME_MAX_BYTES];
    double cycles[TLB_PENALTIES];
    snprintf(metric, sizeof metric, "tlb.l%zu.penalty", number + 1);
    int rc = tlb_penalty_measure(context, levels, number, sets, cycles, err);
    if (rc)
        return rc;
    struct measure *m = repeats_add(context, metric, cycles, TLB_PENALTIES, "cycles",
                                    "the same loads with all pages and with half of them");
    if (!m || repeats_settle(m))
        return err_no_memory(err);
    if (sets->policy == TLB_OLDEST)
        return 0;
    return measure_set_status(m, MEASURE_NOISY, "too low: some of the pages are always there")
               ? err_no_memory(err)
               : 0;
}

static int report_level(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_sets *sets, struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    const struct tlb_sets sure = {.n = sets->n};
    struct tlb_sharing sharing;
    int rc = report_sets(context, number, sets, err);
    if (rc)
        return rc;
    rc = report_penalty(context, levels, number, sets, err);
    if (rc)
        return rc;
    rc = add(context, number, "page", (double)level->page_bytes, "B", &sure, err);
    if (rc)
        return rc;
    rc = add(context, number, "reach", (double)(sets->entries * level->page_bytes), "B", sets, err);
    if (rc)
        return rc;
    rc = tlb_sharing_measure(context, levels, number, sets, &sharing, err);
    if (rc)
        return rc;
    if (!sharing.sms)
        return add_missing(context, number, "sms",
                           "other pages did not evict those of SM 0: sharing cannot be tested",
                           err);
    return add(context, number, "sms", sharing.sms, "", sets, err);
}

/* Small rises that are no clear level are left out, and those that neighbouring pages do not show.
 * The last large one of these is remembered. */
static int measure_sets(struct probe_context *context, struct tlb_levels *levels,
                        struct tlb_sets *sets, char unclear[REASON_MAX], struct err *err)
{
    size_t count = levels->count;
    bool in_order = true; /* the levels before replace their oldest page */
    levels->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tlb_level level = levels->levels[i];
        struct tlb_sets *own = &sets[levels->count];
        *own = (struct tlb_sets){0};
        int rc = level.page_bytes ? tlb_sets_measure(context, levels, i, own, err) : 0;
        if (rc)
            return rc;
        if (!in_order && own->shown && !*own->doubt)
            snprintf(own->doubt, sizeof own->doubt, "the level before keeps pages in no order");
        in_order = in_order && (own->policy == TLB_OLDEST || !own->shown);
        bool large = level.miss_cycles > UNCLEAR_SHARE * level.base_cycles;
        if (own->policy != TLB_OLDEST && own->shown)
            snprintf(unclear, REASON_MAX, "a level that rises slowly may hide another one");
        if (own->clear || (large && own->shown))
            levels->levels[levels->count++] = level;
        else if (large)
            snprintf(unclear, REASON_MAX,
                     "a rise by %.0f cycles between %llu and %llu pages is no clear level",
                     level.miss_cycles, (unsigned long long)level.hit_pages,
                     (unsigned long long)level.miss_pages);
    }
    return 0;
}

/* How far it was looked: what lies beyond is not known. */
static int report_count(struct probe_context *context, const struct tlb_levels *levels,
                        const char *unclear, struct err *err)
{
    struct measure *m = measures_add(context->measures, "tlb.levels", (double)levels->count, "",
                                     "rises of the latency with the number of pages");
    if (!m || facts_set_int(&m->notes, "memory", (int64_t)levels->chase.room_bytes) ||
        facts_set_int(&m->notes, "pages", (int64_t)levels->pages) ||
        facts_set_real(&m->notes, "smallest_rise", levels->smallest_cycles))
        return err_no_memory(err);
    m->confidence = *unclear ? DOUBTED : SURE;
    return *unclear && measure_set_status(m, MEASURE_NOISY, unclear) ? err_no_memory(err) : 0;
}

static int run(struct probe_context *context, struct err *err)
{
    struct tlb_levels levels;
    struct tlb_sets sets[TLB_LEVELS_MAX];
    char unclear[REASON_MAX] = "";
    struct err own = {0};
    int rc = tlb_levels_find(context, &levels, &own);
    if (!rc)
        rc = measure_sets(context, &levels, sets, unclear, &own);
    if (rc)
        return repeats_end(context, "tlb.levels", rc, &own, err);
    rc = report_count(context, &levels, unclear, err);
    for (size_t i = 0; i < levels.count && !rc; i++)
        rc = report_level(context, &levels, i, &sets[i], err);
    return rc;
}

const struct probe probe_tlb = {
    .description = {"tlb", "TLBs: levels, entries, ways, page, reach, penalty", PROFILE_FULL},
    .metrics = {"tlb.levels", "tlb.*"},
    .last = true, /* it takes all memory */
    .run = run,
};
