/* How the SMs of GPUs are placed on their dies, and what that changes of a figure: the factor
 * `placement` of the model of a healthy figure (model.h). A place is a value of the metric's
 * place_metric, such as sm.group_sms. docs/JUDGE.md has the formulae. */
#ifndef GPUMEMTOPO_JUDGE_PLACEMENT_H
#define GPUMEMTOPO_JUDGE_PLACEMENT_H

#include "judge/fleet.h"
#include "judge/world.h"

enum { PLACES_MAX = 16 }; /* places of one kind or model; of more, the effect is not known */

/* How many GPUs of a kind have which place. Zero-initialised: none. */
struct place_counts {
    double places[PLACES_MAX];
    size_t counts[PLACES_MAX], count;
    size_t known; /* GPUs with one of these places */
};

/* Adds the judged GPUs of a population. */
void place_counts_add(struct place_counts *counts, const struct fleet *fleet,
                      const struct metric_column *column, const struct group *population);

/* The place of most GPUs of a kind. If these are few, that of those elsewhere, if most of them have
 * the same; otherwise that of at least half of the GPUs. NaN: none is usual. elsewhere: the places
 * of GPUs elsewhere; NULL: not known. */
double placement_usual(const struct place_counts *counts, const struct world_figure *elsewhere);

/* The place of a GPU, if it is not the usual one. NaN: it is, or one of them is not known. column
 * may be NULL. */
double placement_other(const struct metric_column *column, double usual, uint32_t gpu);

/* A GPU with another place than the usual one, and its figure as a share of what is usual. */
struct placed_gpu {
    uint32_t gpu;
    double place, share;
};

/* What all GPUs with one such place have of the figure. */
struct place_effect {
    double place;
    double effect, error; /* factor, and its standard deviation */
    size_t n;             /* GPUs behind it */
};

/* One metric of one model. Zero-initialised: no GPU has another place. Released with
 * placement_fini. */
struct placements {
    struct placed_gpu *gpus;
    size_t gpu_count, gpu_room;
    struct place_effect effects[PLACES_MAX]; /* found when first needed */
    size_t effect_count;
};
void placement_fini(struct placements *placements);

/* Adds a GPU that shows what its place changes. */
void placement_add(struct placements *placements, uint32_t gpu, double place, double share);

/* What its place changes of the figure of one GPU. */
struct placement {
    double effect, error; /* factor, and its standard deviation; 1 and 0: nothing */
    bool few;             /* too few other GPUs have the place to show what it changes */
};

/* All GPUs are added. place: of this GPU; NaN: the usual one, or not known. share: its figure as a
 * share of what is usual. sigma: the scale of healthy figures, as a share. */
struct placement placement_of(struct placements *placements, uint32_t gpu, double place,
                              double share, double sigma);

#endif
