/* The process that makes the inventory is killed while it leaves: nobody makes it again. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "inventory/wire/spool_owner.h"
#include "survey/start/standalone.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spool_that_is_being_removed_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
