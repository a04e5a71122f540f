/* Benchmark: simulated accesses per second of processor time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/sim/sim.h"

static const double wanted = 20; /* million per second */

static const char head[] = "name: Speed\n"
                           "sms: 4\n"
                           "clock: {ramp_ms: 0}\n"
                           "timer: {overhead_cycles: 10}\n"
                           "noise: {jitter_cycles: 1, spike_rate: 0.001, spike_cycles: 300}\n"
                           "memory: {size: 1 GiB}\n"
                           "tlb: [{entries: 16, page: 2 MiB, miss_cycles: 50}]\n"
                           "paths: {global_ca: [l1: 32, l2: 200, main: 500], "
                           "global_cg: [l2: 200, main: 500]}\n";

struct shape {
    const char *name, *geometry;
    uint64_t size_bytes;
    enum device_order order;
};

static const struct shape shapes[] = {
    {"L1 hits, 4 ways", "caches: {l1: {size: 128 KiB, line: 128, sector: 32, ways: 4}}\n", 64 << 10,
     DEVICE_SEQUENTIAL},
    {"L1 hits, fully associative", "caches: {l1: {size: 128 KiB, line: 128, ways: full}}\n",
     64 << 10, DEVICE_SEQUENTIAL},
    {"L1 misses, L2 hits, 4 ways",
     "caches: {l1: {size: 128 KiB, line: 128, sector: 32, ways: 4}}\n", 512 << 10,
     DEVICE_SEQUENTIAL},
    {"L1 misses, L2 hits, fully associative",
     "caches: {l1: {size: 128 KiB, line: 128, ways: full}}\n", 512 << 10, DEVICE_SEQUENTIAL},
    {"L1 misses, L2 hits, random order",
     "caches: {l1: {size: 128 KiB, line: 128, sector: 32, ways: 4}}\n", 512 << 10, DEVICE_RANDOM},
};

static const char l2_one[] = "l2: {size: 2 MiB, line: 128, sector: 32, ways: 16, index: hashed}\n";

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static int measure(const struct shape *shape, double *out_rate, struct err *err)
{
    enum { LOADS = 8000000 };
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s", head, shape->geometry, l2_one);
    struct sim_model *model;
    struct device *device;
    int rc = sim_model_read_text(text, strlen(text), "speed", &model, err);
    if (rc)
        return rc;
    rc = sim_open(model, NULL, 0, 1, &device, err);
    sim_model_destroy(model);
    if (rc)
        return rc;
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}},
                             .agent_count = 1,
                             .step_count = 1,
                             .steps = {{.kind = DEVICE_CHASE, .loads = LOADS, .keep = 1000}}};
    job.steps[0].array = (struct device_array){.path = DEVICE_GLOBAL_CA,
                                               .size_bytes = shape->size_bytes,
                                               .stride_bytes = 128,
                                               .order = shape->order};
    struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer;
    double begin = cpu_seconds();
    rc = device_run(device, &batch, &answer, err);
    if (!rc) {
        *out_rate = LOADS / (cpu_seconds() - begin) / 1e6;
        device_answers_fini(&answer, 1);
    }
    device_destroy(device);
    return rc;
}

int main(void)
{
    bool slow = false;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct err err = {0};
        double rate;
        if (measure(&shapes[i], &rate, &err)) {
            fprintf(stderr, "%s: %s\n", shapes[i].name, err.text);
            return 1;
        }
        printf("%-40s %6.1f million accesses per second, wanted %.0f%s\n", shapes[i].name, rate,
               wanted, rate < wanted ? ": TOO SLOW" : "");
        slow |= rate < wanted;
    }
    return slow;
}
