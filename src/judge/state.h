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

/* What a figure of a GPU is compared with: one metric of one model. */
struct yardstick {
    bool usable;          /* enough GPUs to compare with */
    size_t n;             /* GPUs behind it */
    double center, sigma; /* of the values, converted to the usual SM clock */
    bool limited;         /* sigma is the smallest that is trusted, not the scatter of the values */
    double step;          /* resolution: 1 if two thirds of the values are whole numbers from 10 on,
                             otherwise 0 */
    double dof;           /* degrees of freedom of sigma */
    double tail_dof;      /* degrees of freedom that describe the tails */
    double clock_share;   /* share of the figure that follows the SM clock */
    double share_error;   /* standard error of clock_share */
    double edge;          /* no healthy figure has a larger score; INFINITY: no such end */
    double spread;        /* median over the GPUs of the spread of their repetitions */
};

/* A figure of the GPUs of a population, beside that of the model's largest population. */
struct population_level {
    double factor;   /* figure * factor: the figure as it would be in the largest population */
    double width;    /* uncertainty of what is usual in this population, as a share of the centre */
    double center;   /* the usual figure at the usual SM clock; NaN: too few GPUs have it */
    bool differs;    /* from the largest population, by more than chance */
    bool apart;      /* too few GPUs to find a factor, and other populations have enough */
    bool other_kind; /* the figure depends on the kind, and the largest population is of another */
    bool not_compared;  /* likewise, and it has too few GPUs of its own */
    double scale;       /* scale of this population / sigma of the yardstick */
    double dof;         /* degrees of freedom of that scale */
    double bound;       /* score that healthy GPUs hardly ever reach */
    double pair_bound;  /* the same for two figures of one memory that both reach it */
    double watch_bound; /* score that few healthy GPUs reach */
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
    const struct metric_column **columns; /* per judged metric; NULL: no GPU has it */
    struct yardstick *yardsticks;         /* [group * metrics + metric] */
    struct population_level *levels;      /* [population * metrics + metric] */
    float *worse;  /* [gpu * metrics + metric]: share by which it is worse; NaN: not compared */
    float *scores; /* likewise: the score, positive if worse */
    double *usual; /* [group * JUDGE_CONDITION_COUNT + condition]; NaN: unknown */
    double *clock_ratio;  /* per GPU: SM clock over the usual one; 1 if unknown */
    bool *other_hardware; /* per GPU: other hardware or MIG mode than most of its model */
};

/* What a stage does, and when it runs: one of the two functions is set. */
struct judge_stage {
    const char *name, *what;
    void (*compare)(struct judge *judge); /* in judge_compare */
    /* In judge_finish: the second values are there. May add entries to the inventory's nodes. */
    void (*conclude)(struct judge *judge, struct inventory *inventory);
};

/* All stages, in the order in which they run. */
extern const struct judge_stage judge_stages[];
extern const size_t judge_stage_count;

#endif
