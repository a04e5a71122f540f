/* What the CUDA backend says of a GPU when it is opened, and why it cannot be opened. */
#include "opened.h"

#include <cuda.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void identity(void **state)
{
    (void)state;
    const struct device_info *info = device_source_info(source, 0);
    assert_memory_equal(info->uuid, "GPU-00112233-4455-6677-8899-aabb", 32);
    assert_string_equal(info->pci, "ffff:1b:00.0");
    assert_string_equal(info->name, "Fake GPU");
    assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1"); /* before cuInit reads it */
    const struct device_limits *limits = device_limits(device);
    assert_int_equal(limits->sm_count, SMS);
    assert_int_equal(limits->constant_bytes, 65536);
    struct facts hardware = {0}, board = {0}, config = {0};
    assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
    assert_int_equal(facts_int(&hardware, "sms", 0), SMS);
    assert_string_equal(facts_text(&hardware, "compute_capability"), "9.9");
    assert_int_equal(facts_get(&hardware, "copy_engines")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&board, "serial")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&config, "ecc")->kind, FACT_UNKNOWN);
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
}

/* Of all flavours. */
#define ARCHS(toolkit, ...) __VA_ARGS__,
#define TOOLKIT(toolkit, ...) toolkit,
static const int archs[] = {CUDA_FLAVOURS(ARCHS)};
static const int toolkits[] = {CUDA_FLAVOURS(TOOLKIT)};
enum { TOOLKITS = sizeof toolkits / sizeof *toolkits };

static int oldest(void)
{
    int least = archs[0];
    for (size_t i = 1; i < sizeof archs / sizeof *archs; i++)
        least = archs[i] < least ? archs[i] : least;
    return least;
}

static int newest(void)
{
    int most = archs[0];
    for (size_t i = 1; i < sizeof archs / sizeof *archs; i++)
        most = archs[i] > most ? archs[i] : most;
    return most;
}

static struct err why_not(int capability, int driver_version)
{
    struct device_source *seen = NULL;
    struct device *opened = NULL;
    struct err err = {0};
    char text[32];
    snprintf(text, sizeof text, "%d", capability);
    setenv("FAKE_CUDA_CAPABILITY", text, 1);
    snprintf(text, sizeof text, "%d", driver_version);
    setenv("FAKE_CUDA_VERSION", text, 1);
    assert_int_equal(device_source_cuda(&seen, &err), 0);
    int rc = device_source_open(seen, 0, &opened, &err);
    assert_int_equal(rc, err.code);
    device_destroy(opened);
    device_source_destroy(seen);
    unsetenv("FAKE_CUDA_CAPABILITY");
    unsetenv("FAKE_CUDA_VERSION");
    return err;
}

static void assert_kernels(int capability, const char *expected)
{
    struct facts hardware = {0}, board = {0}, config = {0};
    char text[32];
    snprintf(text, sizeof text, "%d", capability);
    setenv("FAKE_CUDA_CAPABILITY", text, 1);
    assert_int_equal(set_up(NULL), 0);
    assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
    assert_string_equal(facts_text(&board, "kernels"), expected);
    unsetenv("FAKE_CUDA_CAPABILITY");
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
}

/* Which kernels a GPU runs is told as the driver tells it; a GPU that none fits is refused. */
static void code_for_gpus(void **state)
{
    (void)state;
    const int major_of_build = toolkits[TOOLKITS - 1] / 1000 * 1000;
    const struct {
        int capability;
        bool forced;
        const char *format;
        int arch, toolkit;
    } rows[] = {
        {oldest(), false, "sm_%d of CUDA %d.%d", oldest(), toolkits[TOOLKITS - 1]},
        {newest(), false, "sm_%d of CUDA %d.%d", newest(), toolkits[0]},
        {newest() + 1, false, "sm_%d of CUDA %d.%d", newest(), toolkits[0]},
        {newest() + 10, false, "JIT of compute_%d of CUDA %d.%d", newest(), toolkits[0]},
        {newest(), true, "JIT of compute_%d of CUDA %d.%d", newest(), toolkits[0]},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, rows[i].format, rows[i].arch, rows[i].toolkit / 1000,
                 rows[i].toolkit % 1000 / 10);
        if (rows[i].forced)
            setenv("CUDA_FORCE_PTX_JIT", "1", 1);
        assert_kernels(rows[i].capability, expected);
        unsetenv("CUDA_FORCE_PTX_JIT");
        tear_down(NULL);
    }
    const struct err old = why_not(oldest() - 1, CUDA_VERSION);
    assert_int_equal(old.code, -ENOTSUP);
    assert_non_null(strstr(old.text, "the GPU is too old for this build"));
    assert_int_equal(why_not(newest() + 10, CUDA_VERSION).code, 0);
    assert_int_equal(why_not(oldest(), major_of_build).code, 0);
    if (CUDA_VERSION > major_of_build) {
        const struct err new = why_not(newest() + 10, major_of_build);
        assert_int_equal(new.code, -ENOTSUP);
        assert_non_null(strstr(new.text, "use a newer driver"));
    }
    setenv("GPUMEMTOPO_CUDA_TOOLKIT", "9.9", 1);
    const struct err none = why_not(newest(), CUDA_VERSION);
    assert_int_equal(none.code, -ENOTSUP);
    assert_non_null(strstr(none.text, "unset GPUMEMTOPO_CUDA_TOOLKIT"));
    if (TOOLKITS > 1) {
        setenv("GPUMEMTOPO_CUDA_TOOLKIT", "11.8", 1);
        assert_kernels(90, "sm_90 of CUDA 11.8");
        tear_down(NULL);
    }
    unsetenv("GPUMEMTOPO_CUDA_TOOLKIT");
}

/* The driver of CUDA 11.0 runs kernels of CUDA 11 and has no clusters. */
static void older_driver(void **state)
{
    (void)state;
    if (toolkits[TOOLKITS - 1] / 1000 != 11) {
        struct err err = {0};
        assert_int_equal(device_source_cuda(&source, &err), -ENODEV);
        assert_non_null(strstr(err.text, "a build that also has kernels by CUDA 11.8"));
        return;
    }
    char expected[64];
    const struct device_cluster asked = {.work = DEVICE_CLUSTER_LOADS, .size = 2, .count = 32};
    struct device_cluster_answer answer = {0};
    struct err err = {0};
    snprintf(expected, sizeof expected, "sm_%d of CUDA 11.%d", oldest(),
             toolkits[TOOLKITS - 1] % 1000 / 10);
    assert_kernels(oldest(), expected);
    assert_int_equal(device_run_cluster(device, &asked, &answer, &err), -ENOTSUP);
    assert_string_equal(err.text, "the driver has no clusters");
    assert_int_equal(device_limits(device)->shared_bytes_max,
                     oldest() < 70 ? 48 * 1024 : 227 * 1024);
    tear_down(NULL);
    const struct err new = why_not(newest() + 10, 11000);
    assert_int_equal(new.code, -ENOTSUP);
    assert_non_null(strstr(new.text, "they need CUDA 11.8, it supports 11.0: use a newer driver"));
}

/* No build serves it. */
static void too_old_driver(void **state)
{
    (void)state;
    struct err err = {0};
    setenv("FAKE_CUDA_VERSION", "10020", 1);
    assert_int_equal(device_source_cuda(&source, &err), -ENODEV);
    assert_non_null(strstr(err.text, "too old: it supports CUDA 10.2, this build needs "));
    unsetenv("FAKE_CUDA_VERSION");
}

/* Carve-outs are documented by compute capability, and only where the driver agrees. */
static void documented_carveouts(void **state)
{
    (void)state;
    static const struct {
        const char *capability;
        uint64_t first_kib, last_kib, l1_kib; /* 0: no document */
    } rows[] = {
        {"75:65536", 32, 64, 64},    {"89:102400", 8, 100, 120},  {"90:233472", 8, 228, 248},
        {"100:233472", 8, 228, 248}, {"103:233472", 8, 228, 248}, {"110:233472", 8, 228, 248},
        {"120:102400", 8, 100, 120}, {"121:102400", 8, 100, 120}, {"90:102400", 0, 0, 0},
        {"130:233472", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (atoi(rows[i].capability) < oldest())
            continue; /* no kernels of this build run there: see code_for_gpus */
        setenv("FAKE_CUDA_CAPABILITY", rows[i].capability, 1);
        assert_int_equal(set_up(NULL), 0);
        unsetenv("FAKE_CUDA_CAPABILITY");
        const struct device_limits *limits = device_limits(device);
        uint64_t last = 0;
        for (size_t k = 0; k < DEVICE_CARVEOUTS_MAX && limits->carveout_steps[k]; k++)
            last = limits->carveout_steps[k];
        assert_int_equal(limits->carveout_steps[0], rows[i].first_kib * 1024);
        assert_int_equal(last, rows[i].last_kib * 1024);
        assert_int_equal(limits->l1_nominal_bytes, rows[i].l1_kib * 1024);
        tear_down(NULL);
    }
}

/* A driver without that limit leaves it unknown, with the reason. */
static void l2_fetch_limit(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct facts hardware = {0}, board = {0}, config = {0};
        if (fails)
            setenv("FAKE_CUDA_FAULT", "cuCtxGetLimit:1:215", 1);
        assert_int_equal(set_up(NULL), 0);
        unsetenv("FAKE_CUDA_FAULT");
        assert_int_equal(device_limits(device)->l2_fetch_limit_bytes, fails ? 0 : 64);
        if (fails)
            setenv("FAKE_CUDA_FAULT", "cuCtxGetLimit:1:216", 1);
        assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
        unsetenv("FAKE_CUDA_FAULT");
        const struct fact *fact = facts_get(&config, "l2_fetch_limit_bytes");
        assert_non_null(fact);
        assert_int_equal(fact->kind, fails ? FACT_UNKNOWN : FACT_INT);
        facts_fini(&hardware);
        facts_fini(&board);
        facts_fini(&config);
        tear_down(NULL);
    }
}

/* The reasons for having no GPU are told apart. */
static void reasons(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *value, *visible, *text;
    } rows[] = {
        {"FAKE_CUDA_INIT", "100", NULL, "finds no GPU"},
        {"FAKE_CUDA_INIT", "100", "", "CUDA_VISIBLE_DEVICES is empty; under Slurm ask for"},
        {"FAKE_CUDA_INIT", "999", NULL, "CUDA_ERROR_FAKE (999)"},
        {"FAKE_CUDA_VERSION", "10020", NULL, "supports CUDA 10.2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_source *none = NULL;
        struct err err = {0};
        setenv(rows[i].variable, rows[i].value, 1);
        if (rows[i].visible)
            setenv("CUDA_VISIBLE_DEVICES", rows[i].visible, 1);
        assert_int_equal(device_source_cuda(&none, &err), -ENODEV);
        unsetenv(rows[i].variable);
        unsetenv("CUDA_VISIBLE_DEVICES");
        assert_int_equal(err.code, -ENODEV);
        if (!strstr(err.text, rows[i].text))
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].text);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest older[] = {
        cmocka_unit_test(older_driver),
        cmocka_unit_test(too_old_driver),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identity, set_up, tear_down),
        cmocka_unit_test(code_for_gpus),
        cmocka_unit_test(documented_carveouts),
        cmocka_unit_test(l2_fetch_limit),
        cmocka_unit_test(reasons),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    if (argc > 1 && strcmp(argv[1], "older") == 0)
        return cmocka_run_group_tests(older, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
