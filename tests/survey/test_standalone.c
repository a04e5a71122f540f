/* Processes without MPI that may be the last of their survey. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_owner.h"
#include "survey/start/standalone.h"

/* The process that makes the inventory is killed while it leaves: nobody makes it again. */
static void a_spool_that_is_being_removed_is_done(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const struct spool_candidate candidate = {
        .folder = folder,
        .exclusive = true,
        .job = "job",
        .output = "/nowhere/out.yaml",
        .who = "who",
        .survey = "survey",
    };
    struct spool_owner maker = {0};
    struct err err = {0};
    char *aside = NULL;
    assert_int_equal(spool_owner_join(&candidate, &maker, &aside, &err), 0);
    char *owner = str_copy(maker.path);
    spool_owner_set_merged(&maker, 9, SURVEY_EXIT_INCOMPLETE);
    spool_owner_fini(&maker); /* its files are gone already */

    const struct survey_options options = {0};
    const struct standalone_part part = {
        .folder = folder, .owner = owner, .rank = 3, .options = &options, .tasks = 4};
    enum survey_exit code = SURVEY_EXIT_OK;
    assert_int_equal(standalone_merge_if_last(&part, &code, &err), STANDALONE_DONE);
    assert_int_equal(code, SURVEY_EXIT_INCOMPLETE);
    assert_int_not_equal(access(folder, F_OK), 0); /* the rest is tidied up */
    assert_int_equal(standalone_merge_if_last(&part, &code, &err), STANDALONE_DONE);
    free(owner);
    free(aside);
}

/* A task writes its plan when it has listed its GPUs. */
static void standalone_add_plan(const char *folder, uint32_t rank)
{
    const struct spool_origin origin = {
        .survey = (char *)"survey", .version = (char *)"1", .backend = (char *)"sim"};
    const struct spool_survey plan = {.config_name = (char *)"",
                                      .config_text = (char *)"",
                                      .ranks = 4,
                                      .nodes = 1,
                                      .apart = true,
                                      .rank = rank};
    struct err err = {0};
    assert_int_equal(spool_write_survey(folder, &origin, &plan, &err), 0);
}

static void a_folder_without_other_nodes_is_not_shared(void **state)
{
    (void)state;
    static const struct {
        const char *node_ranks;
        uint32_t plans[3]; /* besides that of rank 0 */
        size_t plan_count;
        bool local, due;
        int result;
    } cases[] = {
        {"0,2", {2}, 1, true, true, -EINVAL},
        {"0,2", {0}, 0, true, true, -EINVAL}, /* another one of this node was killed */
        {"0,2", {1}, 1, true, true, STANDALONE_TOO_EARLY},
        {"0,2", {2}, 1, true, false, STANDALONE_TOO_EARLY},
        {"0,2", {2}, 1, false, true, STANDALONE_TOO_EARLY},
        {"0-2", {2}, 1, true, true, STANDALONE_TOO_EARLY},
        {"0,n2", {2}, 1, true, true, STANDALONE_TOO_EARLY}, /* no list: who is here is not known */
        {NULL, {2}, 1, true, true, STANDALONE_TOO_EARLY},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char folder[] = "/tmp/gpumemtopo-test-XXXXXX";
        assert_non_null(mkdtemp(folder));
        const struct spool_candidate candidate = {.folder = folder,
                                                  .exclusive = true,
                                                  .job = "job",
                                                  .output = "/nowhere/out.yaml",
                                                  .who = "who",
                                                  .survey = "survey"};
        struct spool_owner owner = {0};
        struct err err = {0};
        char *aside = NULL;
        assert_int_equal(spool_owner_join(&candidate, &owner, &aside, &err), 0);
        char *path = str_copy(owner.path);
        spool_owner_fini(&owner);
        standalone_add_plan(folder, 0);
        for (size_t k = 0; k < cases[i].plan_count; k++)
            standalone_add_plan(folder, cases[i].plans[k]);
        const struct survey_options options = {0};
        const struct standalone_part part = {.folder = folder,
                                             .owner = path,
                                             .options = &options,
                                             .tasks = 4,
                                             .node_ranks = cases[i].node_ranks,
                                             .local = cases[i].local,
                                             .others_due = cases[i].due};
        enum survey_exit code = SURVEY_EXIT_OK;
        assert_int_equal(standalone_merge_if_last(&part, &code, &err), cases[i].result);
        if (cases[i].result < 0) {
            /* The next task of this node ends with the same code, and says nothing. */
            assert_int_equal(standalone_merge_if_last(&part, &code, &err), STANDALONE_DONE);
            assert_int_equal(code, SURVEY_EXIT_BAD_INPUT);
            assert_true(spool_has_plan(folder, "survey", 0)); /* nothing is lost */
            /* One of another node that is late finds the results, and goes on. */
            standalone_add_plan(folder, 1);
            assert_int_equal(standalone_merge_if_last(&part, &code, &err), STANDALONE_TOO_EARLY);
        }
        spool_remove_files(folder);
        unlink(path);
        assert_int_equal(rmdir(folder), 0);
        free(path);
        free(aside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spool_that_is_being_removed_is_done),
        cmocka_unit_test(a_folder_without_other_nodes_is_not_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
