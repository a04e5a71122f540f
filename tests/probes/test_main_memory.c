/* Latency of main memory behind TLBs of every reach, two parts of L2 and a tail. */
#include "../check.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "probed.h"

/* Cold loads take 500 cycles, by far lines 100 more, by slow ones up to 400 more. */
static const char MODEL[] =
    "name: Behind\nsms: 8\nmemory: {size: 4 GiB, slow_share: %g, slow_cycles: 400}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "noise: {jitter_cycles: 1, spike_rate: 0.002, spike_cycles: 500}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16%s}\n%s"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n";
static const char FAR[] = ", parts: homes, far_cycles: 100";

static const struct behind {
    const char *what, *l2, *tlb;
    double slow_share, wanted;
    bool peaks;
} cases[] = {
    {"no TLB", "", "", 0, 500, false},
    {"reach 2 MiB", "", "tlb: [{entries: 1, page: 2 MiB, miss_cycles: 300}]\n", 0, 500, false},
    {"small pages", "", "tlb: [{entries: 512, page: 4 KiB, miss_cycles: 200}]\n", 0, 500, false},
    {"just too short", "", "tlb: [{entries: 3, page: 2 MiB, miss_cycles: 300}]\n", 0, 500, false},
    {"two levels", "",
     "tlb:\n  - {entries: 16, page: 2 MiB, miss_cycles: 60}\n"
     "  - {entries: 64, page: 2 MiB, miss_cycles: 400}\n",
     0, 500, false},
    {"beyond the memory", "", "tlb: [{entries: 4096, page: 2 MiB, miss_cycles: 90}]\n", 0, 500,
     false},
    {"two parts", FAR, "", 0, 550, true},
    {"two parts and a tail", FAR, "tlb: [{entries: 2, page: 2 MiB, miss_cycles: 90}]\n", 0.15, 580,
     true},
    {"a tail alone", "", "", 0.3, 560, false},
};

static double note_of(const struct measure *m, const char *key)
{
    const struct fact *note = facts_get(&m->notes, key);
    return note && note->kind == FACT_REAL ? note->real : NAN;
}

static void check_peaks(const struct behind *c, const struct measure *m)
{
    double near = note_of(m, "near"), far = note_of(m, "far");
    if (isnan(near) == c->peaks || isnan(far) == c->peaks)
        fail_msg("%s: near %g, far %g", c->what, near, far);
    if (c->peaks && (fabs(near - 500) > 5 || fabs(far - 605) > 15))
        fail_msg("%s: near %g, far %g", c->what, near, far);
    assert_true(note_of(m, "p50") <= note_of(m, "p95"));
}

static void any_reach(void **state)
{
    (void)state;
    static const enum probe_profile profiles[] = {PROFILE_QUICK, PROFILE_STANDARD};
    for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(profiles); i++) {
        const struct behind *c = &cases[i / COUNT_OF(profiles)];
        char model[1024];
        snprintf(model, sizeof model, MODEL, c->slow_share, c->l2, c->tlb);
        struct measures all = probed_run(
            &(struct probed){.model = model, .profile = profiles[i % 2], .list = "main.latency"});
        const struct measure *m = measures_get(&all, "main.latency");
        probed_expect(&all, "main.latency", c->wanted, c->what);
        if (m->status != MEASURE_OK)
            fail_msg("%s: %s", c->what, m->reason);
        check_peaks(c, m);
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_reach)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
