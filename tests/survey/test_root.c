/* Rank 0 without MPI: announcements, assignment, results, deadlines, by a comm of the test. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"
#include "fake_comm.h"
#include "inventory/gpu_result.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/root/root.h"

static int deliver(struct root *root, int from, uint32_t type, struct strbuf *payload)
{
    struct comm_message message = {
        .from = from, .frame = {.type = type, .payload = payload->data, .length = payload->length}};
    struct err err = {0};
    int rc = root_take(root, &message, &err);
    strbuf_fini(payload);
    return rc;
}

/* A rank that sees `gpus`, one letter each, on its host. */
static int announce(struct root *root, int rank, const char *host, const char *gpus,
                    enum listing_status listing)
{
    struct announce announce = {.host = str_copy(host), .listing = listing};
    struct strbuf payload = {0};
    announce.gpus = calloc(RANKS_MAX, sizeof *announce.gpus);
    for (; *gpus; gpus++) {
        struct gpu_result *gpu = &announce.gpus[announce.gpu_count++];
        gpu->uuid = str_copy_n(gpus, 1);
        gpu->node = str_copy(host);
    }
    if (listing != LISTING_OK)
        err_set_at(&announce.err, -EINVAL, "fleet.yaml", 3, 5, "what went wrong");
    announce.failed_as = listing == LISTING_FAILED ? GPU_CRASHED : GPU_OK;
    announce_encode(&announce, &payload);
    announce_fini(&announce);
    return deliver(root, rank, MESSAGE_ANNOUNCE, &payload);
}

static int result(struct root *root, int rank, uint32_t position, const char *uuid)
{
    struct gpu_result gpu = {.uuid = (char *)uuid, .node = (char *)"n", .rank = rank};
    struct strbuf payload = {0};
    message_result_encode(&(struct result_message){.position = position, .result = gpu}, &payload);
    return deliver(root, rank, MESSAGE_RESULT, &payload);
}

static const struct gpu_result *find(const struct root *root, const char *uuid)
{
    const struct root_view view = root_view(root);
    for (size_t i = 0; i < view.unmeasured_count; i++)
        if (str_equal(view.unmeasured[i].uuid, uuid))
            return &view.unmeasured[i];
    return NULL;
}

static void all_goes_well(void **state)
{
    (void)state;
    struct fake fake;
    struct err err = {0};
    fake_init(&fake, -1, 3);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 10}, 0);
    assert_int_equal(announce(root, 0, "n1", "ab", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n1", "ab", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n1", "ab", LISTING_OK), -EBADMSG);
    assert_int_equal(root_step(root, 1, &err), 0);
    assert_false(root_view(root).assigned);
    assert_int_equal(announce(root, 2, "n2", "", LISTING_NO_DEVICE), 0);
    assert_int_equal(root_step(root, 1, &err), 0);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(fake.sent[rank][MESSAGE_ASSIGN], 1);
    struct root_view view = root_view(root);
    assert_int_equal(view.gpu_total, 2);
    assert_int_equal(view.idle_ranks, 1);
    assert_int_equal(view.node_count, 2);
    assert_int_equal(view.bare_count, 1);
    assert_string_equal(view.bare_nodes[0], "n2");
    assert_int_equal(result(root, 0, 0, "a"), 0);
    assert_int_equal(result(root, 0, 0, "a"), 0); /* told twice: kept once */
    assert_int_equal(root_view(root).gpu_done, 1);
    assert_int_equal(result(root, 1, 0, "x"), -EBADMSG); /* another's */
    assert_int_equal(result(root, 2, 9, "a"), -EBADMSG); /* never announced */
    assert_false(root_complete(root));
    assert_int_equal(result(root, 1, 1, "b"), 0);
    assert_true(root_complete(root));
    assert_int_equal(root_view(root).lost_ranks, 0);
    root_destroy(root);
}

/* What it had sent before still counts, and nobody else suffers. */
static void a_rank_out_of_reach_costs_only_itself(void **state)
{
    (void)state;
    struct fake fake;
    struct err err = {0};
    fake_init(&fake, -1, 2);
    fake.broken = 1;
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 10}, 0);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(root_step(root, 1, &err), 0);
    assert_int_equal(err.code, 0);
    assert_int_equal(result(root, 1, 0, "b"), 0);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    assert_true(root_complete(root));
    assert_int_equal(root_view(root).lost_ranks, 0);
    assert_int_equal(root_view(root).gpu_done, 2);
    root_destroy(root);
}

static void beat(struct root *root, int rank)
{
    struct strbuf nothing = {0};
    assert_int_equal(deliver(root, rank, MESSAGE_BEAT, &nothing), 0);
}

static void silent_ranks_are_lost(void **state)
{
    (void)state;
    struct fake fake;
    struct err err = {0};
    const double limit_s = 10;
    fake_init(&fake, -1, 4);
    struct root *root =
        root_create(&fake.base, &(struct root_settings){.time_limit_s = limit_s}, 0);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(announce(root, 2, "n3", "", LISTING_FAILED), 0);
    assert_int_equal(root_step(root, FAKE_START_TIMEOUT_S - 1, &err), 0);
    assert_false(root_view(root).assigned);
    assert_int_equal(root_step(root, FAKE_START_TIMEOUT_S + 1, &err), 0);
    assert_int_equal(root_step(root, FAKE_START_TIMEOUT_S + 1, &err), 0);
    assert_true(root_view(root).assigned);
    assert_int_equal(root_view(root).lost_ranks, 1);
    assert_int_equal(fake.sent[3][MESSAGE_ASSIGN], 0);
    assert_int_equal(announce(root, 3, "n4", "d", LISTING_OK), -EBADMSG); /* too late */
    assert_int_equal(result(root, 0, 0, "a"), 0);
    beat(root, 1);
    double now_s = FAKE_START_TIMEOUT_S + 4;
    assert_int_equal(root_step(root, now_s, &err), 0);
    assert_false(root_complete(root));
    assert_int_equal(root_step(root, now_s + LIMIT_GRACE_S + 10, &err), 0);
    assert_true(root_complete(root));
    assert_int_equal(root_view(root).lost_ranks, 3);
    assert_null(find(root, "a"));
    assert_int_equal(find(root, "b")->status, GPU_LOST);
    assert_string_equal(find(root, "b")->node, "n2");
    assert_int_equal(root_view(root).unmeasured_count, 3);
    assert_int_equal(result(root, 1, 0, "b"), 0); /* it only seemed lost */
    assert_null(find(root, "b"));
    assert_int_equal(root_view(root).unmeasured_count, 2);
    assert_int_equal(root_view(root).lost_ranks, 2);
    root_destroy(root);
}

/* Lives through `seconds` in which `beating` (0: none) gives signs of life. */
static double pass(struct root *root, double from_s, double seconds, int beating)
{
    struct err err = {0};
    for (double s = 0; s <= seconds; s += 0.25) {
        if (beating)
            beat(root, beating);
        assert_int_equal(root_step(root, from_s + s, &err), 0);
    }
    return from_s + seconds;
}

static void silence_is_noticed_long_before_the_deadline(void **state)
{
    (void)state;
    struct fake fake;
    const double silence_s = limit_silence_s(4);
    fake_init(&fake, -1, 4);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 1000}, 1);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(announce(root, 2, "n3", "", LISTING_OK), 0);
    /* Rank 3 never said a word: it may only be slow to start. */
    double now_s = pass(root, 1, FAKE_START_TIMEOUT_S - 1, 1);
    assert_false(root_view(root).assigned);
    now_s = pass(root, now_s, 2, 1);
    now_s = pass(root, now_s, 1, 1);
    assert_true(root_view(root).assigned);
    assert_int_equal(root_view(root).lost_ranks, 2); /* and rank 2 fell silent, having no GPU */
    assert_int_equal(fake.sent[1][MESSAGE_BEAT] > 10, 1);
    /* Rank 0 is not asked for signs of life; rank 1 lives, then does not. */
    now_s = pass(root, now_s, 3 * silence_s, 1);
    assert_false(root_complete(root));
    assert_int_equal(root_view(root).lost_ranks, 2);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    now_s = pass(root, now_s, silence_s - 1, 0);
    assert_false(root_complete(root));
    pass(root, now_s, 2, 0);
    assert_true(root_complete(root));
    assert_int_equal(find(root, "b")->status, GPU_LOST);
    assert_string_equal(find(root, "b")->reason, "rank 1 on n2 fell silent");
    assert_int_equal(root_view(root).lost_ranks, 3);
    root_destroy(root);
}

static int results_taken;

static int take_any(void *user, size_t gpu_total, uint32_t session, struct gpu_result *result,
                    struct err *err)
{
    (void)gpu_total, (void)session, (void)result, (void)err;
    ++*(int *)user;
    return 0;
}

/* Ranks 1 (with GPU b) and 2 (without one) fall silent; ranks 0 and 1 see a GPU each. */
static double fall_silent(struct fake *fake, double limit_s, struct root **out_root)
{
    const struct root_settings settings = {
        .time_limit_s = limit_s, .take_result = take_any, .user = &results_taken};
    results_taken = 0;
    fake_init(fake, -1, 3);
    *out_root = root_create(&fake->base, &settings, 1);
    assert_int_equal(announce(*out_root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(*out_root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(announce(*out_root, 2, "n3", "", LISTING_OK), 0);
    double now_s = pass(*out_root, 1, 2, 0);
    assert_int_equal(root_quiet_ranks(*out_root), 0);
    now_s = pass(*out_root, now_s, 1, 0);
    assert_int_equal(root_quiet_ranks(*out_root), 2);
    assert_int_equal(root_view(*out_root).lost_ranks, 0);
    now_s = pass(*out_root, now_s, limit_silence_s(3) - 2, 0);
    assert_int_equal(root_quiet_ranks(*out_root), 0);
    assert_int_equal(root_view(*out_root).lost_ranks, 2);
    assert_int_equal(root_view(*out_root).unmeasured_count, 2);
    return now_s;
}

/* They speak again: nothing remains of their loss. */
static void who_speaks_again_is_taken_back(void **state)
{
    (void)state;
    struct fake fake;
    struct root *root = NULL;
    const double limit_s = 10;
    double now_s = fall_silent(&fake, limit_s, &root);
    beat(root, 1);
    beat(root, 2);
    assert_int_equal(root_view(root).lost_ranks, 0);
    assert_int_equal(root_view(root).unmeasured_count, 0);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    now_s = pass(root, now_s, limit_s, 1);
    assert_false(root_complete(root));
    assert_int_equal(root_view(root).lost_ranks, 1); /* rank 2 is silent again */
    assert_int_equal(result(root, 1, 0, "b"), 0);
    assert_true(root_complete(root));
    assert_int_equal(root_view(root).gpu_done, 2);
    assert_null(find(root, "b"));
    root_destroy(root);
}

/* Lost, taken back and lost again: it is still nobody's but the root's. */
static void who_is_lost_again_is_not_passed_on(void **state)
{
    (void)state;
    struct fake fake;
    struct root *root = NULL;
    double now_s = fall_silent(&fake, 10, &root);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    beat(root, 1);
    assert_int_equal(root_view(root).unmeasured_count, 1); /* rank 2 */
    pass(root, now_s, limit_silence_s(3) + 1, 0);
    assert_int_equal(root_view(root).unmeasured_count, 2);
    assert_int_equal(results_taken, 1);
    root_destroy(root);
}

/* Rank 0 stood still, and the others left meanwhile: what they spooled counts. */
static void spooled_results_are_not_lost(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-test-XXXXXX";
    const struct spool_origin origin = {
        .survey = (char *)"s", .version = (char *)"1", .backend = (char *)"sim"};
    const struct spool_origin other = {
        .survey = (char *)"t", .version = (char *)"1", .backend = (char *)"sim"};
    struct gpu_result spooled = {.uuid = (char *)"b", .node = (char *)"n2", .rank = 1};
    struct spooling spooling = {.folder = folder, .survey = (char *)"s", .backend = "sim"};
    const struct root_settings settings = {.time_limit_s = 10,
                                           .take_result = take_any,
                                           .user = &results_taken,
                                           .spooling = &spooling,
                                           .config_name = "",
                                           .config_text = ""};
    struct fake fake;
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    fake_init(&fake, -1, 3);
    results_taken = 0;
    struct root *root = root_create(&fake.base, &settings, 1);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(announce(root, 2, "n3", "cd", LISTING_OK), 0);
    double now_s = pass(root, 1, 1, 0);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    pass(root, now_s, limit_silence_s(3) + 1, 0);
    assert_int_equal(root_view(root).lost_ranks, 2);
    assert_int_equal(spool_write_gpu(folder, &origin, &spooled, &err), 0);
    spooled.rank = 2;
    spooled.uuid = (char *)"c";
    assert_int_equal(spool_write_gpu(folder, &origin, &spooled, &err), 0);
    spooled.uuid = (char *)"d"; /* of another survey: no word of this one */
    assert_int_equal(spool_write_gpu(folder, &other, &spooled, &err), 0);
    assert_int_equal(root_recover(root, &err), 0);
    assert_null(find(root, "b"));
    assert_null(find(root, "c"));
    assert_int_equal(find(root, "d")->status, GPU_LOST);
    assert_int_equal(root_view(root).unmeasured_count, 1);
    assert_int_equal(root_view(root).gpu_done, 3);
    assert_int_equal(root_view(root).lost_ranks, 1); /* rank 1 has told all it had */
    assert_int_equal(results_taken, 3);
    root_destroy(root);
    spool_remove_files(folder);
    assert_int_equal(rmdir(folder), 0);
}

/* One that beats and never ends does not keep the survey. */
static void a_rank_is_not_waited_for_without_end(void **state)
{
    (void)state;
    struct fake fake;
    struct root *root = NULL;
    const double limit_s = 60, ending_s = 5; /* longer than a start may take */
    double now_s = fall_silent(&fake, limit_s, &root);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    /* Looked at in between: the next sign of life of a lost rank takes it back. */
    for (const double until_s = now_s + 2 * (limit_s + ending_s); now_s < until_s;) {
        now_s = pass(root, now_s, 0.25, 1);
        assert_false(root_complete(root));
    }
    const double end_s = now_s + FAKE_START_TIMEOUT_S;
    while (!root_complete(root) && now_s < end_s)
        now_s = pass(root, now_s, 0.25, 1);
    assert_true(root_complete(root));
    assert_string_equal(find(root, "b")->reason, "rank 1 on n2 is over its time");
    assert_int_equal(root_view(root).lost_ranks, 2);
    assert_int_equal(result(root, 1, 0, "b"), 0); /* what it has counts */
    assert_null(find(root, "b"));
    assert_int_equal(root_view(root).lost_ranks, 1);
    root_destroy(root);
}

/* Silent while it lists: not waited for; heard again before all have announced: it is. */
static void who_speaks_again_is_assigned(void **state)
{
    (void)state;
    struct fake fake;
    fake_init(&fake, -1, 3);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 10}, 1);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    beat(root, 2);
    double now_s = pass(root, 1, limit_silence_s(3) + 1, 1);
    assert_int_equal(root_view(root).lost_ranks, 1);
    beat(root, 2);
    assert_int_equal(root_view(root).lost_ranks, 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    now_s = pass(root, now_s, 1, 1);
    assert_false(root_view(root).assigned);
    assert_int_equal(announce(root, 2, "n3", "c", LISTING_OK), 0);
    pass(root, now_s, 1, 1);
    assert_true(root_view(root).assigned);
    assert_int_equal(root_view(root).gpu_total, 3);
    root_destroy(root);
}

static void beats_are_few_however_many_ranks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 200000; ranks = ranks * 3 + 1) {
        assert_true(ranks / limit_beat_s(ranks) < 2001);
        assert_true(limit_silence_s(ranks) >= 2 * limit_beat_s(ranks));
    }
    assert_true(limit_silence_s(64) < 8);
}

static void interrupted(void **state)
{
    (void)state;
    struct fake fake;
    struct err err = {0};
    fake_init(&fake, -1, 2);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 1000}, 0);
    announce(root, 0, "n1", "a", LISTING_OK);
    announce(root, 1, "n2", "b", LISTING_OK);
    assert_int_equal(root_step(root, 1, &err), 0);
    root_stop(root, 2);
    root_stop(root, 2);
    assert_int_equal(fake.sent[1][MESSAGE_STOP], 1);
    assert_int_equal(result(root, 0, 0, "a"), 0);
    assert_int_equal(root_step(root, 3 + LIMIT_INTERRUPTED_S, &err), 0);
    assert_true(root_complete(root));
    assert_int_equal(find(root, "b")->status, GPU_LOST);
    root_destroy(root);
}

struct listing_case {
    enum listing_status first, second;
    int rc;
    const char *text;
};

static void listing_errors(void **state)
{
    (void)state;
    static const struct listing_case cases[] = {
        {LISTING_OK, LISTING_OK, 0, ""},
        {LISTING_BAD_INPUT, LISTING_BAD_INPUT, -EINVAL, "fleet.yaml:3:5: what went wrong"},
        {LISTING_OK, LISTING_BAD_INPUT, -EINVAL, "fleet.yaml:3:5: rank 1 on n2: what went wrong"},
        {LISTING_NO_DEVICE, LISTING_NO_DEVICE, -ENODEV, "configs/fleets/demo.yaml surveys"},
        {LISTING_OK, LISTING_NO_DEVICE, 0, ""},
        {LISTING_FAILED, LISTING_OK, 0, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fake fake;
        struct err err = {0};
        char text[1024];
        fake_init(&fake, -1, 2);
        struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 10}, 0);
        announce(root, 0, "n1", cases[i].first == LISTING_OK ? "a" : "", cases[i].first);
        announce(root, 1, "n2", cases[i].second == LISTING_OK ? "b" : "", cases[i].second);
        assert_int_equal(root_step(root, 1, &err), cases[i].rc);
        if (!strstr(err_format(&err, text, sizeof text), cases[i].text))
            fail_msg("case %zu: %s", i, text);
        root_destroy(root);
    }
}

/* Any prefix and any damaged byte of an announcement is refused or read, never worse. */
static void announcements_are_checked(void **state)
{
    (void)state;
    struct announce source = {.host = str_copy("n1"), .bare_count = 1};
    struct strbuf payload = {0};
    source.bare_nodes = calloc(1, sizeof *source.bare_nodes);
    source.bare_nodes[0] = str_copy("n9");
    source.gpus = calloc(1, sizeof *source.gpus);
    source.gpus[0].uuid = str_copy("GPU-1");
    source.gpu_count = 1;
    announce_encode(&source, &payload);
    for (size_t i = 0; i < payload.length; i++) {
        struct announce out = {0};
        struct err err = {0};
        const struct frame part = {MESSAGE_ANNOUNCE, payload.data, i};
        assert_int_equal(announce_decode(&part, &out, &err), -EBADMSG);
        const struct frame whole = {MESSAGE_ANNOUNCE, payload.data, payload.length};
        payload.data[i] ^= (char)0xa5;
        if (announce_decode(&whole, &out, &err) == 0)
            announce_fini(&out);
        payload.data[i] ^= (char)0xa5;
    }
    strbuf_fini(&payload);
    announce_fini(&source);
}

/* Whatever a GPU can be, a rank can say of its listing; nothing else. */
static void every_status_can_be_announced(void **state)
{
    (void)state;
    for (unsigned status = 0; status <= GPU_STATUS_COUNT; status++) {
        const struct announce source = {
            .host = (char *)"n1", .listing = LISTING_FAILED, .failed_as = (enum gpu_status)status};
        struct announce out = {0};
        struct strbuf payload = {0};
        struct err err = {0};
        announce_encode(&source, &payload);
        const struct frame frame = {MESSAGE_ANNOUNCE, payload.data, payload.length};
        int rc = announce_decode(&frame, &out, &err);
        assert_int_equal(rc, status < GPU_STATUS_COUNT ? 0 : -EBADMSG);
        assert_int_equal(out.failed_as, status < GPU_STATUS_COUNT ? status : 0);
        announce_fini(&out);
        strbuf_fini(&payload);
    }
}

static int tell_doing(struct root *root, int rank, uint32_t position, double since_s,
                      const char *probe)
{
    struct doing doing = {.position = position, .since_s = since_s};
    struct strbuf payload = {0};
    snprintf(doing.probe, sizeof doing.probe, "%s", probe);
    doing_encode(&doing, &payload);
    return deliver(root, rank, MESSAGE_BEAT, &payload);
}

static void the_slowest_is_known(void **state)
{
    (void)state;
    struct fake fake;
    struct err err = {0};
    struct root_slowest slowest = {0};
    fake_init(&fake, -1, 2);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 100}, 0);
    assert_int_equal(announce(root, 0, "n1", "a", LISTING_OK), 0);
    assert_int_equal(announce(root, 1, "n2", "b", LISTING_OK), 0);
    assert_int_equal(root_step(root, 1, &err), 0);
    assert_false(root_slowest(root, &slowest));
    assert_int_equal(tell_doing(root, 0, 0, 3, "l2.size"), 0);
    assert_int_equal(tell_doing(root, 1, 0, 5, "main.latency"), 0);
    assert_true(root_slowest(root, &slowest));
    assert_string_equal(slowest.gpu->uuid, "b");
    assert_string_equal(slowest.probe, "main.latency");
    assert_true(slowest.since_s >= 5);
    assert_int_equal(result(root, 1, 0, "b"), 0);
    assert_true(root_slowest(root, &slowest));
    assert_string_equal(slowest.gpu->node, "n1");
    assert_int_equal(tell_doing(root, 0, 7, 9, "beyond"), 0); /* no such GPU of that rank */
    assert_false(root_slowest(root, &slowest));
    assert_int_equal(tell_doing(root, 0, 0, 4, ""), 0); /* nobody works */
    assert_false(root_slowest(root, &slowest));
    struct strbuf half = {0};
    strbuf_append(&half, "xy", 2);
    assert_int_equal(deliver(root, 0, MESSAGE_BEAT, &half), -EBADMSG);
    root_destroy(root);
}

/* Memory that is too small for so many GPUs is noticed before anything is measured. */
static void too_little_memory_is_noticed(void **state)
{
    (void)state;
#ifdef GPUMEMTOPO_SANITIZED
    skip(); /* the sanitizer takes more address space than any limit allows */
#endif
    enum { GPUS = 1000, LIMIT_MIB = 60 };
    struct announce source = {.host = str_copy("n1"), .gpu_count = GPUS};
    struct strbuf payload = {0};
    struct rlimit before, small;
    struct fake fake;
    struct err err = {0};
    fake_init(&fake, -1, 1);
    struct root *root = root_create(&fake.base, &(struct root_settings){.time_limit_s = 10}, 0);
    source.gpus = calloc(GPUS, sizeof *source.gpus);
    for (size_t i = 0; i < GPUS; i++) {
        source.gpus[i].uuid = str_format("GPU-%zu", i);
        source.gpus[i].node = str_copy("n1");
    }
    announce_encode(&source, &payload);
    announce_fini(&source);
    assert_int_equal(deliver(root, 0, MESSAGE_ANNOUNCE, &payload), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = LIMIT_MIB << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    int rc = root_step(root, 1, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(rc, -ENOBUFS);
    assert_non_null(strstr(err.text, "for 1000 GPUs"));
    assert_false(root_view(root).assigned);
    assert_int_equal(fake.sent[0][MESSAGE_ASSIGN], 0);
    root_destroy(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_goes_well),
        cmocka_unit_test(the_slowest_is_known),
        cmocka_unit_test(a_rank_out_of_reach_costs_only_itself),
        cmocka_unit_test(silent_ranks_are_lost),
        cmocka_unit_test(silence_is_noticed_long_before_the_deadline),
        cmocka_unit_test(who_speaks_again_is_taken_back),
        cmocka_unit_test(who_is_lost_again_is_not_passed_on),
        cmocka_unit_test(spooled_results_are_not_lost),
        cmocka_unit_test(a_rank_is_not_waited_for_without_end),
        cmocka_unit_test(who_speaks_again_is_assigned),
        cmocka_unit_test(beats_are_few_however_many_ranks),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(listing_errors),
        cmocka_unit_test(announcements_are_checked),
        cmocka_unit_test(every_status_can_be_announced),
        cmocka_unit_test(too_little_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
