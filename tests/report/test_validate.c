/* Validation: an inventory that contradicts itself is named as such. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/commands/commands.h"
#include "rich.h"

static void replace(char **text, const char *with)
{
    free(*text);
    *text = str_copy(with);
}

static void twice_the_same_uuid(struct inventory *v)
{
    replace(&v->gpus[0].uuid, v->gpus[1].uuid);
}

static void unknown_model(struct inventory *v)
{
    replace(&v->gpus[0].model, "other");
}

static void wrong_model_count(struct inventory *v)
{
    v->models[0].count = 3;
}

static void wrong_population_count(struct inventory *v)
{
    v->models[0].populations[1].count = 7;
}

static void wrong_measured(struct inventory *v)
{
    v->total_measured = 1;
}

static void wrong_unmeasured(struct inventory *v)
{
    v->total_unmeasured = 2;
}

static void wrong_outliers(struct inventory *v)
{
    v->total_outliers = 0;
}

static void wrong_total(struct inventory *v)
{
    v->total_gpus = 4;
}

static void measured_and_not(struct inventory *v)
{
    replace(&v->unmeasured[0].uuid, "GPU-00000000");
}

static void unlisted_outlier(struct inventory *v)
{
    v->gpus[0].status = GPU_OUTLIER;
}

static void unlisted_node_outlier(struct inventory *v)
{
    v->node_findings[0].action = ACTION_ALERT; /* its GPU is ok */
}

static void foreign_outlier(struct inventory *v)
{
    replace(&v->outliers[0].uuid, "GPU-x");
}

static void healthy_outlier(struct inventory *v)
{
    v->gpus[0].status = GPU_OUTLIER;
    v->gpus[1].status = GPU_OK;
}

static void outlier_elsewhere(struct inventory *v)
{
    replace(&v->outliers[0].node, "gpu004");
}

static void foreign_watch(struct inventory *v)
{
    replace(&v->watch[0].uuid, "GPU-y");
}

static void foreign_node_gpu(struct inventory *v)
{
    replace(&v->node_findings[0].gpus[0], "GPU-z");
}

static void wrong_exit_code(struct inventory *v)
{
    v->exit_code = 3;
}

static void twice_the_same_model(struct inventory *v)
{
    struct inventory_model *models = mem_array(2, sizeof *models);
    assert_non_null(models);
    models[0] = v->models[0];
    models[1].id = str_copy(models[0].id);
    free(v->models);
    v->models = models;
    v->model_count = 2;
}

static void impossible_time(struct inventory *v)
{
    replace(&v->generated, "yesterday");
}

static void first_try_was_busy(struct inventory *v)
{
    v->gpus[0].run.first_status = GPU_BUSY;
}

static void first_try_was_ok(struct inventory *v)
{
    replace(&v->gpus[0].run.first_reason, "no reason");
}

static void impossible_second_value(struct inventory *v)
{
    facts_set_real(&v->gpus[1].measured_again, "main.bandwidth.read", -3051);
}

static void second_value_is_text(struct inventory *v)
{
    facts_set_text(&v->gpus[1].measured_again, "main.bandwidth.read", "slow");
}

static void links_without_state(struct inventory *v)
{
    facts_set_texts(&v->gpus[1].links, "gpus", (const char *const[]){"GPU-a", "GPU-b"}, 2);
}

static void links_of_other_length(struct inventory *v)
{
    links_without_state(v);
    facts_set_texts(&v->gpus[1].links, "state", (const char *const[]){"ok", "failed"}, 2);
    facts_set_numbers(&v->gpus[1].links, "read", (const double[]){400.1, NAN, 3}, 3);
}

static void links_in_no_state(struct inventory *v)
{
    links_without_state(v);
    facts_set_texts(&v->gpus[1].links, "state", (const char *const[]){"ok", "fine"}, 2);
}

static void load_without_a_curve(struct inventory *v)
{
    facts_set_numbers(&v->gpus[1].load, "curve_s", (const double[]){1, 2, 3}, 3);
}

static void load_of_the_past(struct inventory *v)
{
    facts_set_real(&v->gpus[1].load, "begun_after_s", -1.5);
}

static void load_of_something(struct inventory *v)
{
    facts_set_text(&v->gpus[1].load, "colour", "red");
}

/* The notes of the first measure of the model. */
static struct facts *notes_of(struct inventory *v)
{
    return &v->models[0].memory.items[0].notes;
}

static void curve_without_levels(struct inventory *v)
{
    facts_set_numbers(notes_of(v), "curve_bytes", (const double[]){1, 2, 3}, 3);
}

static void latency_curve_without_spreads(struct inventory *v)
{
    facts_set_numbers(notes_of(v), "curve_gbs", (const double[]){1, 2, 3}, 3);
    facts_set_numbers(notes_of(v), "curve_cycles", (const double[]){1, 2, 3}, 3);
}

static void curves_without_names(struct inventory *v)
{
    facts_set_numbers(notes_of(v), "curves_at", (const double[]){1, 2, 3}, 3);
}

static void places_without_values(struct inventory *v)
{
    facts_set_numbers(notes_of(v), "by_bytes_at", (const double[]){1, 2, 3}, 3);
}

static void places_and_fewer_values(struct inventory *v)
{
    places_without_values(v);
    facts_set_numbers(notes_of(v), "by_bytes", (const double[]){1, 2}, 2);
}

static void map_without_noise(struct inventory *v)
{
    facts_set_numbers(&v->gpus[0].board, "fingerprint", (const double[]){1, 2}, 2);
}

static void rates_without_noise(struct inventory *v)
{
    facts_set_numbers(&v->gpus[0].board, "sm_bandwidth", (const double[]){1, 2}, 2);
}

static void confirmed_somehow(struct inventory *v)
{
    replace(&v->outliers[0].evidence[0].confirmed, "by 1 figures");
}

static void confirmed_without_second_value(struct inventory *v)
{
    facts_set_unknown(&v->gpus[1].measured_again, "main.bandwidth.read", NULL);
    replace(&v->outliers[0].evidence[0].confirmed, "2 of 2");
}

static void accused_though_seen_once(struct inventory *v)
{
    facts_set_real(&v->gpus[1].measured_again, "main.bandwidth.read", 4534);
    replace(&v->outliers[0].evidence[0].confirmed, "1 of 2");
}

static void contradictions_are_named(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct inventory *inventory);
        const char *message;
    } rows[] = {
        {twice_the_same_uuid, "gpus: uuid \"GPU-00000001\" occurs twice"},
        {twice_the_same_model, "models: id \"nvidia-h200\" occurs twice"},
        {unknown_model, "GPU-00000000 is of model \"other\", which the file does not have"},
        {wrong_model_count, "nvidia-h200 has count 3, but 2 measured"},
        {wrong_population_count, "nvidia-h200 has count 2, but its populations 8"},
        {wrong_measured, "survey.measured is 1, but the file has 2"},
        {wrong_unmeasured, "survey.unmeasured is 2, but the file has 1"},
        {wrong_outliers, "survey.outliers is 0, but the file has 1"},
        {wrong_total, "survey.gpus is 4, but the file has 3"},
        {measured_and_not, "GPU-00000000 has status ok, but is listed in unmeasured"},
        {unlisted_outlier, "GPU-00000000 has status outlier, but is not among those flagged"},
        {unlisted_node_outlier, "GPU-00000000 has status ok, but is among those flagged"},
        {foreign_outlier, "outliers: GPU-x is not among the gpus"},
        {healthy_outlier, "GPU-00000000 has status outlier, but is not among those flagged"},
        {outlier_elsewhere, "outliers: GPU-00000001 has another model or node"},
        {foreign_watch, "watch: GPU-y is not among the gpus"},
        {foreign_node_gpu, "nodes: GPU-z is not among the gpus"},
        {impossible_time, "generated is \"yesterday\", expected a time in UTC"},
        {first_try_was_busy, "GPU-00000000: first_try has status busy, expected crashed"},
        {first_try_was_ok, "GPU-00000000: first_try has status ok, so nothing"},
        {impossible_second_value, "GPU-00000001: measured_again: main.bandwidth.read is neither"},
        {second_value_is_text, "GPU-00000001: measured_again: main.bandwidth.read is neither"},
        {links_without_state, "GPU-00000001: links: expected the lists gpus and state"},
        {links_of_other_length, "GPU-00000001: links: read is not a list of 2 numbers"},
        {links_in_no_state, "GPU-00000001: links: state is not a list of 2 words"},
        {load_without_a_curve, "GPU-00000001: load: curve_s is not what a load has"},
        {load_of_the_past, "GPU-00000001: load: begun_after_s is not what a load has"},
        {load_of_something, "GPU-00000001: load: colour is not what a load has"},
        {curve_without_levels, "the lists that belong to curve_bytes are missing"},
        {latency_curve_without_spreads, "the lists that belong to curve_gbs are missing"},
        {curves_without_names, "the lists that belong to curves_at are missing"},
        {places_without_values, "the lists that belong to by_bytes_at are missing"},
        {places_and_fewer_values, "belong to by_bytes_at are missing or of another length"},
        {map_without_noise, "GPU-00000000: board: the lists that belong to fingerprint are"},
        {rates_without_noise, "GPU-00000000: board: the lists that belong to sm_bandwidth are"},
        {confirmed_somehow, "main.bandwidth.read is confirmed \"by 1 figures\", expected"},
        {confirmed_without_second_value, "confirmed \"2 of 2\", but measured_again has no value"},
        {accused_though_seen_once, "confirmed \"1 of 2\", but is among the outliers"},
        {wrong_exit_code, "exit_code 3 contradicts the counts"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct inventory inventory;
        struct err err = {0};
        rich_inventory(&inventory);
        assert_int_equal(report_validate(&inventory, NULL), 0);
        rows[i].spoil(&inventory);
        int rc = report_validate(&inventory, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].message))
            fail_msg("row %zu: %d %s", i, rc, err.text);
        inventory_fini(&inventory);
    }
}

static void confirmations_are_valid(void **state)
{
    (void)state;
    static const char *const valid[] = {"2 of 2", "by its cause", "by its repetitions",
                                        "by 2 figures", "by 12 figures"};
    struct inventory inventory;
    struct err err = {0};
    rich_inventory(&inventory);
    inventory.gpus[1].run.first_status = GPU_CRASHED;
    facts_set_int(&inventory.gpus[1].measured_again, "main.bandwidth.read", 3050);
    for (size_t i = 0; i < COUNT_OF(valid); i++) {
        replace(&inventory.outliers[0].evidence[0].confirmed, valid[i]);
        if (report_validate(&inventory, &err))
            fail_msg("%s", err.text);
    }
    inventory_fini(&inventory);
}

static void busy_may_be_measured_or_not(void **state)
{
    (void)state;
    struct inventory inventory;
    rich_inventory(&inventory);
    inventory.gpus[0].status = GPU_BUSY;
    assert_int_equal(report_validate(&inventory, NULL), 0);
    inventory.gpus[2].status = GPU_BUSY;
    assert_int_equal(report_validate(&inventory, NULL), 0);
    inventory_fini(&inventory);
}

/* A GPU without UUID is found by its place. */
static void outlier_without_uuid(void **state)
{
    (void)state;
    struct inventory inventory;
    struct err err = {0};
    rich_inventory(&inventory);
    free(inventory.outliers[0].uuid);
    inventory.outliers[0].uuid = NULL;
    assert_int_equal(report_validate(&inventory, &err), -EINVAL); /* the GPU has one */
    assert_non_null(strstr(err.text, "outliers: a GPU without uuid is not among the gpus"));
    free(inventory.gpus[1].uuid);
    inventory.gpus[1].uuid = NULL;
    inventory.node_findings[1].action = ACTION_TELL; /* which named it, too */
    replace(&inventory.node_findings[1].gpus[0], "GPU-00000000");
    if (report_validate(&inventory, &err))
        fail_msg("%s", err.text);
    replace(&inventory.outliers[0].pci, "0000:ff:00.0");
    assert_int_equal(report_validate(&inventory, &err), -EINVAL);
    inventory_fini(&inventory);
}

static void empty_is_valid(void **state)
{
    (void)state;
    struct inventory inventory = {0};
    assert_int_equal(report_validate(&inventory, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions_are_named),
        cmocka_unit_test(confirmations_are_valid),
        cmocka_unit_test(busy_may_be_measured_or_not),
        cmocka_unit_test(outlier_without_uuid),
        cmocka_unit_test(empty_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
