/* The probe that screens all SMs under stress: without pauses until the chip is hot, then every
 * path while it is, then in pulses of current. Operands are those of the screen. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "probes/checks/load_turn.h"
#include "probes/checks/places.h"
#include "probes/method/repeats.h"

enum { HOT_MS = 4 }; /* for each path */

/* Beyond the modes: screens of the hot chip, and pulses that end later. */
static const double MORE_S = 3;

/* The path that draws the most power, of those that a GPU has. */
static const enum device_screen_path heavy_paths[] = {DEVICE_SCREEN_WGMMA_BF16,
                                                      DEVICE_SCREEN_MMA_BF16, DEVICE_SCREEN_FP32};

/* The first one has no pauses. At the second one the driver's readings of the power show steps. */
static const struct mode {
    uint32_t hz, ms;
} modes[] = {{0, 3000},   {1, 3000},   {5, 1000},    {25, 1000},
             {100, 1000}, {500, 1000}, {1000, 1000}, {2000, 1000}};
enum { STEP_MODE = 1 };

struct stress {
    struct probe_context *context;
    enum device_screen_path path;
    uint64_t hashes[COUNT_OF(modes)], wrong[COUNT_OF(modes)];
    uint32_t launches, wrong_launches; /* in which any hash was wrong */
    double duty[COUNT_OF(modes)];      /* share of the time in which SMs worked */
    double step_w;                     /* NAN: the driver does not say */
    uint64_t hot_hashes, hot_wrong;
    uint32_t hot_launches, hot_wrong_launches;
    struct worst {
        size_t place;
        uint32_t wrong; /* hashes there */
    } pulsed, hot;
};

static double stress_s(void)
{
    double ms = 0;
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        ms += modes[i].ms;
    return ms / 1e3 + MORE_S;
}

static struct places stress_take(const struct device_check_place *places, size_t count,
                                 struct worst *worst)
{
    const struct places sum = places_sum(places, count);
    if (sum.wrong && places[sum.worst].wrong > worst->wrong)
        *worst = (struct worst){sum.worst, places[sum.worst].wrong};
    return sum;
}

static int stress_pulse(struct stress *stress, size_t mode, struct err *err)
{
    const struct device_pulse pulse = {stress->path, modes[mode].hz, modes[mode].ms};
    struct device_pulse_answer answer;
    int rc = device_pulse_path(stress->context->device, &pulse, &answer, err);
    if (rc)
        return rc;
    const struct places sum = stress_take(answer.places, answer.place_count, &stress->pulsed);
    double all_ns = (double)(answer.busy_ns + answer.idle_ns);
    stress->hashes[mode] = sum.count;
    stress->wrong[mode] = sum.wrong;
    stress->launches += answer.launches;
    stress->wrong_launches += answer.wrong_launches;
    stress->duty[mode] = all_ns > 0 ? (double)answer.busy_ns / all_ns : 0;
    if (mode == STEP_MODE)
        stress->step_w = answer.power_known ? answer.power_high_w - answer.power_low_w : NAN;
    device_pulse_answer_fini(&answer);
    return 0;
}

/* Every path, right after the load without pauses. */
static int stress_hot(struct stress *stress, struct err *err)
{
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++) {
        const struct device_screen screen = {(enum device_screen_path)path, HOT_MS};
        struct device_screen_answer answer;
        int rc = device_screen_path(stress->context->device, &screen, &answer, err);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            return rc;
        const struct places sum = stress_take(answer.places, answer.place_count, &stress->hot);
        stress->hot_hashes += sum.count;
        stress->hot_wrong += sum.wrong;
        stress->hot_launches += answer.launches + answer.again.launches;
        stress->hot_wrong_launches += answer.wrong_launches + answer.again.wrong;
        device_screen_answer_fini(&answer);
    }
    return 0;
}

/* What a part of the stress gave. */
struct stressed {
    uint32_t launches, wrong_launches;
    uint64_t hashes, wrong;
};

static struct measure *stress_add(const struct stress *stress, const char *metric,
                                  const struct stressed *stressed, const char *method)
{
    struct measure *m =
        measures_add(stress->context->measures, metric, stressed->wrong_launches, "", method);
    m->n = stressed->launches;
    facts_set_int(&m->notes, "of", stressed->launches);
    facts_set_int(&m->notes, "hashes", (int64_t)stressed->hashes);
    facts_set_int(&m->notes, "hashes_wrong", (int64_t)stressed->wrong);
    return m;
}

static void stress_add_place(const struct stress *stress, const char *metric,
                             const struct worst *worst)
{
    if (!worst->wrong)
        return;
    struct measure *m =
        measures_add(stress->context->measures, metric, (double)(worst->place / DEVICE_SUB_CORES),
                     "id", "the SM with the sub-core that has most wrong hashes");
    facts_set_int(&m->notes, "sub_core", (int64_t)(worst->place % DEVICE_SUB_CORES));
}

static double wrong_share(const struct stress *stress, size_t mode)
{
    return stress->hashes[mode] ? (double)stress->wrong[mode] / (double)stress->hashes[mode] : 0;
}

static void stress_report(const struct stress *stress)
{
    struct measures *measures = stress->context->measures;
    struct stressed pulsed = {.launches = stress->launches,
                              .wrong_launches = stress->wrong_launches};
    const struct stressed hot = {stress->hot_launches, stress->hot_wrong_launches,
                                 stress->hot_hashes, stress->hot_wrong};
    double hz[COUNT_OF(modes)], duty[COUNT_OF(modes)];
    size_t worst = 0;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        pulsed.hashes += stress->hashes[i];
        pulsed.wrong += stress->wrong[i];
        worst = wrong_share(stress, i) > wrong_share(stress, worst) ? i : worst;
        hz[i] = modes[i].hz;
        duty[i] = facts_decimals(stress->duty[i], 3);
    }
    struct measure *m = stress_add(stress, "compute.pulse", &pulsed,
                                   "launches with hashes of warps that are not those of most "
                                   "warps, with and without pauses");
    facts_set_text(&m->notes, "path", device_screen_names[stress->path]);
    facts_set_numbers(&m->notes, "hz", hz, COUNT_OF(modes));
    facts_set_numbers(&m->notes, "duty", duty, COUNT_OF(modes));
    if (pulsed.wrong)
        measures_add(measures, "compute.pulse_hz", modes[worst].hz, "id",
                     "pulses per second where they are most frequent; 0: without pauses");
    stress_add_place(stress, "compute.pulse_sm", &stress->pulsed);
    stress_add(stress, "compute.hot", &hot,
               "launches with hashes of warps that are not those of most warps, of all paths, "
               "right after seconds without pauses");
    stress_add_place(stress, "compute.hot_sm", &stress->hot);
    if (!isnan(stress->step_w))
        measures_add(measures, "compute.pulse_step", stress->step_w, "W",
                     "power between the pauses less that in them, one pulse per second");
}

static int stress_run(struct stress *stress, struct err *err)
{
    int rc = -ENOTSUP;
    for (size_t i = 0; i < COUNT_OF(heavy_paths) && rc == -ENOTSUP; i++) {
        stress->path = heavy_paths[i];
        rc = stress_pulse(stress, 0, err);
    }
    if (!rc)
        rc = stress_hot(stress, err);
    for (size_t i = 1; i < COUNT_OF(modes) && !rc; i++)
        rc = stress_pulse(stress, i, err);
    return rc;
}

static int compute_pulse_run(struct probe_context *context, struct err *err)
{
    struct stress stress = {.context = context, .step_w = NAN};
    struct load_turn turn = load_turn_take(context->options, stress_s());
    struct err own = {0};
    int rc = load_turn_left_s(context->options) < stress_s()
                 ? err_set(&own, -ETIME, "no time is left for pulses")
                 : stress_run(&stress, &own);
    load_turn_give(&turn);
    if (rc)
        return repeats_end(context, "compute.pulse", rc, &own, err);
    stress_report(&stress);
    return 0;
}

const struct probe probe_compute_pulse = {
    .description = {"compute.pulse", "whether every SM computes right under pulses of current",
                    PROFILE_FULL},
    .metrics = {"compute.pulse", "compute.pulse_hz", "compute.pulse_sm", "compute.pulse_step",
                "compute.hot", "compute.hot_sm"},
    .last = true,
    .run = compute_pulse_run,
};
