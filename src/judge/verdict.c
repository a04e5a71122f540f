/* Makes the lists of outliers and watched GPUs from the findings. */
#include "judge/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/confirmations.h"

static const char *const basis_names[] = {"fleet", "reference", "baseline", "world", "rule"};

/* A finding, to be sorted. */
struct ranked {
    uint32_t place;  /* of its GPU in fleet.order */
    uint32_t number; /* of the finding */
};

static double size_of(const struct finding *finding)
{
    return isnan(finding->deviation) ? 0 : fabs(finding->deviation);
}

/* By GPU; then accusations first, then the most severe kind, then the largest deviation. */
static int by_weight(const void *left, const void *right, void *user)
{
    const struct judge *judge = user;
    const struct ranked *a = left, *b = right;
    const struct finding *fa = &judge->findings.items[a->number];
    const struct finding *fb = &judge->findings.items[b->number];
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (fa->accused != fb->accused)
        return fa->accused ? -1 : 1;
    if (fa->kind != fb->kind)
        return fa->kind < fb->kind ? -1 : 1;
    if (size_of(fa) != size_of(fb))
        return size_of(fa) > size_of(fb) ? -1 : 1;
    int order =
        str_order(fleet_text(&judge->fleet, fa->metric), fleet_text(&judge->fleet, fb->metric));
    return order ? order : (fa->basis > fb->basis) - (fa->basis < fb->basis);
}

/* An accusation is preferred to a watch; then the first basis. */
static bool is_preferred(const struct finding *a, const struct finding *b)
{
    return a->accused != b->accused ? a->accused : a->basis < b->basis;
}

/* Of a GPU that was not measured, a finding about its worker holds, and a fault that the driver
 * reports if the GPU could not be measured twice. */
static bool holds_unmeasured(const struct fleet_gpu *gpu, const struct finding *finding)
{
    bool failed =
        gpu->status == GPU_CRASHED || gpu->status == GPU_TIMED_OUT || gpu->status == GPU_FAILED;
    bool fault = finding->basis == BASIS_RULE && finding->accused && finding->kind == KIND_FAILING;
    return finding->of_worker || (fault && failed && gpu->first_status != GPU_OK);
}

void verdict_settle(struct judge *judge)
{
    struct findings *findings = &judge->findings;
    for (size_t i = 0; i < findings->count; i++) {
        struct finding *finding = &findings->items[i];
        const struct fleet_gpu *gpu = &judge->fleet.gpus[finding->gpu];
        finding->dropped = (!gpu->measured && !holds_unmeasured(gpu, finding)) ||
                           (judge->basis.drift_only && finding->basis != BASIS_BASELINE);
        finding->accused &= !gpu->busy;
        for (uint32_t at = finding->previous; at; at = findings->items[at - 1].previous) {
            struct finding *other = &findings->items[at - 1];
            if (other->metric != finding->metric || other->dropped || finding->dropped)
                continue;
            if (is_preferred(finding, other))
                other->dropped = true;
            else
                finding->dropped = true;
        }
    }
}

void verdict_mark(struct judge *judge)
{
    for (size_t i = 0; i < judge->findings.count; i++) {
        struct finding *finding = &judge->findings.items[i];
        finding->accused &= finding->shared || !finding->by_node;
        judge->fleet.gpus[finding->gpu].outlier |= finding->accused && !finding->dropped;
    }
}

/* The numbers of all findings, sorted by_weight. 0 or -ENOMEM; freed with free(). */
static int sort_findings(const struct judge *judge, uint32_t **out_numbers)
{
    const struct fleet *fleet = &judge->fleet;
    const struct findings *findings = &judge->findings;
    uint32_t *places = mem_array(fleet->count, sizeof *places);
    struct ranked *ranked = mem_array(findings->count, sizeof *ranked);
    uint32_t *numbers = mem_array(findings->count, sizeof *numbers);
    int rc = -ENOMEM;
    if (!places || !ranked || !numbers) {
        free(numbers);
        goto out;
    }
    for (size_t i = 0; i < fleet->count; i++)
        places[fleet->order[i]] = (uint32_t)i;
    for (size_t i = 0; i < findings->count; i++)
        ranked[i] = (struct ranked){places[findings->items[i].gpu], (uint32_t)i};
    if (findings->count)
        qsort_r(ranked, findings->count, sizeof *ranked, by_weight, (void *)judge);
    for (size_t i = 0; i < findings->count; i++)
        numbers[i] = ranked[i].number;
    *out_numbers = numbers;
    rc = 0;
out:
    free(ranked);
    free(places);
    return rc;
}

static int add_finding(const struct fleet *fleet, const struct finding *finding,
                       struct inventory_outlier *out)
{
    struct inventory_finding *grown =
        realloc(out->findings, (out->finding_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    out->findings = grown;
    struct inventory_finding *slot = &grown[out->finding_count++];
    *slot = (struct inventory_finding){.value = measure_digits(finding->value, 6),
                                       .expected = measure_digits(finding->expected, 6),
                                       .deviation = measure_digits(finding->deviation, 3),
                                       .score = measure_digits(finding->score, 3)};
    const char *unit = finding->unit ? fleet_text(fleet, finding->unit) : "";
    return str_copy_to(&slot->metric, fleet_text(fleet, finding->metric)) ||
                   str_copy_to(&slot->unit, unit) ||
                   str_copy_to(&slot->basis, basis_names[finding->basis]) ||
                   str_copy_to(&slot->cause, finding->cause) ||
                   confirmations_text(finding, &slot->confirmed)
               ? -ENOMEM
               : 0;
}

/* The GPU's entry at the end of a list; a new one if the last entry is of another GPU. NULL: out of
 * memory. */
static struct inventory_outlier *entry_of(const struct fleet *fleet, uint32_t number,
                                          struct inventory_outlier **list, size_t *count,
                                          size_t *capacity, uint32_t *last)
{
    const struct fleet_gpu *gpu = &fleet->gpus[number];
    if (*count && *last == number)
        return &(*list)[*count - 1];
    struct inventory_outlier *grown = mem_grow(*list, capacity, *count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    *list = grown;
    *last = number;
    struct inventory_outlier *entry = &grown[(*count)++];
    *entry = (struct inventory_outlier){.kind = KIND_MISMATCHED};
    const char *model = gpu->group == GROUP_NONE ? NULL : fleet->groups[gpu->group].id;
    if (str_copy_to(&entry->uuid, fleet_text(fleet, gpu->uuid)) ||
        str_copy_to(&entry->node, fleet_text(fleet, gpu->node)) ||
        str_copy_to(&entry->pci, fleet_text(fleet, gpu->pci)) || str_copy_to(&entry->model, model))
        return NULL;
    return entry;
}

/* A finding by rule is listed for each GPU, even if it is listed for its place too. */
static bool is_listed_elsewhere(const struct finding *finding)
{
    return finding->dropped || (finding->shared && finding->basis != BASIS_RULE);
}

int verdict_lists(const struct judge *judge, struct inventory *inventory)
{
    uint32_t *numbers = NULL, last_outlier = 0, last_watched = 0;
    size_t outlier_room = 0, watch_room = 0;
    int rc = sort_findings(judge, &numbers);
    for (size_t i = 0; i < judge->findings.count && !rc; i++) {
        const struct finding *finding = &judge->findings.items[numbers[i]];
        if (is_listed_elsewhere(finding))
            continue;
        struct inventory_outlier *entry =
            finding->accused ? entry_of(&judge->fleet, finding->gpu, &inventory->outliers,
                                        &inventory->outlier_count, &outlier_room, &last_outlier)
                             : entry_of(&judge->fleet, finding->gpu, &inventory->watch,
                                        &inventory->watch_count, &watch_room, &last_watched);
        if (!entry || add_finding(&judge->fleet, finding, entry))
            rc = -ENOMEM;
        /* The most severe kind is kept: the enumeration begins with it. */
        else if (finding->kind < entry->kind)
            entry->kind = finding->kind;
    }
    free(numbers);
    return rc;
}
