/* What the placement of SMs on the die changes of a figure, and which placement is usual. */
#include "judge/placement.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "judge/model.h"
#include "judge/robust.h"

void place_counts_add(struct place_counts *counts, const struct fleet *fleet,
                      const struct metric_column *column, const struct group *population)
{
    for (size_t i = 0; i < population->count; i++) {
        const struct cell *cell = fleet_number(column, population->members[i], false);
        size_t at = 0;
        if (!cell || !fleet_judged(&fleet->gpus[population->members[i]]))
            continue;
        while (at < counts->count && counts->places[at] != cell->value)
            at++;
        if (at == PLACES_MAX)
            continue;
        if (at == counts->count)
            counts->places[counts->count++] = cell->value;
        counts->counts[at]++;
        counts->known++;
    }
}

/* If most GPUs elsewhere have the same place. */
static double place_elsewhere(const struct world_figure *figure)
{
    const size_t middle = WORLD_QUANTILES / 2;
    return figure && figure->quantiles[middle - 1] == figure->quantiles[middle + 1] ? figure->median
                                                                                    : NAN;
}

double placement_usual(const struct place_counts *counts, const struct world_figure *elsewhere)
{
    const double *places = counts->places, by_world = place_elsewhere(elsewhere);
    const size_t *n = counts->counts;
    size_t usual = 0;
    for (size_t i = 1; i < counts->count; i++)
        if (n[i] > n[usual] || (n[i] == n[usual] && places[i] > places[usual]))
            usual = i;
    if (!counts->count || (n[usual] < PEERS_MIN && !isnan(by_world)))
        return by_world;
    return 2 * n[usual] >= counts->known ? places[usual] : NAN;
}

double placement_other(const struct metric_column *column, double usual, uint32_t gpu)
{
    const struct cell *cell = isnan(usual) ? NULL : fleet_number(column, gpu, false);
    return cell && cell->value != usual ? cell->value : NAN;
}

void placement_fini(struct placements *placements)
{
    free(placements->gpus);
    *placements = (struct placements){0};
}

void placement_add(struct placements *placements, uint32_t gpu, double place, double share)
{
    placements->gpus = mem_grow(placements->gpus, &placements->gpu_room, placements->gpu_count + 1,
                                sizeof *placements->gpus);
    placements->gpus[placements->gpu_count++] =
        (struct placed_gpu){.gpu = gpu, .place = place, .share = share};
}

/* By the median of the GPUs with this place, without the GPU `skip`, and by the assumption that
 * places make no difference within PLACES_APART. */
static struct place_effect placement_find(const struct placements *placements, double place,
                                          uint32_t skip, double sigma)
{
    double *shares = mem_array(placements->gpu_count, sizeof *shares);
    size_t n = 0;
    for (size_t i = 0; i < placements->gpu_count; i++)
        if (placements->gpus[i].place == place && placements->gpus[i].gpu != skip)
            shares[n++] = placements->gpus[i].share;
    double found = n ? robust_median(shares, n) - 1 : 0;
    double known = n ? (double)n / square(CPD_MEDIAN_ERROR * sigma) : 0;
    double weight = known + 1 / square(model_constants[PLACES_APART]);
    free(shares);
    return (struct place_effect){
        .place = place, .effect = 1 + known * found / weight, .error = 1 / sqrt(weight), .n = n};
}

/* Among few GPUs each is compared with the others alone. */
static struct place_effect placement_effect(struct placements *placements, double place,
                                            uint32_t gpu, double sigma)
{
    size_t at = 0;
    while (at < placements->effect_count && placements->effects[at].place != place)
        at++;
    if (at == PLACES_MAX)
        return (struct place_effect){.effect = 1, .error = model_constants[PLACES_APART]};
    if (at == placements->effect_count)
        placements->effects[placements->effect_count++] =
            placement_find(placements, place, UINT32_MAX, sigma);
    return placements->effects[at].n > OTHERS_MAX ? placements->effects[at]
                                                  : placement_find(placements, place, gpu, sigma);
}

/* No placement makes more of a difference than chips of one model have. */
struct placement placement_of(struct placements *placements, uint32_t gpu, double place,
                              double share, double sigma)
{
    struct placement out = {.effect = 1};
    if (isnan(place))
        return out;
    const struct place_effect found = placement_effect(placements, place, gpu, sigma);
    out.few = found.n < PEERS_MIN;
    if (fabs((out.few ? share : found.effect) - 1) <= model_constants[BUILT_APART]) {
        out.effect = found.effect;
        out.error = found.error;
    }
    return out;
}
