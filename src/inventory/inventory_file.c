/* Inventories as YAML: printed, written so that a reader never sees half a file, and read: what
 * inventory_print has written GPU by GPU, any other YAML as a whole. */
#include <errno.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "base/yaml_plain.h"
#include "inventory/inventory.h"

void inventory_print(const struct inventory *inventory, struct strbuf *out_text)
{
    struct writer writer = {.out = out_text, .format = WRITER_YAML};
    schema_print(&inventory_schema, &writer, NULL, inventory);
}

int inventory_write_file(const struct inventory *inventory, const char *path, struct err *err)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = out_file_write(path, text.data, text.length, err);
    strbuf_fini(&text);
    return rc;
}

/* stdout, pipes and devices cannot be read back, so the text is checked before it is written. */
int inventory_write_checked(const struct inventory *inventory, const char *path, struct err *err)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = inventory_check_text(text.data, text.length, "inventory", err);
    if (!rc)
        rc = out_file_write(path, text.data, text.length, err);
    strbuf_fini(&text);
    if (rc || out_file_in_place(path))
        return rc;
    return inventory_check_file(path, err);
}

/* Checked first, because a newer file may have unknown keys. */
static int file_check_schema(const struct yaml_node *root, struct err *err)
{
    uint64_t number;
    const struct yaml_node *header = yaml_get(root, "gpumemtopo");
    if (!header)
        return yaml_error(root, err, "not an inventory: key \"gpumemtopo\" is missing");
    const struct yaml_node *schema = yaml_get(header, "schema");
    if (!schema)
        return yaml_error(header, err, "not an inventory: gpumemtopo has no key \"schema\"");
    int rc = yaml_as_u64(schema, 1, UINT32_MAX, &number, err);
    if (!rc && number > INVENTORY_SCHEMA)
        rc = yaml_error(schema, err,
                        "the file has schema %llu, newer than the %d that this program knows: "
                        "read it with a newer gpumemtopo",
                        (unsigned long long)number, INVENTORY_SCHEMA);
    else if (!rc && number < INVENTORY_SCHEMA)
        rc = yaml_error(schema, err,
                        "the file has schema %llu, older than the %d that this program reads: "
                        "convert it with tools/convert-inventory",
                        (unsigned long long)number, INVENTORY_SCHEMA);
    if (rc)
        err_prefix(err, "schema");
    return rc;
}

static int file_read_document(const struct yaml_doc *doc, struct inventory *inventory,
                              struct err *err)
{
    int rc = file_check_schema(yaml_root(doc), err);
    return rc ? rc : schema_read(&inventory_schema, yaml_root(doc), inventory, err);
}

/* For yaml_plain_read: the GPUs of an inventory as they come. */
struct gpus_taken {
    struct inventory_gpu *gpus;
    size_t count, capacity;
    bool forget; /* only whether they can be read is asked */
};

static int file_take_gpu(void *user, const struct yaml_node *item, struct err *err)
{
    struct gpus_taken *taken = user;
    if (taken->forget) {
        struct inventory_gpu gpu = {0};
        int rc = schema_read(&inventory_gpu_schema, item, &gpu, err);
        inventory_gpu_fini(&gpu);
        return rc;
    }
    taken->gpus = mem_grow(taken->gpus, &taken->capacity, taken->count + 1, sizeof *taken->gpus);
    return schema_read(&inventory_gpu_schema, item, &taken->gpus[taken->count++], err);
}

/* Reads what inventory_print has written, GPU by GPU: -ENOTSUP if it may be something else. */
static int file_read_plain(const char *text, size_t length, const char *name, bool forget,
                           struct inventory *inventory)
{
    struct gpus_taken taken = {.forget = forget};
    const struct yaml_plain_list list = {"gpus", file_take_gpu, &taken};
    struct yaml_doc *doc = NULL;
    int rc = yaml_plain_read(text, length, name, &yaml_limits_plain, &list, &doc);
    if (!rc && file_read_document(doc, inventory, NULL))
        rc = -ENOTSUP;
    if (taken.count) { /* the document has an empty list in their place */
        inventory->gpus = taken.gpus;
        inventory->gpu_count = taken.count;
    }
    if (rc)
        inventory_fini(inventory);
    yaml_destroy(doc);
    return rc;
}

/* libyaml for all that is not in the plain form, and for what is wrong with a file. */
static int file_read_any(const char *text, size_t length, const char *name,
                         struct inventory *inventory, struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text, length, name, &yaml_limits_inventory, &doc, err);
    if (!rc)
        rc = file_read_document(doc, inventory, err);
    if (rc)
        inventory_fini(inventory);
    yaml_destroy(doc);
    return rc;
}

/* out_inventory NULL: only whether it can be read is asked. */
static int file_read_or_check_text(const char *text, size_t length, const char *name,
                                   struct inventory *out_inventory, struct err *err)
{
    struct inventory inventory = {0};
    int rc = file_read_plain(text, length, name, !out_inventory, &inventory);
    if (rc == -ENOTSUP)
        rc = file_read_any(text, length, name, &inventory, err);
    if (!rc && out_inventory)
        *out_inventory = inventory;
    else if (!rc)
        inventory_fini(&inventory);
    return rc;
}

static int file_read_or_check(const char *path, struct inventory *out_inventory, struct err *err)
{
    struct strbuf bytes = {0};
    int rc = yaml_load_text(path, &yaml_limits_plain, &bytes, err);
    if (!rc)
        rc = file_read_or_check_text(bytes.data ? bytes.data : "", bytes.length, path,
                                     out_inventory, err);
    strbuf_fini(&bytes);
    return rc;
}

int inventory_read_text(const char *text, size_t length, const char *name,
                        struct inventory *out_inventory, struct err *err)
{
    return file_read_or_check_text(text, length, name, out_inventory, err);
}

int inventory_check_text(const char *text, size_t length, const char *name, struct err *err)
{
    return file_read_or_check_text(text, length, name, NULL, err);
}

int inventory_read_file(const char *path, struct inventory *out_inventory, struct err *err)
{
    return file_read_or_check(path, out_inventory, err);
}

int inventory_check_file(const char *path, struct err *err)
{
    return file_read_or_check(path, NULL, err);
}
