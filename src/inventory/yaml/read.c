/* Reads an inventory from YAML nodes, strictly: every key is known, every value has its type. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/yaml.h"
#include "inventory/board_keys.h"
#include "inventory/inventory.h"
#include "inventory/names.h"
#include "inventory/yaml/field.h"
#include "inventory/yaml/read.h"

/* One key of a mapping, and how to read its value into the struct. What was read before a failure
 * stays in the struct; inventory_fini releases it. */
struct member {
    const char *key;
    int (*read)(const struct yaml_node *node, void *slot, struct err *err);
    size_t offset;
    bool optional;
};
enum { MEMBERS_MAX = 24 };

static int read_members(const struct yaml_node *mapping, const struct member *members, size_t count,
                        void *out_struct, struct err *err)
{
    struct yaml_field fields[MEMBERS_MAX];
    const struct yaml_node *nodes[MEMBERS_MAX] = {0};
    assert(count <= MEMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        fields[i] = (struct yaml_field){.key = members[i].key,
                                        .type = YAML_NODE,
                                        .offset = i * sizeof *nodes,
                                        .required = !members[i].optional};
    int rc = yaml_read_fields(mapping, fields, count, nodes, err);
    for (size_t i = 0; i < count && !rc; i++) {
        if (!nodes[i])
            continue;
        rc = members[i].read(nodes[i], (char *)out_struct + members[i].offset, err);
        if (rc)
            err_prefix(err, "%s", members[i].key);
    }
    return rc;
}

/* Reads a list into an array of zeroed structs. The count is increased before an item is read, so
 * that a half-read item is released too. */
static int read_list(const struct yaml_node *node, size_t item_bytes,
                     int (*read)(const struct yaml_node *node, void *item, struct err *err),
                     void *out_array, size_t *out_count, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc || !yaml_count(node))
        return rc;
    char *array = mem_array(yaml_count(node), item_bytes);
    if (!array)
        return err_no_memory(err);
    memcpy(out_array, &array, sizeof array);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        *out_count = i + 1;
        rc = read(yaml_at(node, i), array + i * item_bytes, err);
    }
    return rc;
}

static int text(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_text(node, slot, err);
}

static int text_or_null(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_text_or_null(node, slot, err);
}

static int number(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_number(node, slot, err);
}

static int index_or_null(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_index(node, slot, err);
}

static int flag(const struct yaml_node *node, void *slot, struct err *err)
{
    return yaml_as_bool(node, slot, err);
}

static int u64(const struct yaml_node *node, void *slot, struct err *err)
{
    return yaml_as_u64(node, 0, UINT64_MAX, slot, err);
}

static int u32(const struct yaml_node *node, void *slot, struct err *err)
{
    uint64_t value;
    int rc = yaml_as_u64(node, 0, UINT32_MAX, &value, err);
    if (!rc)
        *(uint32_t *)slot = (uint32_t)value;
    return rc;
}

static int exit_code(const struct yaml_node *node, void *slot, struct err *err)
{
    uint64_t value;
    int rc = yaml_as_u64(node, 0, 4, &value, err);
    if (!rc)
        *(int *)slot = (int)value;
    return rc;
}

static int facts(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_facts(node, slot, err);
}

static int measures(const struct yaml_node *node, void *slot, struct err *err)
{
    return field_measures(node, slot, err);
}

static int status(const struct yaml_node *node, void *slot, struct err *err)
{
    size_t index;
    int rc = yaml_as_word(node, gpu_status_names, GPU_STATUS_COUNT, &index, err);
    if (!rc)
        *(enum gpu_status *)slot = (enum gpu_status)index;
    return rc;
}

static int kind(const struct yaml_node *node, void *slot, struct err *err)
{
    size_t index;
    int rc = yaml_as_word(node, inventory_kind_names, INVENTORY_KIND_COUNT, &index, err);
    if (!rc)
        *(enum inventory_kind *)slot = (enum inventory_kind)index;
    return rc;
}

static int read_schema(const struct yaml_node *node, void *slot, struct err *err)
{
    uint64_t schema;
    (void)slot;
    int rc = yaml_as_u64(node, 1, UINT32_MAX, &schema, err);
    if (!rc && schema > INVENTORY_SCHEMA)
        rc = yaml_error(node, err,
                        "the file has schema %llu, newer than the %d that this program knows: "
                        "read it with a newer gpumemtopo",
                        (unsigned long long)schema, INVENTORY_SCHEMA);
    return rc;
}

static int read_command(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory *inventory = slot;
    return field_texts(node, &inventory->command, &inventory->command_count, err);
}

static int read_measured_by(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory *inventory = slot;
    return field_texts(node, &inventory->measured_by, &inventory->measured_by_count, err);
}

static int read_header(const struct yaml_node *node, void *inventory, struct err *err)
{
    static const struct member members[] = {
        {"schema", read_schema, 0},
        {"version", text, offsetof(struct inventory, version)},
        {"generated", text, offsetof(struct inventory, generated)},
        {"command", read_command, 0},
        {"seed", u64, offsetof(struct inventory, seed)},
        {"backend", text, offsetof(struct inventory, backend)},
        {"measured_by", read_measured_by, 0, true},
        {"anonymous", flag, offsetof(struct inventory, anonymous), true},
    };
    return read_members(node, members, COUNT_OF(members), inventory, err);
}

static int read_survey(const struct yaml_node *node, void *inventory, struct err *err)
{
    static const struct member members[] = {
        {"nodes", u32, offsetof(struct inventory, total_nodes)},
        {"ranks", u32, offsetof(struct inventory, total_ranks)},
        {"gpus", u32, offsetof(struct inventory, total_gpus)},
        {"measured", u32, offsetof(struct inventory, total_measured)},
        {"unmeasured", u32, offsetof(struct inventory, total_unmeasured)},
        {"lost_ranks", u32, offsetof(struct inventory, total_lost_ranks)},
        {"outliers", u32, offsetof(struct inventory, total_outliers)},
        {"wall_s", number, offsetof(struct inventory, wall_s)},
        {"exit_code", exit_code, offsetof(struct inventory, exit_code)},
    };
    return read_members(node, members, COUNT_OF(members), inventory, err);
}

static int read_population(const struct yaml_node *node, void *population, struct err *err)
{
    static const struct member members[] = {
        {"by", text, offsetof(struct inventory_population, by)},
        {"value", text_or_null, offsetof(struct inventory_population, value)},
        {"count", u32, offsetof(struct inventory_population, count)},
        {"figures", facts, offsetof(struct inventory_population, figures)},
    };
    return read_members(node, members, COUNT_OF(members), population, err);
}

static int read_populations(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory_model *model = slot;
    return read_list(node, sizeof *model->populations, read_population, &model->populations,
                     &model->population_count, err);
}

static int read_model(const struct yaml_node *node, void *model, struct err *err)
{
    static const struct member members[] = {
        {"id", text, offsetof(struct inventory_model, id)},
        {"name", text_or_null, offsetof(struct inventory_model, name)},
        {"key", text_or_null, offsetof(struct inventory_model, key)},
        {"count", u32, offsetof(struct inventory_model, count)},
        {"identity", facts, offsetof(struct inventory_model, identity)},
        {"config", facts, offsetof(struct inventory_model, config)},
        {"health", facts, offsetof(struct inventory_model, health)},
        {"populations", read_populations, 0, true},
        {"memory", measures, offsetof(struct inventory_model, memory)},
    };
    return read_members(node, members, COUNT_OF(members), model, err);
}

/* The optional word after value and spread. */
static int read_value_word(const struct yaml_node *pair, struct inventory_value *value,
                           struct err *err)
{
    static const char *const words[] = {"noisy", "unsupported", "failed", "at_least"};
    size_t index;
    if (yaml_count(pair) < 3) {
        value->status = isnan(value->value) ? MEASURE_FAILED : MEASURE_OK;
        return 0;
    }
    int rc = yaml_as_word(yaml_at(pair, 2), words, COUNT_OF(words), &index, err);
    if (rc)
        return rc;
    if (index == COUNT_OF(words) - 1)
        value->bound = MEASURE_AT_LEAST;
    else
        value->status = (enum measure_status)(index + MEASURE_NOISY);
    return 0;
}

static int read_values(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory_gpu *gpu = slot;
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc || !yaml_count(node))
        return rc;
    gpu->values = mem_array(yaml_count(node), sizeof *gpu->values);
    if (!gpu->values)
        return err_no_memory(err);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const struct yaml_node *pair = yaml_at(node, i);
        struct inventory_value *value = &gpu->values[i];
        if (yaml_kind(pair) != YAML_SEQUENCE || yaml_count(pair) < 2 || yaml_count(pair) > 3)
            return yaml_error(pair, err, "expected [value, spread] or [value, spread, status]");
        value->metric = str_copy(yaml_key(node, i));
        if (!value->metric)
            return err_no_memory(err);
        gpu->value_count = i + 1;
        rc = field_number(yaml_at(pair, 0), &value->value, err);
        if (rc)
            return rc;
        rc = field_number(yaml_at(pair, 1), &value->spread, err);
        if (rc)
            return rc;
        rc = read_value_word(pair, value, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_serial(const struct yaml_node *node, void *board, struct err *err)
{
    return field_fact(inventory_board_keys[0], node, board, err);
}

static int read_part(const struct yaml_node *node, void *board, struct err *err)
{
    return field_fact(inventory_board_keys[1], node, board, err);
}

static int read_vbios(const struct yaml_node *node, void *board, struct err *err)
{
    return field_fact(inventory_board_keys[2], node, board, err);
}

static int read_driver(const struct yaml_node *node, void *board, struct err *err)
{
    return field_fact(inventory_board_keys[3], node, board, err);
}

static int read_first_try(const struct yaml_node *node, void *gpu, struct err *err)
{
    static const struct member members[] = {
        {"status", status, offsetof(struct inventory_gpu, first_status)},
        {"reason", text_or_null, offsetof(struct inventory_gpu, first_reason)},
    };
    return read_members(node, members, COUNT_OF(members), gpu, err);
}

static int read_gpu(const struct yaml_node *node, void *gpu, struct err *err)
{
    static const struct member members[] = {
        {"uuid", text_or_null, offsetof(struct inventory_gpu, uuid)},
        {"node", text_or_null, offsetof(struct inventory_gpu, node)},
        {"pci", text_or_null, offsetof(struct inventory_gpu, pci)},
        {"index", index_or_null, offsetof(struct inventory_gpu, index)},
        {"rank", index_or_null, offsetof(struct inventory_gpu, rank)},
        {"model", text_or_null, offsetof(struct inventory_gpu, model)},
        {"status", status, offsetof(struct inventory_gpu, status)},
        {"first_try", read_first_try, 0, true},
        {"gpus_given", u32, offsetof(struct inventory_gpu, gpus_given), true},
        {"serial", read_serial, offsetof(struct inventory_gpu, board), true},
        {"part", read_part, offsetof(struct inventory_gpu, board), true},
        {"vbios", read_vbios, offsetof(struct inventory_gpu, board), true},
        {"driver", read_driver, offsetof(struct inventory_gpu, board), true},
        {"board", facts, offsetof(struct inventory_gpu, board), true},
        {"hardware", facts, offsetof(struct inventory_gpu, hardware), true},
        {"config", facts, offsetof(struct inventory_gpu, config)},
        {"health", facts, offsetof(struct inventory_gpu, health)},
        {"values", read_values, 0},
        {"measured_again", facts, offsetof(struct inventory_gpu, measured_again), true},
        {"links", facts, offsetof(struct inventory_gpu, links), true},
        {"load", facts, offsetof(struct inventory_gpu, load), true},
    };
    return read_members(node, members, COUNT_OF(members), gpu, err);
}

static int read_node_gpus(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory_node *finding = slot;
    return field_texts(node, &finding->gpus, &finding->gpu_count, err);
}

static int read_node_kind(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory_node *finding = slot;
    if (yaml_is_null(node))
        return 0;
    finding->accused = true;
    return kind(node, &finding->kind, err);
}

static int read_node(const struct yaml_node *node, void *finding, struct err *err)
{
    static const struct member members[] = {
        {"node", text_or_null, offsetof(struct inventory_node, node)},
        {"finding", text_or_null, offsetof(struct inventory_node, finding)},
        {"kind", read_node_kind, 0},
        {"gpus", read_node_gpus, 0},
    };
    return read_members(node, members, COUNT_OF(members), finding, err);
}

static int read_finding(const struct yaml_node *node, void *finding, struct err *err)
{
    static const struct member members[] = {
        {"metric", text, offsetof(struct inventory_finding, metric)},
        {"value", number, offsetof(struct inventory_finding, value)},
        {"expected", number, offsetof(struct inventory_finding, expected)},
        {"unit", text_or_null, offsetof(struct inventory_finding, unit)},
        {"deviation", number, offsetof(struct inventory_finding, deviation)},
        {"score", number, offsetof(struct inventory_finding, score)},
        {"basis", text_or_null, offsetof(struct inventory_finding, basis)},
        {"cause", text_or_null, offsetof(struct inventory_finding, cause)},
        {"confirmed", text, offsetof(struct inventory_finding, confirmed), true},
    };
    return read_members(node, members, COUNT_OF(members), finding, err);
}

static int read_findings(const struct yaml_node *node, void *slot, struct err *err)
{
    struct inventory_outlier *outlier = slot;
    return read_list(node, sizeof *outlier->findings, read_finding, &outlier->findings,
                     &outlier->finding_count, err);
}

/* `watch` has the same entries without `kind`, which therefore comes last. */
static const struct member outlier_members[] = {
    {"uuid", text_or_null, offsetof(struct inventory_outlier, uuid)},
    {"node", text_or_null, offsetof(struct inventory_outlier, node)},
    {"pci", text_or_null, offsetof(struct inventory_outlier, pci)},
    {"model", text_or_null, offsetof(struct inventory_outlier, model)},
    {"findings", read_findings, 0},
    {"kind", kind, offsetof(struct inventory_outlier, kind)},
};

static int read_outlier(const struct yaml_node *node, void *outlier, struct err *err)
{
    return read_members(node, outlier_members, COUNT_OF(outlier_members), outlier, err);
}

static int read_watched(const struct yaml_node *node, void *outlier, struct err *err)
{
    return read_members(node, outlier_members, COUNT_OF(outlier_members) - 1, outlier, err);
}

static int read_unmeasured(const struct yaml_node *node, void *unmeasured, struct err *err)
{
    static const struct member members[] = {
        {"node", text_or_null, offsetof(struct inventory_unmeasured, node)},
        {"rank", index_or_null, offsetof(struct inventory_unmeasured, rank)},
        {"uuid", text_or_null, offsetof(struct inventory_unmeasured, uuid)},
        {"status", status, offsetof(struct inventory_unmeasured, status)},
        {"reason", text_or_null, offsetof(struct inventory_unmeasured, reason)},
        {"gpus_given", u32, offsetof(struct inventory_unmeasured, gpus_given), true},
    };
    return read_members(node, members, COUNT_OF(members), unmeasured, err);
}

#define LIST_READER(name, array, count, read)                                                      \
    static int name(const struct yaml_node *node, void *slot, struct err *err)                     \
    {                                                                                              \
        struct inventory *inventory = slot;                                                        \
        return read_list(node, sizeof *inventory->array, read, &inventory->array,                  \
                         &inventory->count, err);                                                  \
    }
LIST_READER(read_models, models, model_count, read_model)
LIST_READER(read_gpus, gpus, gpu_count, read_gpu)
LIST_READER(read_nodes, node_findings, node_finding_count, read_node)
LIST_READER(read_outliers, outliers, outlier_count, read_outlier)
LIST_READER(read_watch, watch, watch_count, read_watched)
LIST_READER(read_all_unmeasured, unmeasured, unmeasured_count, read_unmeasured)

/* Checked first, because a newer file may have unknown keys. */
static int check_schema(const struct yaml_node *root, struct err *err)
{
    const struct yaml_node *header = yaml_get(root, "gpumemtopo");
    if (!header)
        return yaml_error(root, err, "not an inventory: key \"gpumemtopo\" is missing");
    const struct yaml_node *schema = yaml_get(header, "schema");
    if (!schema)
        return yaml_error(header, err, "not an inventory: gpumemtopo has no key \"schema\"");
    int rc = read_schema(schema, NULL, err);
    if (rc)
        err_prefix(err, "schema");
    return rc;
}

int inventory_read_gpu(const struct yaml_node *node, struct inventory_gpu *gpu, struct err *err)
{
    return read_gpu(node, gpu, err);
}

int inventory_read_document(const struct yaml_doc *doc, struct inventory *inventory,
                            struct err *err)
{
    static const struct member members[] = {
        {"gpumemtopo", read_header, 0}, {"survey", read_survey, 0},
        {"models", read_models, 0},     {"gpus", read_gpus, 0},
        {"nodes", read_nodes, 0},       {"outliers", read_outliers, 0},
        {"watch", read_watch, 0},       {"unmeasured", read_all_unmeasured, 0},
    };
    int rc = check_schema(yaml_root(doc), err);
    return rc ? rc : read_members(yaml_root(doc), members, COUNT_OF(members), inventory, err);
}
