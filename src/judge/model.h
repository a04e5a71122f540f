/* The model of a healthy figure:
 *
 *     figure = level of its kind * placement of its SMs (placement.h) *
 *              (1 + share * (SM clock / usual SM clock - 1)) * (1 + noise)
 *
 * The noise has Student's distribution. docs/JUDGE.md has the formulae. */
#ifndef GPUMEMTOPO_JUDGE_MODEL_H
#define GPUMEMTOPO_JUDGE_MODEL_H

#include "judge/state.h"

enum {
    PEERS_MIN = 5,   /* fewer GPUs do not show what is usual: nobody is accused by them */
    OTHERS_MAX = 16, /* where there are so few alike, each GPU is compared with the others alone */
};

/* All constants of the model. Deviations are shares. docs/JUDGE.md has the values with their
 * reasons; the benchmark `constants` says what happens if one is halved or doubled. */
enum model_constant {
    LEVELS_APART,  /* standard deviation between the levels of the kinds of a model */
    SITES_APART,   /* ... and between those of one kind at different sites */
    PRIOR_PART,    /* scatter before any figure is known, as a part of `few` */
    PRIOR_DOF,     /* GPUs that this assumption counts as */
    WORLD_SURE,    /* part of its GPUs that the robust scatter of the world counts as */
    KIND_DOF,      /* GPUs that the scatter of the whole model counts as, in one kind */
    SPREAD_PART,   /* the scatter is at least this part of the spread of repetitions */
    RESOLUTION,    /* ... and this share */
    OWN_PART,      /* weight of the square of a GPU's own excess of spread */
    SHARE_FOUND,   /* error of a clock share that was found from the fleet */
    SHARE_STATED,  /* ... and of one from the catalogue */
    TAIL_DOF,      /* degrees of freedom of the tails if too few figures show them */
    CONTRADICTION, /* fleet and world contradict each other from so many errors on */
    SHARP_SCORE,   /* score at the end of a distribution that ends sharply */
    NEAR_END,      /* ... if beyond this part of the end, on the worse side, */
    BEYOND_MAX,    /* there are at most this share of the GPUs, faulty ones included */
    BUILT_APART,   /* boards and chips of one model differ by less */
    FEW_LOSS, /* least loss of which a GPU is accused whose kind has too few to show its scatter */
    FULL_SURVEY,   /* with fewer GPUs `false_alarms` is proportionally smaller */
    WATCHED_SHARE, /* share of healthy GPUs that may be watched by chance */
    CORRELATION,   /* of healthy figures of one cause, at most */
    WATCH_OWN,     /* least score of a figure that is watched with a partner */
    JOIN_SCORE,    /* least score of a figure that joins two that are beyond their bounds */
    SECOND_SCORE,  /* least score of the other direction of a host link */
    PLACES_APART,  /* standard deviation between GPUs whose SMs are placed in different ways */
    MODEL_CONSTANTS
};
extern double model_constants[MODEL_CONSTANTS];

/* Fills judge.figures, judge.worse, judge.scores and judge.sources, without the GPUs that are left
 * out of what is usual (left_out[gpu]). */
void model_find(struct judge *judge, const bool *left_out);

/* What is usual for the GPU in this metric. The GPU has a model. */
const struct usual_figure *model_figure(const struct judge *judge, uint32_t gpu, size_t metric);

/* What the GPU has of the level that is usual for it, at the usual clock. NaN: it is not judged in
 * this metric, or has other hardware. */
double model_share_of_usual(const struct judge *judge, uint32_t gpu, size_t metric);

/* The score that a healthy GPU exceeds with this probability, as in a normal distribution; the
 * number of standard deviations that have this score with these degrees of freedom. */
double model_normal_bound(double tail);
double model_score_size(double score, double dof);

/* The figures of GPUs elsewhere with which the GPUs of a population are compared in a metric. */
struct world_peers {
    const struct world_population *population;
    const struct world_figure *figure; /* NULL: none */
    bool own_kind;                     /* the same board part */
    bool same_driver;
    uint32_t all;   /* GPUs of the model behind the scatter */
    double scatter; /* of all kinds together, as a share */
};
struct world_peers model_world(const struct judge *judge, const struct group *population,
                               const char *metric);

/* Whether the world has figures of this model by the same version of the program. */
bool model_world_knows(const struct judge *judge, const struct group *model);

/* Lists the populations of a model, if there are several. */
void model_report_populations(const struct judge *judge, const struct group *model,
                              struct inventory_model *out_model);

#endif
