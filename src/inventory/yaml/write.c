/* Writes an inventory so that a reader never sees half a file. */
#include "base/out_file.h"
#include "inventory/inventory.h"

int inventory_write_file(const struct inventory *inventory, const char *path, struct err *err)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = text.failed ? err_no_memory(err) : out_file_write(path, text.data, text.length, err);
    strbuf_fini(&text);
    return rc;
}

/* stdout, pipes and devices cannot be read back, so the text is checked before it is written. */
int inventory_write_checked(const struct inventory *inventory, const char *path, struct err *err)
{
    struct inventory before = {0}, back = {0};
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = text.failed ? err_no_memory(err)
                         : inventory_read_text(text.data, text.length, "inventory", &before, err);
    inventory_fini(&before);
    strbuf_fini(&text);
    if (rc)
        return rc;
    rc = inventory_write_file(inventory, path, err);
    if (rc || out_file_in_place(path))
        return rc;
    rc = inventory_read_file(path, &back, err);
    inventory_fini(&back);
    return rc;
}
