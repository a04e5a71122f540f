/* GPUs that once were measured wrongly and called sure (found by gpus.py): now right, or in doubt.
 */
#include "../check.h"

#include <math.h>

#include "probed.h"

/* The timer's step is larger than the scatter of loads, and L2 has two parts: steps are no levels.
 */
static const char coarse_parts[] =
    "name: A\nsms: 8\nmemory: {size: 8 GiB}\nclock: {sm_mhz: 1345, ramp_ms: 10}\n"
    "timer: {overhead_cycles: 23, granularity_cycles: 4}\n"
    "noise: {jitter_cycles: 1.1, spike_rate: 0.003, spike_cycles: 174}\n"
    "l2: {size: 5447936, line: 128, ways: 4, parts: homes, far_cycles: 151}\n"
    "paths: {global_ca: [l2: 129, main: 502], global_cg: [l2: 129, main: 502]}\n";

/* Constant L1 has 86 lines, L1.5 only 79: strides beyond its line show L1's. */
static const char hidden_line[] =
    "name: B\nsms: 30\nmemory: {size: 8 GiB}\nclock: {sm_mhz: 710, ramp_ms: 0}\n"
    "noise: {jitter_cycles: 1}\n"
    "caches: {c1: {size: 2752, line: 32, ways: 2},"
    " c15: {size: 20224, line: 256, sector: 128, ways: full}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 279, main: 698], global_cg: [l2: 279, main: 698],"
    " constant: [c1: 23, c15: 55, l2: 349, main: 768]}\n";

/* In hashed sets of L1.5 some lines of any array past L1 are in each other's way. */
static const char conflicts[] =
    "name: C\nsms: 5\nmemory: {size: 8 GiB}\nclock: {sm_mhz: 2160, ramp_ms: 0}\n"
    "timer: {overhead_cycles: 9, granularity_cycles: 2}\n"
    "noise: {jitter_cycles: 2.8, spike_rate: 0.0004, spike_cycles: 439}\n"
    "caches: {c1: {size: 7936, line: 32, ways: 6, index: hashed},"
    " c15: {size: 36032, line: 64, sector: 32, ways: 4, index: hashed}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 186, main: 421], global_cg: [l2: 186, main: 421],"
    " constant: [c1: 18, c15: 48, l2: 256, main: 491]}\n";

/* Misses begin so late that a sweep around it would pass the end of constant memory. */
static const char near_the_end[] =
    "name: D\nsms: 12\nmemory: {size: 8 GiB}\nclock: {sm_mhz: 1109, ramp_ms: 0}\n"
    "timer: {overhead_cycles: 23}\nnoise: {jitter_cycles: 1}\n"
    "caches: {c1: {size: 2 KiB, line: 64, ways: 4}, c15: {size: 60 KiB, line: 256, ways: 4}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 199, main: 484], global_cg: [l2: 199, main: 484],"
    " constant: [c1: 27, c15: 59, l2: 269, main: 554]}\n";

static const struct {
    const char *model, *list, *metric;
    double truth;
    bool doubt_is_right; /* the truth cannot be had */
} traps[] = {
    {coarse_parts, "l2.latency", "l2.latency", 129, false},
    {hidden_line, "constant_l15.line", "constant_l15.line", 256, true},
    {conflicts, "constant_l15.latency", "constant_l15.latency", 48, true},
    {near_the_end, "constant_l15.size", "constant_l15.size", 60 << 10, false},
};

static void nothing_is_wrong_and_sure(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(traps); i++) {
        struct measures all = probed_run(&(struct probed){
            .model = traps[i].model, .profile = PROFILE_STANDARD, .list = traps[i].list});
        const struct measure *m = measures_get(&all, traps[i].metric);
        bool right = measure_status_valued(m->status) &&
                     fabs(m->value - traps[i].truth) <= 0.02 * traps[i].truth;
        bool doubt = m->status == MEASURE_NOISY && m->confidence <= 0.5 && m->reason;
        if (!right && !(traps[i].doubt_is_right && doubt))
            fail_msg("%s of %.10s: %g, status %d, confidence %g: %s", traps[i].metric,
                     traps[i].model, m->value, m->status, m->confidence,
                     m->reason ? m->reason : "");
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_wrong_and_sure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
