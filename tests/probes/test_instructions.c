/* Instructions on simulated GPUs: latency and rate are those of the model, whatever it is. */
#include "../check.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "device/instruction.h"
#include "probed.h"

static const char MODEL[] =
    "name: Code\nsms: 8\nmemory: {size: 1 GiB}\n"
    "hardware: {compute_capability: \"9.0\", cores_per_sm: 128}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\nnoise: {jitter_cycles: 1}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

struct truth {
    double latency, interval;
};

/* Some instructions are left out. */
static void draw(struct rng *rng, struct truth *truths, struct strbuf *model)
{
    static const double intervals[] = {1, 1.5, 2, 4, 8, 16};
    strbuf_puts(model, MODEL);
    strbuf_puts(model, "instructions: {");
    for (size_t i = 0; i < instruction_count; i++) {
        truths[i] = (struct truth){0};
        if (rng_below(rng, 5) == 0)
            continue;
        truths[i].latency = 3 + (double)rng_below(rng, 60);
        truths[i].interval = intervals[rng_below(rng, COUNT_OF(intervals))];
        strbuf_printf(model, "%s: [%g, %g], ", instruction_table[i].name, truths[i].latency,
                      truths[i].interval);
    }
    strbuf_puts(model, "}\n");
}

static void expect(const struct measures *measures, const char *name, const char *what,
                   double truth, double within)
{
    char metric[80];
    snprintf(metric, sizeof metric, "instructions.%s.%s", name, what);
    const struct measure *m = measures_get(measures, metric);
    if (truth <= 0) {
        assert_true(!m || m->status == MEASURE_UNSUPPORTED);
        return;
    }
    if (!m || m->status != MEASURE_OK || m->value < truth * (1 - within) ||
        m->value > truth * (1 + within))
        fail_msg("%s: %g, should be %g", metric, m ? m->value : -1, truth);
}

/* Four chains and 8 warps hide the latency if it is at most 32 intervals long. */
static double rate_of(const struct instruction *instruction, const struct truth *truth)
{
    bool wide = instruction->place != INSTRUCTION_NOWHERE;
    double units = wide ? 1 : 4, in_flight = 4 * 32 / units;
    double issue = wide ? 0.25 : 1;
    double each = truth->interval > issue ? truth->interval : issue;
    each = truth->latency / in_flight > each ? truth->latency / in_flight : each;
    return truth->latency > 0 ? instruction->operations * units / each : 0;
}

static void drawn(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 17, "instructions");
    for (int round = 0; round < 2; round++) {
        struct truth truths[INSTRUCTIONS_MAX];
        struct strbuf model = {0};
        draw(&rng, truths, &model);
        const struct probed probed = {.model = model.data, .list = "instructions"};
        struct measures measures = probed_run(&probed);
        uint32_t count = 0;
        for (size_t i = 0; i < instruction_count; i++) {
            const struct instruction *instruction = &instruction_table[i];
            double latency =
                truths[i].latency > truths[i].interval ? truths[i].latency : truths[i].interval;
            count += truths[i].latency > 0;
            expect(&measures, instruction->name, "latency", truths[i].latency > 0 ? latency : 0,
                   0.01);
            expect(&measures, instruction->name, "rate", rate_of(instruction, &truths[i]), 0.02);
        }
        assert_true(probed_value(&measures, "instructions.count") == count);
        measures_fini(&measures);
        strbuf_fini(&model);
    }
}

static int imitate(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_code *code = request;
    struct device_code_answer *out_answer = answer;
    (void)device, (void)err;
    out_answer->cycles = 100 + 8 * (uint64_t)code->length * code->repeats;
    out_answer->machine = 40 + (code->instruction == 0   ? code->length / 2
                                : code->instruction == 1 ? 4 * (uint64_t)code->length
                                                         : code->length);
    out_answer->most = code->instruction == 3 ? code->length / 2 : code->length;
    return 0;
}

static void use_imitations(struct device *device)
{
    static struct device_ops ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_CODE] = imitate;
    device->ops = &ops;
}

/* Of how many operations in turn it says that the figures are; 0: nothing. */
static double kinds_of(const struct measures *measures, size_t row)
{
    char metric[80];
    snprintf(metric, sizeof metric, "instructions.%s.latency", instruction_table[row].name);
    const struct fact *kinds =
        facts_get(&measures_get(measures, metric)->notes, "machine_operations");
    return kinds ? kinds->real : 0;
}

/* Two that are joined count as one; one that is made of others is not reported. */
static void machine_instructions(void **state)
{
    (void)state;
    const struct probed probed = {
        .model = MODEL, .list = "instructions", .prepare = use_imitations};
    struct measures measures = probed_run(&probed);
    expect(&measures, instruction_table[0].name, "latency", 16, 0.001);
    expect(&measures, instruction_table[1].name, "latency", 0, 0);
    expect(&measures, instruction_table[2].name, "latency", 8, 0.001);
    assert_true(kinds_of(&measures, 2) == 0 && kinds_of(&measures, 3) == 2);
    measures_fini(&measures);
}

static void no_code(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "instructions"};
    struct measures measures = probed_run(&probed);
    assert_int_equal(measures.count, 1);
    assert_int_equal(measures_get(&measures, "instructions.count")->status, MEASURE_UNSUPPORTED);
    measures_fini(&measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn), cmocka_unit_test(machine_instructions), cmocka_unit_test(no_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
