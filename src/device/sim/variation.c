/* How the units of a model differ. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/sim/model.h"

/* real: H200 cards of one board part, from tests/judge/h200 (docs/simulation.md has the table).
 * published: fleets whose clocks under load are 8 % apart. */
static const char *const words[] = {"real", "published", "none", NULL};
static const struct sim_vary presets[] = {
    {.l2_latency = 0.007,
     .main_latency = 0.002,
     .l2_bandwidth = 0.005,
     .main_bandwidth = 0.0005,
     .host_bandwidth = 0.0012,
     .l2_distance_cycles = 5,
     .timer = 0.0003},
    {.sm_clock = 0.04,
     .l1_latency = 0.005,
     .l2_latency = 0.005,
     .main_latency = 0.005,
     .sm_bandwidth = 0.005,
     .l2_bandwidth = 0.005,
     .main_bandwidth = 0.005,
     .host_bandwidth = 0.005},
    {0},
};

struct vary_text {
    struct sim_vary vary;
    double other; /* every share below except that of the SM clock, unless it is given itself */
};

static const size_t shares[] = {
    offsetof(struct vary_text, vary.l1_latency),
    offsetof(struct vary_text, vary.l2_latency),
    offsetof(struct vary_text, vary.main_latency),
    offsetof(struct vary_text, vary.sm_bandwidth),
    offsetof(struct vary_text, vary.l2_bandwidth),
    offsetof(struct vary_text, vary.main_bandwidth),
    offsetof(struct vary_text, vary.host_bandwidth),
    offsetof(struct vary_text, other),
};
static const char *const share_keys[] = {
    "l1_latency",   "l2_latency",     "main_latency",   "sm_bandwidth",
    "l2_bandwidth", "main_bandwidth", "host_bandwidth", "other",
};

static int read_shares(const struct yaml_node *node, struct sim_vary *out_vary, struct err *err)
{
    enum { SHARES = COUNT_OF(shares), OWN = 3 };
    struct vary_text text = {.vary = {0}};
    struct yaml_field fields[SHARES + OWN] = {
        {"sm_clock", YAML_F64, offsetof(struct vary_text, vary.sm_clock), .min = 0, .max = 0.5},
        {"l2_distance_cycles", YAML_F64, offsetof(struct vary_text, vary.l2_distance_cycles),
         .min = 0, .max = 100},
        {"timer", YAML_F64, offsetof(struct vary_text, vary.timer), .min = 0, .max = 0.01},
    };
    const struct yaml_node *other = yaml_get(node, "other");
    int rc = other ? yaml_as_f64(other, 0, 0.1, &text.other, err) : 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < SHARES; i++) {
        fields[i + OWN] =
            (struct yaml_field){share_keys[i], YAML_F64, shares[i], .min = 0, .max = 0.1};
        memcpy((char *)&text + shares[i], &text.other, sizeof text.other);
    }
    rc = yaml_read_fields(node, fields, COUNT_OF(fields), &text, err);
    if (rc)
        return rc;
    *out_vary = text.vary;
    return 0;
}

int sim_vary_read(const struct yaml_node *node, struct sim_vary *out_vary, struct err *err)
{
    size_t word = 0;
    if (node && yaml_kind(node) == YAML_MAPPING)
        return read_shares(node, out_vary, err);
    int rc = node ? yaml_as_word(node, words, COUNT_OF(words) - 1, &word, err) : 0;
    if (rc)
        return rc;
    *out_vary = presets[word];
    return 0;
}

static double draw(struct rng *rng, double deviation)
{
    return 1 + deviation * rng_normal(rng);
}

static void set_timer(struct sim_model *model, uint64_t seed, double deviation)
{
    struct rng rng;
    rng_init(&rng, seed, "timer");
    model->timer_error = deviation * rng_normal(&rng);
}

/* Each TPC has its own distance; both of its SMs are at one place. */
static void place_tpcs(struct sim_model *model, uint64_t seed, double cycles)
{
    static const double most = 2; /* deviations: none of hundreds of TPCs is far from all others */
    struct rng rng;
    double distance = 0;
    rng_init(&rng, seed, "distance");
    for (uint32_t sm = 0; cycles > 0 && sm < model->sms; sm++) {
        if (!sm || model->tpc_of[sm] != model->tpc_of[sm - 1])
            distance = cycles * fmax(-most, fmin(most, rng_normal(&rng)));
        model->l2_distance[sm] = (float)distance;
    }
}

void sim_vary_apply(const struct sim_vary *vary, uint64_t seed, struct sim_model *model)
{
    struct rng rng;
    rng_init(&rng, seed, "variation");
    model->clock.sm_mhz *= 1 + vary->sm_clock * (2 * rng_uniform(&rng) - 1);
    double l1 = draw(&rng, vary->l1_latency), l2 = draw(&rng, vary->l2_latency);
    double main = draw(&rng, vary->main_latency);
    for (int i = 0; i < DEVICE_PATH_COUNT; i++) {
        struct sim_path *path = &model->paths[i];
        double dram = (path->main_cycles - path->l2_cycles) * main;
        for (uint32_t k = 0; k < path->cache_count; k++)
            path->cache_cycles[k] *= l1;
        path->l2_cycles *= l2;
        path->main_cycles = path->l2_cycles + dram;
    }
    struct sim_bandwidth *b = &model->bandwidth;
    const struct {
        double *rate, deviation;
    } all[] = {
        {&b->sm, vary->sm_bandwidth},           {&b->l1, vary->sm_bandwidth},
        {&b->shared, vary->sm_bandwidth},       {&b->l2_read, vary->l2_bandwidth},
        {&b->l2_write, vary->l2_bandwidth},     {&b->main_read, vary->main_bandwidth},
        {&b->main_write, vary->main_bandwidth}, {&b->main_copy, vary->main_bandwidth},
        {&b->h2d, vary->host_bandwidth},        {&b->d2h, vary->host_bandwidth},
        {&b->bidir, vary->host_bandwidth},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        *all[i].rate *= draw(&rng, all[i].deviation);
    place_tpcs(model, seed, vary->l2_distance_cycles);
    set_timer(model, seed, vary->timer);
}
