/* The files that follow from the tables of the inventory: `describe ROOT` writes them, `describe
 * --check ROOT` says which of them differ from the tables (exit code 1). */
#include <stdio.h>
#include <string.h>

#include "base/out_file.h"
#include "base/yaml.h"
#include "inventory/inventory.h"

static const struct described_file {
    const char *path;
    void (*print)(struct strbuf *out_text);
} described_files[] = {
    {"reports/inventory.schema.json", inventory_print_json_schema},
    {"docs/INVENTORY.md", inventory_print_markdown},
};

/* True if the file is as it should be. */
static bool describe_file(const struct described_file *file, const char *root, bool check)
{
    char path[4096];
    struct strbuf text = {0}, found = {0};
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", root, file->path);
    file->print(&text);
    int rc = check ? yaml_load_text(path, &yaml_limits_config, &found, &err)
                   : out_file_write(path, text.data, text.length, &err);
    bool same = !rc && (!check || (found.length == text.length &&
                                   memcmp(found.data, text.data, text.length) == 0));
    if (rc)
        fprintf(stderr, "%s: %s\n", path, err.text);
    else if (!same)
        fprintf(stderr, "%s differs from the tables: meson compile describe\n", path);
    strbuf_fini(&text);
    strbuf_fini(&found);
    return same;
}

int main(int argc, char **argv)
{
    bool check = argc == 3 && strcmp(argv[1], "--check") == 0, well = true;
    if (argc != 2 && !check) {
        fprintf(stderr, "usage: describe [--check] ROOT\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof described_files / sizeof *described_files; i++)
        well &= describe_file(&described_files[i], argv[argc - 1], check);
    return well ? 0 : 1;
}
