/* Fleets made by hand for the tests of the judge: healthy GPUs with the published scatter, into
 * which a test puts what is wrong. */
#ifndef GPUMEMTOPO_TESTS_JUDGE_MADE_H
#define GPUMEMTOPO_TESTS_JUDGE_MADE_H

#include <stdint.h>

#include "inventory/inventory.h"
#include "judge/judge.h"

enum { MADE_PER_NODE = 4 };

/* GPUs GPU-000, GPU-001, ... of model "Alpha 100", four on each of the nodes n00, n01, ...: SM
 * clocks 8 % apart, every other figure with a standard deviation of 0.5 % at equal clock. Freed
 * with made_free. */
struct gpu_result *made_fleet(size_t count, uint64_t seed);

/* The same with other clocks (largest difference, as a share) and another standard deviation. */
struct gpu_result *made_fleet_of(size_t count, uint64_t seed, double clocks, double scatter);

void made_free(struct gpu_result *gpus, size_t count);

/* Replaces a figure, or multiplies it. */
void made_set(struct gpu_result *gpu, const char *metric, double value);
void made_scale(struct gpu_result *gpu, const char *metric, double factor);

/* The same GPU at another SM clock, with all that follows it. */
void made_clock(struct gpu_result *gpu, double factor);

/* Changes a fleet of MADE_SPOILED GPUs so that every stage of the judge finds something: outliers,
 * unusual settings, a node, a divided model, a model of three, GPUs that were not measured. */
enum { MADE_SPOILED = 64 };
void made_spoil(struct gpu_result *gpus);

/* Judged as the shipped configuration has it. */
const struct judge_config *made_config(void);
struct inventory made_judged(const struct gpu_result *gpus, size_t count);

/* Judges on a basis. again: who looks bad is measured again, with the same values. */
int made_judge(const struct gpu_result *gpus, size_t count, bool again,
               const struct judge_basis *basis, struct inventory *inventory, struct err *err);

/* The inventory as text; freed with free(). */
char *made_printed(const struct gpu_result *gpus, size_t count);

/* NULL: is not there. */
const struct inventory_outlier *made_outlier(const struct inventory *inventory, const char *uuid);
const struct inventory_outlier *made_watched(const struct inventory *inventory, const char *uuid);
const struct inventory_evidence *made_finding(const struct inventory_outlier *outlier,
                                              const char *metric);

#endif
