/* Prints the inventory as YAML text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "inventory/board_keys.h"
#include "inventory/inventory.h"
#include "inventory/yaml/print_measure.h"
#include "schema/scalar.h"

const char *const inventory_board_keys[BOARD_KEY_COUNT] = {"serial", "part", "vbios", "driver"};

/* `lead`: the text before the value, including the key. */
static void put_text(struct strbuf *buffer, const char *lead, const char *text)
{
    strbuf_puts(buffer, lead);
    scalar_put_text(buffer, text);
}

static void put_number(struct strbuf *buffer, const char *lead, double value)
{
    strbuf_puts(buffer, lead);
    scalar_put_number(buffer, value);
}

/* Negative means unknown. */
static void put_index(struct strbuf *buffer, const char *lead, int32_t value)
{
    if (value < 0)
        strbuf_printf(buffer, "%snull", lead);
    else
        strbuf_printf(buffer, "%s%" PRId32, lead, value);
}

static void put_texts(struct strbuf *buffer, const char *lead, char *const *texts, size_t count)
{
    strbuf_puts(buffer, lead);
    strbuf_puts(buffer, "[");
    for (size_t i = 0; i < count; i++)
        put_text(buffer, i ? ", " : "", texts[i]);
    strbuf_puts(buffer, "]");
}

static void put_list_key(struct strbuf *buffer, const char *lead, size_t count)
{
    strbuf_puts(buffer, lead);
    strbuf_puts(buffer, count ? "\n" : " []\n");
}

static void print_header(struct strbuf *buffer, const struct inventory *inventory)
{
    strbuf_printf(buffer, "gpumemtopo: {schema: %d", INVENTORY_SCHEMA);
    put_text(buffer, ", version: ", inventory->version);
    put_text(buffer, ", generated: ", inventory->generated);
    put_texts(buffer, ", command: ", inventory->command, inventory->command_count);
    strbuf_printf(buffer, ", seed: %" PRIu64, inventory->seed);
    put_text(buffer, ", backend: ", inventory->backend);
    if (inventory->measured_by_count)
        put_texts(buffer, ", measured_by: ", inventory->measured_by, inventory->measured_by_count);
    strbuf_puts(buffer, inventory->anonymous ? ", anonymous: true" : "");
    strbuf_printf(buffer,
                  "}\nsurvey: {nodes: %" PRIu32 ", ranks: %" PRIu32 ", gpus: %" PRIu32
                  ", measured: %" PRIu32 ", unmeasured: %" PRIu32 ", lost_ranks: %" PRIu32
                  ", outliers: %" PRIu32,
                  inventory->total_nodes, inventory->total_ranks, inventory->total_gpus,
                  inventory->total_measured, inventory->total_unmeasured,
                  inventory->total_lost_ranks, inventory->total_outliers);
    put_number(buffer, ", wall_s: ", inventory->wall_s);
    strbuf_printf(buffer, ", exit_code: %d}\n", inventory->exit_code);
}

static void print_populations(struct strbuf *buffer, const struct inventory_model *model)
{
    strbuf_puts(buffer, model->population_count ? "\n    populations:" : "");
    for (size_t i = 0; i < model->population_count; i++) {
        const struct inventory_population *population = &model->populations[i];
        put_text(buffer, "\n      - {by: ", population->by);
        put_text(buffer, ", value: ", population->value);
        strbuf_printf(buffer, ", count: %" PRIu32 ", figures: ", population->count);
        inventory_print_facts(buffer, &population->figures);
        strbuf_puts(buffer, "}");
    }
}

static void print_model(struct strbuf *buffer, const struct inventory_model *model)
{
    put_text(buffer, "  - id: ", model->id);
    put_text(buffer, "\n    name: ", model->name);
    put_text(buffer, "\n    key: ", model->key);
    strbuf_printf(buffer, "\n    count: %" PRIu32 "\n    identity: ", model->count);
    inventory_print_facts(buffer, &model->identity);
    strbuf_puts(buffer, "\n    config: ");
    inventory_print_facts(buffer, &model->config);
    strbuf_puts(buffer, "\n    health: ");
    inventory_print_facts(buffer, &model->health);
    print_populations(buffer, model);
    strbuf_puts(buffer, "\n    memory:");
    inventory_print_measures(buffer, &model->memory, 6);
}

static bool is_board_key(const char *key)
{
    for (size_t i = 0; i < BOARD_KEY_COUNT; i++)
        if (strcmp(key, inventory_board_keys[i]) == 0)
            return true;
    return false;
}

static void print_board(struct strbuf *buffer, const struct facts *board)
{
    for (size_t i = 0; i < BOARD_KEY_COUNT; i++) {
        const struct fact *fact = facts_get(board, inventory_board_keys[i]);
        if (!fact)
            continue;
        strbuf_printf(buffer, "\n    %s: ", fact->key);
        inventory_print_fact(buffer, fact);
    }
    bool begun = false;
    for (size_t i = 0; i < board->count; i++) {
        const struct fact *fact = &board->items[i];
        if (is_board_key(fact->key))
            continue;
        put_text(buffer, begun ? ", " : "\n    board: {", fact->key);
        strbuf_puts(buffer, ": ");
        inventory_print_fact(buffer, fact);
        begun = true;
    }
    strbuf_puts(buffer, begun ? "}" : "");
}

/* [value, spread], followed by a word unless the value is exact and ok. */
static void print_value(struct strbuf *buffer, const struct inventory_value *value)
{
    put_number(buffer, ": [", value->value);
    put_number(buffer, ", ", value->spread);
    if (isfinite(value->value) && value->bound == MEASURE_AT_LEAST)
        strbuf_puts(buffer, ", at_least");
    else if (value->status != MEASURE_OK)
        put_text(buffer, ", ", measure_status_name(value->status));
    strbuf_puts(buffer, "]");
}

static void print_first_try(struct strbuf *buffer, const struct inventory_gpu *gpu)
{
    if (gpu->first_status != GPU_OK) {
        put_text(buffer, "\n    first_try: {status: ", gpu_status_name(gpu->first_status));
        put_text(buffer, ", reason: ", gpu->first_reason);
        strbuf_puts(buffer, "}");
    }
}

static void print_gpu(struct strbuf *buffer, const struct inventory_gpu *gpu)
{
    put_text(buffer, "  - uuid: ", gpu->uuid);
    put_text(buffer, "\n    node: ", gpu->node);
    put_text(buffer, "\n    pci: ", gpu->pci);
    put_index(buffer, "\n    index: ", gpu->index);
    put_index(buffer, "\n    rank: ", gpu->rank);
    put_text(buffer, "\n    model: ", gpu->model);
    put_text(buffer, "\n    status: ", gpu_status_name(gpu->status));
    print_first_try(buffer, gpu);
    if (gpu->gpus_given)
        strbuf_printf(buffer, "\n    gpus_given: %u", gpu->gpus_given);
    print_board(buffer, &gpu->board);
    if (gpu->hardware.count) {
        strbuf_puts(buffer, "\n    hardware: ");
        inventory_print_facts(buffer, &gpu->hardware);
    }
    strbuf_puts(buffer, "\n    config: ");
    inventory_print_facts(buffer, &gpu->config);
    strbuf_puts(buffer, "\n    health: ");
    inventory_print_facts(buffer, &gpu->health);
    strbuf_puts(buffer, "\n    values: {");
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        put_text(buffer, i ? ", " : "", value->metric);
        print_value(buffer, value);
    }
    strbuf_puts(buffer, "}");
    if (gpu->measured_again.count) {
        strbuf_puts(buffer, "\n    measured_again: ");
        inventory_print_facts(buffer, &gpu->measured_again);
    }
    if (gpu->links.count) {
        strbuf_puts(buffer, "\n    links: ");
        inventory_print_facts(buffer, &gpu->links);
    }
    if (gpu->load.count) {
        strbuf_puts(buffer, "\n    load: ");
        inventory_print_facts(buffer, &gpu->load);
    }
    strbuf_puts(buffer, "\n");
}

static void print_node(struct strbuf *buffer, const struct inventory_node *node)
{
    put_text(buffer, "  - {node: ", node->node);
    put_text(buffer, ", finding: ", node->finding);
    put_text(buffer, ", kind: ", node->accused ? inventory_kind_name(node->kind) : NULL);
    put_texts(buffer, ", gpus: ", node->gpus, node->gpu_count);
    strbuf_puts(buffer, "}\n");
}

static void print_finding(struct strbuf *buffer, const struct inventory_finding *finding)
{
    put_text(buffer, "      - {metric: ", finding->metric);
    put_number(buffer, ", value: ", finding->value);
    put_number(buffer, ", expected: ", finding->expected);
    put_text(buffer, ", unit: ", finding->unit);
    put_number(buffer, ", deviation: ", finding->deviation);
    put_number(buffer, ", score: ", finding->score);
    put_text(buffer, ", basis: ", finding->basis);
    put_text(buffer, ", cause: ", finding->cause);
    if (finding->confirmed)
        put_text(buffer, ", confirmed: ", finding->confirmed);
    strbuf_puts(buffer, "}\n");
}

static void print_outliers(struct strbuf *buffer, const struct inventory_outlier *outliers,
                           size_t count, bool accused)
{
    for (size_t i = 0; i < count; i++) {
        const struct inventory_outlier *outlier = &outliers[i];
        put_text(buffer, "  - uuid: ", outlier->uuid);
        put_text(buffer, "\n    node: ", outlier->node);
        put_text(buffer, "\n    pci: ", outlier->pci);
        put_text(buffer, "\n    model: ", outlier->model);
        if (accused)
            put_text(buffer, "\n    kind: ", inventory_kind_name(outlier->kind));
        put_list_key(buffer, "\n    findings:", outlier->finding_count);
        for (size_t f = 0; f < outlier->finding_count; f++)
            print_finding(buffer, &outlier->findings[f]);
    }
}

static void print_unmeasured(struct strbuf *buffer, const struct inventory_unmeasured *unmeasured)
{
    put_text(buffer, "  - {node: ", unmeasured->node);
    put_index(buffer, ", rank: ", unmeasured->rank);
    put_text(buffer, ", uuid: ", unmeasured->uuid);
    put_text(buffer, ", status: ", gpu_status_name(unmeasured->status));
    put_text(buffer, ", reason: ", unmeasured->reason);
    if (unmeasured->gpus_given)
        strbuf_printf(buffer, ", gpus_given: %u", unmeasured->gpus_given);
    strbuf_puts(buffer, "}\n");
}

void inventory_print(const struct inventory *inventory, struct strbuf *out_text)
{
    print_header(out_text, inventory);
    put_list_key(out_text, "models:", inventory->model_count);
    for (size_t i = 0; i < inventory->model_count; i++)
        print_model(out_text, &inventory->models[i]);
    put_list_key(out_text, "gpus:", inventory->gpu_count);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        print_gpu(out_text, &inventory->gpus[i]);
    put_list_key(out_text, "nodes:", inventory->node_finding_count);
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        print_node(out_text, &inventory->node_findings[i]);
    put_list_key(out_text, "outliers:", inventory->outlier_count);
    print_outliers(out_text, inventory->outliers, inventory->outlier_count, true);
    put_list_key(out_text, "watch:", inventory->watch_count);
    print_outliers(out_text, inventory->watch, inventory->watch_count, false);
    put_list_key(out_text, "unmeasured:", inventory->unmeasured_count);
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        print_unmeasured(out_text, &inventory->unmeasured[i]);
}
