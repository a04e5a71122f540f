/* Racks and switches of nodes, from a file of the site. */
#include "report/racks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum { WORDS = 3, LINE_BYTES = 4096 };

static int racks_add_line(struct racks *racks, char *line, const char *path, int number,
                          struct err *err)
{
    char *words[WORDS] = {0}, *rest = NULL;
    size_t count = 0;
    if (strlen(line) == LINE_BYTES - 1 && line[LINE_BYTES - 2] != '\n')
        return err_set_at(err, -EINVAL, path, number, 1, "the line is too long");
    line[strcspn(line, "#\r\n")] = '\0';
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (count < WORDS)
            words[count] = word;
        count++;
    }
    if (!count)
        return 0;
    if (count < 2 || count > WORDS)
        return err_set_at(err, -EINVAL, path, number, 1,
                          "expected NODE RACK, or NODE RACK SWITCH; there are %zu words", count);
    racks->items = mem_grow(racks->items, &racks->capacity, racks->count + 1, sizeof *racks->items);
    racks->items[racks->count++] =
        (struct rack_place){.node = str_copy(words[0]),
                            .rack = str_copy(words[1]),
                            .leaf = words[2] ? str_copy(words[2]) : NULL};
    return 0;
}

static int racks_by_node(const void *a, const void *b)
{
    return strcmp(((const struct rack_place *)a)->node, ((const struct rack_place *)b)->node);
}

/* Sorts; a node that is there twice is an error. */
static int racks_settle(struct racks *racks, const char *path, struct err *err)
{
    if (racks->count)
        sort_stable(racks->items, racks->count, sizeof *racks->items, racks_by_node);
    for (size_t i = 1; i < racks->count; i++)
        if (racks_by_node(&racks->items[i - 1], &racks->items[i]) == 0)
            return err_set(err, -EINVAL, "%s: node %.80s is there twice", path,
                           racks->items[i].node);
    return 0;
}

int racks_read_file(const char *path, struct racks *out_racks, struct err *err)
{
    struct racks racks = {0};
    char line[LINE_BYTES];
    int rc = 0, number = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    while (!rc && fgets(line, sizeof line, file))
        rc = racks_add_line(&racks, line, path, ++number, err);
    if (!rc && ferror(file))
        rc = err_set(err, -EIO, "%s: cannot read", path);
    if (!rc)
        rc = racks_settle(&racks, path, err);
    fclose(file);
    if (rc)
        racks_fini(&racks);
    else
        *out_racks = racks;
    return rc;
}

void racks_fini(struct racks *racks)
{
    for (size_t i = 0; i < racks->count; i++) {
        free(racks->items[i].node);
        free(racks->items[i].rack);
        free(racks->items[i].leaf);
    }
    free(racks->items);
    *racks = (struct racks){0};
}

const struct rack_place *racks_find(const struct racks *racks, const char *node)
{
    const struct rack_place wanted = {.node = (char *)node};
    return racks && racks->count && node
               ? bsearch(&wanted, racks->items, racks->count, sizeof *racks->items, racks_by_node)
               : NULL;
}
