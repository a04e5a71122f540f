/* Inside the judge: what its stages hand on to each other. */
#ifndef GPUMEMTOPO_JUDGE_STAGES_H
#define GPUMEMTOPO_JUDGE_STAGES_H

#include "judge/fleet.h"
#include "judge/judge.h"

enum basis { BASIS_FLEET, BASIS_REFERENCE, BASIS_BASELINE, BASIS_RULE };

/* Something odd about one GPU. */
struct finding {
    uint32_t gpu;
    uint32_t metric; /* symbol: "main.bandwidth.read", "config.ecc" */
    uint32_t unit;   /* symbol */
    int32_t rule;    /* index of the judged metric; -1: none */
    enum basis basis;
    bool accused; /* otherwise watched */
    bool by_node; /* accused only together with its node */
    bool shared;  /* told of the node, the slot or the model; by rule, also of the GPU */
    bool dropped; /* another finding says the same */
    enum inventory_kind kind;
    double value, expected, deviation, score; /* NaN: none */
    char *cause;                              /* NULL until it is known */
    uint32_t explained_by; /* of a measured figure: bits of conditions; causes that differ in
                            * numbers only are alike */
    uint32_t previous;     /* of the same GPU, number + 1; 0: none */
};

struct findings {
    struct finding *items;
    size_t count, capacity;
    uint32_t *last; /* per GPU, number + 1; 0: none */
};

/* What the GPUs of a model show in one metric. */
struct yardstick {
    bool usable;          /* enough GPUs to compare with */
    size_t n;             /* GPUs behind it */
    double center, sigma; /* of the values brought to the usual SM clock */
    double dof;           /* how sure sigma is, and how heavy the tails */
    double clock_share;   /* of the figure that follows the SM clock */
    double share_error;   /* how far that may be off */
    double edge;          /* score beyond which healthy figures end; INFINITY: they have tails */
    double spread;        /* the usual one of a GPU's own repetitions */
    double bound;         /* score from which on nobody is there by chance */
    double pair_bound;    /* the same for two figures of one memory, both beyond it */
};

struct judge {
    struct judge_basis basis;
    struct fleet fleet;
    struct findings findings;
    const struct inventory **told; /* inventories whose GPUs are judged again */
    size_t told_count, told_capacity;
    const struct metric_column **columns; /* per judged metric; NULL: nobody has it */
    struct yardstick *yardsticks;         /* [group * metrics + metric] */
    float *worse;        /* [gpu * metrics + metric]: share by which it is worse; NaN */
    float *scores;       /* likewise: that in deviations of the fleet */
    double *usual;       /* [group * JUDGE_CONDITION_COUNT + condition]; NaN */
    double *clock_ratio; /* per GPU: SM clock over the usual one; 1 where unknown */
    bool *odd;           /* per GPU: other hardware than its namesakes */
};

/* A new finding for the caller to fill; gpu, metric and basis are set, numbers are NaN. NULL when
 * out of memory; valid until the next one. */
struct finding *findings_add(struct judge *judge, uint32_t gpu, const char *metric,
                             enum basis basis);

/* The GPU's last finding of that metric on that basis; NULL when there is none. */
struct finding *finding_of(struct judge *judge, uint32_t gpu, const char *metric, enum basis basis);
void findings_fini(struct findings *findings);

/* The stages, in the order in which judge_finish runs them. Each 0 or -ENOMEM. */
int judge_settings(struct judge *judge);       /* settings.c: facts against the majority */
int judge_rules(struct judge *judge);          /* rules.c: facts that need no peers */
int judge_scores(struct judge *judge);         /* scores.c: figures against the fleet */
int judge_few(struct judge *judge);            /* too_few.c: figures of models too small for that */
int judge_nodes(struct judge *judge);          /* weak_nodes.c: figures of a node's GPUs together */
int judge_steadiness(struct judge *judge);     /* steadiness.c: figures that do not repeat */
int judge_specifications(struct judge *judge); /* specification.c: against references */
int judge_drift(struct judge *judge);          /* drift.c: against the baseline */
int judge_clocks(struct judge *judge);         /* clocks.c: the SM clock and what follows it */
int judge_claims(struct judge *judge);         /* claims.c: measured against reported */
int judge_causes(struct judge *judge);         /* causes.c: what explains a figure */

/* Settings and versions on which a model is divided, among the inventory's nodes. 0 or -ENOMEM. */
int judge_settings_tell_divided(const struct judge *judge, const struct group *group,
                                struct inventory *inventory);

/* A finding of the fleet's basis from the GPU's score; not accused. NULL when out of memory. */
struct finding *finding_of_score(struct judge *judge, uint32_t gpu, size_t metric);

/* A condition as this GPU has it; NaN when it is not known. */
double judge_condition_value(const struct fleet *fleet, enum judge_condition condition,
                             uint32_t gpu);

/* Fills judge.usual, judge.clock_ratio and judge.odd. */
int judge_conditions_find(struct judge *judge);

/* The GPU's condition over the usual one; 1 where either is unknown. */
double judge_condition_ratio(const struct judge *judge, enum judge_condition condition,
                             uint32_t gpu);

/* Equal, or less, beyond what drivers make of the same; false with NaN. */
bool judge_number_same(double own, double other);
bool judge_number_lower(double own, double other);

/* Whether a loss is as large as what was predicted for it; all as shares. */
bool judge_loss_fits(double loss, double predicted, double floor);

/* What a value would be at the usual SM clock, over what it is at this GPU's. */
double judge_clock_factor(const struct judge *judge, const struct yardstick *yardstick,
                          uint32_t gpu);

/* +share: worse by so much; the larger of both directions where any change counts. */
double judge_worse_share(enum judge_worse worse, double deviation);

#endif
