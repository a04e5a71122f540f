/* Conditions on which figures depend: clocks, reported hardware, the link; and the reasons that the
 * driver gives for a lowered clock. */
#ifndef GPUMEMTOPO_JUDGE_CONDITIONS_H
#define GPUMEMTOPO_JUDGE_CONDITIONS_H

#include "judge/state.h"

/* The value of a condition on a GPU; NaN if it is not known. */
double judge_condition_value(const struct fleet *fleet, enum judge_condition condition,
                             uint32_t gpu);

/* Fills judge.usual, judge.clock_ratio and judge.other_hardware. */
void judge_conditions_find(struct judge *judge);

/* The GPU's condition over the usual one; 1 if either is unknown. */
double judge_condition_ratio(const struct judge *judge, enum judge_condition condition,
                             uint32_t gpu);

/* Equal within 0.5 %, and less by more than that; false with NaN. */
bool judge_number_same(double own, double other);
bool judge_number_lower(double own, double other);

/* Whether a condition explains a loss: loss <= 1.15 * predicted + floor. All are shares. */
bool judge_loss_fits(double loss, double predicted, double floor);

/* The factor that converts a value of this GPU to the usual SM clock, of a figure of which this
 * share follows the clock. */
double judge_clock_factor(const struct judge *judge, double clock_share, uint32_t gpu);

/* The share by which a deviation is worse; negative: better. JUDGE_ANY: its absolute value. */
double judge_worse_share(enum judge_worse worse, double deviation);

/* One reason for a lowered clock, as `health.throttle` names it. */
struct throttle_reason {
    const char *name;
    enum verdict verdict;
    bool wrong; /* on any GPU: no healthy GPU in a healthy node has this reason */
    const char *words;
};

/* The most specific reason first; the name behind the last one is NULL. */
enum { THROTTLE_REASONS = 7 };
extern const struct throttle_reason throttle_reasons[THROTTLE_REASONS + 1];

#endif
