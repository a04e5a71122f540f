/* The inventory of a fleet: its members, names and release. */
#include "inventory/inventory.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/link_row.h"

const char *const verdict_names[] = {"failing",  "degraded",     "misconfigured", "mismatched",
                                     "unsteady", "built_slower", "unknown",       NULL};
const char *const action_names[] = {"nothing", "tell", "alert", "drain", NULL};

const char inventory_bare_node[] = "no GPU visible on this node";

/* Rows that several tables have. */
#define NODE_ROW(s, text)                                                                          \
    {                                                                                              \
        "node", FIELD_TEXT(s, node), .flags = SCHEMA_NULL, .privacy = SCHEMA_PRIVATE_NODE,         \
                                     .words = text                                                 \
    }
#define PCI_ROW(s)                                                                                 \
    {                                                                                              \
        "pci", FIELD_TEXT(s, pci), .flags = SCHEMA_NULL, .privacy = SCHEMA_PRIVATE_SLOT,           \
                                   .words = "PCI address"                                          \
    }
#define UUID_ROW(s)                                                                                \
    {                                                                                              \
        "uuid", FIELD_TEXT(s, uuid), .flags = SCHEMA_NULL, .privacy = SCHEMA_PRIVATE_GPU           \
    }
#define STATUS_ROW(s)                                                                              \
    {                                                                                              \
        "status", FIELD_ENUM(s, status, gpu_status_names)                                          \
    }
#define FACTS_ROW(s, member, text)                                                                 \
    {                                                                                              \
#member, FIELD_FACTS(s, member), .privacy = SCHEMA_PRIVATE_TEXT, .words = text             \
    }

#define VERDICT_ROWS(s)                                                                            \
    {"verdict", FIELD_ENUM(s, verdict, verdict_names), .words = "what the evidence means"},        \
        {"loss", FIELD_F64(s, loss), .flags = SCHEMA_NULL,                                         \
         .words = "the largest loss of its figures, a share; null: no figure lost"},               \
    {                                                                                              \
        "action", FIELD_ENUM(s, action, action_names),                                             \
            .words = "what the site's policy says is to be done"                                   \
    }

static const struct schema_field header_fields[] = {
    {"schema", SCHEMA_CONSTANT, .max = INVENTORY_SCHEMA, .words = "version of this format"},
    {"version", FIELD_TEXT(struct inventory, version),
     .words = "of the program that made the file"},
    {"generated", FIELD_TEXT(struct inventory, generated), .words = "UTC, ISO 8601",
     .pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
    {"command", FIELD_TEXTS(struct inventory, command, command_count),
     .words = "the program and its arguments"},
    {"seed", FIELD_U64(struct inventory, seed), .words = "of random numbers"},
    {"backend", FIELD_TEXT(struct inventory, backend),
     .words = "what measured: cuda or sim; a replay has what was recorded"},
    {"measured_by", FIELD_TEXTS(struct inventory, measured_by, measured_by_count),
     .flags = SCHEMA_OPTIONAL,
     .words = "of a merged file: the versions of the program that measured, if they are not just "
              "`version`"},
    {"configuration", FIELD_TEXT(struct inventory, configuration),
     .flags = SCHEMA_OPTIONAL | SCHEMA_NULL,
     .words = "what the configuration that judged it says otherwise than the default, as YAML: "
              "`merge` judges by it"},
    {"anonymous", FIELD_BOOL(struct inventory, anonymous), .flags = SCHEMA_OPTIONAL,
     .words = "true: nodes, UUIDs, serial numbers and addresses are pseudonyms"},
};
static const struct schema header_schema = {.name = "gpumemtopo",
                                            SCHEMA_FIELDS(header_fields),
                                            .style = WRITER_FLOW,
                                            .words = "Where the file comes from."};

static const struct schema_field survey_fields[] = {
    {"nodes", FIELD_U32(struct inventory, total_nodes)},
    {"ranks", FIELD_U32(struct inventory, total_ranks)},
    {"gpus", FIELD_U32(struct inventory, total_gpus)},
    {"measured", FIELD_U32(struct inventory, total_measured)},
    {"unmeasured", FIELD_U32(struct inventory, total_unmeasured)},
    {"lost_ranks", FIELD_U32(struct inventory, total_lost_ranks)},
    {"unplanned", FIELD_U32(struct inventory, total_unplanned), .flags = SCHEMA_OPTIONAL,
     .words = "of a merged file: GPUs that were measured by surveys whose plans were not there, so "
              "that other GPUs of these surveys may be missing"},
    {"unread_files", FIELD_U32(struct inventory, unread_files), .flags = SCHEMA_OPTIONAL,
     .words = "of a merged file: files that could not be read, so that GPUs may be missing"},
    {"outliers", FIELD_U32(struct inventory, total_outliers)},
    {"wall_s", FIELD_F64(struct inventory, wall_s), .flags = SCHEMA_NULL, .unit = "s",
     .words = "from the start of the survey to its report"},
    {"exit_code", FIELD_I32(struct inventory, exit_code), .max = 4, .words = "of the program"},
};
static const struct schema survey_schema = {.name = "survey",
                                            SCHEMA_FIELDS(survey_fields),
                                            .style = WRITER_FLOW,
                                            .words = "Numbers of the whole survey."};

static const struct schema_field population_fields[] = {
    {"by", FIELD_TEXT(struct inventory_population, by), .words = "the facts that they share"},
    {"value", FIELD_TEXT(struct inventory_population, value), .flags = SCHEMA_NULL,
     .words = "null: unknown"},
    {"count", FIELD_U32(struct inventory_population, count),
     .words = "GPUs of this population that were measured"},
    {"figures", FIELD_FACTS(struct inventory_population, figures),
     .words = "the usual value of each metric that differs between the populations"},
};
static const struct schema population_schema = {
    .name = "population",
    .size = sizeof(struct inventory_population),
    SCHEMA_FIELDS(population_fields),
    .style = WRITER_FLOW,
    .words =
        "GPUs of a model with the same board part, virtualization, confidential computing and, "
        "of MIG instances, number of the GPU instance."};

static void print_memory(struct writer *writer, const char *key, const void *model)
{
    measures_print(writer, key, &((const struct inventory_model *)model)->memory);
}

static int read_memory(const struct yaml_node *node, void *model, struct err *err)
{
    return measures_read(node, &((struct inventory_model *)model)->memory, err);
}

static const struct schema_form memory_form = {print_memory, read_memory};

static const struct schema_field model_fields[] = {
    {"id", FIELD_TEXT(struct inventory_model, id), .words = "a slug, unique in the file"},
    {"name", FIELD_TEXT(struct inventory_model, name), .flags = SCHEMA_NULL},
    {"key", FIELD_TEXT(struct inventory_model, key), .flags = SCHEMA_NULL,
     .words = "what makes the model: PCI ids, name, MIG profile"},
    {"count", FIELD_U32(struct inventory_model, count),
     .words = "GPUs of this model that were measured"},
    FACTS_ROW(struct inventory_model, identity, "the hardware, as the driver reports it"),
    FACTS_ROW(struct inventory_model, config, "the settings that more than half of its GPUs have"),
    FACTS_ROW(struct inventory_model, health, "likewise: errors, wear, heat"),
    {"populations",
     FIELD_LIST(struct inventory_model, populations, population_count, struct inventory_population,
                &population_schema),
     .flags = SCHEMA_OPTIONAL,
     .words = "if GPUs of this model have different boards, or are of different kinds"},
    {"memory", FIELD_MEASURES(struct inventory_model, memory), .form = &memory_form,
     .json_schema = "\"$ref\": \"#/$defs/group\"",
     .words = "memories, their attributes, and attributes of attributes: `l1_data.size`, "
              "`main.bandwidth.read`"},
};
static const struct schema model_schema = {.name = "model",
                                           .size = sizeof(struct inventory_model),
                                           SCHEMA_FIELDS(model_fields),
                                           .words =
                                               "A model: the consensus over its healthy GPUs."};

/* A value of a GPU is [value, spread], followed by a word unless it is exact and ok. */
static const char *const value_words[] = {"noisy", "unsupported", "failed", "at_least"};

static void print_values(struct writer *writer, const char *key, const void *object)
{
    const struct inventory_gpu *gpu = object;
    writer_map(writer, key, WRITER_FLOW);
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        writer_list(writer, value->metric, WRITER_FLOW);
        writer_number(writer, NULL, value->value);
        writer_number(writer, NULL, value->spread);
        if (isfinite(value->value) && value->bound == MEASURE_AT_LEAST)
            writer_text(writer, NULL, "at_least");
        else if (value->status != MEASURE_OK)
            writer_text(writer, NULL, measure_status_name(value->status));
        writer_end(writer);
    }
    writer_end(writer);
}

static int read_value(const struct yaml_node *node, struct inventory_value *value, struct err *err)
{
    size_t word;
    if (yaml_kind(node) != YAML_SEQUENCE || yaml_count(node) < 2 || yaml_count(node) > 3)
        return yaml_error(node, err, "expected [value, spread] or [value, spread, status]");
    int rc = schema_read_number(yaml_at(node, 0), &value->value, err);
    if (!rc)
        rc = schema_read_number(yaml_at(node, 1), &value->spread, err);
    if (rc)
        return rc;
    if (yaml_count(node) < 3) {
        value->status = isnan(value->value) ? MEASURE_FAILED : MEASURE_OK;
        return 0;
    }
    rc = yaml_as_word(yaml_at(node, 2), value_words, COUNT_OF(value_words), &word, err);
    if (rc)
        return rc;
    if (word == COUNT_OF(value_words) - 1)
        value->bound = MEASURE_AT_LEAST;
    else
        value->status = (enum measure_status)(word + MEASURE_NOISY);
    return 0;
}

static int read_values(const struct yaml_node *node, void *object, struct err *err)
{
    struct inventory_gpu *gpu = object;
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc || !yaml_count(node))
        return rc;
    gpu->values = mem_array(yaml_count(node), sizeof *gpu->values);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        gpu->values[i].metric = str_copy(yaml_key(node, i));
        gpu->value_count = i + 1;
        rc = read_value(yaml_at(node, i), &gpu->values[i], err);
    }
    return rc;
}

static const struct schema_form values_form = {print_values, read_values};

static const struct schema_field value_fields[] = {
    {"metric", FIELD_TEXT(struct inventory_value, metric)},
    {"value", FIELD_F64(struct inventory_value, value), .flags = SCHEMA_NULL},
    {"spread", FIELD_F64(struct inventory_value, spread), .flags = SCHEMA_NULL},
    {"status", FIELD_ENUM(struct inventory_value, status, measure_status_names)},
    {"bound", FIELD_ENUM(struct inventory_value, bound, measure_bound_names)},
};
static const struct schema value_schema = {
    .name = "value", .size = sizeof(struct inventory_value), SCHEMA_FIELDS(value_fields)};

static const struct schema_field noted_fields[] = {
    {"metric", FIELD_TEXT(struct inventory_noted, metric)},
    {"notes", FIELD_FACTS(struct inventory_noted, notes),
     .words = "`sub_core`: of the SM; `wrong`, `of`: its wrong hashes, and all of them; `again`, "
              "`again_wrong`: launches of the second look; `results`, `results_wrong`: single "
              "results that it kept; `lane`, `set`, `period`, `step`, `word`, `operands`, "
              "`expected`, `found`: the "
              "first wrong one; `bits`: those that were wrong in any of them; `sm_mhz`, `power_w`, "
              "`temperature_c`: right after it"},
};
static const struct schema noted_schema = {.name = "noted",
                                           .size = sizeof(struct inventory_noted),
                                           SCHEMA_FIELDS(noted_fields),
                                           .style = WRITER_FLOW,
                                           .words = "Where results of a GPU were wrong, and what "
                                                    "a second look saw there."};

/* Keys that facts may have, for the documentation and the JSON Schema. */
static const struct schema_field links_keys[] = {
    {"gpus", SCHEMA_TEXT, .list = true, .flags = SCHEMA_OPTIONAL, .words = "their UUIDs"},
    {"state", SCHEMA_TEXT, .list = true, .flags = SCHEMA_OPTIONAL,
     .words = "ok; host: copies go through the host; failed; wrong: data arrived wrong; unknown: "
              "not measured"},
    {"read", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s",
     .words = "by a copy engine from the peer; null: not measured. The same for the others"},
    {"write", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s", .words = "by a copy engine to the peer"},
    {"both", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s", .words = "both ways at once, in sum"},
    {"sm_read", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s", .words = "by loads of all SMs"},
    {"sm_write", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s", .words = "by stores of all SMs"},
    {"sm_both", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "GB/s", .words = "by loads and stores of all SMs at once, in sum"},
    {"latency", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "cycles", .words = "of a load"},
    {"latency_ns", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "ns", .words = "of a load"},
    {"why", SCHEMA_TEXT, .flags = SCHEMA_OPTIONAL,
     .words = "why the first one that failed did; alone: why there is no link to measure, and what "
              "would measure it"},
};
static const struct schema links_schema = {
    .name = "links",
    SCHEMA_FIELDS(links_keys),
    .style = WRITER_FLOW,
    .words = "Links to the other GPUs of the node: lists with one item for each peer, in the same "
             "order.",
    .rules = "\"anyOf\": [{\"required\": [\"gpus\", \"state\"]}, {\"required\": [\"why\"], "
             "\"maxProperties\": 1}]"};

static const char *const together_names[] = {"together", "one after the other", NULL};
static const struct schema_field load_keys[] = {
    {"throttle", SCHEMA_TEXT, .flags = SCHEMA_OPTIONAL,
     .words = "the throttle reasons that were seen"},
    {"gpus_of_node", SCHEMA_ENUM, .flags = SCHEMA_OPTIONAL, .names = together_names,
     .name_count = 2},
    {"begun_after_s", SCHEMA_F64, .flags = SCHEMA_OPTIONAL, .max = 1e18, .unit = "s",
     .words = "for which it waited for other nodes and for its turn"},
    {"curve_s", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL, .max = 1e18, .unit = "s",
     .words =
         "of a GPU that is an outlier, or has a finding about its load: the times of its curve"},
    {"curve_mhz", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "MHz", .words = "the clock of the SMs at these times; null: not known"},
    {"curve_w", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "W", .words = "the power"},
    {"curve_c", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL, .max = 1e18,
     .unit = "C", .words = "the temperature of the GPU"},
    {"curve_memory_c", SCHEMA_F64, .list = true, .flags = SCHEMA_OPTIONAL | SCHEMA_NULL,
     .max = 1e18, .unit = "C", .words = "the temperature of its memory"},
};
static const struct schema load_schema = {.name = "load",
                                          SCHEMA_FIELDS(load_keys),
                                          .style = WRITER_FLOW,
                                          .words = "The sustained load of a GPU."};

static const struct schema_field gpu_fields[] = {
    UUID_ROW(struct inventory_gpu),
    NODE_ROW(struct inventory_gpu, "host name"),
    PCI_ROW(struct inventory_gpu),
    {"index", FIELD_I32(struct inventory_gpu, index), .flags = SCHEMA_NULL,
     .words = "NVML's minor number"},
    {"rank", FIELD_I32(struct inventory_gpu, rank), .flags = SCHEMA_NULL,
     .words = "the rank that measured it"},
    {"model", FIELD_TEXT(struct inventory_gpu, model), .flags = SCHEMA_NULL,
     .words = "the id of one of the models"},
    STATUS_ROW(struct inventory_gpu),
    GPU_RUN_ROWS(struct inventory_gpu),
    {"serial", FIELD_FACT(struct inventory_gpu, board), .flags = SCHEMA_OPTIONAL},
    {"part", FIELD_FACT(struct inventory_gpu, board), .flags = SCHEMA_OPTIONAL},
    {"vbios", FIELD_FACT(struct inventory_gpu, board), .flags = SCHEMA_OPTIONAL},
    {"driver", FIELD_FACT(struct inventory_gpu, board), .flags = SCHEMA_OPTIONAL},
    {"board", FIELD_FACTS(struct inventory_gpu, board),
     .flags = SCHEMA_OPTIONAL | SCHEMA_REST | SCHEMA_LISTS, .privacy = SCHEMA_PRIVATE_TEXT,
     .words = "further facts about this unit"},
    {"hardware", FIELD_FACTS(struct inventory_gpu, hardware), .flags = SCHEMA_OPTIONAL,
     .privacy = SCHEMA_PRIVATE_TEXT, .words = "what differs from the model's identity"},
    FACTS_ROW(struct inventory_gpu, config, "what differs from the model's majority"),
    FACTS_ROW(struct inventory_gpu, health,
              "errors, wear, heat: what differs from the model's majority"),
    {"values",
     FIELD_LIST(struct inventory_gpu, values, value_count, struct inventory_value, &value_schema),
     .form = &values_form,
     .json_schema =
         "\"type\": \"object\", \"additionalProperties\": {\"type\": \"array\", \"prefixItems\": "
         "[{\"$ref\": \"#/$defs/figure_or_null\"}, {\"$ref\": \"#/$defs/figure_or_null\"}, "
         "{\"enum\": [\"noisy\", \"unsupported\", \"failed\", \"at_least\"]}], \"items\": false, "
         "\"minItems\": 2, \"maxItems\": 3}",
     .words = "every judged metric: value, the GPU's own spread, and a word unless it is an exact "
              "number that is ok"},
    {"noted",
     FIELD_LIST(struct inventory_gpu, noted, noted_count, struct inventory_noted, &noted_schema),
     .flags = SCHEMA_OPTIONAL},
    {"measured_again", FIELD_FACTS(struct inventory_gpu, measured_again), .flags = SCHEMA_OPTIONAL,
     .json_schema = "\"type\": \"object\", \"additionalProperties\": {\"$ref\": "
                    "\"#/$defs/figure_or_null\"}",
     .words = "second values of figures that looked bad; null: the second measurement failed; "
              "clock.throttled: 1 if a throttle reason was there again, otherwise 0"},
    {"links", FIELD_FACTS(struct inventory_gpu, links), .flags = SCHEMA_OPTIONAL | SCHEMA_LISTS,
     .privacy = SCHEMA_PRIVATE_TEXT, .of = &links_schema},
    {"load", FIELD_FACTS(struct inventory_gpu, load), .flags = SCHEMA_OPTIONAL | SCHEMA_LISTS,
     .of = &load_schema},
};
static int gpu_check(const void *object, struct err *err)
{
    return link_row_check(&((const struct inventory_gpu *)object)->links, err);
}

const struct schema inventory_gpu_schema = {
    .name = "gpu",
    .size = sizeof(struct inventory_gpu),
    SCHEMA_FIELDS(gpu_fields),
    .check = gpu_check,
    .words = "One GPU. What it shares with most of its model is in the entry of the model."};

static const struct schema_field node_fields[] = {
    NODE_ROW(struct inventory_node, "null: a slot or a model, as the finding says"),
    {"finding", FIELD_TEXT(struct inventory_node, finding), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    VERDICT_ROWS(struct inventory_node),
    {"gpus", FIELD_TEXTS(struct inventory_node, gpus, gpu_count), .privacy = SCHEMA_PRIVATE_GPU,
     .words = "UUIDs of the GPUs concerned"},
};
static const struct schema node_schema = {
    .name = "node",
    .size = sizeof(struct inventory_node),
    SCHEMA_FIELDS(node_fields),
    .style = WRITER_FLOW,
    .words = "What is to be said of a node, a slot or a model as a whole. What is wrong by a rule, "
             "which needs no peers, is also among the outliers, GPU by GPU."};

static const struct schema_field evidence_fields[] = {
    {"metric", FIELD_TEXT(struct inventory_evidence, metric)},
    {"value", FIELD_F64(struct inventory_evidence, value), .flags = SCHEMA_NULL},
    {"expected", FIELD_F64(struct inventory_evidence, expected), .flags = SCHEMA_NULL},
    {"unit", FIELD_TEXT(struct inventory_evidence, unit), .flags = SCHEMA_NULL},
    {"deviation", FIELD_F64(struct inventory_evidence, deviation), .flags = SCHEMA_NULL,
     .words = "share of the expected value"},
    {"score", FIELD_F64(struct inventory_evidence, score), .flags = SCHEMA_NULL,
     .words = "robust z; null where the basis is neither a fleet nor the world"},
    {"basis", FIELD_TEXT(struct inventory_evidence, basis), .flags = SCHEMA_NULL,
     .words = "fleet, reference, baseline, world, rule or earlier"},
    {"cause", FIELD_TEXT(struct inventory_evidence, cause), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    {"confirmed", FIELD_TEXT(struct inventory_evidence, confirmed), .flags = SCHEMA_OPTIONAL,
     .pattern = "^(2 of 2|1 of 2|by its (cause|repetitions)|by ([2-9]|[1-9][0-9]+) figures|no)$",
     .words = "what else shows the deviation: `2 of 2` measurements, `1 of 2`, `by 3 figures`, `by "
              "its cause`, `by its repetitions`, `no`"},
};
static const struct schema evidence_schema = {.name = "evidence",
                                              .size = sizeof(struct inventory_evidence),
                                              SCHEMA_FIELDS(evidence_fields),
                                              .style = WRITER_FLOW,
                                              .words = "One deviation of one GPU."};

static const struct schema_field outlier_fields[] = {
    UUID_ROW(struct inventory_outlier),
    NODE_ROW(struct inventory_outlier, NULL),
    PCI_ROW(struct inventory_outlier),
    {"model", FIELD_TEXT(struct inventory_outlier, model), .flags = SCHEMA_NULL},
    VERDICT_ROWS(struct inventory_outlier),
    {"evidence", FIELD_LIST(struct inventory_outlier, evidence, evidence_count,
                            struct inventory_evidence, &evidence_schema)},
};
static const struct schema outlier_schema = {
    .name = "outlier",
    .size = sizeof(struct inventory_outlier),
    SCHEMA_FIELDS(outlier_fields),
    .words = "A GPU that deviates, and why. `outliers` has what is alerted or drained, `watch` "
             "what is only told."};

static const struct schema_field unmeasured_fields[] = {
    NODE_ROW(struct inventory_unmeasured, NULL),
    {"rank", FIELD_I32(struct inventory_unmeasured, rank), .flags = SCHEMA_NULL},
    UUID_ROW(struct inventory_unmeasured),
    STATUS_ROW(struct inventory_unmeasured),
    {"reason", FIELD_TEXT(struct inventory_unmeasured, reason), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    {"gpus_allocated", FIELD_U32(struct inventory_unmeasured, gpus_allocated),
     .flags = SCHEMA_OPTIONAL,
     .words = "of a rank that lists no GPU: so many the launcher gave to its node"},
};
static const struct schema unmeasured_schema = {
    .name = "unmeasured",
    .size = sizeof(struct inventory_unmeasured),
    SCHEMA_FIELDS(unmeasured_fields),
    .style = WRITER_FLOW,
    .words = "A GPU that was not measured, or a rank whose GPUs are not known."};

static const struct schema_field inventory_fields[] = {
    {"gpumemtopo", FIELD_PART(&header_schema)},
    {"survey", FIELD_PART(&survey_schema)},
    {"models",
     FIELD_LIST(struct inventory, models, model_count, struct inventory_model, &model_schema)},
    {"gpus",
     FIELD_LIST(struct inventory, gpus, gpu_count, struct inventory_gpu, &inventory_gpu_schema)},
    {"nodes", FIELD_LIST(struct inventory, node_findings, node_finding_count, struct inventory_node,
                         &node_schema)},
    {"outliers", FIELD_LIST(struct inventory, outliers, outlier_count, struct inventory_outlier,
                            &outlier_schema)},
    {"watch",
     FIELD_LIST(struct inventory, watch, watch_count, struct inventory_outlier, &outlier_schema)},
    {"unmeasured", FIELD_LIST(struct inventory, unmeasured, unmeasured_count,
                              struct inventory_unmeasured, &unmeasured_schema)},
};
const struct schema inventory_schema = {
    .name = "inventory",
    .size = sizeof(struct inventory),
    SCHEMA_FIELDS(inventory_fields),
    .words = "What gpumemtopo-survey writes: a fleet's GPUs, their memory hierarchies by model, "
             "and what is odd about them."};

const char *verdict_name(enum verdict verdict)
{
    return verdict_names[verdict];
}

bool inventory_value_is_good(const struct inventory_value *value)
{
    return value->status == MEASURE_OK && value->bound == MEASURE_EXACT && isfinite(value->value);
}

const char *action_name(enum action action)
{
    return action_names[action];
}

enum action inventory_action(const struct inventory *inventory)
{
    enum action most = ACTION_NOTHING;
    for (size_t i = 0; i < inventory->outlier_count; i++)
        if (inventory->outliers[i].action > most)
            most = inventory->outliers[i].action;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (inventory->node_findings[i].action > most)
            most = inventory->node_findings[i].action;
    return most == ACTION_NOTHING && inventory->watch_count ? ACTION_TELL : most;
}

bool inventory_is_incomplete(const struct inventory *inventory)
{
    return inventory->total_unmeasured || inventory->total_lost_ranks ||
           inventory->total_unplanned || inventory->unread_files;
}

size_t inventory_measured_by_count(const struct inventory *inventory)
{
    return inventory->measured_by_count ? inventory->measured_by_count : 1;
}

const char *inventory_measured_by(const struct inventory *inventory, size_t number)
{
    return inventory->measured_by_count ? inventory->measured_by[number] : inventory->version;
}

void inventory_put_measured_by(const struct inventory *inventory, struct strbuf *out)
{
    for (size_t i = 0; i < inventory_measured_by_count(inventory); i++) {
        const char *version = inventory_measured_by(inventory, i);
        strbuf_printf(out, "%s%s", i ? ", " : "", version ? version : "");
    }
}

void inventory_gpu_fini(struct inventory_gpu *gpu)
{
    schema_fini(&inventory_gpu_schema, gpu);
}

void inventory_node_fini(struct inventory_node *node)
{
    schema_fini(&node_schema, node);
}

void inventory_fini(struct inventory *inventory)
{
    schema_fini(&inventory_schema, inventory);
}
