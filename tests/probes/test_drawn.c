/* GPUs that `gpus.py` drew at random, or could have drawn, and the probes once were wrong about,
 * with what they must say. */
#include "../check.h"

#include "base/mem.h"
#include "probed.h"

#define HEAD "name: D\nmemory: {size: 8 GiB}\nsms_per_tpc: 2\n"
#define CONSTANT_PATHS                                                                             \
    "paths: {global_ca: [l2: 266, main: 639], global_cg: [l2: 266, main: 639],"                    \
    " constant: [c1: 23, c15: 76, l2: 336, main: 709]}\n"

#define SMALL_HEAD                                                                                 \
    HEAD "sms: 8\nclock: {sm_mhz: 1000, ramp_ms: 1}\nl2: {line: 128, size: 2 MiB, ways: 16,"       \
         " slice_cycles: 24}\n"
#define NOISE "noise: {jitter_cycles: 2.4, spike_rate: 0.003, spike_cycles: 500}\n"
#define QUIET "noise: {jitter_cycles: 0}\n"
#define SMALL_C1 "c1: {line: 64, size: 512, ways: 4}"
#define GLOBAL_PATHS "paths: {global_ca: [l2: 230, main: 600], global_cg: [l2: 230, main: 600],"
#define TEXTURE "caches: {tex: {line: 128, sector: 32, size: 24 KiB, ways: 4}}\n"

static const struct drawn {
    const char *what, *model, *list, *metric;
    double truth; /* where the status is ok; otherwise the value may be wrong */
    enum measure_status status;
} gpus[] = {
    {"lines of L1.5 in each other's way: 17 sets, and copies of L2 that come and go",
     HEAD "sms: 6\nsms_per_gpc: [6]\nclock: {sm_mhz: 1398, ramp_ms: 2}\n"
          "noise: {jitter_cycles: 1.97, spike_rate: 0.001, spike_cycles: 768}\n"
          "caches: {c1: {line: 32, sector: 32, size: 4768, ways: 8, index: modulo, policy: fermi},"
          " c15: {line: 256, sector: 256, size: 34816, ways: 8, index: modulo, scope: gpc}}\n"
          "l2: {line: 128, sector: 64, size: 4108800, ways: 8, index: hashed, parts: copies,"
          " far_cycles: [120, 243], group_cycles: 18}\n" CONSTANT_PATHS,
     "constant_l1,constant_l15", "constant_l15.latency", 76, MEASURE_OK},
    {"a spike among the two loads that tell whether two SMs share an L1.5",
     HEAD "sms: 12\nclock: {sm_mhz: 1030, ramp_ms: 10}\n"
          "noise: {jitter_cycles: 2.05, spike_rate: 0.005, spike_cycles: 800}\n"
          "caches: {c1: {line: 128, sector: 128, size: 2176, ways: 8, index: modulo,"
          " policy: fermi}, c15: {line: 256, sector: 128, size: 48384, ways: 8, index: modulo,"
          " policy: random, scope: tpc}}\n"
          "l2: {line: 128, sector: 128, size: 2359808, ways: 8, index: hashed, slice_cycles: "
          "16}\n" CONSTANT_PATHS,
     "sm.groups", "sm.groups", 6, MEASURE_OK},
    {"a TLB miss on each first touch of a page",
     HEAD "sms: 12\nsms_per_gpc: [4, 4, 4]\nsm_order: across\nclock: {sm_mhz: 1275, ramp_ms: 28}\n"
          "timer: {overhead_cycles: 21, granularity_cycles: 2}\n"
          "noise: {jitter_cycles: 4.12, spike_rate: 0.0007, spike_cycles: 899}\n"
          "l2: {line: 128, sector: 64, size: 3512320, ways: 8, parts: copies,"
          " far_cycles: [56, 150], group_cycles: 17}\n"
          "tlb: [{entries: 31196, ways: full, page: 4096, miss_cycles: 262}]\n"
          "paths: {global_ca: [l2: 196, main: 626], global_cg: [l2: 196, main: 626]}\n",
     "l2.latency", "l2.latency_far", 196 + (56 + 150 + 150) / 3.0, MEASURE_OK},
    {"a part of L2 that only two of 46 SMs are near to",
     HEAD "sms: 46\nsms_per_gpc: [4, 10, 10, 2, 10, 8, 2]\nsm_order: across\n"
          "clock: {sm_mhz: 979, ramp_ms: 30}\n"
          "timer: {overhead_cycles: 19, granularity_cycles: 4}\n"
          "noise: {jitter_cycles: 3.69, spike_rate: 0.0022, spike_cycles: 419}\n"
          "l2: {line: 32, sector: 32, size: 2065792, ways: 16, parts: homes,"
          " far_cycles: [71, 163]}\n"
          "paths: {global_ca: [l2: 261, main: 598], global_cg: [l2: 261, main: 598]}\n",
     "l2.latency", "l2.parts", 4, MEASURE_NOISY},
    {"one load in a thousand is a spike",
     HEAD "sms: 6\nsms_per_gpc: [6]\nclock: {sm_mhz: 2132, ramp_ms: 20}\n"
          "timer: {overhead_cycles: 19}\n"
          "noise: {jitter_cycles: 0.64, spike_rate: 0.001, spike_cycles: 451}\n"
          "caches: {c1: {line: 32, sector: 32, size: 3392, ways: 4, index: modulo, policy: fermi},"
          " c15: {line: 256, sector: 32, size: 27648, ways: 4, index: modulo, scope: sm}}\n"
          "l2: {line: 128, sector: 64, size: 3916288, ways: 8, index: hashed, slice_cycles: 76}\n"
          "paths: {global_ca: [l2: 300, main: 583], global_cg: [l2: 300, main: 583],"
          " constant: [c1: 16, c15: 56, l2: 370, main: 653]}\n",
     "constant_l1.latency", "constant_l1.latency", 16, MEASURE_OK},
    {"a timer in steps of 32 cycles, which read the same for all hits of L1",
     HEAD "sms: 46\nclock: {sm_mhz: 2141, ramp_ms: 30}\n"
          "timer: {overhead_cycles: 13, granularity_cycles: 32}\n"
          "noise: {jitter_cycles: 1.32, spike_rate: 0.0037, spike_cycles: 268}\n"
          "caches: {c1: {line: 128, sector: 128, size: 2304, ways: 4, index: modulo},"
          " c15: {line: 256, sector: 128, size: 134656, ways: 4, index: modulo, policy: fermi,"
          " scope: sm}}\n"
          "l2: {line: 32, sector: 32, size: 4124544, ways: 16, index: hashed, slice_cycles: 12}\n"
          "paths: {global_ca: [l2: 319, main: 794], global_cg: [l2: 319, main: 794],"
          " constant: [c1: 19, c15: 57, l2: 389, main: 864]}\n",
     "constant_l1,constant_l15", "constant_l15.latency", 57, MEASURE_FAILED},
    {"spikes of L1.5, which pass for loads of L2",
     HEAD "sms: 8\nclock: {sm_mhz: 1934, ramp_ms: 10}\n"
          "noise: {jitter_cycles: 1.87, spike_rate: 0.0044, spike_cycles: 800}\n"
          "caches: {c1: {line: 128, sector: 128, size: 7936, ways: 8, index: modulo},"
          " c15: {line: 256, sector: 128, size: 42752, ways: 16, index: modulo, scope: tpc}}\n"
          "l2: {line: 64, sector: 64, size: 2359808, ways: 8, index: hashed}\n"
          "paths: {global_ca: [l2: 214, main: 567], global_cg: [l2: 214, main: 567],"
          " constant: [c1: 17, c15: 65, l2: 284, main: 637]}\n",
     "constant_l1,constant_l15", "constant_l15.latency", 65, MEASURE_OK},
    {"lines that L1 keeps while L1.5 is timed",
     HEAD "sms: 8\nclock: {sm_mhz: 2075, ramp_ms: 10}\n"
          "timer: {overhead_cycles: 8, granularity_cycles: 16}\n"
          "noise: {jitter_cycles: 4.12, spike_rate: 0.0028, spike_cycles: 525}\n"
          "caches: {c1: {line: 64, sector: 64, size: 7744, ways: 4, index: modulo,"
          " policy: fermi}, c15: {line: 256, sector: 64, size: 25600, ways: 4, index: modulo,"
          " scope: gpc}}\n"
          "l2: {line: 32, sector: 32, size: 2359808, ways: 8, index: hashed}\n"
          "paths: {global_ca: [l2: 132, main: 628], global_cg: [l2: 132, main: 628],"
          " constant: [c1: 36, c15: 70, l2: 202, main: 698]}\n",
     "constant_l1,constant_l15", "constant_l15.latency", 70, MEASURE_NOISY},
    {"an L1.5 with fewer lines than constant memory is searched with: 16",
     SMALL_HEAD NOISE "caches: {" SMALL_C1 ", c15: {line: 256, size: 4096, ways: 4}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, c15: 80, l2: 260, main: 630]}\n",
     "constant_l1,constant_l15", "constant_l1.size", 512, MEASURE_OK},
    {"the same L1.5",
     SMALL_HEAD NOISE "caches: {" SMALL_C1 ", c15: {line: 256, size: 4096, ways: 4}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, c15: 80, l2: 260, main: 630]}\n",
     "constant_l1,constant_l15", "constant_l15.size", 4096, MEASURE_OK},
    {"an L1.5 of eight lines with a random policy",
     SMALL_HEAD NOISE "caches: {" SMALL_C1
                      ", c15: {line: 256, size: 2048, ways: full, policy: random}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, c15: 80, l2: 260, main: 630]}\n",
     "constant_l1,constant_l15", "constant_l1.size", 512, MEASURE_OK},
    {"a constant L1 of 512 B, and no L1.5",
     SMALL_HEAD NOISE "caches: {" SMALL_C1 "}\n" GLOBAL_PATHS
                      " constant: [c1: 25, l2: 260, main: 630]}\n",
     "constant_l1,constant_l15", "constant_l15.size", 0, MEASURE_UNSUPPORTED},
    {"loads that all read the same: no step of the timer",
     SMALL_HEAD QUIET "caches: {" SMALL_C1 "}\n" GLOBAL_PATHS
                      " constant: [c1: 25, l2: 260, main: 630]}\n",
     "constant_l1,constant_l15", "constant_l1.size", 512, MEASURE_OK},
    {"a constant L1 of four fetch units: eight are not timed",
     SMALL_HEAD NOISE "caches: {c1: {line: 128, size: 512, ways: 2}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, l2: 260, main: 630]}\n",
     "constant_l1.latency", "constant_l1.latency", 25, MEASURE_OK},
    {"the same of 256 B",
     SMALL_HEAD NOISE "caches: {c1: {line: 64, size: 256, ways: 2}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, l2: 260, main: 630]}\n",
     "constant_l1.latency", "constant_l1.latency", 25, MEASURE_OK},
    {"constant loads that miss take longer than .cg by 30 cycles",
     SMALL_HEAD NOISE "caches: {" SMALL_C1
                      ", c15: {line: 256, size: 32 KiB, ways: 4}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, c15: 80, l2: 260, main: 630]}\n",
     "constant_l15.latency", "constant_l15.miss_penalty", 180, MEASURE_OK},
    {"they miss an L1.5 that constant memory cannot overfill",
     SMALL_HEAD NOISE "caches: {" SMALL_C1
                      ", c15: {line: 256, size: 96 KiB, ways: 4, scope: tpc}}\n" GLOBAL_PATHS
                      " constant: [c1: 25, c15: 80, l2: 260, main: 630]}\n",
     "constant_l15.latency", "constant_l15.miss_penalty", 180, MEASURE_OK},
    {"a texture cache little faster than L2",
     SMALL_HEAD NOISE TEXTURE GLOBAL_PATHS " texture: [tex: 210, l2: 230, main: 600]}\n", "texture",
     "texture.latency", 210, MEASURE_OK},
    {"its size",
     SMALL_HEAD NOISE TEXTURE GLOBAL_PATHS " texture: [tex: 200, l2: 230, main: 600]}\n", "texture",
     "texture.size", 24 << 10, MEASURE_OK},
    {"a texture cache that takes as long as L2 by .cg",
     SMALL_HEAD NOISE TEXTURE GLOBAL_PATHS " texture: [tex: 230, l2: 260, main: 630]}\n",
     "texture.latency", "texture.latency", 230, MEASURE_OK},
    {"a texture cache little faster than L2, and more noise than that",
     SMALL_HEAD
     "noise: {jitter_cycles: 20, spike_rate: 0.003, spike_cycles: 500}\n" TEXTURE GLOBAL_PATHS
     " texture: [tex: 215, l2: 230, main: 600]}\n",
     "texture.latency", "texture.latency", 215, MEASURE_FAILED},
    {"a timer in steps of 64 cycles: hardly more than the noise",
     HEAD
     "sms: 2\nclock: {sm_mhz: 1000, ramp_ms: 1}\nl2: {line: 128, size: 2 MiB, ways: 16,"
     " slice_cycles: 50}\ntimer: {overhead_cycles: 20, granularity_cycles: 64}\n"
     "noise: {jitter_cycles: 4.89, spike_rate: 0.008, spike_cycles: 446}\n" TEXTURE GLOBAL_PATHS
     " texture: [tex: 281, l2: 301, main: 630]}\n",
     "texture.latency", "texture.latency", 281, MEASURE_FAILED},
    {"no texture cache, on a path longer than .cg",
     SMALL_HEAD NOISE GLOBAL_PATHS " texture: [l2: 270, main: 640]}\n", "texture.latency",
     "texture.latency", 0, MEASURE_UNSUPPORTED},
    {"no texture cache, and noise",
     SMALL_HEAD "noise: {jitter_cycles: 20, spike_rate: 0.01, spike_cycles: 900}\n" GLOBAL_PATHS
                " texture: [l2: 230, main: 600]}\n",
     "texture.latency", "texture.latency", 0, MEASURE_UNSUPPORTED},
    {"parts of L2 nearer to each other than a step of the timer",
     HEAD "sms: 8\nclock: {sm_mhz: 2405, ramp_ms: 30}\n"
          "timer: {overhead_cycles: 21, granularity_cycles: 64}\n"
          "noise: {jitter_cycles: 3.8, spike_rate: 0.0039, spike_cycles: 889}\n"
          "l2: {line: 64, sector: 64, size: 713216, ways: 16, index: hashed, parts: copies,"
          " far_cycles: 42, group_cycles: 6}\n"
          "paths: {global_ca: [l2: 137, main: 523], global_cg: [l2: 137, main: 523]}\n",
     "l2.latency", "l2.latency_far", 179, MEASURE_FAILED},
    {"a line of 256 B that looks like one of 192 B, since L1 keeps lines at random",
     HEAD "sms: 8\nclock: {sm_mhz: 1827, ramp_ms: 1}\n"
          "timer: {overhead_cycles: 30, granularity_cycles: 2}\n"
          "noise: {jitter_cycles: 6.4, spike_rate: 0.0034, spike_cycles: 321}\n"
          "caches: {c1: {line: 32, sector: 32, size: 2304, ways: 8, index: modulo,"
          " policy: random}, c15: {line: 256, sector: 64, size: 30464, ways: 4, index: modulo,"
          " scope: gpu}}\n"
          "l2: {line: 64, sector: 32, size: 2285312, ways: 4}\n"
          "paths: {global_ca: [l2: 262, main: 563], global_cg: [l2: 262, main: 563],"
          " constant: [c1: 19, c15: 78, l2: 332, main: 633]}\n",
     "constant_l15.line", "constant_l15.line", 256, MEASURE_NOISY},
    {"a cache of a sub-core that jitter hides: 6656 of 8192 B on all SMs",
     HEAD "sms: 8\nclock: {sm_mhz: 1251, ramp_ms: 21}\n"
          "timer: {overhead_cycles: 26, granularity_cycles: 16}\n"
          "noise: {jitter_cycles: 5.68}\nl2: {line: 128, size: 2 MiB, ways: 4}\n"
          "instruction_caches: {cycles: 1.619, sub_core: {line: 256, size: 8192, ways: 8,"
          " miss_cycles: 13}, levels: [{line: 256, size: 21504, ways: 4, scope: sm,"
          " miss_cycles: 28.083}]}\n" GLOBAL_PATHS "}\n",
     "instruction_cache.l0", "instruction_cache.l0.size", 8192, MEASURE_NOISY},
};

static void they_are_right_or_in_doubt(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gpus); i += CHECK_EVERY) {
        struct measures all = probed_run(&(struct probed){
            .model = gpus[i].model, .profile = PROFILE_STANDARD, .list = gpus[i].list});
        const struct measure *m = measures_get(&all, gpus[i].metric);
        assert_non_null(m);
        if (m->status != gpus[i].status)
            fail_msg("%s: %s is %s: %s", gpus[i].what, gpus[i].metric,
                     measure_status_name(m->status), m->reason ? m->reason : "");
        if (gpus[i].status == MEASURE_OK)
            probed_expect(&all, gpus[i].metric, gpus[i].truth, gpus[i].what);
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_are_right_or_in_doubt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
