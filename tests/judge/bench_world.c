/* How often a healthy GPU that is judged alone against the world is accused or watched, and how
 * often a slow one is found. docs/share.md has the figures. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "judge/robust.h"
#include "judge/world.h"

enum { WORLD_GPUS_MAX = 64, TRIALS = 4000 };

struct trial {
    uint32_t gpus;        /* in the world */
    double scatter, loss; /* shares; loss: of main.bandwidth.read and .write */
    int accused, watched; /* GPUs */
    struct rng rng;
    struct gpu_result *gpu;
};

static bool is_fixed(const struct judge_metric *rule)
{
    return rule->worse == JUDGE_ANY || rule->worse == JUDGE_NONE ||
           strncmp(rule->metric, "clock.", 6) == 0;
}

/* A figure of a healthy GPU. */
static double draw(struct trial *trial, const struct judge_metric *rule, double center)
{
    return is_fixed(rule) ? center : center * (1 + trial->scatter * rng_normal(&trial->rng));
}

static void sketch(struct trial *trial, const struct judge_metric *rule, double center,
                   struct world_figure *figure)
{
    double values[WORLD_GPUS_MAX], scratch[WORLD_GPUS_MAX];
    for (uint32_t i = 0; i < trial->gpus; i++)
        values[i] = draw(trial, rule, center);
    const struct robust_fit fit = robust_fit(values, trial->gpus, scratch);
    figure->n = trial->gpus;
    figure->median = fit.center;
    figure->scatter = fit.sigma;
    for (int i = 0; i < WORLD_QUANTILES; i++)
        figure->quantiles[i] = robust_quantile(values, trial->gpus, world_shares[i]);
}

static void run_once(struct trial *trial, const double *centers)
{
    const struct judge_config *config = made_config();
    struct world world = {0};
    struct inventory inventory = {0};
    struct err err = {0};
    const struct judge_basis basis = {.config = config, .world = &world};
    struct world_model *model = world_have_model(&world, "Alpha 100", trial->gpu->model_key);
    struct world_population *population = world_have_population(model, "900");
    population->gpus = trial->gpus;
    world_add_word(&population->programs, "0");
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct judge_metric *rule = &config->metrics[m];
        bool slow = strncmp(rule->metric, "main.bandwidth.", 15) == 0;
        if (isnan(centers[m]))
            continue;
        sketch(trial, rule, centers[m], world_have_figure(population, rule->metric));
        made_set(trial->gpu, rule->metric,
                 draw(trial, rule, centers[m]) * (1 - (slow ? trial->loss : 0)));
    }
    assert_int_equal(made_judge(trial->gpu, 1, true, &basis, &inventory, &err), 0);
    /* The world alone causes no action: what is sure is told, too. */
    bool sure = inventory.watch_count && inventory.watch[0].verdict != VERDICT_UNKNOWN;
    trial->accused += sure;
    trial->watched += inventory.watch_count && !sure;
    inventory_fini(&inventory);
    world_fini(&world);
}

static void run(uint32_t gpus, double scatter, double loss)
{
    const struct judge_config *config = made_config();
    struct trial trial = {.gpus = gpus, .scatter = scatter, .loss = loss};
    struct gpu_result *gpu = made_fleet(1, 1);
    double *centers = calloc(config->metric_count, sizeof *centers);
    trial.gpu = gpu;
    rng_init(&trial.rng, 1, "world");
    facts_set_text(&gpu->board, "part", "900");
    for (size_t m = 0; m < config->metric_count; m++)
        if (!measures_value(&gpu->measures, config->metrics[m].metric, &centers[m]))
            centers[m] = NAN;
    for (int i = 0; i < TRIALS; i++)
        run_once(&trial, centers);
    printf("%2u GPUs, scatter %.1f %%, loss %.0f %%: %.2f %% accused, %.2f %% watched\n", gpus,
           100 * scatter, 100 * loss, 100.0 * trial.accused / TRIALS,
           100.0 * trial.watched / TRIALS);
    free(centers);
    made_free(gpu, 1);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    static const uint32_t gpus[] = {5, 8, 12, 30};
    static const double scatters[] = {0.002, 0.005, 0.01, 0.02}, losses[] = {0, 0.05};
    for (size_t l = 0; l < COUNT_OF(losses); l++)
        for (size_t g = 0; g < COUNT_OF(gpus); g++)
            for (size_t s = 0; s < COUNT_OF(scatters); s++)
                run(gpus[g], scatters[s], losses[l]);
    return 0;
}
