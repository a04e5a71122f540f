/* Allocation failures in src/device: simulated GPUs, recording and replay. -ENOMEM, no leak, and
 * the same call succeeds when repeated. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/replay/record_read.h"
#include "device/sim/sim.h"
#include "replay/tape.h"
#include "sweep.h"

static void sweep(const char *name, int (*run)(void *context), void *context, size_t at_least)
{
    memory_sweep(
        &(struct memory_sweep){.name = name, .run = run, .context = context, .at_least = at_least});
}

static struct device_job chase(enum device_path path, uint64_t bytes)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
    const struct device_array array = {.path = path, .size_bytes = bytes, .stride_bytes = 64};
    job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
    job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = array, .keep = 8};
    return job;
}

enum { JOBS = 6 };

/* Caches of one SM; caches shared by two SMs, which run interleaved; two agents; an average. */
static void make_jobs(struct device_job jobs[JOBS])
{
    jobs[0] = chase(DEVICE_GLOBAL_CA, 8192);
    jobs[1] = chase(DEVICE_CONSTANT, 4096);
    jobs[2] = chase(DEVICE_CONSTANT, 2048);
    jobs[3] = chase(DEVICE_READ_ONLY, 2048);
    jobs[3].steps[1].kind = DEVICE_AVERAGE;
    jobs[4] = chase(DEVICE_GLOBAL_CG, 2048);
    jobs[4].agent_count = 2;
    jobs[4].agents[1] = (struct device_agent){.sm = DEVICE_SM_OTHER, .warp = 1};
    jobs[4].steps[0].agent = 1;
    jobs[5] = chase(DEVICE_SHARED, 1024);
}

static int run_jobs(struct device *device, struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer answers[JOBS];
    const struct device_batch batch = {.jobs = jobs, .job_count = JOBS};
    make_jobs(jobs);
    int rc = device_run(device, &batch, answers, err);
    for (size_t i = 0; i < JOBS; i++) {
        assert_int_equal(answers[i].sample_count, rc ? 0 : 1);
        if (!rc && i != 3)
            assert_true(answers[i].samples[0].bin_count && answers[i].samples[0].kept_count == 8);
    }
    device_answers_fini(answers, JOBS);
    return rc;
}

static int tell_facts(struct device *device, struct err *err)
{
    struct facts hardware = {0}, board = {0}, config = {0}, health = {0};
    int rc = device_identify(device, &hardware, &board, &config, err);
    if (!rc)
        rc = device_read_health(device, &config, &health, err);
    if (!rc)
        assert_true(hardware.count > 10 && board.count == 4 && config.count > 10 &&
                    health.count > 20);
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
    facts_fini(&health);
    return rc;
}

static int stream(struct device *device, struct err *err)
{
    static const struct device_stream read = {.kind = DEVICE_STREAM_READ,
                                              .path = DEVICE_GLOBAL_CG,
                                              .footprint_bytes = 65536,
                                              .total_bytes = 1 << 20,
                                              .width_bytes = 16,
                                              .threads = 256};
    struct device_stream_answer answer = {.bytes = 17};
    int rc = device_stream(device, &read, &answer, err);
    assert_int_equal(answer.bytes, rc ? 17 : 1 << 20);
    return rc;
}

/* A path that this GPU does not have: -ENOTSUP, also from a replay. */
static int ask_in_vain(struct device *device, struct err *err)
{
    struct device_job job = chase(DEVICE_TEXTURE, 1024);
    struct device_answer answer;
    int rc = device_run(device, &(struct device_batch){.jobs = &job, .job_count = 1}, &answer, err);
    return rc == -ENOTSUP ? 0 : rc ? rc : -EPROTO;
}

/* Makes every call of the device interface. */
static int converse(struct device *device, const char *mark)
{
    static int (*const calls[])(struct device *, struct err *) = {tell_facts, run_jobs, stream,
                                                                  ask_in_vain};
    struct device_clocks clocks = {0};
    struct device_link link;
    int rc = 0;
    device_mark(device, mark);
    for (size_t i = 0; i < COUNT_OF(calls) && !rc; i++) {
        struct err err = {0};
        rc = calls[i](device, &err);
        if (rc)
            assert_int_equal(err.code, rc);
    }
    if (!rc)
        rc = device_read_clocks(device, &clocks, NULL);
    if (!rc)
        assert_true(clocks.sm_mhz > 0);
    device_begin_link(device, &link);
    device_end_link(device);
    return rc;
}

/* If an allocation failed, makes all calls a second time: they must succeed. */
static int converse_again(struct device *device, const char *mark)
{
    int rc = converse(device, mark);
    if (rc == -ENOMEM) {
        memory_restore();
        assert_int_equal(converse(device, mark), 0);
    }
    return rc;
}

static int read_model(void *context)
{
    (void)context;
    struct sim_model *model = NULL;
    struct err err = {0};
    int rc = sim_model_read_file(TINY_MODEL, &model, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(model != NULL, rc == 0);
    sim_model_destroy(model);
    return rc;
}

static int read_fleet(void *context)
{
    (void)context;
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_sim(DEMO_FLEET, 1, 0, 2, &source, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(source != NULL, rc == 0);
    device_source_destroy(source);
    return rc;
}

static int look_at(struct device_source *source)
{
    struct device_look look = {0};
    struct err err = {0};
    int rc = device_source_look(source, 0, true, &look, &err);
    assert_int_equal(err.code, rc);
    if (!rc)
        assert_true(look.board.count == 4 && look.health.count > 20);
    device_look_fini(&look);
    return rc;
}

static int look_again(struct device_source *source)
{
    int rc = look_at(source);
    if (rc) {
        memory_restore();
        assert_int_equal(look_at(source), 0);
    }
    return rc;
}

static int open_and_converse(void *source)
{
    struct device *device = NULL;
    struct err err = {0};
    int rc = look_again(source);
    int opened = device_source_open(source, 0, &device, &err);
    assert_int_equal(err.code, opened);
    assert_int_equal(device != NULL, opened == 0);
    if (!rc)
        rc = opened;
    if (device) {
        int conversed = converse_again(device, "probe");
        rc = rc ? rc : conversed;
    }
    device_destroy(device);
    return rc;
}

/* The tiny model without textures. */
static void copy_model(FILE *to)
{
    char line[256];
    FILE *from = fopen(TINY_MODEL, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from))
        if (!strstr(line, "texture:"))
            fputs(line, to);
    fclose(from);
}

/* A fleet of one such GPU. */
static struct device_source *tiny_fleet(void)
{
    char fleet[] = "/tmp/gpumemtopo-fleet-XXXXXX", model[] = "/tmp/gpumemtopo-model-XXXXXX";
    FILE *fleet_file = fdopen(mkstemp(fleet), "w"), *model_file = fdopen(mkstemp(model), "w");
    struct device_source *source = NULL;
    struct err err = {0};
    assert_true(fleet_file && model_file);
    fprintf(fleet_file, "nodes:\n  - {name: n1, model: %s, gpus: 1}\n", model);
    copy_model(model_file);
    fclose(fleet_file);
    fclose(model_file);
    assert_int_equal(device_source_sim(fleet, 1, 0, 1, &source, &err), 0);
    unlink(fleet);
    unlink(model);
    return source;
}

/* A GPU with faults, and with caches so large that they are mapped, not allocated. */
static int open_large(void *source)
{
    struct device *device = NULL;
    struct err err = {0};
    int rc = device_source_open(source, 0, &device, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(device != NULL, rc == 0);
    device_destroy(device);
    return rc;
}

static const char drawn_fleet[] =
    "racks: {nodes: 2}\n"
    "batches: [{share: 1, part: B, main_read: 1.1}]\n"
    "layouts: [{share: 1, sms_per_gpc: [2]}]\n"
    "faults: [{kind: slow_host, share: 0.1, when: {sessions: 1}}]\n"
    "nodes: [{name: n1, gpus: 2, model: [" TINY_MODEL ", " TINY_MODEL "]}]\n";

/* A fleet in which everything is drawn, and a GPU of it. */
static int open_drawn(void *path)
{
    struct device_source *source = NULL;
    struct device *device = NULL;
    struct err err = {0};
    int rc = device_source_sim(path, 1, 0, 1, &source, &err);
    if (!rc)
        rc = device_source_open(source, 1, &device, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(device != NULL, rc == 0);
    device_destroy(device);
    device_source_destroy(source);
    return rc;
}

static void drawn(void **state)
{
    (void)state;
    char path[] = "/tmp/gpumemtopo-drawn-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    assert_true(fputs(drawn_fleet, file) >= 0);
    assert_int_equal(fclose(file), 0);
    sweep("a fleet with draws", open_drawn, path, 100);
    unlink(path);
}

static void simulated(void **state)
{
    (void)state;
    struct device_source *source = tiny_fleet(), *demo = NULL;
    assert_int_equal(device_source_sim(DEMO_FLEET, 1, 0, 1, &demo, NULL), 0);
    sweep("opening a simulated GPU", open_large, demo, 5);
    device_source_destroy(demo);
    sweep("sim_model_read_file", read_model, NULL, 100);
    sweep("device_source_sim", read_fleet, NULL, 300);
    sweep("a simulated GPU", open_and_converse, source, 100);
    device_source_destroy(source);
}

struct bench {
    struct device_source *inner;
    int fd;
};

static void prepare_recording(void *context)
{
    struct bench *bench = context;
    bench->inner = tiny_fleet();
    bench->fd = memfd_create("record", MFD_CLOEXEC);
}

/* The record consists of whole entries. It is closed only if nothing is missing. */
static void check_body(int fd, bool complete)
{
    static char body[1 << 16];
    bool closed = false;
    ssize_t length = pread(fd, body, sizeof body, 0);
    assert_true(length >= 0 && length < (ssize_t)sizeof body);
    assert_int_equal(record_body_whole(body, (size_t)length, &closed), length);
    assert_int_equal(closed, complete);
}

/* A failed allocation of the recorder ends the record, but not the measurement. */
static int record(void *context)
{
    struct bench *bench = context;
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_record(bench->inner, bench->fd, &source, &err);
    assert_int_equal(err.code, rc);
    if (rc)
        device_source_destroy(bench->inner);
    else {
        rc = open_and_converse(source);
        device_source_destroy(source);
        memory_restore();
        if (!rc)
            check_body(bench->fd, !memory_failed());
    }
    close(bench->fd);
    return rc;
}

static int write_record(void *context)
{
    const char *path = context;
    static const struct record_provenance provenance = {.version = (char *)"1",
                                                        .backend = (char *)"sim",
                                                        .config = (char *)"survey.yaml",
                                                        .config_text = (char *)"{}"};
    static const struct gpu_result gpu = {.uuid = (char *)"GPU-1", .rank = 5};
    static const struct record_survey survey = {.nodes = 4};
    struct record_file *file = NULL;
    struct strbuf part = {0};
    struct err err = {0};
    int rc = record_file_create(path, &provenance, &file, &err);
    record_put_gpu(&part, &gpu, 0, NULL, 0, true);
    if (!rc && part.failed)
        rc = err_no_memory(&err);
    if (!rc)
        rc = record_file_append(file, part.data, part.length, &err);
    if (!rc)
        rc = record_file_finish(file, &survey, &err);
    assert_int_equal(err.code, rc);
    record_file_destroy(file);
    strbuf_fini(&part);
    assert_int_equal(unlink(path), rc ? -1 : 0);
    return rc;
}

static void recording(void **state)
{
    (void)state;
    struct bench bench = {0};
    char folder[] = "/tmp/gpumemtopo-memory-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/record.gmr", folder);
    memory_sweep(&(struct memory_sweep){.name = "recording",
                                        .prepare = prepare_recording,
                                        .run = record,
                                        .context = &bench,
                                        .at_least = 150,
                                        .may_succeed = true});
    sweep("record_file", write_record, path, 10);
    assert_int_equal(rmdir(folder), 0); /* fails if a temporary file is left */
}

static int open_record(void *path)
{
    struct record *record = NULL;
    struct err err = {0};
    int rc = record_open(path, &record, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(record != NULL, rc == 0);
    if (!rc)
        assert_int_equal(record_gpu_count(record), 1);
    record_close(record);
    return rc;
}

/* The record has every call twice, so that a failed call can be repeated. */
static int replay(void *path)
{
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_replay(path, 0, 1, &source, &err);
    if (!rc)
        rc = replay_check(source, &err);
    assert_int_equal(err.code, rc);
    if (!rc)
        rc = open_and_converse(source);
    if (!rc)
        assert_null(replay_missed(source, 0));
    device_source_destroy(source);
    return rc;
}

/* A request that is not in the record: -ENOENT and a remark, or -ENOMEM. */
static int miss(void *path)
{
    struct device_source *source = NULL;
    struct device *device = NULL;
    struct device_job job = chase(DEVICE_HOST, 65536);
    struct device_answer answer;
    struct err err = {0};
    int rc = device_source_replay(path, 0, 1, &source, &err);
    if (!rc)
        rc = device_source_open(source, 0, &device, &err);
    if (!rc) {
        device_mark(device, "a probe that was not recorded");
        rc =
            device_run(device, &(struct device_batch){.jobs = &job, .job_count = 1}, &answer, &err);
        assert_int_not_equal(rc, 0);
    }
    assert_int_equal(err.code, rc);
    if (rc == -ENOENT) {
        assert_non_null(strstr(replay_missed(source, 0), "by a probe that was not recorded"));
        rc = 0;
    }
    device_destroy(device);
    device_source_destroy(source);
    return rc;
}

static void replaying(void **state)
{
    (void)state;
    struct tape tape;
    tape_begin_with(&tape, tiny_fleet());
    assert_int_equal(device_source_open(tape.source, 0, &tape.device, NULL), 0);
    assert_int_equal(look_at(tape.source), 0);
    assert_int_equal(converse(tape.device, "probe"), 0);
    assert_int_equal(converse(tape.device, "probe"), 0);
    tape_end(&tape, GPU_OK);
    sweep("record_open", open_record, tape.path, 20);
    sweep("replay", replay, tape.path, 200);
    sweep("replay of what is not there", miss, tape.path, 50);
    tape_fini(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(simulated), cmocka_unit_test(drawn),
                                       cmocka_unit_test(recording), cmocka_unit_test(replaying)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
