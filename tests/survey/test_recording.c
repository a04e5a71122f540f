/* Rank 0's record of a survey: what it says beside the GPUs' own parts. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/record/record.h"
#include "inventory/inventory.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/root/emit.h"
#include "survey/root/recording.h"
#include "survey/root/root.h"

static void add_measured(struct recording *recording, const char *uuid)
{
    const struct gpu_result gpu = {.uuid = (char *)uuid, .rank = 1};
    struct strbuf part = {0};
    record_put_gpu(&part, &gpu, 0, NULL, 0, true);
    recording_add(recording, part.data, part.length);
    strbuf_fini(&part);
}

static void record_survey_of(const char *path, const struct root_view *view)
{
    char *argv[] = {(char *)"./gpumemtopo-survey", (char *)"--seed", (char *)"4"};
    const struct survey_options options = {
        .record = path, .simulate = "f.yaml", .seed = 4, .profile = PROFILE_FULL};
    const struct survey_config config = {.name = (char *)"/etc/c.yaml", .text = (char *)"a: 1"};
    const struct recording_input input = {
        .options = &options, .config = &config, .argc = 3, .argv = argv, .ranks = 9};
    struct recording *recording = NULL;
    struct err err = {0};
    assert_int_equal(recording_begin(&input, &recording, &err), 0);
    add_measured(recording, "GPU-1");
    assert_int_equal(access(path, F_OK), -1); /* not before it is whole */
    assert_int_equal(recording_end(recording, view, &err), 0);
    recording_destroy(recording);
}

static void says_what_rank_0_knows(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-recording-XXXXXX", path[64];
    const char *bare[] = {"login1", "login2"};
    const struct gpu_result results[] = {
        {.uuid = (char *)"GPU-1", .rank = 1},
        {.uuid = (char *)"GPU-2", .rank = 2, .status = GPU_LOST, .reason = (char *)"fell silent"},
        {.node = (char *)"n5", .rank = 5, .status = GPU_CRASHED, .reason = (char *)"listing"},
    };
    const struct root_view view = {.unmeasured = results,
                                   .unmeasured_count = 3,
                                   .bare_nodes = bare,
                                   .bare_count = 2,
                                   .node_count = 6,
                                   .lost_ranks = 1};
    struct record *record = NULL;
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.gmr", folder);
    record_survey_of(path, &view);
    if (record_open(path, &record, &err))
        fail_msg("%s", err.text);
    const struct record_provenance *how = record_provenance(record);
    assert_string_equal(how->backend, "sim");
    assert_int_equal(how->command_count, 3);
    assert_string_equal(how->command[0], "gpumemtopo-survey");
    assert_string_equal(how->command[1], "--seed");
    assert_int_equal(how->seed, 4);
    assert_int_equal(how->profile, PROFILE_FULL);
    assert_string_equal(how->config, "c.yaml");
    assert_string_equal(how->config_text, "a: 1");
    assert_int_equal(how->ranks, 9);
    assert_true(how->date && how->host && how->version);
    const struct record_survey *survey = record_survey(record);
    assert_int_equal(survey->nodes, 6);
    assert_int_equal(survey->lost_ranks, 1);
    assert_int_equal(survey->bare_count, 2);
    assert_int_equal(survey->unknown_count, 1);
    assert_string_equal(survey->unknown[0].node, "n5");
    assert_int_equal(survey->unknown[0].status, GPU_CRASHED);
    assert_int_equal(record_gpu_count(record), 2);
    const struct record_gpu *lost = record_find_gpu(record, "GPU-2", 0);
    assert_int_equal(lost->gpu.status, GPU_LOST);
    assert_int_equal(lost->gpu.rank, 2);
    assert_false(lost->closed);
    assert_true(record_find_gpu(record, "GPU-1", 0)->closed);
    record_close(record);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* What a replay's inventory has from the record rather than from the replay. */
static void a_replay_tells_of_the_recorded_survey(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-recording-XXXXXX", path[64], output[64];
    const struct gpu_result lost = {.node = (char *)"n5", .rank = 5, .status = GPU_LOST};
    const struct root_view recorded = {
        .unmeasured = &lost, .unmeasured_count = 1, .node_count = 6, .lost_ranks = 2};
    const struct gpu_result result = {.uuid = (char *)"GPU-1", .node = (char *)"n1", .rank = 0};
    const struct survey_options options = {.seed = 8, .replay = path, .quiet = true};
    const struct judge_config config = {.false_alarms = 0.01};
    const struct judge_basis judge = {.config = &config};
    struct record *record = NULL;
    struct inventory inventory = {0};
    struct err err = {0};
    enum survey_exit code = SURVEY_EXIT_OK;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.gmr", folder);
    snprintf(output, sizeof output, "%s/a.yaml", folder);
    record_survey_of(path, &recorded);
    assert_int_equal(record_open(path, &record, &err), 0);
    char *argv[] = {(char *)"gpumemtopo-survey"};
    struct judging judging = {.basis = &judge, .replayed = record};
    const struct emit_input input = {
        .target = {.options = &options, .output = output},
        .argc = 1,
        .argv = argv,
        .ranks = 1,
        .view = {.unmeasured = &result, .unmeasured_count = 1, .node_count = 1},
        .judging = &judging,
        .replayed = record,
    };
    if (emit_inventory(&input, &code, &err) || inventory_read_file(output, &inventory, &err))
        fail_msg("%s", err.text);
    assert_int_equal(code, SURVEY_EXIT_INCOMPLETE);
    assert_string_equal(inventory.backend, "sim");
    assert_int_equal(inventory.seed, 8);
    assert_int_equal(inventory.total_nodes, 6);
    assert_int_equal(inventory.total_ranks, 9);
    assert_int_equal(inventory.total_lost_ranks, 2);
    assert_int_equal(inventory.total_unmeasured, 1);
    assert_string_equal(inventory.unmeasured[0].node, "n5");
    assert_int_equal(inventory.gpus[0].rank, 1);
    inventory_fini(&inventory);
    judging_fini(&judging);
    record_close(record);
    unlink(path);
    unlink(output);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_rank_0_knows),
        cmocka_unit_test(a_replay_tells_of_the_recorded_survey),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
