/* The probe of the links between GPUs, on a device with peers that the test makes up. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "probed.h"

enum { GPUS_MAX = 9 };

static size_t gpu_count, own;
static size_t order[GPUS_MAX], tested; /* the peers, in the order of the requests */
static int errors[GPUS_MAX];           /* by peer */
static size_t busy;                    /* so many requests find their peer in use */
static uint32_t gpus_at_once;          /* host links; 0: nobody came */
static double limit_s;
static uint64_t wrong_words;

static int list_peers(struct device *device, const void *request, void *answer, struct err *err)
{
    struct facts *out_gpus = &((struct device_peers *)answer)->gpus;
    (void)device, (void)request, (void)err;
    for (size_t i = 0; i < gpu_count; i++) {
        char key[8], uuid[16];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(uuid, sizeof uuid, "GPU-%zu", i);
        facts_set_text(out_gpus, key, uuid);
        if (i == own)
            facts_set_text(out_gpus, "own", uuid);
    }
    return 0;
}

/* 256 MiB in 1 ms: 268 GB/s; from peer 1 it takes twice as long. SMs do not reach peer 2. */
static int test_peer(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_peer_test *test = request;
    struct device_peer_answer *out_answer = answer;
    (void)device;
    assert_true(test->wait_ms && test->limit_ms);
    if (tested < GPUS_MAX)
        order[tested] = test->peer;
    tested++;
    if (busy && busy-- > 0)
        return err_set(err, -EAGAIN, "in use");
    if (errors[test->peer])
        return err_set(err, errors[test->peer], "made up");
    *out_answer = (struct device_peer_answer){.copy_read_ns = test->peer == 1 ? 2000000 : 1000000,
                                              .copy_write_ns = 1000000,
                                              .copy_both_ns = 1000000,
                                              .mapped = test->peer != 2,
                                              .read_ns = 1000000,
                                              .write_ns = 1000000,
                                              .both_ns = 800000,
                                              .cycles = UINT64_C(1500) * test->loads,
                                              .chase_ns = UINT64_C(750) * test->loads,
                                              .wrong_words = wrong_words};
    return 0;
}

/* Half of what a GPU has alone. */
static int share_host(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_host_share *asked = request;
    struct device_host_share_answer *out_answer = answer;
    (void)device;
    assert_true(asked->limit_ms && asked->window_ms);
    if (!gpus_at_once)
        return err_set(err, -EAGAIN, "no worker of another GPU came");
    *out_answer = (struct device_host_share_answer){gpus_at_once, 12000, 1000};
    return 0;
}

static void give_peers(struct device *device)
{
    static struct device_ops ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_PEERS] = list_peers;
    ops.calls[DEVICE_CALL_PEER] = test_peer;
    ops.calls[DEVICE_CALL_SHARE] = share_host;
    device->ops = &ops;
}

static struct measures run_list(const char *list, size_t count, size_t number)
{
    const struct probed probed = {
        .model = probed_plain, .list = list, .prepare = give_peers, .limit_s = limit_s};
    gpu_count = count;
    own = number;
    tested = 0;
    return probed_run(&probed);
}

static struct measures run(size_t count, size_t number)
{
    return run_list("links", count, number);
}

static const char *note(const struct measures *measures, const char *key)
{
    return facts_text(&measures_get(measures, "links.peers")->notes, key);
}

/* A list of the row is this: words that spaces separate; "-": not known. */
static void expect_list(const struct measures *measures, const char *key, const char *expected)
{
    const struct facts *notes = &measures_get(measures, "links.peers")->notes;
    struct strbuf text = {0};
    size_t count = 0;
    char *const *texts = facts_texts(notes, key, &count);
    const double *numbers = facts_numbers(notes, key, &count);
    assert_true(texts || numbers);
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(&text, i ? " " : "");
        if (texts)
            strbuf_puts(&text, texts[i]);
        else if (isnan(numbers[i]))
            strbuf_puts(&text, "-");
        else
            strbuf_printf(&text, "%.15g", numbers[i]);
    }
    assert_string_equal(text.data, expected);
    strbuf_fini(&text);
}

static void a_row(void **state)
{
    (void)state;
    struct measures measures = run(4, 0);
    assert_true(probed_value(&measures, "links.peers") == 3);
    expect_list(&measures, "gpus", "GPU-1 GPU-2 GPU-3");
    expect_list(&measures, "state", "ok host ok");
    expect_list(&measures, "read", "134.2 268.4 268.4");
    expect_list(&measures, "both", "536.9 536.9 536.9");
    expect_list(&measures, "sm_read", "268.4 - 268.4");
    expect_list(&measures, "sm_both", "335.5 - 335.5");
    expect_list(&measures, "latency", "1500 - 1500");
    expect_list(&measures, "latency_ns", "750 - 750");
    assert_null(note(&measures, "why"));
    probed_expect(&measures, "links.read", 268.4, "median");
    probed_expect(&measures, "links.least", 134.2, "slowest");
    measures_fini(&measures);
}

/* In each round every GPU has one partner, whose partner it is; after all rounds it has had every
 * other one. */
static void rounds_have_no_conflict(void **state)
{
    (void)state;
    for (size_t count = 2; count < GPUS_MAX; count++) {
        size_t partners[GPUS_MAX][GPUS_MAX];
        for (size_t i = 0; i < count; i++) {
            struct measures measures = run(count, i);
            assert_int_equal(tested, count - 1);
            size_t seen = 0;
            for (size_t k = 0; k < tested; k++)
                seen |= (size_t)1 << order[k];
            assert_int_equal(seen | (size_t)1 << i, ((size_t)1 << count) - 1);
            memcpy(partners[i], order, sizeof order);
            measures_fini(&measures);
        }
        for (size_t i = 0; i < count && count % 2 == 0; i++) /* with odd ones, each pauses once */
            for (size_t k = 0; k + 1 < count; k++)
                assert_int_equal(partners[partners[i][k]][k], i);
    }
}

/* A peer that fails costs its own pair; what says nothing about the link is unknown. */
static void failing_peers(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *states;
    } rows[] = {{-EIO, "ok failed ok"},
                {-ETIMEDOUT, "ok unknown ok"}, /* a slow machine is no bad link */
                {-EBUSY, "ok unknown ok"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        errors[2] = rows[i].error;
        struct measures measures = run(4, 0);
        assert_true(probed_value(&measures, "links.peers") == 2);
        expect_list(&measures, "state", rows[i].states);
        assert_string_equal(note(&measures, "why"), "GPU-2: made up");
        expect_list(&measures, "write", "268.4 - 268.4");
        measures_fini(&measures);
    }
    errors[2] = 0;
    wrong_words = 1;
    struct measures measures = run(3, 2);
    expect_list(&measures, "state", "wrong wrong");
    assert_true(probed_value(&measures, "links.peers") == 0);
    measures_fini(&measures);
    wrong_words = 0;
}

/* A peer that is in use is visited again, as long as the GPU has time. */
static void peers_in_use(void **state)
{
    (void)state;
    busy = 4;
    struct measures measures = run(4, 0);
    assert_int_equal(tested, 3 + 4);
    expect_list(&measures, "state", "ok host ok");
    assert_null(note(&measures, "why"));
    measures_fini(&measures);
    busy = SIZE_MAX;
    limit_s = 0.2;
    measures = run(4, 0);
    expect_list(&measures, "state", "unknown unknown unknown");
    assert_non_null(strstr(note(&measures, "why"), "in use"));
    measures_fini(&measures);
    busy = 0;
    limit_s = 0;
}

/* Both figures of the host link are reported: 24 GB/s alone, 12 with all others. */
static void host_links(void **state)
{
    (void)state;
    gpus_at_once = 4;
    struct measures measures = run_list("host.together", 4, 0);
    const struct measure *together = measures_get(&measures, "host.together.h2d");
    probed_expect(&measures, "host.bandwidth.h2d", 24, "alone");
    probed_expect(&measures, "host.together.h2d", 12, "all at once");
    probed_expect(&measures, "host.together.both", 12, "both ways");
    assert_true(probed_value(&measures, "host.together.gpus") == 4);
    assert_true(fabs(facts_get(&together->notes, "share")->real - 0.5) < 0.01);
    measures_fini(&measures);
    gpus_at_once = 0;
    measures = run_list("host.together", 4, 0);
    assert_int_equal(measures_get(&measures, "host.together.d2h")->status, MEASURE_UNSUPPORTED);
    measures_fini(&measures);
    measures = run_list("host.together", 1, 0);
    assert_non_null(strstr(measures_get(&measures, "host.together.h2d")->reason, "srun"));
    measures_fini(&measures);
}

static void one_gpu(void **state)
{
    (void)state;
    struct measures measures = run(1, 0);
    const struct measure *peers = measures_get(&measures, "links.peers");
    assert_int_equal(peers->status, MEASURE_UNSUPPORTED);
    assert_non_null(strstr(peers->reason, "--ntasks-per-node=1"));
    assert_non_null(strstr(note(&measures, "why"), "--ntasks-per-node=1"));
    assert_int_equal(tested, 0);
    measures_fini(&measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row),         cmocka_unit_test(rounds_have_no_conflict),
        cmocka_unit_test(failing_peers), cmocka_unit_test(peers_in_use),
        cmocka_unit_test(host_links),    cmocka_unit_test(one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
