/* Reads an inventory from a file or text: what inventory_print has written GPU by GPU, any other
 * YAML as a whole. */
#include <errno.h>

#include "base/mem.h"
#include "base/yaml_plain.h"
#include "inventory/inventory.h"
#include "inventory/yaml/read.h"

/* For yaml_plain_read: the GPUs of an inventory as they come. */
struct gpus_taken {
    struct inventory *inventory;
    size_t capacity;
    bool forget; /* only whether they can be read is asked */
};

static int take_gpu(void *user, const struct yaml_node *item, struct err *err)
{
    struct gpus_taken *taken = user;
    struct inventory *inventory = taken->inventory;
    if (taken->forget) {
        struct inventory_gpu gpu = {0};
        int rc = inventory_read_gpu(item, &gpu, err);
        inventory_gpu_fini(&gpu);
        return rc;
    }
    struct inventory_gpu *grown =
        mem_grow(inventory->gpus, &taken->capacity, inventory->gpu_count + 1, sizeof *grown);
    if (!grown)
        return err_no_memory(err);
    inventory->gpus = grown;
    return inventory_read_gpu(item, &grown[inventory->gpu_count++], err);
}

/* Reads what inventory_print has written, GPU by GPU: -ENOTSUP if it may be something else. */
static int read_plain(const char *text_data, size_t length, const char *name, bool forget,
                      struct inventory *out_inventory, struct err *err)
{
    struct inventory inventory = {0};
    struct gpus_taken taken = {.inventory = &inventory, .forget = forget};
    const struct yaml_plain_list list = {"gpus", take_gpu, &taken};
    struct yaml_doc *doc = NULL;
    int rc = yaml_plain_read(text_data, length, name, &yaml_limits_plain, &list, &doc);
    if (!rc) {
        rc = inventory_read_document(doc, &inventory, NULL);
        if (rc)
            rc = rc == -ENOMEM ? err_no_memory(err) : -ENOTSUP;
    }
    if (rc)
        inventory_fini(&inventory);
    else
        *out_inventory = inventory;
    yaml_destroy(doc);
    return rc;
}

/* libyaml for all that is not in the plain form, and for what is wrong with a file. */
static int read_any(const char *text_data, size_t length, const char *name,
                    struct inventory *out_inventory, struct err *err)
{
    struct inventory inventory = {0};
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text_data, length, name, &yaml_limits_inventory, &doc, err);
    if (!rc)
        rc = inventory_read_document(doc, &inventory, err);
    if (rc)
        inventory_fini(&inventory);
    else
        *out_inventory = inventory;
    yaml_destroy(doc);
    return rc;
}

int inventory_read_text(const char *text_data, size_t length, const char *name,
                        struct inventory *out_inventory, struct err *err)
{
    int rc = read_plain(text_data, length, name, false, out_inventory, err);
    return rc == -ENOTSUP ? read_any(text_data, length, name, out_inventory, err) : rc;
}

int inventory_check_text(const char *text_data, size_t length, const char *name, struct err *err)
{
    struct inventory inventory = {0};
    int rc = read_plain(text_data, length, name, true, &inventory, err);
    if (rc == -ENOTSUP)
        rc = read_any(text_data, length, name, &inventory, err);
    inventory_fini(&inventory);
    return rc;
}

int inventory_read_file(const char *path, struct inventory *out_inventory, struct err *err)
{
    struct strbuf bytes = {0};
    int rc = yaml_load_text(path, &yaml_limits_plain, &bytes, err);
    if (!rc)
        rc = inventory_read_text(bytes.data ? bytes.data : "", bytes.length, path, out_inventory,
                                 err);
    strbuf_fini(&bytes);
    return rc;
}

int inventory_check_file(const char *path, struct err *err)
{
    struct strbuf bytes = {0};
    int rc = yaml_load_text(path, &yaml_limits_plain, &bytes, err);
    if (!rc)
        rc = inventory_check_text(bytes.data ? bytes.data : "", bytes.length, path, err);
    strbuf_fini(&bytes);
    return rc;
}
