/* Internal to the judge: the data that its stages share. */
#ifndef GPUMEMTOPO_JUDGE_STATE_H
#define GPUMEMTOPO_JUDGE_STATE_H

#include "judge/evidence/findings.h"
#include "judge/fleet.h"
#include "judge/judge.h"

/* The second value of a figure. */
struct repeat {
    uint32_t gpu, metric; /* metric: symbol */
    double value;
};

struct repeats {
    struct repeat *items;
    size_t count, capacity;
};

/* What is usual in one metric for the GPUs of one population: see model.h. Scale, errors and spread
 * are shares of the level. */
struct usual_figure {
    bool usable;     /* there is something to compare with */
    bool certain;    /* ... and enough of it to accuse */
    bool few;        /* its kind, one of several, has too few GPUs to show how it scatters */
    bool by_world;   /* GPUs elsewhere say more than the fleet */
    bool alone;      /* ... and no GPU of its kind in the fleet says the same */
    bool limited;    /* sigma is the smallest that is trusted, not the scatter of the figures */
    bool other_kind; /* the figure depends on the kind, and the largest population is of another */
    size_t n, all;   /* GPUs of its kind, and of the model, behind it */
    uint32_t elsewhere;              /* GPUs of the world */
    double level, error;             /* at the usual SM clock */
    double sigma, dof;               /* scale and degrees of freedom of healthy figures */
    double spread;                   /* median over the GPUs of the spread of their repetitions */
    double clock_share, share_error; /* share of the figure that follows the SM clock */
    double center;  /* median of its kind; NaN: fewer than PEERS_MIN GPUs have it */
    double largest; /* ... of the model's largest kind */
    double place;   /* how most GPUs of its kind have their SMs placed; NaN: without effect */
};

/* What the score of a figure is from: flags, and SOURCE_DOF * the degrees of freedom of the scale.
 */
enum {
    SOURCE_WORLD = 1,
    SOURCE_CERTAIN = 2,
    SOURCE_FEW = 4,
    SOURCE_ALONE = 8,
    SOURCE_DOF = 16,
    SOURCE_DOF_MAX = 1000
};

/* An inventory whose GPUs are judged again, and which GPUs of the fleet they are. */
struct judged_inventory {
    const struct inventory *inventory;
    size_t first_gpu, gpu_count;
};

struct judge {
    struct judge_basis basis;
    struct fleet fleet;
    struct findings findings;
    uint8_t stage; /* that runs now: index into judge_stages */
    struct repeats repeats;
    bool compared; /* the stages have run */
    struct judged_inventory *inventories;
    size_t inventory_count, inventory_capacity;
    struct judge_earlier *earlier;
    size_t earlier_count, earlier_capacity;
    const struct metric_column **columns; /* per judged metric; NULL: no GPU has it */
    struct usual_figure *figures;         /* [population * metrics + metric] */
    size_t *scored; /* the metrics that are compared by scores: most GPUs have few of all */
    size_t scored_count;
    size_t *rows;  /* by metric: its row in the three tables below; the last one for all others */
    float *worse;  /* [judge_slot]: share by which it is worse; NaN: not compared */
    float *scores; /* likewise: the score, positive if worse */
    uint16_t *sources;    /* likewise */
    double bound;         /* score at which a single figure accuses */
    double *usual;        /* [group * JUDGE_CONDITION_COUNT + condition]; NaN: unknown */
    double *clock_ratio;  /* per GPU: SM clock over the usual one; 1 if unknown */
    bool *other_hardware; /* per GPU: other hardware or MIG mode than most of its model */
};

/* Metric by metric, since most stages look at all GPUs in one of them. */
static inline size_t judge_slot(const struct judge *judge, uint32_t gpu, size_t metric)
{
    return judge->rows[metric] * judge->fleet.count + gpu;
}

/* What a stage does, and when it runs: one of the two functions is set. */
struct judge_stage {
    const char *name, *what;              /* what: it looks at, for readers of the table */
    void (*compare)(struct judge *judge); /* in judge_compare */
    /* In judge_finish: the second values are there. May add entries to the inventory's nodes. */
    void (*conclude)(struct judge *judge, struct inventory *inventory);
};

/* All stages, in the order in which they run. */
extern const struct judge_stage judge_stages[];
extern const size_t judge_stage_count;

#endif
