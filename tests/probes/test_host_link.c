/* GPUs of one node take turns at the host link, and a figure got without a turn says so. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "probed.h"

enum { PROCESSES = 3, AT_LINK_US = 300 };

static struct shared {
    atomic_int inside, overlaps, uses;
} * shared;

static const struct device_ops *own_ops;
static struct device_ops changed_ops;

static void enter(void)
{
    if (atomic_fetch_add(&shared->inside, 1))
        atomic_fetch_add(&shared->overlaps, 1);
    atomic_fetch_add(&shared->uses, 1);
    usleep(AT_LINK_US);
}

static int run_stream(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    bool at_link = stream->kind >= DEVICE_STREAM_H2D;
    if (at_link)
        enter();
    int rc = own_ops->calls[DEVICE_CALL_STREAM](device, stream, out_answer, err);
    if (at_link)
        atomic_fetch_sub(&shared->inside, 1);
    return rc;
}

static int run_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    bool at_link = batch->jobs[0].steps[0].array.path == DEVICE_HOST;
    if (at_link)
        enter();
    int rc = own_ops->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
    if (at_link)
        atomic_fetch_sub(&shared->inside, 1);
    return rc;
}

/* One GPU of the node, its host probes, in this process. */
static int survey_one(uint64_t node, uint64_t seed, bool turns)
{
    struct probe_selection selection = {0};
    struct measures measures = {0};
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct err err = {0};
    const struct sim_unit unit = {.identity_seed = seed, .noise_seed = seed, .node = node};
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = seed};
    int rc = sim_model_read_text(probed_plain, strlen(probed_plain), "plain", &model, &err);
    if (!rc)
        rc = sim_open_unit(model, &unit, NULL, 0, &device, &err);
    if (!rc) {
        own_ops = device->ops;
        changed_ops = *own_ops;
        changed_ops.calls[DEVICE_CALL_STREAM] = run_stream;
        changed_ops.calls[DEVICE_CALL_BATCH] = run_batch;
        if (!turns)
            changed_ops.calls[DEVICE_CALL_LINK] = NULL;
        device->ops = &changed_ops;
        rc = probes_select(PROFILE_STANDARD, "host", &selection, &err);
    }
    if (!rc)
        rc = probes_run(device, &selection, &options, NULL, &measures, &err);
    for (size_t i = 0; i < measures.count && !rc; i++)
        rc = measures.items[i].status == MEASURE_NOISY;
    return rc;
}

static void survey_node(bool turns)
{
    uint64_t node = rng_derive((uint64_t)getpid(), "test_host_link", clock_monotonic_ns());
    pid_t children[PROCESSES];
    atomic_store(&shared->overlaps, 0);
    atomic_store(&shared->uses, 0);
    for (uint64_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (!children[i])
            _exit(survey_one(node, 1 + i, turns) ? 1 : 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_true(atomic_load(&shared->uses) > 10 * PROCESSES);
}

static void never_two_at_once(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    survey_node(false); /* this test would see it */
    assert_true(atomic_load(&shared->overlaps) > 0);
    survey_node(true);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    munmap(shared, sizeof *shared);
}

static struct device_link given;

static int begin_link(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request, (void)err;
    *(struct device_link *)answer = given;
    return 0;
}

static void give_link(struct device *device)
{
    changed_ops = *device->ops;
    changed_ops.calls[DEVICE_CALL_LINK] = begin_link;
    device->ops = &changed_ops;
}

static void what_was_not_got_is_told(void **state)
{
    (void)state;
    static const char *const metrics[] = {"host.bandwidth.h2d", "host.bandwidth.d2h",
                                          "host.bandwidth.both", "host.latency"};
    for (int i = 0; i < 4; i++) {
        given = (struct device_link){.alone = i & 1, .near = i & 2};
        struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                          .profile = PROFILE_STANDARD,
                                                          .list = "host,main.latency",
                                                          .prepare = give_link});
        for (size_t k = 0; k < COUNT_OF(metrics); k++) {
            const struct measure *m = measures_get(&all, metrics[k]);
            assert_int_equal(m->status, given.alone ? MEASURE_OK : MEASURE_NOISY);
            assert_true((m->confidence > 0.5) == given.alone);
            assert_int_equal(!facts_get(&m->notes, "cpus"), given.near);
            assert_int_equal(m->reason != NULL && strstr(m->reason, "another GPU"), !given.alone);
        }
        assert_int_equal(measures_get(&all, "main.latency")->status, MEASURE_OK);
        assert_null(facts_get(&measures_get(&all, "main.latency")->notes, "cpus"));
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_two_at_once),
        cmocka_unit_test(what_was_not_got_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
