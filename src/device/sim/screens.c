/* The screen for wrong results on a simulated GPU: which hashes are wrong is drawn; nothing is
 * computed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/screen_program.h"
#include "device/sim/gpu.h"

enum { WRONG_SUB_CORE = 2, LAUNCH_NS = 500000, LAUNCH_CYCLES = 900000 };

/* Of a wrong SM: launches that look again, with which operands, and where a word is wrong. */
enum { AGAIN = 16, WRONG_SET = 1, WRONG_PERIOD = 3, WRONG_LANE = 7, WRONG_BIT = 13 };

static int screen_capability(const struct sim_model *model, enum device_screen_path path,
                             struct err *err)
{
    int capability = (int)(10 * strtod(model->hardware.compute_capability, NULL) + 0.5);
    if (device_screen_exists(path, capability))
        return 0;
    return err_set(err, -ENOTSUP, "%s: this GPU does not have it", device_screen_names[path]);
}

static void screen_place(const struct sim_model *model, enum device_screen_path path, size_t number,
                         uint32_t count, struct rng *rng, struct device_check_place *place)
{
    place->count = count;
    if ((int)path != model->wrong_path || model->wrong_share <= 0 ||
        number != (size_t)model->wrong_sm * DEVICE_SUB_CORES + WRONG_SUB_CORE)
        return;
    for (uint32_t i = 0; i < count; i++)
        place->wrong += rng_uniform(rng) < model->wrong_share;
    if (place->wrong)
        place->wrong_hash = rng_next(rng);
}

/* The second look at a wrong SM: in each step, a bit of one word of one lane is wrong. */
static void screen_again(struct gpu *gpu, const struct device_screen *asked, struct rng *rng,
                         struct device_screen_answer *answer)
{
    const struct sim_model *model = &gpu->model;
    const struct device_screen_row *row = &device_screen_rows[asked->path];
    uint32_t place = (uint32_t)model->wrong_sm * DEVICE_SUB_CORES + WRONG_SUB_CORE;
    struct device_second_look *again = &answer->again;
    if (place >= answer->place_count || !answer->places[place].wrong)
        return;
    *again = (struct device_second_look){.launches = AGAIN,
                                         .place = place,
                                         .sm_mhz = gpu_clock_mhz(gpu, gpu->busy_ns),
                                         .power_w = model->config.power_draw_w,
                                         .temperature_c = model->health[HEALTH_TEMPERATURE],
                                         .set = WRONG_SET};
    for (uint32_t i = 0; i < AGAIN; i++)
        again->wrong += rng_uniform(rng) < model->wrong_share;
    if (!again->wrong)
        return;
    uint32_t word = (uint32_t)rng_below(rng, row->taken);
    again->results = (uint64_t)SCREEN_PERIODS * row->steps * row->taken * CHECK_LANES;
    again->differ = (uint64_t)SCREEN_PERIODS * row->steps;
    answer->result_count = row->steps < DEVICE_WRONG_RESULTS ? row->steps : DEVICE_WRONG_RESULTS;
    answer->results = mem_array(answer->result_count, sizeof *answer->results);
    for (uint32_t i = 0; i < answer->result_count; i++) {
        uint32_t expected = (uint32_t)rng_next(rng);
        answer->results[i] = (struct device_wrong_result){.period = WRONG_PERIOD,
                                                          .number = i * row->taken + word,
                                                          .lane = WRONG_LANE,
                                                          .expected = expected,
                                                          .found = expected ^ 1u << WRONG_BIT};
    }
}

/* Wrong hashes are of other launches, as far as there are launches. */
static uint32_t screen_wrong_launches(const struct device_check_place *places, size_t count,
                                      uint32_t launches)
{
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = places[i].wrong > most ? places[i].wrong : most;
    return most < launches ? most : launches;
}

int gpu_screen_path(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_screen *asked = request;
    struct device_screen_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    gpu_update(gpu);
    int rc = screen_capability(model, asked->path, err);
    if (rc)
        return rc;
    bool by_host = device_screen_rows[asked->path].by_host;
    bool card_is_wrong = (int)asked->path == model->wrong_card_path;
    out_answer->code = rng_derive(0, model->hardware.architecture, 0);
    out_answer->digest = rng_derive(card_is_wrong ? gpu->noise_seed : 0,
                                    model->hardware.architecture, 1 + (uint64_t)asked->path);
    out_answer->not_as_host = card_is_wrong && by_host;
    out_answer->elapsed_ns = (uint64_t)asked->target_ms * 1000000;
    out_answer->launches = (uint32_t)(1 + out_answer->elapsed_ns / LAUNCH_NS);
    out_answer->place_count = (size_t)model->sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "screen", gpu->stream_number++), "noise");
    uint32_t hashes =
        out_answer->launches * device_screen_rows[asked->path].warps / DEVICE_SUB_CORES;
    for (size_t i = 0; i < out_answer->place_count; i++) {
        screen_place(model, asked->path, i, hashes, &rng, &out_answer->places[i]);
        out_answer->places[i].cycles = gpu_place_cycles(gpu, i, LAUNCH_CYCLES, &rng);
    }
    if ((int)asked->path == model->wrong_path && model->wrong_share > 0)
        screen_again(gpu, asked, &rng, out_answer);
    out_answer->wrong_launches =
        screen_wrong_launches(out_answer->places, out_answer->place_count, out_answer->launches);
    gpu->busy_ns += (double)out_answer->elapsed_ns;
    return 0;
}

/* Half of the time the GPU draws all the power that it may, in the other half this share. */
static const double IDLE_POWER = 0.2;

int gpu_pulse_path(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_pulse *asked = request;
    struct device_pulse_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    gpu_update(gpu);
    int rc = screen_capability(model, asked->path, err);
    if (rc)
        return rc;
    uint64_t ns = (uint64_t)asked->target_ms * 1000000;
    out_answer->launches = 1 + asked->hz * asked->target_ms / 1000;
    out_answer->idle_ns = asked->hz ? ns / 2 : 0;
    out_answer->busy_ns = ns - out_answer->idle_ns;
    out_answer->power_known = true;
    out_answer->power_high_w = model->config.power_limit_w;
    out_answer->power_low_w = out_answer->power_high_w * (asked->hz ? IDLE_POWER : 1);
    out_answer->place_count = (size_t)model->sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "pulse", gpu->stream_number++), "noise");
    for (size_t i = 0; i < out_answer->place_count; i++) {
        screen_place(model, asked->path, i, out_answer->launches, &rng, &out_answer->places[i]);
        out_answer->places[i].cycles = gpu_place_cycles(gpu, i, LAUNCH_CYCLES, &rng);
    }
    out_answer->wrong_launches =
        screen_wrong_launches(out_answer->places, out_answer->place_count, out_answer->launches);
    gpu->busy_ns += (double)ns;
    return 0;
}
