/* Reads the references of models. */
#include "judge/reference.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

struct model_fields {
    const struct yaml_node *names, *hardware, *peaks, *values;
};

struct entry_fields {
    double value, tolerance;
    const char *source;
};

static void reference_fini(struct judge_reference *reference)
{
    for (size_t i = 0; i < reference->name_count; i++)
        free(reference->names[i]);
    for (size_t i = 0; i < reference->entry_count; i++) {
        free(reference->entries[i].key);
        free(reference->entries[i].source);
    }
    free(reference->names);
    free(reference->entries);
}

void judge_references_fini(struct judge_references *references)
{
    for (size_t i = 0; i < references->count; i++)
        reference_fini(&references->items[i]);
    free(references->items);
    memset(references, 0, sizeof *references);
}

static int reference_read_names(const struct yaml_node *node, struct judge_reference *out,
                                struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one name");
    out->names = mem_array(yaml_count(node), sizeof *out->names);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const char *name;
        rc = yaml_as_text(yaml_at(node, i), &name, err);
        if (rc)
            return rc;
        out->names[out->name_count++] = str_copy(name);
    }
    return 0;
}

static int reference_read_entry(const char *key, const struct yaml_node *node,
                                enum reference_kind kind, struct reference_entry *out,
                                struct err *err)
{
    static const struct yaml_field fields[] = {
        {"value", YAML_F64, offsetof(struct entry_fields, value), true, 1e-9, 1e18},
        {"source", YAML_STRING, offsetof(struct entry_fields, source), true},
        {"tolerance", YAML_F64, offsetof(struct entry_fields, tolerance), .max = 1},
    };
    struct entry_fields read = {.tolerance = 0};
    size_t count = kind == REFERENCE_VALUE ? 3 : 2;
    int rc = yaml_read_fields(node, fields, count, &read, err);
    if (rc)
        return rc;
    if (kind == REFERENCE_VALUE && read.tolerance <= 0)
        return yaml_error(node, err, "key \"tolerance\" is missing");
    *out = (struct reference_entry){.kind = kind,
                                    .key = str_copy(key),
                                    .value = read.value,
                                    .tolerance = read.tolerance,
                                    .source = str_copy(read.source)};
    return 0;
}

static int reference_read_entries(const struct yaml_node *node, enum reference_kind kind,
                                  struct judge_reference *out, struct err *err)
{
    int rc = node ? yaml_expect(node, YAML_MAPPING, err) : 0;
    for (size_t i = 0; node && i < yaml_count(node) && !rc; i++) {
        out->entries =
            mem_resize(out->entries, out->entry_count, out->entry_count + 1, sizeof *out->entries);
        rc = reference_read_entry(yaml_key(node, i), yaml_at(node, i), kind,
                                  &out->entries[out->entry_count++], err);
    }
    return rc;
}

static int reference_read_model(const struct yaml_node *root, struct judge_reference *out,
                                struct err *err)
{
    static const struct yaml_field fields[] = {
        {"names", YAML_NODE, offsetof(struct model_fields, names), true},
        {"hardware", YAML_NODE, offsetof(struct model_fields, hardware)},
        {"peaks", YAML_NODE, offsetof(struct model_fields, peaks)},
        {"values", YAML_NODE, offsetof(struct model_fields, values)},
    };
    struct model_fields read = {0};
    int rc = yaml_read_fields(root, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    rc = reference_read_names(read.names, out, err);
    if (rc)
        return rc;
    rc = reference_read_entries(read.hardware, REFERENCE_HARDWARE, out, err);
    if (rc)
        return rc;
    rc = reference_read_entries(read.peaks, REFERENCE_PEAK, out, err);
    return rc ? rc : reference_read_entries(read.values, REFERENCE_VALUE, out, err);
}

/* Reads one file. *out may be partly filled on failure; released with reference_fini. */
static int reference_read_file(const char *path, const struct judge_references *references,
                               struct judge_reference *out, struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_file(path, &yaml_limits_config, &doc, err);
    if (rc)
        return rc;
    rc = reference_read_model(yaml_root(doc), out, err);
    for (size_t i = 0; i < out->name_count && !rc; i++)
        if (judge_references_find(references, out->names[i]))
            rc = yaml_error(yaml_root(doc), err, "a second reference for \"%.60s\"", out->names[i]);
    yaml_destroy(doc);
    return rc;
}

static int reference_add_file(const char *path, struct judge_references *references,
                              struct err *err)
{
    struct judge_reference reference = {0};
    int rc = reference_read_file(path, references, &reference, err);
    if (rc) {
        reference_fini(&reference);
        return rc;
    }
    references->items = mem_grow(references->items, &references->capacity, references->count + 1,
                                 sizeof *references->items);
    references->items[references->count++] = reference;
    return 0;
}

static int reference_is_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && strcmp(dot, ".yaml") == 0;
}

int judge_references_read(const char *folder, struct judge_references *out_references,
                          struct err *err)
{
    struct dirent **entries = NULL;
    struct judge_references references = {0};
    int count = scandir(folder, &entries, reference_is_file, alphasort);
    if (count < 0)
        return err_set_at(err, -errno, folder, 0, 0, "cannot be read: %s", strerror(errno));
    int rc = 0;
    for (int i = 0; i < count; i++) {
        char *path = str_format("%s/%s", folder, entries[i]->d_name);
        rc = rc ? rc : reference_add_file(path, &references, err);
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (rc) {
        judge_references_fini(&references);
        return rc;
    }
    *out_references = references;
    return 0;
}

const struct judge_reference *judge_references_find(const struct judge_references *references,
                                                    const char *name)
{
    for (size_t i = 0; references && name && i < references->count; i++)
        for (size_t k = 0; k < references->items[i].name_count; k++)
            if (str_equal(references->items[i].names[k], name))
                return &references->items[i];
    return NULL;
}
