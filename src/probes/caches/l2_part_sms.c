/* The probe that tells which SMs are near which part of L2.
 *
 * Atomics are executed where a line has its home, whatever copies there are. All SMs time atomics
 * on the same lines, so that SMs of one part see the same lines near. l2.latency has found the
 * parts of some SMs, or of all, by loads: both must agree. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/caches/l2_parts.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum {
    LINES = 128, /* that every SM asks */
    ATOMICS = 2, /* timed together: a disturbance spoils few of them */
    REASON_MAX = 160,
};

static const char METRIC[] = "l2.part_sms";

/* Another part is further away by this share of what it is for loads; or, if loads show one part,
 * by this share of an atomic. Within a part of an H200, SMs are up to 10 % apart. */
static const double GAP_SHARE = 0.5, GAP_ALONE = 0.2;

static int ask_passes(struct probe_context *context, struct l2_hits *hits, struct err *err)
{
    const struct device_sm_map map = {.kind = DEVICE_SM_MAP_ATOMICS,
                                      .footprint_bytes = DEVICE_REGION_MIN,
                                      .regions = LINES,
                                      .loads = ATOMICS};
    for (size_t pass = 0; pass < L2_PASSES; pass++) {
        struct device_sm_map_answer answer;
        int rc = device_map_sms(context->device, &map, &answer, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < answer.value_count; i++)
            hits->cycles[(i / LINES * L2_PASSES + pass) * LINES + i % LINES] =
                (uint32_t)(answer.values[i] / ATOMICS);
        device_sm_map_answer_fini(&answer);
    }
    return 0;
}

/* Whether the parts by loads are the same as those by atomics, as far as they are known. */
static bool l2_parts_agree(const struct l2_study *l2, const struct l2_parts *atomics, size_t sms)
{
    int same[L2_PARTS_MAX];
    if (l2->parts != (atomics->count ? atomics->count : 1))
        return false;
    for (size_t i = 0; i < L2_PARTS_MAX; i++)
        same[i] = -1;
    for (size_t sm = 0; atomics->count && sm < sms && sm < L2_MAP_MAX; sm++) {
        if (!l2->seen_part[sm])
            continue;
        int *other = &same[l2->seen_part[sm] - 1], own = atomics->part_of_sm[sm];
        if (*other >= 0 && *other != own)
            return false;
        *other = own;
    }
    for (size_t i = 0; i < L2_PARTS_MAX; i++)
        for (size_t k = 0; k < i; k++)
            if (same[i] >= 0 && same[i] == same[k])
                return false;
    return true;
}

static void note_parts(struct measure *m, const char *key, const uint8_t *parts, size_t sms,
                       int first)
{
    double *numbers = mem_array(sms, sizeof *numbers);
    for (size_t sm = 0; sm < sms; sm++)
        numbers[sm] = parts[sm] >= first ? parts[sm] - first : NAN;
    facts_set_numbers(&m->notes, key, numbers, sms);
    free(numbers);
}

/* Mean cycles of an atomic at home in the SM's part, or in another one. */
static double atomic_cycles(const struct l2_hits *hits, const struct l2_parts *parts, bool near)
{
    struct l2_values values = {0};
    for (size_t sm = 0; sm < hits->sms; sm++)
        for (size_t i = 0; i < L2_PASSES * hits->elements; i++)
            if ((parts->part_of_sm[sm] == parts->home_of_element[i % hits->elements]) == near)
                l2_values_add(&values, l2_hit(hits, sm, 0, i));
    double mean = l2_values_mean(&values);
    l2_values_fini(&values);
    return facts_decimals(mean, 1);
}

/* Parts are numbered as their first SMs are, so that SM 0 is near part 0. */
static void number_parts(struct l2_parts *parts, size_t sms, double *out_sizes)
{
    uint8_t names[L2_PARTS_MAX], next = 0;
    bool named[L2_PARTS_MAX] = {0};
    for (size_t sm = 0; sm < sms; sm++) {
        uint8_t *part = &parts->part_of_sm[sm];
        if (!named[*part]) {
            named[*part] = true;
            names[*part] = next++;
        }
        *part = names[*part];
        out_sizes[*part]++;
    }
    for (size_t e = 0; e < LINES; e++)
        parts->home_of_element[e] = names[parts->home_of_element[e]];
}

static void report_part_sms(struct probe_context *context, const struct l2_hits *hits,
                            struct l2_parts *parts)
{
    const struct l2_study *l2 = &context->l2;
    double sizes[L2_PARTS_MAX] = {0};
    if (!l2_parts_agree(l2, parts, hits->sms)) {
        char reason[REASON_MAX];
        snprintf(reason, sizeof reason, "%u part%s by loads, %u by atomics, or other SMs near them",
                 l2->parts, l2->parts > 1 ? "s" : "", parts->count ? parts->count : 1);
        struct measure *m = measures_add_missing(context->measures, METRIC, MEASURE_FAILED, reason);
        note_parts(m, "by_atomics", parts->part_of_sm, hits->sms, 0);
        note_parts(m, "by_loads", l2->seen_part, hits->sms < L2_MAP_MAX ? hits->sms : L2_MAP_MAX,
                   1);
        return;
    }
    if (parts->count)
        number_parts(parts, hits->sms, sizes);
    else
        sizes[0] = (double)hits->sms;
    struct measure *m =
        measures_add(context->measures, METRIC, sizes[0], "", "atomics at homes, loads agree");
    m->n = LINES;
    m->confidence =
        fmin(l2->parts_confidence, parts->count ? parts->confidence : l2->parts_confidence);
    for (size_t i = 1; i < parts->count; i++)
        m->value = fmin(m->value, sizes[i]);
    facts_set_numbers(&m->notes, "sizes", sizes, parts->count ? parts->count : 1);
    if (!parts->count)
        return;
    note_parts(m, "map", parts->part_of_sm, hits->sms, 0);
    facts_set_real(&m->notes, "atomic_near", atomic_cycles(hits, parts, true));
    facts_set_real(&m->notes, "atomic_far", atomic_cycles(hits, parts, false));
}

static int run_part_sms(struct probe_context *context, struct err *err)
{
    struct l2_hits hits = {.sms = device_limits(context->device)->sm_count, .elements = LINES};
    struct l2_parts parts = {0};
    struct l2_values all = {0};
    if (hits.sms < 2) {
        repeats_unsupported(context, METRIC, "there is only one SM to see L2 from");
        return 0;
    }
    int rc = l2_reach(context, L2_LEVEL, err);
    if (rc)
        return rc;
    hits.cycles = mem_array(hits.sms * L2_PASSES * LINES, sizeof *hits.cycles);
    rc = ask_passes(context, &hits, err);
    if (!rc) {
        for (size_t i = 0; i < hits.sms * L2_PASSES * LINES; i++)
            l2_values_add(&all, hits.cycles[i]);
        l2_values_sort(&all);
        double gap = context->l2.level_count > 1
                         ? GAP_SHARE * (context->l2.levels[1] - context->l2.levels[0])
                         : GAP_ALONE * l2_values_quantile(&all, 0.25);
        l2_look_for_homes(&hits, gap, &parts);
        report_part_sms(context, &hits, &parts);
    }
    l2_values_fini(&all);
    l2_parts_fini(&parts);
    free(hits.cycles);
    return rc;
}

const struct probe probe_l2_part_sms = {
    .description = {"l2.part_sms", "which SMs are near which part of L2", PROFILE_STANDARD},
    .depends = {"l2.latency"},
    .metrics = {"l2.part_sms"},
    .run = run_part_sms,
};
