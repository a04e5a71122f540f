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
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = text.failed ? err_no_memory(err)
                         : inventory_check_text(text.data, text.length, "inventory", err);
    if (!rc)
        rc = out_file_write(path, text.data, text.length, err);
    strbuf_fini(&text);
    if (rc || out_file_in_place(path))
        return rc;
    return inventory_check_file(path, err);
}
