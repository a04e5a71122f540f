/* What goes wrong with a GPU ends in a clear error, on a stand-in driver that fails on demand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../check.h"
#include "device/source.h"

struct failure {
    const char *fault;    /* of the driver: function, call, error, "sticky" */
    const char *settings; /* of NVML */
    int code;
    const char *text; /* part of the message */
};

static void inject(const char *fault, const char *settings)
{
    setenv("FAKE_CUDA_FAULT", fault ? fault : "", 1);
    setenv("FAKE_NVML", settings ? settings : "", 1);
}

static void check(const struct failure *c, int rc, const struct err *err)
{
    if (rc != c->code || err->code != c->code || !strstr(err->text, c->text))
        fail_msg("%s: %d, \"%s\"", c->fault, rc, err->text);
}

/* A GPU that cannot be opened says why, and stays known to NVML. */
static void opening(void **state)
{
    (void)state;
    static const struct failure cases[] = {
        {"cuDevicePrimaryCtxRetain:1:46", "compute_mode=3", -EBUSY,
         "another process holds the GPU"},
        {"cuDevicePrimaryCtxRetain:1:46", "compute_mode=2", -EACCES, "compute mode is prohibited"},
        {"cuDevicePrimaryCtxRetain:1:46", "compute_mode=0", -EBUSY, "(46)"},
        {"cuDevicePrimaryCtxRetain:1:46", "compute_mode=e3", -EBUSY, "(46)"},
        {"cuDevicePrimaryCtxRetain:1:2", NULL, -ENOSPC, "cuDevicePrimaryCtxRetain"},
        {"cuDevicePrimaryCtxRetain:1:214", NULL, -EIO, "(214)"},
        {"cuDevicePrimaryCtxRetain:1:802", NULL, -EIO, "(802)"},
        {"cuModuleLoadData:1:209", NULL, -ENODEV, "loading the chase kernels"},
        {"cuMemAlloc:1:2", NULL, -ENOSPC, "cuMemAlloc"},
        {"cuMemHostAlloc:1:2", NULL, -ENOSPC, "cuMemHostAlloc"},
        {"cuLaunchKernel:1:719:sticky", NULL, -EIO, "cuLaunchKernel"},
        {"cuStreamSynchronize:1:700:sticky", NULL, -EIO, "cuStreamSynchronize"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_source *source = NULL;
        struct device *device = NULL;
        struct device_look look = {0};
        struct err err = {0};
        inject(cases[i].fault, cases[i].settings);
        assert_int_equal(device_source_cuda(&source, &err), 0);
        int rc = device_source_open(source, 0, &device, &err);
        check(&cases[i], rc, &err);
        assert_null(device);
        assert_int_equal(device_source_look(source, 0, false, &look, &err), 0);
        assert_string_equal(facts_text(&look.board, "serial"), "1650000000007");
        device_look_fini(&look);
        device_source_destroy(source);
    }
}

static int run_job(struct device *device, uint64_t size_bytes, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = size_bytes, .stride_bytes = 64};
    const struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}},
                                   .agent_count = 1,
                                   .steps = {{.kind = DEVICE_AVERAGE, .array = array}},
                                   .step_count = 1};
    const struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer = {0};
    int rc = device_run(device, &batch, &answer, err);
    device_answers_fini(&answer, rc ? 0 : 1);
    return rc;
}

/* In the middle of the work: -EIO ends it, whatever is asked next; other errors cost one job. What
 * NVML tells then is still told. */
static void working(void **state)
{
    (void)state;
    static const struct {
        struct failure failure;
        int after; /* of the next job */
    } cases[] = {
        {{"cuLaunchKernel:1:700:sticky", NULL, -EIO, "(700)"}, -EIO},
        {{"cuStreamSynchronize:1:214:sticky", "ecc_uncorrected=1", -EIO, "(214)"}, -EIO},
        {{"cuStreamSynchronize:1:719:sticky", NULL, -EIO, "(719)"}, -EIO},
        {{"cuMemAlloc:1:2", NULL, -ENOSPC, "cuMemAlloc"}, 0},
        {{"cuLaunchKernel:1:701", NULL, -EINVAL, "(701)"}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_source *source = NULL;
        struct device *device = NULL;
        struct facts config = {0}, health = {0};
        struct err err = {0};
        inject(NULL, "ecc_uncorrected=0");
        assert_int_equal(device_source_cuda(&source, &err), 0);
        assert_int_equal(device_source_open(source, 0, &device, &err), 0);
        inject(cases[i].failure.fault, cases[i].failure.settings);
        int rc = run_job(device, UINT64_C(8) << 20, &err);
        check(&cases[i].failure, rc, &err);
        assert_int_equal(run_job(device, UINT64_C(8) << 20, &err), cases[i].after);
        assert_int_equal(device_read_health(device, &config, &health, &err), 0);
        bool lost = cases[i].after != 0;
        assert_int_equal(facts_get(&config, "pcie_under_load")->flag, !lost);
        assert_int_equal(facts_int(&config, "pcie_gen", 0), lost ? 1 : 4);
        if (cases[i].failure.settings)
            assert_int_equal(facts_int(&health, "ecc_uncorrected_new", 0), 1);
        facts_fini(&config);
        facts_fini(&health);
        device_destroy(device);
        device_source_destroy(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening), cmocka_unit_test(working)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
