/* The two speed-ups of thesis 4.7: jumping by line and all SMs at once give the same result. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "device/sim/sim.h"
#include "geometry.h"
#include "probes/caches/sweep.h"

/* A device in front of the simulated one that counts what is asked of it. */
struct counter {
    struct device device;
    struct device *inner;
    uint64_t loads;
    uint32_t widest; /* jobs in flight */
};

static uint64_t loads_of(const struct device_step *step)
{
    return step->loads ? step->loads : step->array.size_bytes / step->array.stride_bytes;
}

static int count_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    struct counter *counter = (struct counter *)device;
    for (size_t i = 0; i < batch->job_count; i++)
        for (uint32_t s = 0; s < batch->jobs[i].step_count; s++)
            counter->loads += loads_of(&batch->jobs[i].steps[s]);
    if (!batch->at_once && batch->job_count > counter->widest)
        counter->widest = (uint32_t)batch->job_count;
    return device_run(counter->inner, batch, answers, err);
}

static const struct device_ops counter_ops = {.backend = "counter",
                                              .calls[DEVICE_CALL_BATCH] = count_batch};

static struct counter open_counted(const struct geometry *geometry)
{
    struct strbuf yaml = {0};
    struct sim_model *model;
    struct counter counter = {.device = {.ops = &counter_ops}};
    struct err err = {0};
    geometry_print(geometry, &yaml);
    if (sim_model_read_text(yaml.data, yaml.length, "sweep", &model, &err) ||
        sim_open(model, NULL, 0, 1, &counter.inner, &err))
        fail_msg("%s", err.text);
    counter.device.limits = *device_limits(counter.inner);
    sim_model_destroy(model);
    strbuf_fini(&yaml);
    return counter;
}

/* Where a sweep of 24 sizes around the L1's size sees misses begin, and the loads it took. */
static uint64_t sweep_with(uint64_t stride_bytes, uint64_t *out_loads)
{
    const struct geometry geometry = geometry_default();
    struct counter counter = open_counted(&geometry);
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = 3};
    struct probe_context context = {.device = &counter.device, .options = &options};
    const struct sweep_range range = {.low_bytes = geometry.l1_size_bytes - 12 * 1024,
                                      .high_bytes = geometry.l1_size_bytes + 12 * 1024,
                                      .step_bytes = 1024,
                                      .stride_bytes = stride_bytes};
    struct sweep_curve curve;
    struct sweep_onset onset;
    struct err err = {0};
    if (study_reach(&context, STUDY_L1_DATA, STUDY_LEVEL, &err))
        fail_msg("%s", err.text);
    counter.loads = 0;
    const struct study *study = &context.studies[STUDY_L1_DATA];
    if (sweep_measure(&context, study, &range, &curve, &err) ||
        sweep_onset(study, curve.sizes, curve.miss_shares, curve.count, 1, &onset, &err))
        fail_msg("%s", err.text);
    assert_true(onset.change.found);
    assert_int_equal(counter.widest, curve.count);
    *out_loads = counter.loads;
    device_destroy(counter.inner);
    return onset.fits_bytes;
}

static void jumping_by_line(void **state)
{
    (void)state;
    uint64_t by_word, by_fetch, by_line;
    uint64_t size = geometry_default().l1_size_bytes;
    /* Word by word a line's misses are diluted by the hits in it: the onset may come a step late.
     */
    assert_in_range(sweep_with(8, &by_word), size, size + 1024);
    assert_in_range(sweep_with(32, &by_fetch), size, size + 1024);
    assert_in_range(sweep_with(128, &by_line), size, size + 1024);
    printf("loads: %llu word by word, %llu by fetch unit, %llu by line\n",
           (unsigned long long)by_word, (unsigned long long)by_fetch, (unsigned long long)by_line);
    assert_true(by_word >= 4 * by_fetch);
    assert_true(by_fetch >= 4 * by_line);
}

/* One size with conflict misses, far below the limit, is no change point. */
static void one_odd_size(void **state)
{
    (void)state;
    const struct study study = {.threshold = 100};
    struct sweep_curve curve = {.count = 60};
    struct sweep_onset onset;
    struct err err = {0};
    for (size_t i = 0; i < curve.count; i++) {
        curve.sizes[i] = 1024 * (i + 1);
        curve.miss_shares[i] = i == 17 ? 0.4 : i < 45 ? 0 : 0.3 + 0.01 * (double)i;
    }
    assert_int_equal(
        sweep_onset(&study, curve.sizes, curve.miss_shares, curve.count, 1, &onset, &err), 0);
    assert_true(onset.change.found);
    assert_int_equal(onset.fits_bytes, 45 * 1024);
    for (size_t i = 40; i < curve.count; i++)
        curve.miss_shares[i] = 0;
    assert_int_equal(
        sweep_onset(&study, curve.sizes, curve.miss_shares, curve.count, 1, &onset, &err), 0);
    assert_false(onset.change.found);
}

/* Misses that become ever rarer towards the limit: the onset is found, not the middle. */
static void slow_onset(void **state)
{
    (void)state;
    const struct study study = {.threshold = 100, .stray_share = 0.001};
    struct sweep_curve curve = {.count = 200};
    struct sweep_onset onset;
    struct err err = {0};
    for (size_t i = 0; i < curve.count; i++) {
        curve.sizes[i] = 1024 * (i + 1);
        curve.miss_shares[i] = 0.001 + (i < 100 ? 0 : 0.004 * (double)(i - 99));
    }
    assert_int_equal(
        sweep_onset(&study, curve.sizes, curve.miss_shares, curve.count, 1, &onset, &err), 0);
    assert_true(onset.change.found);
    assert_in_range(onset.fits_bytes, 100 * 1024, 103 * 1024);
}

static const char *pairs_path;

/* Two SMs share a constant L1.5: all SMs at once disturb each other, and the study notices. */
static void spreads_less_where_sms_share(void **state)
{
    (void)state;
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = 1};
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct probe_selection selection = {0};
    struct measures found = {0};
    struct err err = {0};
    if (sim_model_read_file(pairs_path, &model, &err) ||
        sim_open(model, NULL, 0, 1, &device, &err) ||
        probes_select(PROFILE_STANDARD, "constant_l15,sm.groups,l1_data.size", &selection, &err) ||
        probes_run(device, &selection, &options, NULL, &found, &err))
        fail_msg("%s", err.text);
    uint32_t sms = device_limits(device)->sm_count;
    const struct measure *size = measures_get(&found, "constant_l15.size");
    assert_true(size->value == 40 * 1024);
    assert_in_range(facts_int(&size->notes, "at_once", 0), 1, sms / 2);
    assert_null(facts_get(&measures_get(&found, "l1_data.size")->notes, "at_once"));
    assert_true(measures_get(&found, "constant_l15.sms")->value == 2);
    measures_fini(&found);
    free(selection.indices);
    device_destroy(device);
    sim_model_destroy(model);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    pairs_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jumping_by_line), cmocka_unit_test(spreads_less_where_sms_share),
        cmocka_unit_test(one_odd_size), cmocka_unit_test(slow_onset)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
