/* Finds the GPU that a user names: by its place or by its UUID. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "report/history/history_changes.h"

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

static bool has_uuid(const char *uuid, const char *name)
{
    static const char prefix[] = "GPU-";
    return *name && uuid &&
           (begins(uuid, name) || (begins(uuid, prefix) && begins(uuid + sizeof prefix - 1, name)));
}

/* "3" is the index, anything else the PCI address or its end ("3b:00.0"). */
static bool is_at(const struct history *history, const struct history_sighting *sighting,
                  const char *place)
{
    const char *pci = symbols_data(&history->symbols, sighting->pci);
    uint64_t index;
    if (str_parse_u64(place, &index) == 0)
        return sighting->index >= 0 && (uint64_t)sighting->index == index;
    const size_t length = strlen(place), whole = pci ? strlen(pci) : 0;
    return length >= 4 && length <= whole && strcasecmp(pci + whole - length, place) == 0;
}

/* The card that was seen last in a place; NULL: none ever was. */
static const struct history_gpu *find_at(const struct history *history, uint32_t node,
                                         const char *place)
{
    const struct history_gpu *found = NULL;
    uint32_t latest = 0;
    for (size_t g = 0; g < history->gpu_count; g++)
        for (size_t i = history->gpus[g].count; i-- > 0;) {
            const struct history_sighting *sighting = &history->gpus[g].sightings[i];
            if (sighting->node != node || !is_at(history, sighting, place))
                continue;
            if (!found || sighting->survey > latest) {
                found = &history->gpus[g];
                latest = sighting->survey;
            }
            break;
        }
    return found;
}

/* -ENOENT with the nearest name of a node. */
static int no_node(const struct history *history, const char *node, struct err *err)
{
    const char **names = mem_array(history->visit_count, sizeof *names);
    size_t count = 0;
    if (!names)
        return err_no_memory(err);
    for (size_t i = 0; i < history->visit_count; i++) /* sorted by node */
        if (!i || history->visits[i].node != history->visits[i - 1].node)
            names[count++] = symbols_data(&history->symbols, history->visits[i].node);
    const char *near = str_nearest(node, names, count);
    int rc = near ? err_set(err, -ENOENT,
                            "no node \"%.60s\" in these inventories; did you mean "
                            "\"%.60s\"?",
                            node, near)
                  : err_set(err, -ENOENT, "no node \"%.60s\" in these inventories", node);
    free(names);
    return rc;
}

static int find_by_place(const struct history *history, const char *name,
                         const struct history_gpu **out_gpu, struct err *err)
{
    const char *colon = strchr(name, ':');
    char *node = str_copy_n(name, (size_t)(colon - name));
    if (!node)
        return err_no_memory(err);
    const uint32_t symbol = symbols_find(&history->symbols, node);
    const struct history_gpu *found = symbol ? find_at(history, symbol, colon + 1) : NULL;
    int rc = 0;
    if (found)
        *out_gpu = found;
    else if (!symbol)
        rc = no_node(history, node, err);
    else
        rc = err_set(err, -ENOENT, "no GPU \"%.60s\" was ever seen on %.60s", colon + 1, node);
    free(node);
    return rc;
}

int history_changes_gpu(const struct history *history, const char *name,
                        const struct history_gpu **out_gpu, struct err *err)
{
    const struct history_gpu *found = NULL;
    size_t count = 0;
    for (size_t g = 0; g < history->gpu_count; g++) {
        const char *uuid = symbols_data(&history->symbols, history->gpus[g].sightings[0].uuid);
        if (!has_uuid(uuid, name))
            continue;
        found = &history->gpus[g];
        count++;
        if (strcasecmp(uuid, name) == 0) { /* not only the beginning */
            count = 1;
            break;
        }
    }
    if (count == 1) {
        *out_gpu = found;
        return 0;
    }
    if (count)
        return err_set(err, -ENOTUNIQ, "%zu GPUs begin with \"%.60s\"", count, name);
    if (strchr(name, ':'))
        return find_by_place(history, name, out_gpu, err);
    return err_set(err, -ENOENT,
                   "no GPU begins with \"%.60s\"; a GPU is NODE:INDEX, NODE:PCI or a UUID", name);
}
