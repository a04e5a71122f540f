/* What probes ask a device, seen from the device: marks, seeds, and questions nobody answers. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "probes/method/chase.h"
#include "probes/probe.h"

/* A record without any sample: every request is in vain. */
struct mute {
    struct device device;
    struct strbuf marks; /* each with a semicolon behind */
};

static int refuse_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    (void)device, (void)batch, (void)answers;
    return err_set(err, -ENOENT, "not in the record");
}

static int refuse_stream(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    (void)device, (void)stream, (void)out_answer;
    return err_set(err, -ENOENT, "not in the record");
}

static int refuse_facts(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request, (void)answer;
    return err_set(err, -ENOENT, "not in the record");
}

static void keep_mark(struct device *device, const char *what)
{
    strbuf_printf(&((struct mute *)device)->marks, "%s;", what);
}

static const struct device_ops mute_ops = {.backend = "mute",
                                           .calls[DEVICE_CALL_IDENTIFY] = refuse_facts,
                                           .calls[DEVICE_CALL_BATCH] = refuse_batch,
                                           .calls[DEVICE_CALL_STREAM] = refuse_stream,
                                           .calls[DEVICE_CALL_TICKETS] = refuse_facts,
                                           .calls[DEVICE_CALL_CLOCKS] = refuse_facts,
                                           .mark = keep_mark};

static struct mute open_mute(void)
{
    return (struct mute){.device = {.ops = &mute_ops,
                                    .limits = {.sm_count = 4,
                                               .warp_count = 32,
                                               .global_bytes = UINT64_C(1) << 32,
                                               .constant_bytes = 65536,
                                               .shared_bytes_max = 49152,
                                               .host_bytes = 1 << 20,
                                               .l2_reported_bytes = 1 << 22}}};
}

/* Without an answer to any request, the warm-up's too, each probe fails for itself. */
static void unanswered_probes_fail_alone(void **state)
{
    (void)state;
    struct mute mute = open_mute();
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = 1};
    struct probe_selection selection;
    struct measures measures = {0};
    struct err err = {0};
    size_t failed = 0;
    assert_int_equal(probes_select(PROFILE_STANDARD, NULL, &selection, &err), 0);
    assert_int_equal(probes_run(&mute.device, &selection, &options, NULL, &measures, &err), 0);
    for (size_t i = 0; i < measures.count; i++) {
        const struct measure *m = &measures.items[i];
        if (m->status == MEASURE_FAILED && strstr(m->reason, "not in the record"))
            failed++;
        else if (m->status != MEASURE_OK && m->status != MEASURE_UNSUPPORTED)
            fail_msg("%s: %s", m->metric, m->reason);
    }
    assert_true(failed > 30);
    assert_non_null(strstr(mute.marks.data, "warm-up;timer;l1_data.line;l1_data.size;"));
    assert_non_null(strstr(mute.marks.data, ";l1_data.global;"));
    assert_non_null(strstr(mute.marks.data, ";main.latency, again 1;"));
    assert_non_null(strstr(mute.marks.data, ";main.latency, again 2;"));
    measures_fini(&measures);
    free(selection.indices);
    strbuf_fini(&mute.marks);
}

/* Whatever was drawn before, by other probes or by the analysis. */
static void a_probe_draws_its_own_seeds(void **state)
{
    (void)state;
    struct mute mute = open_mute();
    const struct probe_options options = {.seed = 1}, others = {.seed = 2};
    struct probe_context context = {.device = &mute.device, .options = &options};
    probe_begin(&context, "a", 0);
    uint64_t first = probe_seed(&context), second = probe_seed(&context);
    uint64_t analysis = probe_analysis_seed(&context);
    assert_true(first != second && first != analysis);
    probe_begin(&context, "b", 0);
    assert_true(probe_seed(&context) != first);
    probe_begin(&context, "a", 1);
    assert_true(probe_seed(&context) != first);
    probe_begin(&context, "a", 0);
    assert_true(probe_analysis_seed(&context) == analysis);
    probe_analysis_seed(&context);
    assert_true(probe_seed(&context) == first);
    assert_true(probe_seed(&context) == second);
    context.options = &others;
    probe_begin(&context, "a", 0);
    assert_true(probe_seed(&context) != first);
    strbuf_fini(&mute.marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unanswered_probes_fail_alone),
        cmocka_unit_test(a_probe_draws_its_own_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
