/* A step of Slurm: the way to the inventory if it ends early. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inventory/inventory.h"
#include "report/basis.h"
#include "report/merge/merge.h"
#include "survey/start/slurm.h"

static void prints_the_command(void **state)
{
    (void)state;
    static const struct {
        const char *output, *spool, *command;
    } cases[] = {
        {"out.yaml", NULL, "gpumemtopo-report merge -o out.yaml out.yaml.spool"},
        {"a/out.yaml", "/s/p", "gpumemtopo-report merge -o a/out.yaml /s/p"},
        {"my out", NULL, "gpumemtopo-report merge -o 'my out' 'my out.spool'"},
        {"it's", NULL, "gpumemtopo-report merge -o 'it'\\''s' 'it'\\''s.spool'"},
        {"-x", NULL, "gpumemtopo-report merge -o ./'-x' ./'-x.spool'"},
        {"/dev/null", NULL, ""},
        {"-", NULL, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strbuf text = {0};
        slurm_way_back(cases[i].output, cases[i].spool, &text);
        assert_string_equal(text.data ? text.data : "", cases[i].command);
        strbuf_fini(&text);
    }
}

static void merged(const char *folder, struct inventory *out)
{
    struct report_basis basis = {0};
    struct err err = {0};
    struct report_merge *merge = report_merge_create(NULL, NULL);
    const struct report_merge_request request = {.basis = &basis, .version = "1"};
    assert_int_equal(report_merge_add_folder(merge, folder, NULL, &err), 0);
    assert_int_equal(report_merge_finish(merge, &request, out, &err), 0);
    report_merge_destroy(merge);
    report_basis_fini(&basis);
}

/* A step that ends in MPI_Init: its spool gives an inventory in which all ranks are lost. */
static void notes_all_ranks(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *output = str_format("%s/out.yaml", folder), *spool = str_format("%s.spool", output);
    const struct comm_place place = {.tasks = 3, .job = "job"};
    const struct survey_options options = {.output = output};
    struct survey_config config = {0};
    struct err err = {0};
    char *const argv[] = {(char *)"/bin/survey", (char *)"--quiet"};
    assert_int_equal(survey_config_load(CONFIG, &config, &err), 0);
    slurm_note_write(&place, &options, &config, 2, 2, argv);
    struct inventory inventory = {0};
    merged(spool, &inventory);
    assert_int_equal(inventory.total_lost_ranks, 3);
    assert_int_equal(inventory.total_unmeasured, 3);
    assert_int_equal(inventory.total_ranks, 3);
    assert_int_equal(inventory.total_nodes, 2);
    assert_non_null(strstr(inventory.unmeasured[2].reason, "rank 2 did not start"));
    inventory_fini(&inventory);
    slurm_note_release();
    slurm_note_remove();
    assert_int_not_equal(access(spool, F_OK), 0);
    assert_int_equal(rmdir(folder), 0);
    survey_config_fini(&config);
    free(spool);
    free(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_command),
        cmocka_unit_test(notes_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
