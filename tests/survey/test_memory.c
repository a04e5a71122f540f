/* Allocation failures in the parts of src/survey that need no other process: messages, requests,
 * answers of workers, assignment, nodes, results, options and configuration. */
#include "../check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fake_comm.h"
#include "inventory/wire/frame.h"
#include "survey/comm/message.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/rank/listing.h"
#include "survey/rank/outcome.h"
#include "survey/rank/spooling.h"
#include "survey/root/assign.h"
#include "survey/root/nodes.h"
#include "survey/root/root.h"
#include "survey/root/unmeasured.h"
#include "survey/worker/request.h"
#include "sweep.h"

static void sweep(const char *name, int (*run)(void *context), void *context, size_t at_least)
{
    memory_sweep(
        &(struct memory_sweep){.name = name, .run = run, .context = context, .at_least = at_least});
}

static int status_of(const struct strbuf *buffer)
{
    return buffer->failed ? -ENOMEM : 0;
}

/* A payload as a frame. */
static struct frame frame_of(const struct strbuf *payload, uint32_t type)
{
    return (struct frame){.type = type, .payload = payload->data, .length = payload->length};
}

enum { GPUS = 10 };

/* A rank with many GPUs on two nodes. */
static void make_announce(struct announce *out)
{
    static struct gpu_result gpus[GPUS];
    static char uuids[GPUS][16], *bare[] = {(char *)"login1", (char *)"login2"};
    for (int i = 0; i < GPUS; i++) {
        snprintf(uuids[i], sizeof uuids[i], "GPU-%d", i);
        gpus[i] = (struct gpu_result){.uuid = uuids[i],
                                      .node = (char *)(i % 2 ? "n1" : "n2"),
                                      .pci = (char *)"0000:01:00.0",
                                      .name = (char *)"H200",
                                      .model_key = (char *)"key"};
    }
    *out = (struct announce){.host = (char *)"n1",
                             .boot_id = (char *)"boot",
                             .gpus = gpus,
                             .gpu_count = GPUS,
                             .bare_nodes = bare,
                             .bare_count = COUNT_OF(bare)};
    err_set_at(&out->err, -EINVAL, "fleet.yaml", 3, 5, "what went wrong");
}

static void make_result(struct gpu_result *out)
{
    *out = (struct gpu_result){.uuid = str_copy("GPU-1"), .node = str_copy("n1")};
    assert_non_null(measures_add(&out->measures, "l1_data.size", 65536, "B", "test"));
    assert_int_equal(facts_set_int(&out->health, "pcie_replays", 3), 0);
    assert_int_equal(facts_set_real(&out->timings, "opening", 0.5), 0);
}

static int announce_both_ways(void *context)
{
    (void)context;
    struct announce announce, back = {.at_once = 17};
    struct strbuf payload = {0};
    struct err err = {0};
    make_announce(&announce);
    announce_encode(&announce, &payload);
    int rc = status_of(&payload);
    if (!rc) {
        const struct frame frame = frame_of(&payload, MESSAGE_ANNOUNCE);
        rc = announce_decode(&frame, &back, &err);
        assert_int_equal(err.code, rc);
        assert_int_equal(back.at_once, rc ? 17 : 0);
    }
    announce_fini(&back);
    strbuf_fini(&payload);
    return rc;
}

static int assignment_both_ways(void *context)
{
    (void)context;
    uint32_t positions[] = {1, 2, 3};
    const struct assignment assignment = {.positions = positions,
                                          .count = COUNT_OF(positions),
                                          .spool = (char *)"spool",
                                          .survey = (char *)"s1"};
    struct assignment back = {.time_limit_s = 17};
    struct strbuf payload = {0};
    struct err err = {0};
    assignment_encode(&assignment, &payload);
    int rc = status_of(&payload);
    if (!rc) {
        const struct frame frame = frame_of(&payload, MESSAGE_ASSIGN);
        rc = assignment_decode(&frame, &back, &err);
        assert_int_equal(err.code, rc);
        assert_int_equal(back.time_limit_s == 17, rc != 0);
    }
    assignment_fini(&back);
    strbuf_fini(&payload);
    return rc;
}

static int result_both_ways(void *context)
{
    const struct result_message message = {.position = 3,
                                           .result = *(struct gpu_result *)context,
                                           .record = "record",
                                           .record_bytes = 6,
                                           .unspooled = (char *)"the disk is full"};
    struct result_message back = {.position = 17};
    struct strbuf payload = {0};
    struct err err = {0};
    message_result_encode(&message, &payload);
    int rc = status_of(&payload);
    if (!rc) {
        const struct frame frame = frame_of(&payload, MESSAGE_RESULT);
        rc = message_result_decode(&frame, &back, &err);
        assert_int_equal(err.code, rc);
        assert_int_equal(back.position, rc ? 17 : 3);
    }
    message_result_fini(&back);
    strbuf_fini(&payload);
    return rc;
}

/* Dismissal, sign of life. */
static int small_ones(void *context)
{
    (void)context;
    struct strbuf quit = {0}, beat = {0};
    struct doing doing = {.position = 3, .probe = "l2.size"};
    bool lost_ranks = false;
    message_quit_encode(true, &quit);
    doing_encode(&doing, &beat);
    int rc = quit.failed || beat.failed ? -ENOMEM : 0;
    if (!rc) {
        const struct frame frames[] = {frame_of(&quit, MESSAGE_QUIT),
                                       frame_of(&beat, MESSAGE_BEAT)};
        assert_int_equal(message_quit_decode(&frames[0], &lost_ranks, NULL), 0);
        rc = doing_decode(&frames[1], &doing, NULL);
    }
    assert_string_equal(doing.probe, "l2.size");
    strbuf_fini(&quit);
    strbuf_fini(&beat);
    return rc;
}

static int request_both_ways(void *context)
{
    (void)context;
    const struct worker_request request = {.task = WORKER_MEASURE,
                                           .fleet = (char *)"fleet.yaml",
                                           .replay = (char *)"record",
                                           .ranks = 1,
                                           .uuid = (char *)"GPU-1",
                                           .probes = (char *)"l2"};
    struct worker_request back = {.seed = 17};
    struct frame_reader reader = {0};
    struct strbuf bytes = {0};
    struct frame frame;
    struct err err = {0};
    worker_request_write(&request, &bytes);
    int rc = status_of(&bytes);
    if (!rc)
        rc = frame_reader_add(&reader, bytes.data, bytes.length);
    if (!rc) {
        assert_int_equal(frame_reader_next(&reader, &frame, &err), 1);
        rc = worker_request_decode(&frame, &back, &err);
        assert_int_equal(err.code, rc);
        assert_int_equal(back.seed, rc ? 17 : 0);
    }
    worker_request_fini(&back);
    frame_reader_fini(&reader);
    strbuf_fini(&bytes);
    return rc;
}

static void messages(void **state)
{
    (void)state;
    struct gpu_result result;
    make_result(&result);
    sweep("announce", announce_both_ways, NULL, 40);
    sweep("assignment", assignment_both_ways, NULL, 4);
    sweep("result", result_both_ways, &result, 15);
    sweep("quit, beat", small_ones, NULL, 4);
    sweep("worker_request", request_both_ways, NULL, 6);
    gpu_result_fini(&result);
}

static void put_text(struct strbuf *stream, enum worker_message type, const char *text)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, text);
    frame_write(stream, type, payload.data, payload.length);
    strbuf_fini(&payload);
}

/* All frames of a listing worker, and of a measuring one. */
static void put_listing(struct strbuf *stream)
{
    struct announce announce;
    make_announce(&announce);
    for (size_t i = 0; i < announce.gpu_count; i++) {
        struct strbuf payload = {0};
        message_put_identity(&payload, &announce.gpus[i]);
        frame_write(stream, WORKER_INFO, payload.data, payload.length);
        strbuf_fini(&payload);
    }
    for (size_t i = 0; i < announce.bare_count; i++)
        put_text(stream, WORKER_BARE, announce.bare_nodes[i]);
    frame_write(stream, WORKER_DONE, NULL, 0);
}

static void put_measuring(struct strbuf *stream)
{
    struct gpu_result result;
    struct strbuf payload = {0}, ended = {0};
    make_result(&result);
    gpu_result_encode(&result, &payload);
    put_text(stream, WORKER_BEGIN, "l1_data.size");
    frame_write(stream, WORKER_PARTIAL, payload.data, payload.length);
    put_text(stream, WORKER_BEGIN, "l2.size");
    put_text(stream, WORKER_REMARK, "two requests are not in the record");
    wire_put_u32(&ended, GPU_LOST);
    wire_put_text(&ended, "rank 3 fell silent");
    wire_put_u32(&ended, GPU_CRASHED);
    wire_put_text(&ended, "the first worker crashed");
    frame_write(stream, WORKER_ENDED, ended.data, ended.length);
    strbuf_fini(&payload);
    strbuf_fini(&ended);
    gpu_result_fini(&result);
}

/* Hands over each frame again if an allocation failed: the second try must succeed. */
static int take_all(const struct strbuf *stream, struct outcome *outcome,
                    int (*take)(struct outcome *outcome, const struct frame *frame,
                                struct err *err))
{
    struct frame_reader reader = {0};
    struct frame frame;
    int rc = frame_reader_add(&reader, stream->data, stream->length);
    while (frame_reader_next(&reader, &frame, NULL) == 1) {
        struct err err = {0};
        int taken = take(outcome, &frame, &err);
        if (!taken)
            continue;
        rc = taken;
        assert_int_equal(rc, -ENOMEM);
        assert_int_equal(err.code, rc);
        memory_restore();
        assert_int_equal(take(outcome, &frame, NULL), 0);
    }
    frame_reader_fini(&reader);
    return rc;
}

static int take_listing(void *stream)
{
    struct outcome outcome = {0};
    int rc = take_all(stream, &outcome, outcome_take_listing);
    if (outcome.done)
        assert_true(outcome.listing.gpu_count == GPUS && outcome.listing.bare_count == 2);
    outcome_fini(&outcome);
    return rc;
}

static int take_measuring(void *stream)
{
    struct outcome outcome = {0};
    const struct ending ending = {.end = CHILD_BY_ITSELF, .reaped = true};
    const struct gpu_result identity = {.uuid = (char *)"GPU-1", .node = (char *)"n1"};
    struct gpu_result result = {.rank = 17};
    struct err err = {0};
    int rc = take_all(stream, &outcome, outcome_take_measuring);
    int made = outcome_result(&outcome, &ending, &identity, 3, &result, &err);
    assert_int_equal(err.code, made);
    assert_int_equal(result.rank, made ? 17 : 3);
    if (outcome.done && !made)
        assert_true(result.status == GPU_LOST && result.reason && result.measures.count == 1);
    gpu_result_fini(&result);
    outcome_fini(&outcome);
    return rc ? rc : made;
}

/* Without memory for the reason, outcome_judge still gives the status. */
static int judge_killed(void *context)
{
    (void)context;
    const struct outcome outcome = {.probe = (char *)"l2.size"};
    const struct ending ending = {
        .end = CHILD_BY_ITSELF, .reaped = true, .wait_status = SIGSEGV, .tail = "on  stderr\n"};
    char *reason = NULL;
    assert_int_equal(outcome_judge(&outcome, &ending, &reason), GPU_CRASHED);
    if (!reason)
        return -ENOMEM;
    assert_non_null(strstr(reason, "during l2.size; stderr: on stderr"));
    free(reason);
    return 0;
}

static void workers(void **state)
{
    (void)state;
    struct strbuf listing = {0}, measuring = {0};
    put_listing(&listing);
    put_measuring(&measuring);
    sweep("outcome_take_listing", take_listing, &listing, 50);
    sweep("outcome_take_measuring", take_measuring, &measuring, 15);
    sweep("outcome_judge", judge_killed, NULL, 2);
    strbuf_fini(&listing);
    strbuf_fini(&measuring);
}

static int assign(void *context)
{
    (void)context;
    static const char *const uuids[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    const struct assign_rank ranks[] = {{uuids, COUNT_OF(uuids)}, {uuids, 3}, {uuids + 2, 9}};
    struct assign_share shares[COUNT_OF(ranks)] = {0};
    struct err err = {0};
    size_t count = 0;
    int rc = assign_gpus(ranks, COUNT_OF(ranks), shares, &err);
    assert_int_equal(err.code, rc);
    for (size_t i = 0; i < COUNT_OF(ranks); i++)
        count += shares[i].count;
    assert_int_equal(count, rc ? 0 : COUNT_OF(uuids));
    assign_shares_fini(shares, COUNT_OF(ranks));
    return rc;
}

static int add_nodes(struct node_list *list)
{
    struct announce announce;
    int rc = 0;
    make_announce(&announce);
    for (int i = 0; i < 2; i++) {
        struct err err = {0};
        int added = nodes_add(list, &announce, false, &err);
        assert_int_equal(err.code, added);
        if (added) {
            rc = added;
            memory_restore();
            assert_int_equal(nodes_add(list, &announce, false, NULL), 0);
        }
        announce.gpu_count = 0;
        announce.host = (char *)"n3";
    }
    return rc;
}

/* Adds again what could not be added: the nodes found must be the same. */
static int find_nodes(void *context)
{
    (void)context;
    struct node_list list = {0};
    int rc = add_nodes(&list);
    int settled = nodes_settle(&list, NULL);
    if (!settled)
        assert_true(list.node_count == 5 && list.bare_count == 3);
    nodes_fini(&list);
    return rc ? rc : settled;
}

static int lose(void *context)
{
    struct unmeasured list = {0};
    struct err err = {0};
    int rc = 0;
    for (int i = 0; i < 20 && !rc; i++)
        rc = unmeasured_add(&list, context, i, GPU_LOST, "silent", &err);
    assert_int_equal(err.code, rc);
    if (!rc) {
        unmeasured_drop_lost(&list, 5);
        assert_int_equal(list.count, 19);
    }
    unmeasured_fini(&list);
    return rc;
}

static int join_spool(void *context)
{
    struct spooling spooling = {0};
    const struct survey_options options = {.spool = context};
    const struct comm_place place = {.tasks = 1, .job = "job"};
    struct err err = {0};
    int rc = spooling_begin(&spooling, &options, &place, "/there/out.yaml", "", &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(spooling.survey != NULL && spooling.folder != NULL, rc == 0);
    memory_restore();
    spooling_remove_folder(&spooling);
    spooling_fini(&spooling);
    return rc;
}

/* One rank reports, the other is lost, but has spooled. */
static int collect(void *context)
{
    char *folder = context;
    struct spooling spooling = {.folder = folder, .survey = (char *)"s", .backend = "sim"};
    const struct spool_plan plan = {.spooling = &spooling, .config_name = "", .config_text = ""};
    struct fake fake;
    struct root *root = NULL;
    struct err err = {0};
    fake_init(&fake, -1, 2);
    int rc = root_create(&fake.base, false, 10, 0, &root, &err);
    if (!rc)
        root_spool(root, &plan);
    for (int rank = 0; rank < 2 && !rc; rank++) {
        struct gpu_result gpu = {.uuid = (char *)(rank ? "b" : "a"), .node = (char *)"n"};
        const struct announce announce = {.host = (char *)"n", .gpus = &gpu, .gpu_count = 1};
        struct strbuf payload = {0};
        announce_encode(&announce, &payload);
        struct comm_message message = {.from = rank, .frame = frame_of(&payload, MESSAGE_ANNOUNCE)};
        rc = payload.failed ? err_no_memory(&err) : root_take(root, &message, &err);
        strbuf_fini(&payload);
    }
    for (double now_s = 0; now_s < 40 && !rc; now_s += 5)
        rc = root_step(root, now_s, &err);
    if (!rc)
        rc = root_recover(root, &err);
    if (!rc)
        assert_int_equal(root_view(root).gpu_done, 1);
    if (!rc && spooling.failed.code) /* what cannot be spooled costs only itself */
        rc = spooling.failed.code;
    root_destroy(root);
    return rc;
}

/* A node without its boot id would count as another node. */
static int introduce(void *context)
{
    (void)context;
    static const struct survey_options options;
    struct announce announce = {0};
    struct err err = {0};
    int rc = listing_introduce(&options, &announce, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(announce.host != NULL, rc == 0);
    announce_fini(&announce);
    return rc;
}

static void planning(void **state)
{
    (void)state;
    struct gpu_result result;
    make_result(&result);
    sweep("assign_gpus", assign, NULL, 6);
    sweep("nodes", find_nodes, NULL, 15);
    sweep("listing_introduce", introduce, NULL, 1);
    sweep("unmeasured", lose, &result, 100);
    char folder[] = "/tmp/gpumemtopo-test-XXXXXX", inner[64];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/spool", folder);
    sweep("spooling_begin", join_spool, inner, 10);
    const struct spool_origin origin = {
        .survey = (char *)"s", .version = (char *)"1", .backend = (char *)"sim"};
    const struct gpu_result spooled = {.uuid = (char *)"b", .node = (char *)"n", .rank = 1};
    struct err err = {0};
    assert_int_equal(spool_write_gpu(folder, &origin, &spooled, &err), 0);
    sweep("root", collect, folder, 40);
    spool_remove_files(folder);
    assert_int_equal(rmdir(folder), 0);
    gpu_result_fini(&result);
}

static int load_config(void *path)
{
    struct survey_config config = {.name = (char *)"before"};
    struct err err = {0};
    int rc = survey_config_load(path, &config, &err);
    assert_int_equal(err.code, rc);
    if (rc)
        assert_string_equal(config.name, "before");
    else
        survey_config_fini(&config);
    return rc;
}

static int print_help(void *context)
{
    (void)context;
    struct strbuf text = {0};
    survey_options_help(&text);
    int rc = status_of(&text);
    strbuf_fini(&text);
    return rc;
}

/* Options point into argv: parsing them allocates nothing. */
static void parse_options(void)
{
    static char *const words[] = {(char *)"survey",   (char *)"--simulate", (char *)"f.yaml",
                                  (char *)"--output", (char *)"out.yaml",   (char *)"--seed=7"};
    struct survey_options options = {0};
    memory_limit(0, MEMORY_ENDS);
    assert_int_equal(survey_options_parse(COUNT_OF(words), words, &options, NULL), 0);
    memory_restore();
    assert_false(memory_failed());
    assert_int_equal(options.seed, 7);
}

static void settings(void **state)
{
    (void)state;
    parse_options();
    sweep("survey_options_help", print_help, NULL, 5);
    sweep("survey_config_load", load_config, NULL, 250);
    sweep("survey_config_load, told", load_config, (void *)SURVEY_CONFIG, 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages), cmocka_unit_test(workers),
                                       cmocka_unit_test(planning), cmocka_unit_test(settings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
