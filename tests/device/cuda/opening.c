/* What the CUDA backend says of a GPU when it is opened, and why it cannot be opened. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void identity(void **state)
{
    (void)state;
    const struct device_info *info = device_source_info(source, 0);
    assert_string_equal(info->uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
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

/* Carve-outs are documented by compute capability, and only where the driver agrees. */
static void documented_carveouts(void **state)
{
    (void)state;
    static const struct {
        const char *capability;
        uint64_t first_kib, last_kib, l1_kib; /* 0: no document */
    } rows[] = {
        {"75:65536", 32, 64, 64},     {"89:102400", 32, 100, 96},   {"90:233472", 32, 228, 224},
        {"100:233472", 32, 228, 224}, {"103:233472", 32, 228, 224}, {"110:233472", 32, 228, 224},
        {"120:102400", 32, 100, 96},  {"121:102400", 32, 100, 96},  {"90:102400", 0, 0, 0},
        {"130:233472", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
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
        {"FAKE_CUDA_VERSION", "11040", NULL, "supports CUDA 11.4"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identity, set_up, tear_down),
        cmocka_unit_test(documented_carveouts),
        cmocka_unit_test(l2_fetch_limit),
        cmocka_unit_test(reasons),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
