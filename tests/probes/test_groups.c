/* Which SMs share a constant L1.5: the partition by itself, on simulated GPUs, and its controls. */
#include "../check.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "probed.h"
#include "probes/maps/sm_groups.h"

enum { SMS = 132 };

/* Odds of one pair, of which a share says the opposite of the truth. */
static void add_pairs(struct partition *p, const uint32_t *truth, double wrong, uint64_t seed)
{
    static const double odds = 10;
    struct rng rng;
    rng_init(&rng, seed, "pairs");
    for (size_t a = 0; a < p->sms; a++)
        for (size_t b = a + 1; b < p->sms; b++) {
            bool together = (truth[a] == truth[b]) != (rng_uniform(&rng) < wrong);
            partition_add(p, a, b, together ? odds : -odds);
        }
}

/* Eight groups as on an H200, TPCs dealt out in turn. */
static uint32_t group_of(size_t sm)
{
    return (uint32_t)(sm / 2 % 8);
}

static void misjudged_pairs_are_outvoted(void **state)
{
    (void)state;
    uint32_t truth[SMS];
    for (size_t i = 0; i < SMS; i++)
        truth[i] = group_of(i);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct partition p;
        partition_init(&p, SMS);
        add_pairs(&p, truth, 0.1, seed);
        partition_divide(&p);
        assert_int_equal(p.group_count, 8);
        assert_memory_equal(p.group, truth, sizeof truth);
        assert_true(p.contradicted > 0.05 && p.contradicted < 0.15);
        partition_fini(&p);
    }
}

/* What one pair alone says is believed, but not for sure. */
static void thin_evidence_has_little_confidence(void **state)
{
    (void)state;
    struct partition p;
    partition_init(&p, 3);
    partition_add(&p, 0, 1, -1);
    partition_add(&p, 0, 2, 1);
    partition_add(&p, 1, 2, -1);
    partition_divide(&p);
    assert_int_equal(p.group_count, 2);
    assert_true(p.group[0] == p.group[2] && partition_size(&p, p.group[0]) == 2);
    assert_true(p.confidence < 0.5);
    partition_fini(&p);
}

#define MODEL(sms, more, scope)                                                                    \
    "name: G\nsms: " sms "\nsms_per_tpc: 2\n" more                                                 \
    "memory: {size: 1 GiB, constant_first_cycles: 300}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"       \
    "noise: {jitter_cycles: 2, spike_rate: 0.002, spike_cycles: 300}\n"                            \
    "caches: {c1: {size: 2 KiB, line: 64, ways: 4},"                                               \
    " c15: {size: 32 KiB, line: 256, ways: 8, scope: " scope "}}\n"                                \
    "l2: {size: 1 MiB, line: 128, ways: 16, slice_cycles: 40}\n"                                   \
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500],"                    \
    " constant: [c1: 25, c15: 100, l2: 270, main: 570]}\n"

static const struct {
    const char *model, *sizes, *map;
    double usual, least;
} gpus[] = {
    {MODEL("12", "sms_per_gpc: [2, 6, 4]\nsm_order: across\n", "gpc"), "2 6 4",
     "0 0 1 1 2 2 1 1 2 2 1 1", 4, 2},
    {MODEL("12", "sms_per_gpc: [2, 6, 4]\n", "gpc"), "2 6 4", "0 0 1 1 1 1 1 1 2 2 2 2", 4, 2},
    {MODEL("7", "", "tpc"), "2 2 2 1", "0 0 1 1 2 2 3", 2, 1},
    {MODEL("5", "", "sm"), "1 1 1 1 1", "0 1 2 3 4", 1, 1},
    {MODEL("6", "", "gpu"), "6", "0 0 0 0 0 0", 6, 6},
};

static struct measures run(const char *model, void (*prepare)(struct device *))
{
    return probed_run(&(struct probed){
        .model = model, .profile = PROFILE_STANDARD, .list = "sm.groups", .prepare = prepare});
}

/* A note is the list of these numbers, which spaces separate. */
static void expect_numbers(const struct facts *notes, const char *key, const char *expected)
{
    size_t count = 0;
    const double *numbers = facts_numbers(notes, key, &count);
    struct strbuf text = {0};
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&text, "%s%g", i ? " " : "", numbers[i]);
    assert_string_equal(text.data, expected);
    strbuf_fini(&text);
}

static void groups_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gpus); i++) {
        struct measures found = run(gpus[i].model, NULL);
        const struct measure *groups = measures_get(&found, "sm.groups");
        assert_int_equal(groups->status, MEASURE_OK);
        expect_numbers(&groups->notes, "sizes", gpus[i].sizes);
        expect_numbers(&groups->notes, "map", gpus[i].map);
        assert_true(groups->confidence > 0.99);
        assert_true(probed_value(&found, "constant_l15.sms") == gpus[i].usual);
        assert_true(probed_value(&found, "sm.group_sms") == gpus[i].least);
        measures_fini(&found);
    }
}

/* A backend in which two SMs see the same whatever they share: as if each had its own launch, or as
 * if nothing were ever emptied. */
static const struct device_ops *inner;
static struct device_ops outer;
static uint32_t seen_cycles;

static int blind_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    int rc = inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
    for (size_t i = 0; i < batch->job_count && !rc; i++)
        for (uint32_t k = 0;
             batch->jobs[i].agent_count == 2 && k < answers[i].samples[0].kept_count; k++)
            answers[i].samples[0].kept[k] = seen_cycles;
    return rc;
}

/* A backend in which both SMs of a TPC, the first time they are asked, seem not to share. */
enum { SPOILED_MAX = 16 };
static bool spoiled[SPOILED_MAX];
static int32_t spoiled_tpcs;

static int spoil_once(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    int rc = inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
    for (size_t i = 0; i < batch->job_count && !rc; i++) {
        const struct device_agent *agents = batch->jobs[i].agents;
        int32_t tpc = agents[0].sm / 2;
        if (batch->jobs[i].agent_count != 2 || agents[0].sm % 2 ||
            agents[1].sm != agents[0].sm + 1 || tpc >= spoiled_tpcs || spoiled[tpc])
            continue;
        for (uint32_t k = 0; k < answers[i].samples[0].kept_count; k++)
            answers[i].samples[0].kept[k] = 270;
        spoiled[tpc] = true;
    }
    return rc;
}

static void wrap(struct device *device, device_function *run_batch)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_BATCH] = run_batch;
    device->ops = &outer;
}

static void blind(struct device *device)
{
    wrap(device, blind_batch);
}

static void spoil(struct device *device)
{
    memset(spoiled, 0, sizeof spoiled);
    wrap(device, spoil_once);
}

/* In a group of two one spoiled pair of loads decides, unless both are asked again, however many
 * such groups there are. */
static void lonely_sms_are_asked_again(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int32_t tpcs;
        const char *sizes;
    } cases[] = {
        {MODEL("7", "", "tpc"), 1, "2 2 2 1"},
        {MODEL("20", "", "tpc"), 8, "2 2 2 2 2 2 2 2 2 2"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        spoiled_tpcs = cases[i].tpcs;
        struct measures found = run(cases[i].model, spoil);
        const struct measure *groups = measures_get(&found, "sm.groups");
        for (int32_t tpc = 0; tpc < spoiled_tpcs; tpc++)
            assert_true(spoiled[tpc]);
        assert_int_equal(groups->status, MEASURE_OK);
        expect_numbers(&groups->notes, "sizes", cases[i].sizes);
        measures_fini(&found);
    }
}

static void controls_fail(void **state)
{
    (void)state;
    static const uint32_t l15_or_l2[] = {100, 270};
    for (size_t i = 0; i < COUNT_OF(l15_or_l2); i++) {
        seen_cycles = l15_or_l2[i];
        struct measures found = run(gpus[0].model, blind);
        const struct measure *groups = measures_get(&found, "sm.groups");
        const struct measure *sms = measures_get(&found, "constant_l15.sms");
        assert_true(groups->status == MEASURE_FAILED && sms->status == MEASURE_FAILED);
        assert_non_null(strstr(groups->reason, "the controls fail"));
        measures_fini(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misjudged_pairs_are_outvoted),
        cmocka_unit_test(thin_evidence_has_little_confidence),
        cmocka_unit_test(groups_are_found),
        cmocka_unit_test(controls_fail),
        cmocka_unit_test(lonely_sms_are_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
