/* What happens to false alarms and to detection if a constant of the model is halved or doubled. */
#include "../check.h"

#include "made.h"

#include <stdio.h>
#include <stdlib.h>

#include "judge/model.h"

static const char *const names[MODEL_CONSTANTS] = {
    [LEVELS_APART] = "LEVELS_APART",   [SITES_APART] = "SITES_APART",
    [PRIOR_PART] = "PRIOR_PART",       [PRIOR_DOF] = "PRIOR_DOF",
    [WORLD_SURE] = "WORLD_SURE",       [KIND_DOF] = "KIND_DOF",
    [SPREAD_PART] = "SPREAD_PART",     [RESOLUTION] = "RESOLUTION",
    [OWN_PART] = "OWN_PART",           [SHARE_FOUND] = "SHARE_FOUND",
    [SHARE_STATED] = "SHARE_STATED",   [TAIL_DOF] = "TAIL_DOF",
    [CONTRADICTION] = "CONTRADICTION", [SHARP_SCORE] = "SHARP_SCORE",
    [NEAR_END] = "NEAR_END",           [BEYOND_MAX] = "BEYOND_MAX",
    [BUILT_APART] = "BUILT_APART",     [FEW_LOSS] = "FEW_LOSS",
    [FULL_SURVEY] = "FULL_SURVEY",     [WATCHED_SHARE] = "WATCHED_SHARE",
    [CORRELATION] = "CORRELATION",     [WATCH_OWN] = "WATCH_OWN",
    [JOIN_SCORE] = "JOIN_SCORE",       [SECOND_SCORE] = "SECOND_SCORE",
};

/* Fleets of `count` GPUs, every second one with two boards; scatter and clocks as given. */
static const struct {
    size_t count, fleets;
    double clocks, scatter;
} fleets[] = {{4, 60, 0.001, 0.002}, {8, 60, 0.001, 0.002}, {12, 60, 0.001, 0.001},
              {12, 60, 0.08, 0.005}, {64, 16, 0.001, 0.01}, {256, 8, 0.08, 0.005}};

struct outcome {
    size_t healthy, accused, watched;
    size_t lost, found, noticed; /* one GPU of a fleet lost 3 %, 5 % or 10 % */
};

static struct gpu_result *make(size_t kind, size_t number)
{
    size_t count = fleets[kind].count;
    struct gpu_result *gpus =
        made_fleet_of(count, 5000 + number, fleets[kind].clocks, fleets[kind].scatter);
    for (size_t i = 0; i < count; i++) {
        bool other = number % 2 && i % 3 == 0;
        facts_set_text(&gpus[i].board, "part", other ? "692-000" : "692-001");
        if (other)
            made_scale(&gpus[i], "main.bandwidth.read", 1.025);
    }
    return gpus;
}

static struct outcome run(void)
{
    static const double left[] = {0.97, 0.95, 0.9};
    struct outcome sum = {0};
    for (size_t kind = 0; kind < COUNT_OF(fleets); kind++)
        for (size_t number = 0; number < fleets[kind].fleets; number++) {
            size_t count = fleets[kind].count, bad = number % count;
            struct gpu_result *gpus = make(kind, number);
            struct inventory plain = made_judged(gpus, count);
            sum.healthy += count;
            sum.accused += plain.outlier_count;
            sum.watched += plain.watch_count;
            inventory_fini(&plain);
            made_scale(&gpus[bad], "main.bandwidth.read", left[number % COUNT_OF(left)]);
            if (number % 4 < 2)
                made_scale(&gpus[bad], "main.bandwidth.write", left[number % COUNT_OF(left)]);
            struct inventory lost = made_judged(gpus, count);
            bool found =
                made_finding(made_outlier(&lost, gpus[bad].uuid), "main.bandwidth.read") != NULL;
            sum.lost++;
            sum.found += found;
            sum.noticed +=
                found || made_finding(made_watched(&lost, gpus[bad].uuid), "main.bandwidth.read");
            inventory_fini(&lost);
            made_free(gpus, count);
        }
    return sum;
}

static void print(const char *name, const char *what)
{
    const struct outcome o = run();
    printf("%-14s %-8s of %zu healthy %zu flagged, %zu watched; of %zu losses %zu flagged, %zu "
           "flagged or watched\n",
           name, what, o.healthy, o.accused, o.watched, o.lost, o.found, o.noticed);
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
