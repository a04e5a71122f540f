/* Adds world files to a world, each once. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/world.h"

/* The path under which the same figures were added before; NULL: they are new. */
static const char *twin_of(const struct world *world, uint64_t hash)
{
    for (size_t i = 0; i < world->source_count; i++)
        if (world->sources[i].hash == hash)
            return world->sources[i].path;
    return NULL;
}

static int remember(struct world *world, const char *path, uint64_t hash)
{
    struct world_source *grown =
        mem_grow(world->sources, &world->source_room, world->source_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    world->sources = grown;
    grown[world->source_count] = (struct world_source){.path = str_copy(path), .hash = hash};
    if (!grown[world->source_count].path)
        return -ENOMEM;
    world->source_count++;
    return 0;
}

/* Files are compared as they would be printed: comments and line breaks do not matter. */
static int add(struct world *into, const char *path, const struct world *read, struct err *err)
{
    struct strbuf text = {0};
    world_print(read, "", &text);
    if (text.failed || !text.data) {
        strbuf_fini(&text);
        return err_no_memory(err);
    }
    uint64_t hash = str_hash(text.data);
    strbuf_fini(&text);
    const char *twin = twin_of(into, hash);
    if (twin)
        return err_set(err, -EINVAL, "%s: has the same figures as %s: its GPUs would count twice",
                       path, twin);
    return remember(into, path, hash) || world_add(into, read) ? err_no_memory(err) : 0;
}

int world_add_file(struct world *into, const char *path, struct err *err)
{
    struct world read = {0};
    int rc = world_read_file(path, &read, err);
    if (rc)
        return rc;
    rc = add(into, path, &read, err);
    world_fini(&read);
    return rc;
}
