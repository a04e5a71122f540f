/* What happens to false alarms and to detection if a constant of the model is halved or doubled. */
#include "../check.h"

#include "made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/model.h"
#include "judge/robust.h"
#include "judge/world.h"

static const char *const names[MODEL_CONSTANTS] = {
    [LEVELS_APART] = "LEVELS_APART",   [SITES_APART] = "SITES_APART",
    [PRIOR_PART] = "PRIOR_PART",       [PRIOR_DOF] = "PRIOR_DOF",
    [WORLD_SURE] = "WORLD_SURE",       [KIND_DOF] = "KIND_DOF",
    [SPREAD_PART] = "SPREAD_PART",     [RESOLUTION] = "RESOLUTION",
    [OWN_PART] = "OWN_PART",           [SHARE_FOUND] = "SHARE_FOUND",
    [SHARE_STATED] = "SHARE_STATED",   [TAIL_DOF] = "TAIL_DOF",
    [CONTRADICTION] = "CONTRADICTION", [SHARP_SCORE] = "SHARP_SCORE",
    [NEAR_END] = "NEAR_END",           [BEYOND_MAX] = "BEYOND_MAX",
    [PLACES_APART] = "PLACES_APART",   [BUILT_APART] = "BUILT_APART",
    [FEW_LOSS] = "FEW_LOSS",           [FULL_SURVEY] = "FULL_SURVEY",
    [WATCHED_SHARE] = "WATCHED_SHARE", [CORRELATION] = "CORRELATION",
    [WATCH_OWN] = "WATCH_OWN",         [JOIN_SCORE] = "JOIN_SCORE",
    [SECOND_SCORE] = "SECOND_SCORE",
};

/* Fleets of `count` GPUs, every second one with two boards; scatter and clocks as given. world:
 * GPUs elsewhere with the first board, which are a little faster. */
static const struct {
    size_t count, fleets;
    double clocks, scatter;
    size_t world;
} fleets[] = {{4, 60, 0.001, 0.002, 0},  {8, 60, 0.001, 0.002, 0},  {12, 60, 0.001, 0.001, 0},
              {12, 60, 0.08, 0.005, 0},  {64, 15, 0.001, 0.01, 0},  {256, 15, 0.08, 0.005, 0},
              {1, 60, 0.001, 0.005, 12}, {4, 60, 0.001, 0.005, 12}, {8, 60, 0.001, 0.005, 6}};

/* What one GPU of a fleet loses. The first figure is the one to be found. */
static const struct {
    const char *metrics[2]; /* the first is clock.sm: all that follows the clock, too */
    double left[3];
} losses[] = {{{"main.bandwidth.read"}, {0.97, 0.95, 0.9}},
              {{"main.bandwidth.read", "main.bandwidth.write"}, {0.97, 0.95, 0.9}},
              {{"l2.bandwidth.write", "l2.bandwidth.read"}, {0.97, 0.95, 0.9}},
              {{"host.bandwidth.h2d", "host.bandwidth.d2h"}, {0.97, 0.95, 0.9}},
              {{"clock.sm"}, {0.9, 0.85, 0.7}}};

struct outcome {
    size_t healthy, accused, watched;
    size_t lost, found, noticed; /* one GPU of a fleet lost something */
    size_t named;                /* figures in the entries of those that were found */
};

static struct gpu_result *make(size_t kind, size_t number)
{
    size_t count = fleets[kind].count;
    struct gpu_result *gpus =
        made_fleet_of(count, 5000 + number, fleets[kind].clocks, fleets[kind].scatter);
    for (size_t i = 0; i < count; i++) {
        bool other = number % 2 && i % 3 == 2;
        facts_set_text(&gpus[i].board, "part", other ? "692-000" : "692-001");
        if (other)
            made_scale(&gpus[i], "main.bandwidth.read", 1.025);
    }
    return gpus;
}

static void make_world(size_t kind, size_t number, const char *key, struct world *out_world)
{
    enum { MOST = 16 };
    const double faster = 1.002;
    const struct judge_config *config = made_config();
    size_t count = fleets[kind].world;
    struct gpu_result *gpus = made_fleet_of(count, 9000 + number, 0.001, fleets[kind].scatter);
    struct world_population *population =
        world_have_population(world_have_model(out_world, "Alpha 100", key), "692-001");
    population->gpus = (uint32_t)count;
    world_add_word(&population->programs, "0");
    for (size_t m = 0; m < config->metric_count; m++) {
        double values[MOST], scratch[MOST];
        size_t n = 0;
        while (n < count &&
               measures_value(&gpus[n].measures, config->metrics[m].metric, &values[n]))
            n++;
        if (n < count)
            continue;
        bool fixed = config->metrics[m].worse == JUDGE_ANY;
        for (size_t i = 0; i < n && !fixed; i++)
            values[i] *= config->metrics[m].worse == JUDGE_LOWER ? faster : 1 / faster;
        const struct robust_fit fit = robust_fit(values, n, scratch);
        struct world_figure *figure = world_have_figure(population, config->metrics[m].metric);
        figure->n = (uint32_t)n;
        figure->median = fit.center;
        figure->scatter = fit.sigma;
        for (int i = 0; i < WORLD_QUANTILES; i++)
            figure->quantiles[i] = robust_quantile(values, n, world_shares[i]);
    }
    made_free(gpus, count);
}

/* One GPU of the fleet loses something: is it found? */
static void lose(size_t number, struct gpu_result *gpus, size_t count,
                 const struct judge_basis *basis, struct outcome *sum)
{
    size_t loss = number % COUNT_OF(losses), bad = number % count;
    double left = losses[loss].left[number / COUNT_OF(losses) % COUNT_OF(losses[loss].left)];
    const char *metric = losses[loss].metrics[0];
    if (strcmp(metric, "clock.sm") == 0)
        made_clock(&gpus[bad], left);
    else
        for (size_t i = 0; i < COUNT_OF(losses[loss].metrics) && losses[loss].metrics[i]; i++)
            made_scale(&gpus[bad], losses[loss].metrics[i], left);
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(made_judge(gpus, count, true, basis, &inventory, &err), 0);
    const struct inventory_outlier *entry = made_outlier(&inventory, gpus[bad].uuid),
                                   *told = made_watched(&inventory, gpus[bad].uuid);
    /* What only the world shows is told, whether it is sure or not. */
    if (!entry && told && told->verdict != VERDICT_UNKNOWN)
        entry = told;
    bool found = made_finding(entry, metric) != NULL;
    sum->lost++;
    sum->found += found;
    sum->named += found ? entry->evidence_count : 0;
    sum->noticed += found || made_finding(told, metric);
    inventory_fini(&inventory);
}

static struct outcome run(void)
{
    struct outcome sum = {0};
    for (size_t kind = 0; kind < COUNT_OF(fleets); kind++)
        for (size_t number = 0; number < fleets[kind].fleets; number++) {
            size_t count = fleets[kind].count;
            struct gpu_result *gpus = make(kind, number);
            struct world world = {0};
            struct inventory plain = {0};
            struct err err = {0};
            const struct judge_basis basis = {.config = made_config(),
                                              .world = fleets[kind].world ? &world : NULL};
            if (fleets[kind].world)
                make_world(kind, number, gpus[0].model_key, &world);
            assert_int_equal(made_judge(gpus, count, true, &basis, &plain, &err), 0);
            sum.healthy += count;
            sum.accused += plain.outlier_count;
            for (size_t i = 0; i < plain.watch_count; i++) {
                sum.accused += plain.watch[i].verdict != VERDICT_UNKNOWN;
                sum.watched += plain.watch[i].verdict == VERDICT_UNKNOWN;
            }
            inventory_fini(&plain);
            lose(number, gpus, count, &basis, &sum);
            made_free(gpus, count);
            world_fini(&world);
        }
    return sum;
}

static void print(const char *name, const char *what)
{
    const struct outcome o = run();
    printf("%-14s %-8s of %zu healthy %zu flagged, %zu watched; of %zu losses %zu flagged (%zu "
           "figures), %zu flagged or watched\n",
           name, what, o.healthy, o.accused, o.watched, o.lost, o.found, o.named, o.noticed);
    fflush(stdout);
}

int main(void)
{
    print("all", "shipped");
    for (size_t i = 0; i < MODEL_CONSTANTS; i++) {
        double shipped = model_constants[i];
        model_constants[i] = shipped / 2;
        print(names[i], "halved");
        model_constants[i] = shipped * 2;
        print(names[i], "doubled");
        model_constants[i] = shipped;
    }
    return 0;
}
