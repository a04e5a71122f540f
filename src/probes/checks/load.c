/* The probe of sustained load: what the GPU keeps up when all SMs multiply matrices and read main
 * memory for some seconds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/curves.h"
#include "inventory/throttle.h"
#include "probes/checks/load_turn.h"
#include "probes/probe.h"

enum { SAMPLE_MS = 100, CURVE_POINTS = 40, SLICES = 4 };

static const double LOAD_S = 10;

/* Steady: the slices of the last third agree within this share. */
static const double STEADY = 0.01;

static const char *const unit_words[] = {
    [DEVICE_LOAD_FP32] = "fma.f32",
    [DEVICE_LOAD_MMA] = "mma.sync bf16",
    [DEVICE_LOAD_WGMMA] = "wgmma bf16",
};

static const char *const end_words[] = {
    [DEVICE_LOAD_DONE] = "done",
    [DEVICE_LOAD_TIME] = "the time limit of the GPU",
    [DEVICE_LOAD_SLOWDOWN] = "the hardware slowed itself down",
    [DEVICE_LOAD_OTHERS] = "another process came",
};

/* What happened between two samples. */
struct span {
    double s, mhz, tflops, gbs, power_w, gflop_per_j, celsius, memory_celsius;
};

struct result {
    struct probe_context *context;
    struct device_load_answer answer;
    double wanted_s;
    struct span first, steady; /* the first second; the last third */
    double drift;              /* range of the rates in the slices of the last third */
    uint64_t throttle;
};

/* The last sample that is not later than `s` seconds. */
static size_t sample_at(const struct device_load_answer *answer, double s)
{
    size_t i = answer->sample_count - 1;
    while (i > 0 && (double)answer->samples[i].at_ns > s * 1e9 + 0.5)
        i--;
    return i;
}

static double mean(const struct device_load_answer *answer, size_t from, size_t to, size_t field)
{
    double sum = 0;
    for (size_t i = from + 1; i <= to; i++)
        sum += *(const double *)((const char *)&answer->samples[i] + field);
    return to > from ? sum / (double)(to - from) : NAN;
}

static struct span load_span_of(const struct device_load_answer *answer, size_t from, size_t to)
{
    const struct device_load_sample *a = &answer->samples[from], *b = &answer->samples[to];
    double ns = (double)(b->at_ns - a->at_ns), operations = (double)(b->operations - a->operations);
    double cycles_ns = (double)(b->cycles_ns - a->cycles_ns);
    struct span span = {.s = ns / 1e9};
    double power_w = mean(answer, from, to, offsetof(struct device_load_sample, power_w));
    double joules = b->energy_j - a->energy_j;
    span.mhz = cycles_ns > 0 ? (double)(b->cycles - a->cycles) / cycles_ns * 1e3 : NAN;
    span.tflops = ns > 0 ? operations / ns / 1e3 : NAN;
    span.gbs = ns > 0 ? (double)(b->bytes - a->bytes) / ns : NAN;
    span.power_w = power_w;
    span.gflop_per_j = joules > 0 ? operations / joules / 1e9 : operations / (power_w * ns);
    span.celsius = mean(answer, from, to, offsetof(struct device_load_sample, temperature_c));
    span.memory_celsius =
        mean(answer, from, to, offsetof(struct device_load_sample, temperature_memory_c));
    return span;
}

static void load_analyse(struct result *result)
{
    const struct device_load_answer *answer = &result->answer;
    size_t last = answer->sample_count - 1;
    double end_s = (double)answer->samples[last].at_ns / 1e9, low = INFINITY, high = 0;
    result->first = load_span_of(answer, 0, sample_at(answer, fmin(1, end_s / 3)));
    result->steady = load_span_of(answer, sample_at(answer, end_s * 2 / 3), last);
    for (int k = 0; k < SLICES; k++) {
        size_t from = sample_at(answer, end_s * (2 + (double)k / SLICES) / 3);
        size_t to = sample_at(answer, end_s * (2 + (double)(k + 1) / SLICES) / 3);
        double rate = load_span_of(answer, from, to).tflops;
        low = fmin(low, rate);
        high = fmax(high, rate);
    }
    result->drift = (high - low) / result->steady.tflops;
    for (size_t i = 1; i <= last; i++)
        if (answer->samples[i].throttle_known)
            result->throttle |= answer->samples[i].throttle_reasons & ~UINT64_C(1);
}

/* What is between two points is averaged. */
static struct load_curve load_curve_of(const struct device_load_answer *answer)
{
    struct load_curve curve = {.count = 0};
    size_t last = answer->sample_count - 1;
    double end_s = (double)answer->samples[last].at_ns / 1e9;
    size_t points = last < CURVE_POINTS ? last : CURVE_POINTS;
    size_t from = 0;
    for (size_t k = 1; k <= points; k++) {
        size_t to = sample_at(answer, end_s * (double)k / (double)points);
        if (to == from)
            continue;
        struct span span = load_span_of(answer, from, to);
        double *point = curve.points[curve.count++];
        point[LOAD_CURVE_S] = facts_decimals((double)answer->samples[to].at_ns / 1e9, 2);
        point[LOAD_CURVE_MHZ] = facts_decimals(span.mhz, 0);
        point[LOAD_CURVE_W] = facts_decimals(span.power_w, 0);
        point[LOAD_CURVE_C] = facts_decimals(span.celsius, 0);
        point[LOAD_CURVE_MEMORY_C] = facts_decimals(span.memory_celsius, 0);
        from = to;
    }
    return curve;
}

/* Why the figures are uncertain; NULL: they are not. */
static char *load_doubt_text(const struct result *result)
{
    if (result->answer.end != DEVICE_LOAD_DONE)
        return str_format("ended after %.1f of %.1f s: %s",
                          (double)result->answer.samples[result->answer.sample_count - 1].at_ns /
                              1e9,
                          result->wanted_s, end_words[result->answer.end]);
    if (!(result->drift <= STEADY))
        return str_format("not steady: the last third varies by %.1f %%", 100 * result->drift);
    return NULL;
}

static void load_add(const struct result *result, const char *metric, double value,
                     const char *unit, const char *why)
{
    struct measures *measures = result->context->measures;
    if (isnan(value)) {
        measures_add_missing(measures, metric, MEASURE_UNSUPPORTED,
                             "the driver does not report it");
        return;
    }
    struct measure *m =
        measures_add(measures, metric, value, unit, unit_words[result->answer.unit]);
    m->n = (uint32_t)result->answer.sample_count;
    if (why)
        measure_set_status(m, MEASURE_NOISY, why);
}

static void note_clock(const struct result *result)
{
    struct measures *measures = result->context->measures;
    struct measure *m = NULL;
    for (size_t i = 0; i < measures->count; i++)
        if (str_equal(measures->items[i].metric, "load.clock.steady"))
            m = &measures->items[i];
    struct load_curve curve = load_curve_of(&result->answer);
    struct strbuf reasons = {0};
    throttle_put_text(result->throttle, &reasons);
    load_curve_put(&curve, &m->notes);
    facts_set_text(&m->notes, "throttle", reasons.data);
    strbuf_fini(&reasons);
    if (result->answer.start_known) {
        facts_set_text(&m->notes, "gpus_of_node",
                       result->answer.alone ? "one after the other" : "together");
        facts_set_real(&m->notes, "begun_after_s", result->answer.waited_ms / 1e3);
    }
}

static void load_report(const struct result *result)
{
    const struct span *steady = &result->steady;
    char *why = load_doubt_text(result);
    const struct device_load_answer *answer = &result->answer;
    double lasted_s = (double)answer->samples[answer->sample_count - 1].at_ns / 1e9;
    const struct {
        const char *metric;
        double value;
        const char *unit;
        bool certain;
    } rows[] = {
        {"load.flops", steady->tflops, "TFLOP/s", false},
        {"load.bandwidth", steady->gbs, "GB/s", false},
        {"load.clock.first", result->first.mhz, "MHz", true},
        {"load.clock.steady", steady->mhz, "MHz", false},
        {"load.clock.kept", steady->mhz / result->first.mhz, "", false},
        {"load.power.steady", steady->power_w, "W", false},
        {"load.temperature.steady", steady->celsius, "C", false},
        {"load.temperature_memory.steady", steady->memory_celsius, "C", false},
        {"load.per_joule", steady->gflop_per_j, "GFLOP/J", false},
        {"load.drift", result->drift, "", true},
        {"load.seconds", lasted_s, "s", true},
        {"load.throttle", (double)result->throttle, "", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        load_add(result, rows[i].metric, rows[i].value, rows[i].unit, rows[i].certain ? NULL : why);
    if (!isnan(steady->mhz))
        note_clock(result);
    free(why);
}

static int load_measure(struct result *result, struct device_load *asked, struct err *err)
{
    double may_s = load_turn_left_s(result->context->options);
    if (may_s < 1)
        return err_set(err, -ETIME, "no time is left for a load");
    asked->duration_ms = (uint32_t)(result->wanted_s * 1000);
    asked->sample_ms = SAMPLE_MS;
    asked->limit_ms = (uint32_t)(fmin(may_s, 86400) * 1000);
    int rc = device_run_load(result->context->device, asked, &result->answer, err);
    if (rc)
        return rc;
    const struct device_load_answer *answer = &result->answer;
    if (answer->sample_count < 2 || !answer->samples[answer->sample_count - 1].operations)
        return err_set(err, -ENODATA, "the load did nothing: %s", end_words[answer->end]);
    load_analyse(result);
    load_report(result);
    return 0;
}

static int load_run(struct probe_context *context, struct err *err)
{
    const struct probe_options *options = context->options;
    struct result result = {.context = context,
                            .wanted_s = options->load_s > 0 ? options->load_s : LOAD_S};
    struct load_turn turn = load_turn_take(options, result.wanted_s);
    struct device_load asked = {.alone = turn.alone, .waited_ms = turn.waited_ms};
    int rc = load_measure(&result, &asked, err);
    load_turn_give(&turn);
    device_load_answer_fini(&result.answer);
    return rc;
}

const struct probe probe_load = {
    .description = {"load", "clock, power, heat and work under sustained load", PROFILE_FULL},
    .metrics = {"load.flops", "load.bandwidth", "load.clock.first", "load.clock.steady",
                "load.clock.kept", "load.power.steady", "load.temperature.steady",
                "load.temperature_memory.steady", "load.per_joule", "load.drift", "load.seconds",
                "load.throttle"},
    .last = true,
    .run = load_run,
};
