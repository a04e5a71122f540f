/* Inventories: what is read can be validated, reported in every form, and printed and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inventory/anonymous.h"
#include "inventory/inventory.h"
#include "report/commands/commands.h"
#include "report/drain.h"
#include "report/history/history.h"
#include "report/history/history_changes.h"
#include "report/history/history_store.h"
#include "report/html/html.h"
#include "report/json.h"
#include "report/summary.h"
#include "same_yaml.h"

/* Printing loses nothing: the second text is the first. */
static void print_again(const struct inventory *inventory)
{
    struct strbuf first = {0}, second = {0};
    struct inventory again = {0};
    struct err err = {0};
    inventory_print(inventory, &first);
    same_yaml(first.data, first.length, "gpus");
    if (inventory_read_text(first.data, first.length, "again", &again, &err))
        abort();
    inventory_print(&again, &second);
    if (first.length != second.length || memcmp(first.data, second.data, first.length) != 0)
        abort();
    inventory_fini(&again);
    strbuf_fini(&first);
    strbuf_fini(&second);
}

/* One GPU of the history. */
static void report_changes(const struct history *history, const struct judge_config *config,
                           struct strbuf *text)
{
    const struct history_gpu *gpu;
    struct history_changes changes;
    struct err err = {0};
    const char *uuid = symbols_data(&history->symbols, history->gpus[0].sightings[0].uuid);
    if (history_changes_gpu(history, uuid, &gpu, &err))
        return; /* the UUID may be empty, or the beginning of another one */
    if (history_changes_find(history, gpu, config, NULL, &changes, &err))
        abort();
    history_changes_put_text(&changes, text);
    history_changes_put_json(&changes, text);
    history_changes_put_page(&changes, text);
    history_changes_fini(&changes);
}

static void report_history(const struct inventory *inventory, struct strbuf *text)
{
    static struct judge_metric metrics[] = {{.metric = (char *)"clock.sm"},
                                            {.metric = (char *)"main.latency"}};
    struct judge_config config = {.metrics = metrics, .metric_count = 2};
    policy_read(NULL, &config.policy, NULL);
    bool keep[2];
    struct history history = {0};
    struct err err = {0};
    if (!history_add(&history, "first", 1, inventory, &err) &&
        !history_add(&history, "second", 2, inventory, &err)) {
        history_finish(&history, &config);
        history_put_text(&history, text);
        history_put_json(&history, text);
        history_thin(&history, keep);
        if (history.gpu_count)
            report_changes(&history, &config, text);
    }
    history_fini(&history);
}

static void report_rma(const struct inventory *inventory, struct strbuf *text)
{
    struct rma rma;
    if (!inventory->gpu_count)
        return;
    rma_init(&rma, inventory, &inventory->gpus[0]);
    rma_put_readme(&rma, text);
    rma_put_json(&rma, text);
    rma_fini(&rma);
}

static void report_for_people(const struct inventory *inventory, struct strbuf *text)
{
    struct err err = {0};
    struct report_diff diff = {0};
    struct judge_config config = {0};
    policy_read(NULL, &config.policy, NULL);
    const struct report_style style = {.width = REPORT_WIDTH, .colour = true, .boxes = true};
    report_summary(inventory, "fleet.yaml", &style, text);
    report_summary_all(inventory, &style, text);
    for (size_t i = 0; i < inventory->model_count; i++)
        report_topology(&inventory->models[i], &style, text);
    report_diff(inventory, inventory, &config, text, &diff, &err);
    report_history(inventory, text);
    report_rma(inventory, text);
}

static void report_for_programs(const struct inventory *inventory, struct strbuf *text)
{
    const struct nagios_limits limits = {.max_age_s = 1};
    report_nagios(inventory, &limits, text);
    report_json(inventory, text);
    report_csv(inventory, text);
    report_prometheus(inventory, false, false, text);
    report_prometheus(inventory, true, true, text);
    for (size_t i = 0; i < inventory->model_count; i++)
        report_json_mt4g(inventory, &inventory->models[i], text);
}

/* Sketches of what was read; an anonymous inventory can be printed and read again. */
static void share_without_names(struct inventory *inventory)
{
    static struct judge_metric metrics[] = {{.metric = (char *)"clock.sm"},
                                            {.metric = (char *)"main.latency"}};
    struct judge_config config = {.metrics = metrics, .metric_count = 2};
    policy_read(NULL, &config.policy, NULL);
    struct world world = {0};
    report_share(inventory, 1, &config, &world);
    anonymous_inventories((struct inventory *const[]){inventory}, 1, NULL);
    world_fini(&world);
    print_again(inventory);
}

static void undrain(const struct inventory *inventory, struct strbuf *text, struct strbuf *notes)
{
    struct undrain_times times = {0};
    struct err err = {0};
    if (!undrain_times_add(&times, inventory, "fuzz", &err))
        report_undrain("n1|0|gpumemtopo:failing:-:1 of 2 GPUs are there:-:-\n", "list", inventory,
                       &times, text, notes, &err);
    undrain_times_fini(&times);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inventory inventory = {0};
    struct err err = {0};
    struct strbuf text = {0}, refused = {0};
    same_yaml((const char *)data, size, "gpus");
    if (inventory_read_text((const char *)data, size, "fuzz", &inventory, &err))
        return 0;
    report_validate(&inventory, &err);
    report_drain(&inventory, &text, &refused);
    undrain(&inventory, &text, &refused);
    /* One form per input: they cost more than reading. */
    switch (size % 5) {
    case 0:
        print_again(&inventory);
        break;
    case 1:
        report_for_people(&inventory, &text);
        break;
    case 2:
        report_for_programs(&inventory, &text);
        break;
    case 3:
        share_without_names(&inventory);
        break;
    default:
        report_html(&inventory, NULL, NULL, &text);
        break;
    }
    inventory_fini(&inventory);
    strbuf_fini(&text);
    strbuf_fini(&refused);
    return 0;
}
