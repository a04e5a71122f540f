/* Faults, clocks, noise, bandwidth and determinism of the simulated GPU. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "bench.h"

static const char plain[] = "caches: {l1: {size: 16 KiB, line: 128, ways: full}}\n"
                            "l2: {size: 256 KiB, line: 128, ways: 16}\n"
                            "bandwidth: {sm: 64, l1: 128, shared: 100, l2_read: 400, l2_write: 300,"
                            " main_read: 200, main_write: 180, main_copy: 160, h2d: 24, d2h: 22,"
                            " bidir: 40}\n"
                            "config: {power_limit_w: 300, power_draw_w: 200}\n"
                            "hardware: {memory_bus_bits: 4096}\n"
                            "health: {nvlinks_active: 4}\n"
                            "paths: {global_ca: [l1: 30, l2: 200, main: 500],"
                            " global_cg: [l2: 200, main: 500], shared: 20, host: 1000}\n";

static double latency(struct device *device, enum device_path path, uint64_t size, int32_t sm)
{
    struct device_job job = bench_warm_chase(bench_array(path, size, 128));
    job.agents[0].sm = sm;
    return bench_mean(device, &job);
}

static double rate(struct device *device, struct device_stream stream)
{
    struct device_stream_answer answer;
    struct err err = {0};
    stream.total_bytes = stream.total_bytes ? stream.total_bytes : UINT64_C(1) << 32;
    if (device_stream(device, &stream, &answer, &err))
        fail_msg("%s", err.text);
    return (double)answer.bytes / (double)answer.elapsed_ns;
}

static const struct device_stream main_read = {
    .path = DEVICE_GLOBAL_CG, .footprint_bytes = 64 << 20, .width_bytes = 16, .threads = 1024};

static bool near(double value, double wanted)
{
    return fabs(value - wanted) <= 0.002 * wanted;
}

/* What a fault changes, as measured; figures of the healthy GPU otherwise. */
struct fault_case {
    struct sim_fault fault;
    double l1_cycles, l2_cycles, main_cycles, read_gbs, h2d_gbs;
};
static const struct fault_case fault_cases[] = {
    {{.kind = SIM_VBIOS, .text = "x"}, 30, 200, 500, 200, 24},
    {{.kind = SIM_SLOW_DRAM, .share = 0.2}, 30, 200, 560, 200 / 1.2, 24},
    /* At half the clock, three tenths of the 300 DRAM cycles take twice as long. */
    {{.kind = SIM_MEMORY_CLOCK, .mhz = 1000}, 30, 200, 590, 100, 24},
    /* DRAM takes nanoseconds: half as many cycles at half the SM clock. */
    {{.kind = SIM_SM_CLOCK, .mhz = 500}, 30, 200, 350, 200, 24},
    {{.kind = SIM_SLOW_SM, .sm = 0, .share = 0.1}, 33, 220, 520, 200, 24},
    {{.kind = SIM_L1_WAYS, .share = 0.25}, 200, 200, 500, 200, 24},
    {{.kind = SIM_L2_SLICE, .share = 0.6}, 30, 500, 500, 200, 24},
    {{.kind = SIM_HBM_STACK, .count = 1}, 30, 200, 500, 150, 24},
    {{.kind = SIM_HBM_STACK, .count = 2, .hidden = true}, 30, 200, 500, 100, 24},
    {{.kind = SIM_SLOW_HOST, .share = 0.2}, 30, 200, 500, 200, 20},
    {{.kind = SIM_PCIE, .width = 8}, 30, 200, 500, 200, 12},
    {{.kind = SIM_PCIE, .gen = 3}, 30, 200, 500, 200, 12},
    {{.kind = SIM_POWER_LIMIT, .w = 250}, 30, 200, 500, 200, 24},
    /* Of 200 W: at 2/7 three quarters of the clock, between 5/7 and 1 hardly less than all. */
    {{.kind = SIM_POWER_LIMIT, .w = 400.0 / 7}, 30, 200, 425, 200, 24},
    {{.kind = SIM_POWER_LIMIT, .w = 1000.0 / 7}, 30, 200, 487.6, 200, 24},
    {{.kind = SIM_POWER_LIMIT, .w = 190}, 30, 200, 497.8, 200, 24},
    {{.kind = SIM_NVLINK_DOWN, .count = 1}, 30, 200, 500, 200, 24},
};

static void faults_act_through_the_mechanism(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fault_cases); i++) {
        const struct fault_case *c = &fault_cases[i];
        struct device *device = bench_open_faulty(plain, &c->fault, 1);
        struct device_stream h2d = {.kind = DEVICE_STREAM_H2D, .footprint_bytes = 1 << 20};
        double l1 = latency(device, DEVICE_GLOBAL_CA, 14 << 10, 0);
        double l2 = latency(device, DEVICE_GLOBAL_CG, 192 << 10, 0);
        double dram = latency(device, DEVICE_GLOBAL_CG, 4 << 20, 0);
        if (!near(l1, c->l1_cycles) || !near(l2, c->l2_cycles) || !near(dram, c->main_cycles) ||
            !near(rate(device, main_read), c->read_gbs) || !near(rate(device, h2d), c->h2d_gbs))
            fail_msg("case %zu: %g %g %g, %g and %g GB/s", i, l1, l2, dram, rate(device, main_read),
                     rate(device, h2d));
        device_destroy(device);
    }
}

static void one_slow_sm_is_alone(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SLOW_SM, .sm = 3, .share = 0.5};
    struct device *device = bench_open_faulty(plain, &fault, 1);
    for (int32_t sm = 0; sm < 8; sm++)
        assert_true(latency(device, DEVICE_GLOBAL_CA, 4096, sm) == (sm == 3 ? 45 : 30));
    device_destroy(device);
}

static void hidden_sms_run_nothing(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_MISSING_SMS, .count = 2, .hidden = true};
    struct device *device = bench_open_faulty(plain, &fault, 1);
    assert_int_equal(device_limits(device)->sm_count, 6);
    device_destroy(device);
}

/* The host link takes nanoseconds, too. */
static void host_latency_is_time(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SM_CLOCK, .mhz = 500};
    struct device *healthy = bench_open(plain), *capped = bench_open_faulty(plain, &fault, 1);
    assert_true(near(latency(healthy, DEVICE_HOST, 4096, 0), 1000));
    assert_true(near(latency(capped, DEVICE_HOST, 4096, 0), 500));
    device_destroy(healthy);
    device_destroy(capped);
}

static void throttling_is_told(void **state)
{
    (void)state;
    static const struct {
        struct sim_fault fault;
        uint64_t bits;
        double mhz;
    } cases[] = {{{.kind = SIM_ECC_OFF}, 0, 1000},
                 {{.kind = SIM_SM_CLOCK, .mhz = 700}, 0x4, 700},
                 {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_HEAT}, 0x20, 800},
                 {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_SETTING}, 0x2, 800},
                 {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_SLOWDOWN}, 0x8, 800},
                 {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_BRAKE}, 0x80, 800},
                 {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_NOTHING}, 0, 800},
                 {{.kind = SIM_POWER_LIMIT, .w = 400.0 / 7}, 0x4, 750}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device *device = bench_open_faulty(plain, &cases[i].fault, 1);
        struct device_clocks clocks;
        struct err err = {0};
        double mhz;
        assert_int_equal(device_warm_up(device, &mhz, &err), 0);
        assert_int_equal(device_read_clocks(device, &clocks, &err), 0);
        assert_int_equal(clocks.throttle_reasons, cases[i].bits);
        assert_true(near(clocks.sm_mhz, cases[i].mhz) && near(mhz, cases[i].mhz));
        device_destroy(device);
    }
}

struct fact_case {
    struct sim_fault fault;
    int where; /* 0 hardware, 1 board, 2 config, 3 health */
    const char *key;
    int64_t number;
    const char *text;
};
static const struct fact_case fact_cases[] = {
    {{.kind = SIM_MISSING_SMS, .count = 2}, 0, "sms", 6, NULL},
    {{.kind = SIM_MISSING_SMS, .count = 2, .hidden = true}, 0, "sms", 8, NULL},
    {{.kind = SIM_HBM_STACK, .count = 1}, 0, "memory_bus_bits", 3072, NULL},
    {{.kind = SIM_HBM_STACK, .count = 1}, 0, "memory_bytes", 805306368, NULL},
    {{.kind = SIM_HBM_STACK, .count = 1, .hidden = true}, 0, "memory_bytes", 1 << 30, NULL},
    {{.kind = SIM_HBM_STACK, .count = 1, .hidden = true}, 2, "memory_free_bytes", 754974720, NULL},
    {{.kind = SIM_NVLINK_DOWN, .count = 1}, 3, "nvlinks_active", 3, NULL},
    {{.kind = SIM_NVLINK_DOWN, .count = 1}, 3, "nvlinks_down", 1, NULL},
    {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_SETTING},
     2,
     "sm_clock_application_mhz",
     800,
     NULL},
    {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_HEAT}, 3, "temperature_c", 87, NULL},
    {{.kind = SIM_SM_CLOCK, .mhz = 800, .reason = SIM_BY_HEAT}, 3, "temperature_margin_c", 0, NULL},
    {{.kind = SIM_L2_SLICE, .share = 0.5}, 0, "l2_bytes", 262144, NULL},
    {{.kind = SIM_L2_SLICE, .share = 0.5, .reported = true}, 0, "l2_bytes", 131072, NULL},
    {{.kind = SIM_ECC_OFF}, 2, "ecc", 0, NULL},
    {{.kind = SIM_MIG_ON}, 2, "mig", 1, NULL},
    {{.kind = SIM_VIRTUALIZATION, .text = "passthrough"}, 2, "virtualization", 0, "passthrough"},
    {{.kind = SIM_CONFIDENTIAL, .text = "on", .factor = 5}, 2, "confidential_computing", 0, "on"},
    {{.kind = SIM_PERSISTENCE_OFF}, 2, "persistence", 0, NULL},
    {{.kind = SIM_COMPUTE_MODE, .text = "prohibited"}, 2, "compute_mode", 0, "prohibited"},
    {{.kind = SIM_POWER_LIMIT, .w = 250}, 2, "power_limit_w", 250, NULL},
    {{.kind = SIM_REMAP, .pending = true}, 3, "remap_pending", 1, NULL},
    {{.kind = SIM_REMAP, .failed = true}, 3, "remap_failed", 1, NULL},
    {{.kind = SIM_ECC_ERRORS, .count = 7}, 3, "ecc_uncorrected_dram", 7, NULL},
    {{.kind = SIM_ECC_ERRORS, .count = 7}, 3, "ecc_uncorrected_volatile", 7, NULL},
    {{.kind = SIM_ECC_OFF}, 3, "ecc_uncorrected_dram", 0, NULL},
    {{.kind = SIM_HEALTH, .health = {[HEALTH_PCIE_REPLAYS] = {true, 9}}},
     3,
     "pcie_replays",
     9,
     NULL},
    {{.kind = SIM_HEALTH, .health = {[HEALTH_INFOROM_VALID] = {true, 0}}},
     3,
     "inforom_valid",
     0,
     NULL},
    {{.kind = SIM_HEALTH, .health = {[HEALTH_PCIE_REPLAYS] = {true, 9}}},
     3,
     "inforom_valid",
     1,
     NULL},
    {{.kind = SIM_SM_CLOCK, .mhz = 700, .reason = 1}, 3, "throttle", 0, "sw_thermal"},
    {{.kind = SIM_POWER_LIMIT, .w = 25}, 3, "throttle", 0, "power_cap"},
    {{.kind = SIM_POWER_LIMIT, .w = 25}, 3, "power_draw_w", 25, NULL},
    {{.kind = SIM_ECC_OFF}, 3, "throttle", 0, "none"},
    {{.kind = SIM_PCIE, .gen = 3, .width = 4}, 2, "pcie_width", 4, NULL},
    {{.kind = SIM_BUSY}, 3, "processes", 1, NULL},
    {{.kind = SIM_MEMORY_CLOCK, .mhz = 900}, 2, "memory_clock_application_mhz", 900, NULL},
    {{.kind = SIM_ECC_GROWTH, .per_s = 17700}, 3, "ecc_corrected_new", 177000, NULL},
    {{.kind = SIM_ECC_GROWTH, .per_s = 17700}, 3, "ecc_corrected_per_s", 17700, NULL},
    {{.kind = SIM_ECC_GROWTH, .per_s = 17700}, 3, "ecc_corrected_volatile", 177000, NULL},
    {{.kind = SIM_ECC_GROWTH, .per_s = 0.1}, 3, "ecc_corrected_dram", 1, NULL},
    {{.kind = SIM_ECC_GROWTH, .per_s = 0.1}, 3, "ecc_corrected_per_s", 0, NULL},
    {{.kind = SIM_REPLAYS, .per_s = 5}, 3, "pcie_replays_new", 50, NULL},
    {{.kind = SIM_REPLAYS, .per_s = 5}, 3, "pcie_replays", 50, NULL},
    {{.kind = SIM_REPLAYS, .per_s = 5}, 3, "ecc_corrected_new", 0, NULL},
    {{.kind = SIM_LINK_ERRORS, .per_s = 200}, 3, "nvlink_errors_per_s", 200, NULL},
    {{.kind = SIM_XID, .number = 79}, 3, "xid", 0, "79 (the GPU has fallen off the bus)"},
    {{.kind = SIM_ECC_OFF}, 3, "xid", 0, "none"},
    {{.kind = SIM_FABRIC, .state = SIM_FABRIC_FAILED}, 3, "fabric_state", 0, "failed"},
    {{.kind = SIM_FABRIC, .state = SIM_FABRIC_NONE}, 3, "fabric_state", 0, "not supported"},
    {{.kind = SIM_ECC_OFF}, 3, "fabric_state", 0, "completed"},
    {{.kind = SIM_HOT, .degrees = 30}, 3, "temperature_c", 80, NULL},
    {{.kind = SIM_HOT, .degrees = 30}, 3, "temperature_margin_c", 7, NULL},
    {{.kind = SIM_HOT, .degrees = 30}, 3, "throttle", 0, "none"},
    {{.kind = SIM_VBIOS, .text = "odd"}, 1, "vbios", 0, "odd"},
    {{.kind = SIM_DRIVER, .text = "old"}, 1, "driver", 0, "old"},
};

static void faults_show_in_the_identity(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fact_cases); i++) {
        const struct fact_case *c = &fact_cases[i];
        struct device *device = bench_open_faulty(plain, &c->fault, 1);
        struct facts facts[4] = {{0}};
        struct err err = {0};
        assert_int_equal(device_identify(device, &facts[0], &facts[1], &facts[2], &err), 0);
        assert_int_equal(device_read_health(device, &facts[2], &facts[3], &err), 0);
        const struct fact *fact = facts_get(&facts[c->where], c->key);
        assert_non_null(fact);
        int64_t number = fact->kind == FACT_BOOL ? fact->flag : fact->integer;
        if (c->text ? strcmp(fact->text, c->text) != 0 : number != c->number)
            fail_msg("case %zu: %s is %lld", i, c->key, (long long)number);
        for (int k = 0; k < 4; k++)
            facts_fini(&facts[k]);
        device_destroy(device);
    }
}

/* A child process that opens a faulty GPU and runs two jobs; its wait status. */
static int run_in_child(struct sim_fault fault, unsigned patience_s)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct device *device = bench_open_faulty(plain, &fault, 1);
        alarm(patience_s);
        latency(device, DEVICE_GLOBAL_CA, 4096, 0);
        latency(device, DEVICE_GLOBAL_CA, 4096, 0);
        device_destroy(device);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void crashing_and_hanging(void **state)
{
    (void)state;
    int status = run_in_child((struct sim_fault){.kind = SIM_CRASH, .after = 1}, 20);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = run_in_child((struct sim_fault){.kind = SIM_CRASH, .after = 2}, 20);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    status = run_in_child((struct sim_fault){.kind = SIM_HANG, .after = 1}, 1);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void faults_must_fit_the_model(void **state)
{
    (void)state;
    static const struct sim_fault bad[] = {
        {.kind = SIM_MISSING_SMS, .count = 8}, {.kind = SIM_SLOW_SM, .sm = 8},
        {.kind = SIM_SM_CLOCK, .mhz = 1001},   {.kind = SIM_PCIE, .gen = 6},
        {.kind = SIM_HBM_STACK, .count = 4},   {.kind = SIM_NVLINK_DOWN, .count = 5}};
    char text[2048];
    snprintf(text, sizeof text, "%s%s", bench_head, plain);
    struct sim_model *model;
    struct err err = {0};
    assert_int_equal(sim_model_read_text(text, strlen(text), "m", &model, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct device *device = NULL;
        assert_true(sim_open(model, &bad[i], 1, 1, &device, &err) < 0);
        assert_null(device);
    }
    sim_model_destroy(model);
}

/* bench_head states the clock, so this model stands alone. */
static const char ramping[] = "name: Ramp\nsms: 8\nmemory: {size: 1 GiB}\n"
                              "clock: {sm_mhz: 1500, idle_mhz: 250, ramp_ms: 40}\n"
                              "caches: {l1: {size: 16 KiB, line: 128, ways: 4}}\n"
                              "l2: {size: 256 KiB, line: 128, ways: 16}\n"
                              "noise: {jitter_cycles: 2, spike_rate: 0.001, spike_cycles: 300}\n"
                              "paths: {global_ca: [l1: 30, l2: 200, main: 500],"
                              " global_cg: [l2: 200, main: 500]}\n";

static struct device *open_text(const char *text, uint64_t seed)
{
    struct sim_model *model;
    struct device *device;
    struct err err = {0};
    assert_int_equal(sim_model_read_text(text, strlen(text), "m", &model, &err), 0);
    assert_int_equal(sim_open(model, NULL, 0, seed, &device, &err), 0);
    sim_model_destroy(model);
    return device;
}

static void clock_ramps_up_under_load(void **state)
{
    (void)state;
    struct device *device = open_text(ramping, 1);
    struct device_clocks clocks;
    struct err err = {0};
    assert_int_equal(device_read_clocks(device, &clocks, &err), 0);
    assert_true(clocks.sm_mhz == 250);
    double mhz = 0;
    assert_int_equal(device_warm_up(device, &mhz, &err), 0);
    assert_true(fabs(mhz - 1500) < 8);
    assert_int_equal(device_read_clocks(device, &clocks, &err), 0);
    assert_true(clocks.sm_mhz == 1500);
    device_destroy(device);
}

static struct device_answer noisy_answer(uint64_t seed)
{
    struct device *device = open_text(ramping, seed);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 8 << 10, 128));
    job.steps[1].loads = 20000;
    job.steps[1].keep = device_keep_max(&job);
    struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer;
    struct err err = {0};
    assert_int_equal(device_run(device, &batch, &answer, &err), 0);
    device_destroy(device);
    return answer;
}

static void same_seed_same_bytes(void **state)
{
    (void)state;
    struct device_answer a = noisy_answer(7), b = noisy_answer(7), c = noisy_answer(8);
    size_t bytes = a.samples[0].kept_count * sizeof *a.samples[0].kept;
    assert_int_equal(a.samples[0].kept_count, DEVICE_KEEP_ONE);
    assert_memory_equal(a.samples[0].kept, b.samples[0].kept, bytes);
    assert_true(memcmp(a.samples[0].kept, c.samples[0].kept, bytes) != 0);
    device_answers_fini(&a, 1);
    device_answers_fini(&b, 1);
    device_answers_fini(&c, 1);
}

static void noise_is_as_stated(void **state)
{
    (void)state;
    struct device_answer answer = noisy_answer(3);
    const struct device_sample *sample = &answer.samples[0];
    double sum = 0, squares = 0;
    uint32_t spikes = 0, quiet = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        double excess = device_bin_cycles(sample->bins[i].bin) - 30.0;
        uint32_t count = sample->bins[i].count;
        spikes += excess > 100 ? count : 0;
        if (excess > 100)
            continue;
        quiet += count;
        sum += excess * count;
        squares += excess * excess * count;
    }
    assert_true(spikes > 8 && spikes < 40);
    assert_true(fabs(sum / quiet) < 0.1);
    assert_true(fabs(sqrt(squares / quiet) - 2) < 0.1);
    device_answers_fini(&answer, 1);
}

static void noisy_gpu_is_noisier(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_NOISY, .factor = 20};
    struct device *device = bench_open_faulty(plain, &fault, 1);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 8 << 10, 128));
    job.steps[1].loads = 1000;
    assert_true(bench_slow_loads(device, &job, 36) > 100);
    device_destroy(device);
}

static void streams_meet_the_narrowest_limit(void **state)
{
    (void)state;
    static const struct {
        enum device_stream_kind kind;
        enum device_path path;
        uint64_t footprint;
        uint32_t width, threads, blocks, unroll;
        double gbs;
    } cases[] = {
        {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 64 << 20, 16, 1024, 0, 0, 200},
        {DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CG, 64 << 20, 16, 1024, 0, 0, 180},
        {DEVICE_STREAM_COPY, DEVICE_GLOBAL_CG, 64 << 20, 16, 1024, 0, 0, 160},
        {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 128 << 10, 16, 1024, 0, 0, 400},
        {DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CG, 128 << 10, 16, 1024, 0, 0, 300},
        {DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, 8 << 10, 16, 1024, 0, 0, 1024},
        {DEVICE_STREAM_READ, DEVICE_SHARED, 8 << 10, 16, 1024, 0, 0, 800},
        /* Two SMs of 64 bytes a cycle at 1 GHz. */
        {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 64 << 20, 16, 1024, 2, 0, 128},
        /* Little: 8 blocks x 32 threads x 4 bytes in 500 ns. */
        {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 64 << 20, 4, 32, 8, 1, 8 * 32 * 4 / 500.0},
        {DEVICE_STREAM_D2H, DEVICE_HOST, 1 << 20, 0, 0, 0, 0, 22},
        {DEVICE_STREAM_BIDIR, DEVICE_HOST, 1 << 20, 0, 0, 0, 0, 40},
    };
    struct device *device = bench_open(plain);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_stream stream = {.kind = cases[i].kind,
                                       .path = cases[i].path,
                                       .footprint_bytes = cases[i].footprint,
                                       .width_bytes = cases[i].width,
                                       .threads = cases[i].threads,
                                       .blocks = cases[i].blocks,
                                       .unroll = cases[i].unroll};
        double gbs = rate(device, stream);
        if (!near(gbs, cases[i].gbs))
            fail_msg("case %zu: %g GB/s", i, gbs);
    }
    device_destroy(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_act_through_the_mechanism),
        cmocka_unit_test(one_slow_sm_is_alone),
        cmocka_unit_test(hidden_sms_run_nothing),
        cmocka_unit_test(host_latency_is_time),
        cmocka_unit_test(throttling_is_told),
        cmocka_unit_test(faults_show_in_the_identity),
        cmocka_unit_test(crashing_and_hanging),
        cmocka_unit_test(faults_must_fit_the_model),
        cmocka_unit_test(clock_ramps_up_under_load),
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(noise_is_as_stated),
        cmocka_unit_test(noisy_gpu_is_noisier),
        cmocka_unit_test(streams_meet_the_narrowest_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
