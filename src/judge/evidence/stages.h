/* The stages of the judge, in the order in which they run (judge.c). Each appends findings. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_STAGES_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_STAGES_H

#include "judge/conditions.h"
#include "judge/state.h"

struct inventory_lookup;
struct sm_rates;

/* Run by judge_compare. */
void stage_settings(struct judge *judge);      /* settings.c */
void stage_rules(struct judge *judge);         /* rules.c */
void stage_self_checks(struct judge *judge);   /* rules.c */
void stage_counters(struct judge *judge);      /* counters.c */
void stage_heat(struct judge *judge);          /* heat.c */
void stage_digests(struct judge *judge);       /* digests.c */
void stage_tries(struct judge *judge);         /* tries.c */
void stage_earlier(struct judge *judge);       /* earlier.c */
void stage_figures(struct judge *judge);       /* figures.c */
void stage_groups(struct judge *judge);        /* divided.c */
void stage_weak_nodes(struct judge *judge);    /* weak_nodes.c */
void stage_steadiness(struct judge *judge);    /* steadiness.c */
void stage_references(struct judge *judge);    /* specification.c */
void stage_drift(struct judge *judge);         /* drift.c */
void stage_counter_drift(struct judge *judge); /* counters.c */
void stage_dies(struct judge *judge);          /* dies.c */
void stage_sm_rates(struct judge *judge);      /* dies.c */
void stage_clocks(struct judge *judge);        /* clocks.c */
void stage_claims(struct judge *judge);        /* claims.c */
void stage_load(struct judge *judge);          /* load.c */
void stage_links(struct judge *judge);         /* links.c */
void stage_host_shares(struct judge *judge);   /* host_shares.c */
void stage_causes(struct judge *judge);        /* causes.c */
void stage_splits(struct judge *judge);        /* built.c */

/* Run by judge_finish: the second values are there. Some add entries to the inventory's nodes. */
void stage_second_values(struct judge *judge, struct inventory *inventory); /* confirmations.c */
void stage_duplicates(struct judge *judge, struct inventory *inventory);    /* places.c */
void stage_places(struct judge *judge, struct inventory *inventory);        /* places.c */
void stage_moved_gpus(struct judge *judge, struct inventory *inventory);    /* dies.c */
void stage_blind_spots(struct judge *judge, struct inventory *inventory);   /* blind_spots.c */
void stage_built(struct judge *judge, struct inventory *inventory);         /* built.c */
void stage_confirmations(struct judge *judge, struct inventory *inventory); /* confirmations.c */

/* What stages use of each other. */

/* clocks.c found a condition that lowers the SM clock. */
#define CLOCK_IS_LOWERED                                                                           \
    (EVIDENCE_SET(HELD) | EVIDENCE_SET(HELD_A_LITTLE) | EVIDENCE_SET(THROTTLED) |                  \
     EVIDENCE_SET(THROTTLED_A_LITTLE))

/* drift.c: when the baseline was made; where each GPU is in it (NULL: it is new). The list is freed
 * by the caller, the look-up destroyed. */
const char *judge_baseline_stamp(const struct judge *judge);
const struct inventory_gpu **judge_find_in_baseline(const struct judge *judge,
                                                    struct inventory_lookup **out_lookup);

/* dies.c: how fast the SMs of a GPU are; -EINVAL if it is not known. */
int judge_sm_rates(const struct fleet *fleet, uint32_t gpu, struct sm_rates *out_rates);

/* figures.c: a finding from the GPU's score, for the caller to append. */
struct finding judge_score_finding(struct judge *judge, uint32_t gpu, size_t metric,
                                   enum evidence evidence);

/* load.c: how the load of a GPU began; of a GPU that is accused, or has a finding about its load,
 * also the curve. */
void judge_load_list(const struct judge *judge, uint32_t gpu, struct facts *out_load);

/* settings.c */

/* The SM clock stays below the clock that the settings allow, is steady, and the driver
 * names no reason: it is locked. The text is a cause, freed by the caller. */
bool judge_clock_is_locked(const struct fleet *fleet, uint32_t gpu);
char *judge_locked_clock_text(const struct fleet *fleet, uint32_t gpu);

/* A setting of the GPU that is below its own default, in words; NULL: none is. */
char *judge_undercut_text(const struct fleet *fleet, uint32_t gpu);

/* Add entries to the inventory's nodes: for each setting below the card's default that two thirds
 * of a population have (nobody is accused: the site may want it), and for each setting and version
 * in which the model is divided. */
void judge_report_defaults(const struct judge *judge, const struct group *population,
                           struct inventory *inventory);
void judge_report_divided_settings(struct judge *judge, const struct group *model,
                                   struct inventory *inventory);

/* divided.c */

/* Whether the GPU is in the worse group of a metric. */
bool judge_is_divided(const struct judge *judge, uint32_t gpu, size_t metric);

/* If the model is divided in the metric, adds one entry to the inventory's nodes, which lists the
 * worse group, and returns true. */
bool judge_report_divided_figure(const struct judge *judge, const struct group *model,
                                 size_t metric, struct inventory *inventory);

/* Adds such an entry for a setting or a version. `gpus`: the GPUs that differ from most of the
 * model, at least one. */
void judge_report_divided_fact(const struct judge *judge, const struct group *group,
                               enum fact_set set, const struct fact_column *column,
                               const uint32_t *gpus, size_t count, struct inventory *inventory);

/* Each group of a divided model has at least this many GPUs. */
enum { DIVIDED_MIN = 3 };

/* figures.c: adds an entry to the inventory's nodes if the model has small populations and the
 * world has no figures of it by the same version of the program. */
void judge_report_world(const struct judge *judge, const struct group *model,
                        struct inventory *inventory);

/* confirmations.c */

/* Adds second values of a GPU's figures, by metric. */
void judge_repeats_add(struct judge *judge, uint32_t gpu, const struct facts *values);

/* "2 of 2" and the like; NULL: nothing to say. Freed by the caller. */
char *judge_confirmation_text(const struct finding *finding);

/* Adds the second values of a GPU to the facts. */
void judge_repeats_list(const struct judge *judge, uint32_t gpu, struct facts *out_facts);

#endif
