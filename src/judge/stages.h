/* Internal to the judge: its stages, and the data that they share. */
#ifndef GPUMEMTOPO_JUDGE_STAGES_H
#define GPUMEMTOPO_JUDGE_STAGES_H

#include "judge/fleet.h"
#include "judge/judge.h"

enum basis { BASIS_FLEET, BASIS_REFERENCE, BASIS_BASELINE, BASIS_WORLD, BASIS_RULE };

/* What else shows a deviation. */
enum confirmation {
    CONFIRMATION_NONE,    /* none is needed */
    CONFIRMED_AGAIN,      /* it was measured again, and seen again */
    SEEN_ONCE,            /* it was measured again, and not seen again */
    CONFIRMED_BY_CAUSE,   /* a setting or the reported hardware explains it */
    CONFIRMED_BY_FIGURES, /* other figures that the same cause would change show it too */
    NOT_CONFIRMED,
};

/* One deviation of one GPU. */
struct finding {
    uint32_t gpu;
    uint32_t metric; /* symbol, e.g. of "main.bandwidth.read", "config.ecc" */
    uint32_t unit;   /* symbol */
    int32_t rule;    /* index of the judged metric; -1: none */
    enum basis basis;
    bool accused;    /* false: watched */
    bool by_node;    /* accused only if its node is */
    bool joined;     /* accused only because other figures of the GPU are */
    bool shared;     /* listed for the node, slot or model; by rule, also for the GPU */
    bool clock_held; /* of clock.sm: a setting, a lock or a throttle reason lowers the clock */
    bool throttled;  /* of clock.sm: only a throttle reason does */
    bool of_worker;  /* about the worker of the GPU; holds also if the GPU was not measured */
    bool dropped;    /* not listed, e.g. because another basis has the same finding */
    bool in_group;   /* one of many GPUs that only this figure separates from the others */
    enum inventory_kind kind;
    enum confirmation confirmed;
    uint32_t confirming; /* CONFIRMED_BY_FIGURES: how many figures, with this one */
    double value, expected, deviation, score; /* NaN: none */
    char *cause;                              /* NULL until it is known */
    uint32_t explained_by;                    /* figures: a bit per condition */
    uint32_t previous;                        /* the GPU's previous finding, number + 1; 0: none */
};

struct findings {
    struct finding *items;
    size_t count, capacity;
    uint32_t *last; /* per GPU: its last finding, number + 1; 0: none */
};

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
    double factor; /* figure * factor: the figure as it would be in the largest population */
    double width;  /* uncertainty of what is usual in this population, as a share of the centre */
    double center; /* the usual figure at the usual SM clock; NaN: too few GPUs have it */
    bool differs;  /* from the largest population, by more than chance */
    bool apart;    /* too few GPUs to find a factor, and other populations have enough */
    double scale;  /* scale of this population / sigma of the yardstick */
    double dof;    /* degrees of freedom of that scale */
    double bound;  /* score that healthy GPUs hardly ever reach */
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

/* A new finding for the caller to fill: gpu, metric and basis are set, numbers are NaN. Valid until
 * the next call. NULL: out of memory. */
struct finding *findings_add(struct judge *judge, uint32_t gpu, const char *metric,
                             enum basis basis);

/* A finding of basis `rule`. Takes the cause; NULL: out of memory. 0 or -ENOMEM. */
int findings_add_rule(struct judge *judge, uint32_t gpu, const char *metric, bool accused,
                      enum inventory_kind kind, double value, char *cause);

/* The GPU's last finding of that metric on that basis; NULL if there is none. */
struct finding *finding_of(struct judge *judge, uint32_t gpu, const char *metric, enum basis basis);
/* Whether a finding that is not dropped accuses the GPU by this metric of the configuration. */
bool findings_accuse(const struct judge *judge, uint32_t gpu, size_t metric);
void findings_fini(struct findings *findings);

/* The stages, in the order in which judge_compare runs them. Each returns 0 or -ENOMEM. */
int judge_settings(struct judge *judge);       /* settings.c: facts against the majority */
int judge_rules(struct judge *judge);          /* rules.c: facts that need no peers */
int judge_self_checks(struct judge *judge);    /* self_checks.c: tests of the memory and the SMs */
int judge_links(struct judge *judge);          /* links.c: links between GPUs */
int judge_host_shares(struct judge *judge);    /* host_shares.c: host links of all GPUs at once */
int judge_counters(struct judge *judge);       /* counters.c: errors that are corrected */
int judge_heat(struct judge *judge);           /* heat.c: temperatures */
int judge_tries(struct judge *judge);          /* tries.c: workers that crashed or hung */
int judge_scores(struct judge *judge);         /* scores.c: figures against the fleet */
int judge_few(struct judge *judge);            /* too_few.c: figures of small models */
int judge_groups(struct judge *judge);         /* figure_groups.c: GPUs that a figure separates */
int judge_nodes(struct judge *judge);          /* weak_nodes.c: figures of a node's GPUs together */
int judge_steadiness(struct judge *judge);     /* steadiness.c: figures that do not repeat */
int judge_specifications(struct judge *judge); /* specification.c: against references */
int judge_drift(struct judge *judge);          /* drift.c: against the baseline */
int judge_counter_drift(struct judge *judge);  /* counter_drift.c: counters since the baseline */
int judge_dies(struct judge *judge);           /* die_changes.c: dies since the baseline */
int judge_sm_rates(struct judge *judge);       /* sm_changes.c: SMs since the baseline */
int judge_world(struct judge *judge);          /* world_scores.c: against GPUs elsewhere */
int judge_clocks(struct judge *judge);         /* clocks.c: the SM clock and what follows it */
int judge_claims(struct judge *judge);         /* claims.c: measured against reported */
int judge_load(struct judge *judge);           /* load_falls.c: sustained load */

/* load_falls.c: how the load of a GPU began; of a GPU that is accused, or has a finding about its
 * load, also the curve. 0 or -ENOMEM. */
int judge_load_list(const struct judge *judge, uint32_t gpu, struct facts *out_load);

int judge_causes(struct judge *judge); /* causes.c: what explains a figure */

/* Adds an entry to the inventory's nodes for each setting and version in which the model is
 * divided. 0 or -ENOMEM. */
int judge_settings_report_divided(const struct judge *judge, const struct group *group,
                                  struct inventory *inventory);

/* A new finding of basis `fleet` from the GPU's score; watched. NULL: out of memory. */
struct finding *finding_of_score(struct judge *judge, uint32_t gpu, size_t metric);

/* The value of a condition on a GPU; NaN if it is not known. */
double judge_condition_value(const struct fleet *fleet, enum judge_condition condition,
                             uint32_t gpu);

/* Fills judge.usual, judge.clock_ratio and judge.other_hardware. 0 or -ENOMEM. */
int judge_conditions_find(struct judge *judge);

/* The GPU's condition over the usual one; 1 if either is unknown. */
double judge_condition_ratio(const struct judge *judge, enum judge_condition condition,
                             uint32_t gpu);

/* Equal within 0.5 %, and less by more than that; false with NaN. */
bool judge_number_same(double own, double other);
bool judge_number_lower(double own, double other);

/* Whether a condition explains a loss: loss <= 1.15 * predicted + floor. All are shares. */
bool judge_loss_fits(double loss, double predicted, double floor);

/* The factor that converts a value of this GPU to the usual SM clock. */
double judge_clock_factor(const struct judge *judge, const struct yardstick *yardstick,
                          uint32_t gpu);

/* The level of the GPU's population in this metric. The GPU has a model. */
const struct population_level *judge_level(const struct judge *judge, uint32_t gpu, size_t metric);

/* The factor that makes values of a model comparable: at the usual SM clock, and as in the largest
 * population. */
double judge_common_factor(const struct judge *judge, const struct yardstick *yardstick,
                           uint32_t gpu, size_t metric);

/* The share by which a deviation is worse; negative: better. JUDGE_ANY: its absolute value. */
double judge_worse_share(enum judge_worse worse, double deviation);

#endif
