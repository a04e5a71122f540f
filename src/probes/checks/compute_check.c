/* The probe that checks whether every SM computes right: all warps of all SMs execute the same
 * programs, unit by unit, and must have the hash that the host computed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "probes/checks/places.h"
#include "probes/method/repeats.h"

enum { TARGET_MS = 8, FULL_TARGET_MS = 400 };

/* By unit, in the order of enum device_unit. */
static const struct {
    const char *wrong, *rate; /* no rate: the unit is not kept busy */
} metrics[DEVICE_UNIT_COUNT] = {
    {"compute.wrong_in.int", "compute.rate.int"},
    {"compute.wrong_in.fp32", "compute.rate.fp32"},
    {"compute.wrong_in.fp64", "compute.rate.fp64"},
    {"compute.wrong_in.mma_f16", "compute.rate.mma_f16"},
    {"compute.wrong_in.mma_bf16", "compute.rate.mma_bf16"},
    {"compute.wrong_in.mma_fp8", "compute.rate.mma_fp8"},
    {"compute.wrong_in.wgmma_f16", "compute.rate.wgmma_f16"},
    {"compute.wrong_in.wgmma_bf16", "compute.rate.wgmma_bf16"},
    {"compute.wrong_in.wgmma_fp8", "compute.rate.wgmma_fp8"},
    {"compute.wrong_in.shared", NULL},
    {"compute.wrong_in.registers", NULL},
    {"compute.wrong_in.atomics", NULL},
};

/* What all units found together. */
struct found {
    uint64_t hashes, wrong;
    uint32_t units;        /* that were checked */
    uint32_t least_places; /* sub-cores that gave a hash, in the unit where it was fewest */
    struct strbuf other;   /* units in which all SMs agree on an answer that is not the host's */
    uint32_t *wrong_by_sm;
    size_t sm_count;
    struct slowest_place slowest; /* in units that are kept busy */
    enum device_unit slowest_unit;
};

/* True when every hash is wrong in the same way: then the host's answer does not hold for this GPU,
 * and nothing is known of a single SM. */
static bool agree_otherwise(const struct device_check_answer *answer)
{
    for (size_t i = 0; i < answer->place_count; i++) {
        const struct device_check_place *place = &answer->places[i];
        if (place->wrong != place->count ||
            (i && place->wrong_hash != answer->places[0].wrong_hash))
            return false;
    }
    return answer->place_count > 1 && answer->places[0].count > 0;
}

static void add_wrong(struct probe_context *context, enum device_unit unit,
                      const struct device_check_answer *answer, struct found *found)
{
    const struct places sum = places_sum(answer->places, answer->place_count);
    for (size_t i = 0; i < answer->place_count; i++)
        if (i / DEVICE_SUB_CORES < found->sm_count)
            found->wrong_by_sm[i / DEVICE_SUB_CORES] += answer->places[i].wrong;
    found->hashes += sum.count;
    found->wrong += sum.wrong;
    if (!found->units || sum.with_hashes < found->least_places)
        found->least_places = sum.with_hashes;
    if (!sum.wrong)
        return;
    struct measure *m = measures_add(context->measures, metrics[unit].wrong, (double)sum.wrong, "",
                                     "hashes of warps that are not the host's");
    facts_set_int(&m->notes, "of", (int64_t)sum.count);
    facts_set_int(&m->notes, "sm", (int64_t)(sum.worst / DEVICE_SUB_CORES));
    facts_set_int(&m->notes, "sub_core", (int64_t)(sum.worst % DEVICE_SUB_CORES));
    m->n = (uint32_t)(sum.count < UINT32_MAX ? sum.count : UINT32_MAX);
}

static void add_rate(struct probe_context *context, enum device_unit unit,
                     const struct device_check_answer *answer, struct found *found)
{
    if (!metrics[unit].rate || !answer->cycles)
        return;
    /* Of the step of `int`, a multiply-add and a logical operation, the device counts two. */
    double counted = unit == DEVICE_UNIT_INT ? 1.5 : 1;
    measures_add(context->measures, metrics[unit].rate,
                 counted * (double)answer->operations / (double)answer->cycles, MEASURE_OPERATIONS,
                 "operations of an SM in a cycle, while it is checked");
    if (places_slowest(answer->places, answer->place_count, &found->slowest))
        found->slowest_unit = unit;
}

static int check_unit(struct probe_context *context, enum device_unit unit, struct found *found,
                      struct err *err)
{
    const struct device_check check = {
        .unit = unit,
        .target_ms = context->options->profile == PROFILE_FULL ? FULL_TARGET_MS : TARGET_MS,
        .seed = (uint32_t)probe_seed(context)};
    struct device_check_answer answer;
    struct err own = {0};
    int rc = device_check_unit(context->device, &check, &answer, &own);
    if (rc == -ENOTSUP)
        return 0;
    if (rc)
        return err_set(err, rc, "%s: %s", device_unit_name(unit), own.text);
    if (agree_otherwise(&answer))
        strbuf_printf(&found->other, "%s%s", found->other.length ? " " : "",
                      device_unit_name(unit));
    else
        add_wrong(context, unit, &answer, found);
    found->units++;
    add_rate(context, unit, &answer, found);
    device_check_answer_fini(&answer);
    return 0;
}

static void report_slowest(struct probe_context *context, const struct found *found)
{
    size_t place = found->slowest.place;
    if (found->slowest.ratio <= 0) /* by an older record */
        return;
    struct measure *m = measures_add(context->measures, "compute.slowest", found->slowest.ratio, "",
                                     "time of the slowest sub-core over that of the median one, in "
                                     "the unit where it is most");
    facts_set_text(&m->notes, "in", device_unit_name(found->slowest_unit));
    facts_set_int(&m->notes, "sub_core", (int64_t)(place % DEVICE_SUB_CORES));
    measures_add(context->measures, "compute.slowest_sm", (double)(place / DEVICE_SUB_CORES), "id",
                 "the SM of the slowest sub-core");
}

static void compute_check_report(struct probe_context *context, struct found *found)
{
    size_t worst = 0;
    for (size_t i = 0; i < found->sm_count; i++)
        worst = found->wrong_by_sm[i] > found->wrong_by_sm[worst] ? i : worst;
    struct measure *m = measures_add(context->measures, "compute.wrong", (double)found->wrong, "",
                                     "hashes of warps that are not the host's, over all units");
    facts_set_int(&m->notes, "of", (int64_t)found->hashes);
    facts_set_int(&m->notes, "units", found->units);
    facts_set_int(&m->notes, "sub_cores", found->least_places);
    if (found->other.length)
        facts_set_text(&m->notes, "not_as_host", found->other.data);
    m->n = (uint32_t)(found->hashes < UINT32_MAX ? found->hashes : UINT32_MAX);
    report_slowest(context, found);
    if (!found->wrong)
        return;
    m = measures_add(context->measures, "compute.wrong_sm", (double)worst, "id",
                     "the SM with the most wrong hashes");
    facts_set_int(&m->notes, "wrong", found->wrong_by_sm[worst]);
}

static int compute_check_run(struct probe_context *context, struct err *err)
{
    struct found found = {.sm_count = device_limits(context->device)->sm_count};
    int rc = 0;
    found.wrong_by_sm = mem_array(found.sm_count ? found.sm_count : 1, sizeof *found.wrong_by_sm);
    for (int unit = 0; unit < DEVICE_UNIT_COUNT && !rc; unit++)
        rc = check_unit(context, (enum device_unit)unit, &found, err);
    if (!rc && found.units)
        compute_check_report(context, &found);
    else if (!rc)
        repeats_unsupported(context, "compute.wrong", "this device cannot check its SMs");
    free(found.wrong_by_sm);
    strbuf_fini(&found.other);
    return rc;
}

const struct probe probe_compute_check = {
    .description = {"compute.check", "whether every SM computes right", PROFILE_STANDARD},
    .metrics = {"compute.wrong",
                "compute.wrong_sm",
                "compute.wrong_in.int",
                "compute.wrong_in.fp32",
                "compute.wrong_in.fp64",
                "compute.wrong_in.mma_f16",
                "compute.wrong_in.mma_bf16",
                "compute.wrong_in.mma_fp8",
                "compute.wrong_in.wgmma_f16",
                "compute.wrong_in.wgmma_bf16",
                "compute.wrong_in.wgmma_fp8",
                "compute.wrong_in.shared",
                "compute.wrong_in.registers",
                "compute.wrong_in.atomics",
                "compute.rate.int",
                "compute.rate.fp32",
                "compute.rate.fp64",
                "compute.rate.mma_f16",
                "compute.rate.mma_bf16",
                "compute.rate.mma_fp8",
                "compute.rate.wgmma_f16",
                "compute.rate.wgmma_bf16",
                "compute.rate.wgmma_fp8",
                "compute.slowest",
                "compute.slowest_sm"},
    .run = compute_check_run,
};
