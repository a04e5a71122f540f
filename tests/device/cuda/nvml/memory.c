/* Allocation failures in the CUDA backend, with a fake driver and a fake NVML: -ENOMEM, no leak,
 * and no other process overlooked. The driver's own allocations never fail here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../check.h"
#include "device/source.h"
#include "sweep.h"

enum { OTHERS = 20 };

static int look(struct device_source *source)
{
    struct device_look look = {0};
    struct err err = {0};
    int rc = device_source_look(source, 0, true, &look, &err);
    assert_int_equal(err.code, rc);
    if (!rc)
        assert_int_equal(facts_int(&look.health, "processes", -1), OTHERS);
    device_look_fini(&look);
    return rc;
}

static int tell(struct device *device)
{
    struct facts hardware = {0}, board = {0}, config = {0}, health = {0};
    struct err err = {0};
    int rc = device_identify(device, &hardware, &board, &config, &err);
    if (!rc)
        rc = device_read_health(device, &config, &health, &err);
    assert_int_equal(err.code, rc);
    if (!rc)
        assert_int_equal(facts_int(&health, "processes", -1), OTHERS);
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
    facts_fini(&health);
    return rc;
}

/* A job for each path: chains, histograms and kept latencies. */
static int run_jobs(struct device *device)
{
    struct device_job jobs[DEVICE_PATH_COUNT];
    struct device_answer answers[DEVICE_PATH_COUNT];
    const struct device_batch batch = {.jobs = jobs, .job_count = DEVICE_PATH_COUNT};
    struct err err = {0};
    for (int path = 0; path < DEVICE_PATH_COUNT; path++) {
        const struct device_array array = {
            .path = (enum device_path)path, .size_bytes = 1024, .stride_bytes = 64};
        jobs[path] = (struct device_job){
            .agents = {{.sm = DEVICE_SM_ANY}},
            .agent_count = 1,
            .step_count = 2,
            .steps = {{.kind = DEVICE_CHASE, .array = array, .keep = 8},
                      {.kind = DEVICE_AVERAGE, .array = array}},
        };
    }
    int rc = device_run(device, &batch, answers, &err);
    assert_int_equal(err.code, rc);
    for (int path = 0; path < DEVICE_PATH_COUNT; path++)
        assert_int_equal(answers[path].sample_count, rc ? 0 : 2);
    device_answers_fini(answers, DEVICE_PATH_COUNT);
    return rc;
}

static int stream(struct device *device)
{
    const struct device_stream read = {.kind = DEVICE_STREAM_H2D,
                                       .footprint_bytes = 65536,
                                       .total_bytes = 65536,
                                       .width_bytes = 16,
                                       .threads = 256};
    struct device_stream_answer answer;
    struct device_clocks clocks;
    int rc = device_stream(device, &read, &answer, NULL);
    return rc ? rc : device_read_clocks(device, &clocks, NULL);
}

static int use_gpu(struct device *device)
{
    int rc = run_jobs(device);
    if (rc == -ENOMEM) {
        memory_restore();
        assert_int_equal(run_jobs(device), 0);
    }
    int streamed = stream(device);
    return rc ? rc : streamed;
}

static int open_source(void *context)
{
    (void)context;
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(source != NULL, rc == 0);
    if (!rc)
        rc = look(source);
    device_source_destroy(source);
    return rc;
}

static int open_gpu(void *source)
{
    struct device *device = NULL;
    struct err err = {0};
    int rc = device_source_open(source, 0, &device, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(device != NULL, rc == 0);
    if (!rc)
        rc = use_gpu(device);
    device_destroy(device);
    return rc;
}

static int tell_of(void *device)
{
    return tell(device);
}

static void driver(void **state)
{
    (void)state;
    struct device_source *source = NULL;
    struct device *device = NULL;
    setenv("FAKE_NVML_PIDS", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,own", 1);
    setenv("FAKE_NVML_MPS", "101,102,103,104", 1);
    memory_sweep(
        &(struct memory_sweep){.name = "device_source_cuda", .run = open_source, .at_least = 50});
    assert_int_equal(device_source_cuda(&source, NULL), 0);
    memory_sweep(&(struct memory_sweep){
        .name = "cuda_open, cuda_run_batch", .run = open_gpu, .context = source, .at_least = 30});
    assert_int_equal(device_source_open(source, 0, &device, NULL), 0);
    assert_int_equal(tell(device), 0); /* allocates what the device keeps */
    memory_sweep(&(struct memory_sweep){.name = "cuda_identify, cuda_read_health",
                                        .run = tell_of,
                                        .context = device,
                                        .at_least = 50});
    device_destroy(device);
    device_source_destroy(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(driver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
