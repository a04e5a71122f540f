/* Judged figures are measured at three times of the run, and say so when these do not agree. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "catalogue/metrics.h"
#include "device/sim/sim.h"
#include "probed.h"
#include "probes/probe.h"

static const struct probe *probe_of(const char *name)
{
    for (size_t i = 0; probe_table[i]; i++)
        if (strcmp(probe_table[i]->description.name, name) == 0)
            return probe_table[i];
    return NULL;
}

static const struct probe *probe_with(const char *metric)
{
    for (size_t i = 0; probe_table[i]; i++)
        for (size_t k = 0; k < PROBE_LIST_MAX && probe_table[i]->metrics[k]; k++)
            if (strcmp(probe_table[i]->metrics[k], metric) == 0)
                return probe_table[i];
    return NULL;
}

/* Every metric of the catalogue that is judged is one of a probe that is repeated, unless another
 * one is judged in its place; and a probe reports each. The sustained load is not repeated: it
 * lasts seconds, and says itself whether its figures are steady; nor is the check of the SMs, whose
 * rates count cycles of all SMs and are the same within 0.02 % in all runs on real cards. */
static void what_is_judged_is_repeated(void **state)
{
    (void)state;
    assert_true(metric_row_count > 10);
    for (size_t i = 0; i < metric_row_count; i++) {
        const struct probe *probe = probe_with(metric_rows[i].key);
        if (!probe)
            fail_msg("no probe reports %s", metric_rows[i].key);
        if (metric_rows[i].worse != JUDGE_NONE && !metric_rows[i].unless &&
            !(probe->again || strcmp(probe->description.name, "load") == 0 ||
              strcmp(probe->description.name, "compute.check") == 0))
            fail_msg("%s is judged and not repeated", metric_rows[i].key);
    }
}

/* The sequence of probes that a run begins. */
struct sequence {
    const char *names[256];
    size_t count;
};

static int on_begin(void *user, const char *name)
{
    struct sequence *sequence = user;
    assert_true(sequence->count < COUNT_OF(sequence->names));
    const struct probe *probe = probe_of(name);
    if (probe)
        sequence->names[sequence->count++] = probe->description.name;
    return 0;
}

struct run {
    enum probe_profile profile;
    const char *list;
    void (*prepare)(struct device *device);
    struct sequence sequence;
    struct measures measures;
    struct err err;
};

static int run_plain(struct run *run)
{
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct probe_selection selection = {0};
    const struct probe_options options = {.profile = run->profile, .seed = 5};
    const struct probe_observer observer = {.begin = on_begin, .user = &run->sequence};
    if (sim_model_read_text(probed_plain, strlen(probed_plain), "model", &model, &run->err) ||
        sim_open(model, NULL, 0, 5, &device, &run->err) ||
        probes_select(run->profile, run->list, &selection, &run->err))
        fail_msg("%s", run->err.text);
    if (run->prepare)
        run->prepare(device);
    int rc = probes_run(device, &selection, &options, &observer, &run->measures, &run->err);
    free(selection.indices);
    device_destroy(device);
    sim_model_destroy(model);
    return rc;
}

/* A judged probe begins three times, in every profile: before, amid and after the others. */
static void rounds_are_spread_over_the_run(void **state)
{
    (void)state;
    for (enum probe_profile profile = PROFILE_QUICK; profile <= PROFILE_STANDARD; profile++) {
        struct run run = {.profile = profile};
        assert_int_equal(run_plain(&run), 0);
        const struct sequence *s = &run.sequence;
        size_t first_other = s->count, last_other = 0;
        for (size_t i = 0; i < s->count; i++) {
            if (probe_of(s->names[i])->again)
                continue;
            first_other = i < first_other ? i : first_other;
            last_other = i;
        }
        for (size_t p = 0; probe_table[p]; p++) {
            const struct probe *probe = probe_table[p];
            size_t at[3], times = 0;
            for (size_t i = 0; i < s->count; i++)
                if (s->names[i] == probe->description.name && times++ < 3)
                    at[times - 1] = i;
            if (probe->description.profile > profile)
                continue;
            assert_int_equal(times, probe->again ? 3 : 1);
            if (probe->again)
                assert_true(at[0] < first_other && at[1] > first_other && at[1] < last_other &&
                            at[2] > last_other);
        }
        measures_fini(&run.measures);
    }
}

/* Whenever it was measured: results stand in the order of the table. */
static void results_keep_their_order(void **state)
{
    (void)state;
    struct run run = {.profile = PROFILE_STANDARD, .list = "l1_data.size,texture.line,main,host"};
    assert_int_equal(run_plain(&run), 0);
    size_t next = 0;
    for (size_t p = 0; probe_table[p]; p++)
        for (size_t m = 0; m < PROBE_LIST_MAX && probe_table[p]->metrics[m]; m++)
            if (next < run.measures.count &&
                strcmp(run.measures.items[next].metric, probe_table[p]->metrics[m]) == 0)
                next++;
    assert_int_equal(next, run.measures.count);
    measures_fini(&run.measures);
}

/* A backend whose streams change as the run goes on. */
static const struct device_ops *inner;
static struct device_ops changed;
static size_t streams;
static size_t slow_from, fail_from;
static int failure;

static int changing_stream(struct device *device, const void *request, void *answer,
                           struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    streams++;
    if (streams > fail_from)
        return err_set(err, failure, "the link is gone");
    int rc = inner->calls[DEVICE_CALL_STREAM](device, stream, out_answer, err);
    if (streams > slow_from)
        out_answer->elapsed_ns = out_answer->elapsed_ns * 6 / 5;
    return rc;
}

static int changing_tickets(struct device *device, const void *request, void *answer,
                            struct err *err)
{
    struct device_tickets_answer *out_answer = answer;
    int rc = inner->calls[DEVICE_CALL_TICKETS](device, request, answer, err);
    if (++streams > slow_from)
        out_answer->elapsed_ns = out_answer->elapsed_ns * 6 / 5;
    return rc;
}

static void change_streams(struct device *device)
{
    inner = device->ops;
    changed = *inner;
    changed.calls[DEVICE_CALL_STREAM] = changing_stream;
    changed.calls[DEVICE_CALL_TICKETS] = changing_tickets;
    device->ops = &changed;
    streams = 0;
}

static struct run run_changing(size_t slow, size_t fail, int code)
{
    struct run run = {
        .profile = PROFILE_QUICK, .list = "host.bandwidth.h2d", .prepare = change_streams};
    slow_from = slow;
    fail_from = fail;
    failure = code;
    return run;
}

static const struct measure *h2d_of(const struct run *run)
{
    return measures_get(&run->measures, "host.bandwidth.h2d");
}

static void what_drifts_is_noisy(void **state)
{
    (void)state;
    struct run steady = run_changing(SIZE_MAX, SIZE_MAX, 0);
    assert_int_equal(run_plain(&steady), 0);
    size_t one_round = streams / 3;
    assert_int_equal(h2d_of(&steady)->status, MEASURE_OK);
    assert_true(h2d_of(&steady)->spread < 0.01 * h2d_of(&steady)->value);
    assert_true(h2d_of(&steady)->n >= 3);

    /* Slow in the last round only: each round for itself is steady. */
    struct run drifting = run_changing(2 * one_round, SIZE_MAX, 0);
    assert_int_equal(run_plain(&drifting), 0);
    const struct measure *m = h2d_of(&drifting);
    assert_int_equal(m->status, MEASURE_NOISY);
    assert_non_null(strstr(m->reason, "over the run"));
    assert_true(m->confidence <= 0.5);
    assert_true(fabs(m->value - 24) < 0.5);
    assert_true(m->spread > 1.9);
    measures_fini(&steady.measures);
    measures_fini(&drifting.measures);
}

/* Two rounds of three are slower: of copies the fastest round counts, of the rest the median. */
static void only_copies_count_by_the_highest_round(void **state)
{
    static const struct {
        const char *metric;
        double share;
        size_t
            further; /* streams of the second and third round; 0: as many as of the first, each */
    } cases[] = {{"host.bandwidth.h2d", 1, 0}, {"main.bandwidth.read", 5 / 6.0, 4}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct run steady = run_changing(SIZE_MAX, SIZE_MAX, 0);
        steady.list = cases[i].metric;
        assert_int_equal(run_plain(&steady), 0);
        size_t first = cases[i].further ? streams - cases[i].further : streams / 3;
        struct run slowed = run_changing(first, SIZE_MAX, 0);
        slowed.list = cases[i].metric;
        assert_int_equal(run_plain(&slowed), 0);
        double share = measures_get(&slowed.measures, cases[i].metric)->value /
                       measures_get(&steady.measures, cases[i].metric)->value;
        if (fabs(share - cases[i].share) > 0.02)
            fail_msg("%s: %g of the steady figure", cases[i].metric, share);
        measures_fini(&steady.measures);
        measures_fini(&slowed.measures);
    }
}

static void a_round_without_value_is_told(void **state)
{
    (void)state;
    struct run steady = run_changing(SIZE_MAX, SIZE_MAX, 0);
    assert_int_equal(run_plain(&steady), 0);
    struct run failing = run_changing(SIZE_MAX, streams / 3, -EINVAL);
    assert_int_equal(run_plain(&failing), 0);
    const struct measure *m = h2d_of(&failing);
    assert_int_equal(m->status, MEASURE_NOISY);
    assert_non_null(strstr(m->reason, "2 of 3 rounds"));
    assert_non_null(strstr(m->reason, "the link is gone"));
    assert_true(fabs(m->value - 24) < 0.5);
    measures_fini(&steady.measures);
    measures_fini(&failing.measures);
}

/* A device that is beyond use ends the run; what was measured stays. */
static void a_lost_device_ends_the_run(void **state)
{
    (void)state;
    struct run steady = run_changing(SIZE_MAX, SIZE_MAX, 0);
    assert_int_equal(run_plain(&steady), 0);
    struct run lost = run_changing(SIZE_MAX, streams / 3, -EIO);
    assert_int_equal(run_plain(&lost), -EIO);
    assert_non_null(strstr(lost.err.text, "host.bandwidth.h2d"));
    assert_true(fabs(h2d_of(&lost)->value - 24) < 0.5);
    measures_fini(&steady.measures);
    measures_fini(&lost.measures);
}

/* In each round the lines and sizes are really sought again: loads are asked for. */
static size_t batches;
static int count_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    batches++;
    return inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
}

static void count_batches(struct device *device)
{
    inner = device->ops;
    changed = *inner;
    changed.calls[DEVICE_CALL_BATCH] = count_batch;
    device->ops = &changed;
    batches = 0;
}

static struct {
    size_t before[256];
} marks;

static int mark_begin(void *user, const char *name)
{
    struct sequence *sequence = user;
    size_t at = sequence->count;
    int rc = on_begin(user, name);
    if (sequence->count > at)
        marks.before[at] = batches;
    return rc;
}

static void lines_and_sizes_are_sought_again(void **state)
{
    (void)state;
    static const char *const names[] = {"l1_data.line", "l1_data.size", "l2.line", "l2.size"};
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct probe_selection selection = {0};
    struct sequence sequence = {0};
    struct measures found = {0};
    struct err err = {0};
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = 5};
    const struct probe_observer observer = {.begin = mark_begin, .user = &sequence};
    if (sim_model_read_text(probed_plain, strlen(probed_plain), "model", &model, &err) ||
        sim_open(model, NULL, 0, 5, &device, &err) ||
        probes_select(PROFILE_STANDARD, "l1_data.line,l1_data.size,l2.line,l2.size", &selection,
                      &err))
        fail_msg("%s", err.text);
    count_batches(device);
    if (probes_run(device, &selection, &options, &observer, &found, &err))
        fail_msg("%s", err.text);
    marks.before[sequence.count] = batches;
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        size_t times = 0;
        for (size_t i = 0; i < sequence.count; i++)
            times +=
                strcmp(sequence.names[i], names[n]) == 0 && marks.before[i + 1] > marks.before[i];
        assert_int_equal(times, 3);
        assert_int_equal(measures_get(&found, names[n])->status, MEASURE_OK);
    }
    assert_true(probed_value(&found, "l1_data.line") == 128);
    assert_true(probed_value(&found, "l2.line") == 128);
    measures_fini(&found);
    free(selection.indices);
    device_destroy(device);
    sim_model_destroy(model);
}

/* A backend that notes which probes take all memory: by its test, by its map, or by jobs that reach
 * further than the pool of the other probes. */
static struct {
    const struct device_ops *inner;
    struct device_ops ops;
    const struct sequence *sequence; /* the last one of it runs now */
    bool took[256];                  /* by its place in there */
} takers;

static void note_taker(void)
{
    if (takers.sequence->count)
        takers.took[takers.sequence->count - 1] = true;
}

static int take_by_test(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_memory_test *test = request;
    struct device_memory_map *out_map = answer;
    note_taker();
    return takers.inner->calls[DEVICE_CALL_MEMORY](device, test, out_map, err);
}

static int take_by_map(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_sm_map *map = request;
    struct device_sm_map_answer *out_answer = answer;
    if (map->kind == DEVICE_SM_MAP_MEMORY)
        note_taker();
    return takers.inner->calls[DEVICE_CALL_SM_MAP](device, map, out_answer, err);
}

static int take_by_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    for (size_t i = 0; i < batch->job_count; i++)
        for (uint32_t k = 0; k < batch->jobs[i].step_count; k++)
            if (device_step_end_bytes(&batch->jobs[i].steps[k]) > device->limits.global_bytes)
                note_taker();
    return takers.inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
}

static void note_takers(struct device *device)
{
    takers.inner = device->ops;
    takers.ops = *device->ops;
    takers.ops.calls[DEVICE_CALL_MEMORY] = take_by_test;
    takers.ops.calls[DEVICE_CALL_SM_MAP] = take_by_map;
    takers.ops.calls[DEVICE_CALL_BATCH] = take_by_batch;
    device->ops = &takers.ops;
    device->limits.global_bytes = device->limits.wide_bytes / 4;
}

/* What is taken is kept until the end, so that nothing may be measured in rounds behind it: a probe
 * that takes all memory comes after all rounds. */
static void all_memory_is_taken_last(void **state)
{
    (void)state;
    static const char *const known[] = {"memory.whole", "die.memory", "tlb", "spectrum"};
    struct run run = {.profile = PROFILE_FULL, .prepare = note_takers};
    bool seen[COUNT_OF(known)] = {false};
    takers.sequence = &run.sequence;
    assert_int_equal(run_plain(&run), 0);
    bool taken = false;
    for (size_t i = 0; i < run.sequence.count; i++) {
        const char *name = run.sequence.names[i];
        taken = taken || takers.took[i];
        if (taken && !probe_of(name)->last)
            fail_msg("%s %s", name,
                     takers.took[i] ? "takes all memory and is not last"
                                    : "comes after all memory was taken");
        for (size_t k = 0; k < COUNT_OF(known); k++)
            seen[k] = seen[k] || (takers.took[i] && strcmp(name, known[k]) == 0);
    }
    for (size_t k = 0; k < COUNT_OF(known); k++)
        if (!seen[k])
            fail_msg("%s did not take all memory: the test does not see it", known[k]);
    measures_fini(&run.measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_judged_is_repeated),
        cmocka_unit_test(rounds_are_spread_over_the_run),
        cmocka_unit_test(results_keep_their_order),
        cmocka_unit_test(what_drifts_is_noisy),
        cmocka_unit_test(only_copies_count_by_the_highest_round),
        cmocka_unit_test(a_round_without_value_is_told),
        cmocka_unit_test(a_lost_device_ends_the_run),
        cmocka_unit_test(lines_and_sizes_are_sought_again),
        cmocka_unit_test(all_memory_is_taken_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
