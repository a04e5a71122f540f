/* What world files have of inventories: which figures, of which GPUs. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <string.h>

#include "judge/world.h"
#include "report/commands/commands.h"

enum { GPUS = 12 };

/* The figures of GPUs that `share` would write, read back. */
static struct world shared(const struct inventory *inventories, size_t count)
{
    struct world world = {0}, read = {0};
    struct strbuf text = {0};
    struct err err = {0};
    report_share(inventories, count, made_config(), &world);
    world_print(&world, "0.2.0", &text);
    if (world_read_text(text.data, text.length, "world", &read, &err))
        fail_msg("%d: %s\n%s", err.line, err.text, text.data);
    strbuf_fini(&text);
    world_fini(&world);
    return read;
}

/* Every fourth GPU has a group of 12 SMs. */
static struct inventory make_inventory(void)
{
    struct gpu_result *gpus = made_fleet_of(GPUS, 5, 0, 0.001);
    for (size_t i = 0; i < GPUS; i++) {
        facts_set_text(&gpus[i].board, "part", "692-000");
        measures_add(&gpus[i].measures, "sm.group_sms", i % 4 ? 16 : 12, "", "m");
    }
    struct inventory inventory = made_judged(gpus, GPUS);
    inventory.backend = str_copy("cuda");
    inventory.generated = str_copy("2026-11-16T12:00:00Z");
    made_free(gpus, GPUS);
    return inventory;
}

/* How SMs are placed is not judged itself, but the judge needs it of GPUs elsewhere. */
static void places_are_shared(void **state)
{
    (void)state;
    struct inventory inventory = make_inventory();
    struct world world = shared(&inventory, 1);
    assert_int_equal(world.model_count, 1);
    const struct world_population *population = world_find_population(&world.models[0], "692-000");
    assert_non_null(population);
    const struct world_figure *place = world_find_figure(population, "sm.group_sms");
    assert_non_null(place);
    assert_int_equal(place->n, GPUS);
    assert_true(place->median == 16);
    assert_true(place->quantiles[0] >= 12 && place->quantiles[0] < 14);
    assert_true(place->quantiles[WORLD_QUANTILES / 2 + 1] == 16);
    /* It counts places, whatever the clock of a GPU. */
    assert_true(place->quantiles[WORLD_QUANTILES - 1] == 16);
    assert_non_null(world_find_figure(population, "l2.bandwidth.read"));
    assert_null(world_find_figure(population, "sm.l1_worst_sm")); /* no use to the judge */
    world_fini(&world);
    inventory_fini(&inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
