/* Replay: what was recorded comes back, whatever is asked first, and nothing else does. */
#include "../../check.h"

#include <errno.h>
#include <string.h>

#include "ask.h"
#include "device/shared_load.h"
#include "tape.h"

static bool same_facts(const struct facts *a, const struct facts *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = fact_equal(&a->items[i], &b->items[i]);
    return same;
}

/* Of these latencies only the side of a limit is left, and there are some on each. */
static void check_split(const struct device_sample *sample)
{
    uint32_t above = 0;
    assert_int_equal(sample->bin_count, 0);
    for (uint32_t i = 0; i < sample->kept_count; i++) {
        assert_true(sample->kept[i] == 0 || sample->kept[i] == UINT32_MAX);
        above += sample->kept[i] > 0;
    }
    assert_in_range(above, 1, sample->kept_count - 1);
}

static void everything_comes_back(void **state)
{
    (void)state;
    struct tape tape;
    struct facts facts[6] = {0};
    struct device_clocks clocks[2] = {0};
    struct device_stream_answer moved[2] = {0};
    struct device_answer answers[2][4] = {0};
    struct err err = {0};
    struct device_job jobs[4] = {ask_chase(1024), ask_chase(8192), ask_chase(2048),
                                 ask_chase(1 << 20)};
    jobs[1].steps[1].kind = DEVICE_AVERAGE;
    jobs[2].agent_count = 2;
    jobs[2].agents[1] = (struct device_agent){.sm = DEVICE_SM_OTHER, .warp = 1};
    jobs[2].steps[0].agent = 1;
    jobs[3].step_count = 1;
    jobs[3].steps[0] = jobs[3].steps[1];
    jobs[3].steps[0].loads = jobs[3].steps[0].keep = 1000;
    jobs[3].steps[0].split_cycles = 250; /* between hits of L2 and main memory */
    const struct device_batch batch = {.jobs = jobs, .job_count = 4};
    const struct device_stream stream = {.kind = DEVICE_STREAM_READ,
                                         .path = DEVICE_GLOBAL_CG,
                                         .footprint_bytes = 65536,
                                         .total_bytes = 1 << 20,
                                         .width_bytes = 16,
                                         .threads = 256};
    tape_begin(&tape);
    const struct device_limits limits = *device_limits(tape.device);
    for (int i = 0; i < 2; i++) {
        struct device *device = tape.device;
        assert_int_equal(
            device_identify(device, &facts[3 * i], &facts[3 * i + 1], &facts[3 * i + 2], &err), 0);
        assert_int_equal(device_run(device, &batch, answers[i], &err), 0);
        assert_int_equal(device_stream(device, &stream, &moved[i], &err), 0);
        assert_int_equal(device_read_clocks(device, &clocks[i], &err), 0);
        if (i)
            break;
        tape_end(&tape, GPU_OK);
        tape_replay(&tape);
    }
    assert_memory_equal(device_limits(tape.device), &limits, sizeof limits);
    for (size_t i = 0; i < 3; i++) {
        assert_true(facts[i].count > 0);
        assert_true(same_facts(&facts[i], &facts[3 + i]));
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(ask_same_answer(&answers[0][i], &answers[1][i]));
    check_split(&answers[0][3].samples[0]);
    assert_memory_equal(&moved[0], &moved[1], sizeof moved[0]);
    assert_memory_equal(&clocks[0], &clocks[1], sizeof clocks[0]);
    assert_null(replay_missed(tape.source, 0));
    assert_null(replay_ended(tape.source, 0));
    for (size_t i = 0; i < 6; i++)
        facts_fini(&facts[i]);
    device_answers_fini(answers[0], 4);
    device_answers_fini(answers[1], 4);
    tape_fini(&tape);
}

static bool same_clusters(const struct device_cluster_answer *a,
                          const struct device_cluster_answer *b, uint32_t size)
{
    return a->clusters == b->clusters && a->cycle_count == b->cycle_count &&
           memcmp(a->sms, b->sms, a->clusters * size * sizeof *a->sms) == 0 &&
           (!a->cycle_count ||
            memcmp(a->cycles, b->cycles, a->cycle_count * sizeof *a->cycles) == 0);
}

/* The tiny GPU has clusters of two blocks, and none of four. */
static void clusters_come_back(void **state)
{
    (void)state;
    struct tape tape;
    struct err err = {0};
    struct device_cluster_answer answers[2][DEVICE_CLUSTER_WORK_COUNT], none;
    struct device_bulk_answer copied[2];
    const struct device_bulk bulk = {.bytes = 1024, .in_flight = 2, .copies = 8};
    tape_begin(&tape);
    for (int i = 0; i < 2; i++) {
        for (int work = 0; work < DEVICE_CLUSTER_WORK_COUNT; work++) {
            struct device_cluster asked = {.work = (enum device_cluster_work)work,
                                           .size = 2,
                                           .count = work ? 64 : 0,
                                           .bytes = 1024,
                                           .in_flight = 1};
            assert_int_equal(device_run_cluster(tape.device, &asked, &answers[i][work], &err), 0);
            asked.size = 4;
            assert_int_equal(device_run_cluster(tape.device, &asked, &none, &err), -ENOTSUP);
        }
        assert_int_equal(device_copy_bulk(tape.device, &bulk, &copied[i], &err), 0);
        if (i)
            break;
        tape_end(&tape, GPU_OK);
        tape_replay(&tape);
    }
    for (int work = 0; work < DEVICE_CLUSTER_WORK_COUNT; work++) {
        assert_true(same_clusters(&answers[0][work], &answers[1][work], 2));
        device_cluster_answer_fini(&answers[0][work]);
        device_cluster_answer_fini(&answers[1][work]);
    }
    assert_memory_equal(&copied[0], &copied[1], sizeof copied[0]);
    tape_fini(&tape);
}

/* A GPU whose every call has something odd about it, for what the simulated one does not do. */
static int odd_identify(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request;
    struct device_identity *identity = answer;
    facts_set_text(&identity->board, "serial", "1650");
    return err_set(err, -EIO, "fell off the bus");
}

static int odd_health(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request, (void)err;
    struct device_health *health = answer;
    facts_set_int(&health->config, "pcie_gen", 5);
    facts_set_unknown(&health->health, "remap_pending", "not supported");
    return 0;
}

static int odd_link(struct device *device, const void *request, void *answer, struct err *err)
{
    static int uses;
    (void)device, (void)request, (void)err;
    *(struct device_link *)answer = (struct device_link){.alone = uses == 1, .near = uses == 0};
    uses++;
    return 0;
}

static void odd_end(struct device *device)
{
    (void)device;
}

static int odd_look(struct device_source *source, size_t i, bool thorough,
                    struct device_look *out_look, struct err *err)
{
    (void)source, (void)i, (void)thorough, (void)err;
    facts_set_int(&out_look->health, "processes", 3);
    return 0;
}

static int odd_open(struct device_source *source, size_t i, struct device **out_device,
                    struct err *err)
{
    static const struct device_ops ops = {.calls[DEVICE_CALL_IDENTIFY] = odd_identify,
                                          .calls[DEVICE_CALL_HEALTH] = odd_health,
                                          .calls[DEVICE_CALL_LINK] = odd_link,
                                          .destroy = odd_end};
    static struct device device = {.ops = &ops, .limits = {.sm_count = 1}};
    (void)source, (void)i, (void)err;
    *out_device = &device;
    return 0;
}

static void odd_destroy(struct device_source *source)
{
    (void)source;
}

static void facts_and_turns_come_back(void **state)
{
    (void)state;
    static const struct device_source_ops ops = {
        .open = odd_open, .look = odd_look, .destroy = odd_destroy};
    struct device_info info = {.uuid = "GPU-1"};
    struct device_source odd = {.ops = &ops, .infos = &info, .info_count = 1};
    struct tape tape;
    struct err err = {0};
    tape_begin_with(&tape, &odd);
    for (int i = 0; i < 2; i++) {
        struct device_look look = {0};
        struct facts hardware = {0}, board = {0}, config = {0}, health = {0};
        struct device_link links[2];
        facts_set_int(&config, "pcie_gen", 1);
        if (i)
            assert_int_equal(device_source_look(tape.source, 0, false, &look, &err), 0);
        assert_int_equal(facts_int(&look.health, "processes", 0), i ? 3 : 0);
        assert_int_equal(device_source_open(tape.source, 0, &tape.device, &err), 0);
        assert_int_equal(device_identify(tape.device, &hardware, &board, &config, &err), -EIO);
        assert_string_equal(err.text, "fell off the bus");
        assert_string_equal(facts_text(&board, "serial"), "1650");
        for (size_t k = 0; k < 2; k++) {
            device_begin_link(tape.device, &links[k]);
            device_end_link(tape.device);
            assert_true(links[k].near == (k == 0) && links[k].alone == (k == 1));
        }
        assert_int_equal(device_read_health(tape.device, &config, &health, &err), 0);
        assert_int_equal(config.count, 1);
        assert_int_equal(facts_int(&config, "pcie_gen", 0), 5);
        assert_string_equal(facts_get(&health, "remap_pending")->text, "not supported");
        device_look_fini(&look);
        facts_fini(&hardware);
        facts_fini(&board);
        facts_fini(&config);
        facts_fini(&health);
        if (i)
            break;
        tape_end(&tape, GPU_OK);
        tape_rewind(&tape);
    }
    struct device_link link = {.alone = true, .near = true};
    device_begin_link(tape.device, &link);
    assert_true(!link.alone && !link.near);
    assert_string_equal(replay_missed(tape.source, 0),
                        "1 request is not in the record, the first by no probe: link");
    tape_fini(&tape);
}

/* A GPU that was only looked at, since others computed on it, has a complete record too. */
static void a_look_alone_is_complete(void **state)
{
    (void)state;
    static const struct device_source_ops ops = {.look = odd_look, .destroy = odd_destroy};
    struct device_info info = {.uuid = "GPU-1"};
    struct device_source odd = {.ops = &ops, .infos = &info, .info_count = 1};
    struct device_look look = {0};
    struct tape tape;
    struct err err = {0};
    tape_begin_with(&tape, &odd);
    tape_end(&tape, GPU_BUSY);
    tape_rewind(&tape);
    assert_int_equal(device_source_look(tape.source, 0, false, &look, &err), 0);
    assert_int_equal(facts_int(&look.health, "processes", 0), 3);
    assert_int_equal(device_source_open(tape.source, 0, &tape.device, &err), -ENOENT);
    assert_null(replay_ended(tape.source, 0));
    device_look_fini(&look);
    tape_fini(&tape);
}

/* The tiny GPU's shared memory is per block; an array past it is refused by the backend itself. */
static void errors_come_back(void **state)
{
    (void)state;
    struct tape tape;
    struct err errs[2] = {0};
    int codes[2];
    const struct device_stream stream = {.kind = DEVICE_STREAM_READ,
                                         .path = DEVICE_SHARED,
                                         .footprint_bytes = 1024,
                                         .total_bytes = 1024,
                                         .width_bytes = 16,
                                         .threads = 1 << 20};
    struct device_stream_answer moved = {0};
    tape_begin(&tape);
    for (int i = 0; i < 2; i++) {
        codes[i] = device_stream(tape.device, &stream, &moved, &errs[i]);
        if (i)
            break;
        tape_end(&tape, GPU_OK);
        tape_replay(&tape);
    }
    assert_true(codes[0] < 0);
    assert_int_equal(codes[0], codes[1]);
    assert_string_equal(errs[0].text, errs[1].text);
    tape_fini(&tape);
}

static void shared_loads(void **state)
{
    (void)state;
    struct tape tape;
    struct device_shared_load load = {4, 32, 8, 4, 64};
    struct device_shared_load_answer answers[2];
    struct err err = {0};
    tape_begin(&tape);
    assert_int_equal(device_load_shared(tape.device, &load, &answers[0], &err), 0);
    tape_end(&tape, GPU_OK);
    tape_replay(&tape);
    assert_int_equal(device_load_shared(tape.device, &load, &answers[1], &err), 0);
    assert_true(answers[0].cycles && answers[0].cycles == answers[1].cycles);
    load.width_bytes = 8;
    assert_int_equal(device_load_shared(tape.device, &load, &answers[1], &err), -ENOENT);
    tape_fini(&tape);
}

static void order_does_not_matter(void **state)
{
    (void)state;
    struct tape tape;
    const struct device_job first = ask_chase(1024), second = ask_chase(8192);
    tape_begin(&tape);
    device_mark(tape.device, "a");
    struct device_answer a = ask_device(tape.device, &first, 0);
    struct device_answer a_alone = ask_device(tape.device, &first, 1);
    device_mark(tape.device, "b");
    struct device_answer b = ask_device(tape.device, &first, 0);
    struct device_answer b_other = ask_device(tape.device, &second, 0);
    assert_false(ask_same_answer(&a, &b)); /* else nothing is shown */
    assert_false(ask_same_answer(&a, &a_alone));
    tape_end(&tape, GPU_OK);
    struct device *device = tape_replay(&tape);
    device_mark(device, "b");
    ask_check_same(device, &second, 0, &b_other);
    ask_check_same(device, &first, 0, &b);
    device_mark(device, "a");
    ask_check_same(device, &first, 1, &a_alone);
    ask_check_same(device, &first, 0, &a);
    assert_null(replay_missed(tape.source, 0));
    device_answers_fini(&a, 1);
    device_answers_fini(&a_alone, 1);
    device_answers_fini(&b, 1);
    device_answers_fini(&b_other, 1);
    tape_fini(&tape);
}

/* Each answer once per mark; one that is new, or asks more often, takes what others got. */
static void repeated_requests_get_their_own_answers(void **state)
{
    (void)state;
    struct tape tape;
    struct err err;
    struct device_answer got[4];
    const struct device_job job = ask_chase(1024), other = ask_chase(2048);
    static const char *const marks[] = {"a", "b", "b", "c"};
    tape_begin(&tape);
    for (size_t i = 0; i < 4; i++) {
        device_mark(tape.device, marks[i]);
        got[i] = ask_device(tape.device, &job, 0);
    }
    tape_end(&tape, GPU_OK);
    struct device *device = tape_replay(&tape);
    static const struct {
        const char *mark;
        size_t order[4];
    } rows[] = {
        {"b", {1, 2, 0, 3}}, {"new", {0, 1, 2, 3}}, {"a", {0, 1, 2, 3}}, {"c", {3, 0, 1, 2}}};
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        device_mark(device, rows[r].mark);
        for (size_t i = 0; i < 4; i++)
            ask_check_same(device, &job, 0, &got[rows[r].order[i]]);
        assert_int_equal(ask_in_vain(device, &job, &err), -ENOENT);
    }
    assert_int_equal(ask_in_vain(device, &other, &err), -ENOENT);
    assert_string_equal(err.text, "not in the record: spread: warm 2 KiB global_ca by 32 B, chase "
                                  "the same");
    assert_string_equal(replay_missed(tape.source, 0),
                        "5 requests are not in the record, the first by b: spread: warm 1 KiB "
                        "global_ca by 32 B, chase the same");
    device_answers_fini(got, 4);
    tape_fini(&tape);
}

static struct device_job random_chase(uint64_t seed, uint64_t start, bool shared_order)
{
    struct device_job job = ask_chase(4096);
    for (uint32_t i = 0; i < 2; i++) {
        job.steps[i].array.order = DEVICE_RANDOM;
        job.steps[i].array.seed = seed + (shared_order ? 0 : i);
        job.steps[i].start = start + i;
    }
    return job;
}

static void random_orders_are_alike(void **state)
{
    (void)state;
    struct tape tape;
    struct err err;
    const struct device_job job = random_chase(5, 3, true), likewise = random_chase(99, 40, true);
    const struct device_job two_orders = random_chase(5, 3, false);
    struct device_job shifted = random_chase(5, 3, true), sequential = job;
    shifted.steps[1].start++;
    sequential.steps[1].array.order = DEVICE_SEQUENTIAL;
    tape_begin(&tape);
    struct device_answer answer = ask_device(tape.device, &job, 0);
    tape_end(&tape, GPU_OK);
    struct device *device = tape_replay(&tape);
    ask_check_same(device, &likewise, 0, &answer);
    device_mark(device, "again");
    assert_int_equal(ask_in_vain(device, &two_orders, &err), -ENOENT);
    assert_int_equal(ask_in_vain(device, &shifted, &err), -ENOENT);
    assert_int_equal(ask_in_vain(device, &sequential, &err), -ENOENT);
    ask_check_same(device, &job, 0, &answer);
    device_answers_fini(&answer, 1);
    tape_fini(&tape);
}

static struct device_job chase_from(uint64_t warm_offset, uint64_t offset)
{
    struct device_job job = ask_chase(4096);
    job.steps[0].array.offset_bytes = warm_offset;
    job.steps[1].array.offset_bytes = offset;
    return job;
}

static void memory_apart_is_alike(void **state)
{
    (void)state;
    struct tape tape;
    struct err err;
    const struct device_job apart = chase_from(65536, 65536 + 4096),
                            other = chase_from(8192, 12288);
    const struct device_job at_0 = chase_from(0, 4096), wider = chase_from(65536, 65536 + 8192);
    struct device_job constant = ask_chase(256), constant_apart = ask_chase(256);
    for (size_t i = 0; i < 2; i++) {
        constant.steps[i].array.path = constant_apart.steps[i].array.path = DEVICE_CONSTANT;
        constant_apart.steps[i].array.offset_bytes = 1024;
    }
    tape_begin(&tape);
    struct device_answer answer = ask_device(tape.device, &apart, 0);
    struct device_answer in_bank = ask_device(tape.device, &constant, 0);
    tape_end(&tape, GPU_OK);
    struct device *device = tape_replay(&tape);
    ask_check_same(device, &other, 0, &answer);
    device_mark(device, "again");
    assert_int_equal(ask_in_vain(device, &at_0, &err), -ENOENT);
    assert_int_equal(ask_in_vain(device, &wider, &err), -ENOENT);
    assert_int_equal(ask_in_vain(device, &constant_apart, &err), -ENOENT);
    ask_check_same(device, &apart, 0, &answer);
    ask_check_same(device, &constant, 0, &in_bank);
    device_answers_fini(&answer, 1);
    device_answers_fini(&in_bank, 1);
    tape_fini(&tape);
}

static void ranks_share_the_gpus(void **state)
{
    (void)state;
    struct tape tape;
    struct err err = {0};
    struct device_source *source = NULL;
    tape_begin(&tape);
    tape_end(&tape, GPU_OK);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(device_source_replay(tape.path, rank, 2, &source, &err), 0);
        assert_int_equal(device_source_count(source), rank == 0);
        assert_int_equal(device_source_bare_count(source), rank == 0);
        if (rank == 0) {
            assert_string_equal(device_source_info(source, 0)->uuid, "GPU-1");
            assert_string_equal(device_source_info(source, 0)->node, "n1");
            assert_int_equal(device_source_info(source, 0)->index, 2);
            assert_string_equal(device_source_bare_node(source, 0), "login1");
        }
        device_source_destroy(source);
    }
    tape_fini(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(clusters_come_back),
        cmocka_unit_test(facts_and_turns_come_back),
        cmocka_unit_test(a_look_alone_is_complete),
        cmocka_unit_test(errors_come_back),
        cmocka_unit_test(shared_loads),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(repeated_requests_get_their_own_answers),
        cmocka_unit_test(random_orders_are_alike),
        cmocka_unit_test(memory_apart_is_alike),
        cmocka_unit_test(ranks_share_the_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
